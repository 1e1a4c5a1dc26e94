//! Why an operation on layouts is not defined for its operands.

/// An operation that is not defined for its operands: the condition that fails, and the values that fail it.
///
/// ```
/// use lacewing_core::layout::Layout;
///
/// let rows: Layout = "(4,3):(3,1)".parse()?;
/// let refused = rows.composition("6:1".parse::<Layout>()?).unwrap_err();
/// assert!(refused.to_string().contains("6 elements are not a multiple of 4"));
/// # Ok::<(), lacewing_core::layout::LayoutError>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum LayoutError {
    /// A shape and a stride of different nesting.
    #[error("shape {shape} and stride {stride} are not congruent: each extent needs a stride in the same place")]
    NotCongruent {
        /// The shape.
        shape: String,
        /// The stride.
        stride: String,
    },
    /// An extent below 1.
    #[error("an extent of {extent}: extents start at 1")]
    Extent {
        /// The extent.
        extent: i64,
    },
    /// A value outside the range of layouts.
    #[error("{what} leaves the range of layouts, which is 2^62 either way")]
    TooLarge {
        /// What was computed.
        what: String,
    },
    /// A run-time value where a value known at trace time is needed.
    #[error("{operation} needs a value that is known at trace time, and {value} is not")]
    Dynamic {
        /// The operation.
        operation: &'static str,
        /// The value.
        value: String,
    },
    /// A negative stride or value where none is allowed.
    #[error("{operation} is not defined for negative strides, and {layout} has one")]
    Negative {
        /// The operation.
        operation: &'static str,
        /// The layout.
        layout: String,
    },
    /// A coordinate outside its extent.
    #[error("coordinate {coordinate} lies outside the extent {extent}")]
    OutOfRange {
        /// The coordinate.
        coordinate: i64,
        /// The extent.
        extent: i64,
    },
    /// A coordinate, profile or tiler nested deeper or wider than the layout that it speaks of.
    #[error("{operation}: {inner} does not fit the nesting of {outer}")]
    Profile {
        /// The operation.
        operation: &'static str,
        /// What does not fit.
        inner: String,
        /// What it should fit.
        outer: String,
    },
    /// A mode that does not exist.
    #[error("{operation}: mode {mode} of {rank}")]
    Mode {
        /// The operation.
        operation: &'static str,
        /// The mode, or the end of a range of modes.
        mode: usize,
        /// How many there are.
        rank: usize,
    },
    /// The stride divisibility condition of composition.
    #[error("{lhs} o {rhs}: the stride {stride} neither divides the extent {extent} nor is a multiple of it")]
    StrideDivisibility {
        /// The left operand, coalesced.
        lhs: String,
        /// The right operand.
        rhs: String,
        /// The part of the stride that is left at that mode.
        stride: i64,
        /// The extent of the left operand's mode.
        extent: i64,
    },
    /// The shape divisibility condition of composition.
    #[error("{lhs} o {rhs}: {elements} elements are not a multiple of {extent}, so they end inside a mode")]
    ShapeDivisibility {
        /// The left operand, coalesced.
        lhs: String,
        /// The right operand.
        rhs: String,
        /// How many elements are left at that mode.
        elements: i64,
        /// How many elements of the left operand's mode the stride leaves.
        extent: i64,
    },
    /// Modes of the right operand of a composition that add up beyond a mode of the left one.
    #[error(
        "{lhs} o {rhs}: the modes of the right layout together reach {reached} in a mode of extent {extent}; the carry is no layout"
    )]
    Carry {
        /// The left operand, coalesced.
        lhs: String,
        /// The right operand.
        rhs: String,
        /// The largest coordinate reached.
        reached: i64,
        /// The extent of the mode.
        extent: i64,
    },
    /// Two coordinates share an index, or interleave so that no mode separates them.
    #[error("{operation}: the modes of {layout} overlap or interleave at stride {stride}")]
    Overlap {
        /// The operation.
        operation: &'static str,
        /// The layout.
        layout: String,
        /// The stride at which they do.
        stride: i64,
    },
    /// A tiler that together with its repetitions leaves elements out.
    #[error("tiler {tiler} leaves out elements: its stride {stride} is not a multiple of {block}")]
    Holes {
        /// The tiler.
        tiler: String,
        /// The stride.
        stride: i64,
        /// The elements that the modes below it span.
        block: i64,
    },
    /// An index that no coordinate maps to.
    #[error("no coordinate of {layout} has the index {index}")]
    NotInImage {
        /// The layout.
        layout: String,
        /// The index.
        index: i64,
    },
    /// A block that does not divide the shape it is to be repeated over.
    #[error("{operation}: {divisor} does not divide {value}")]
    NotDivisible {
        /// The operation.
        operation: &'static str,
        /// The divisor.
        divisor: String,
        /// What it should divide.
        value: String,
    },
    /// A change of the element's width that a layout cannot express.
    #[error("{layout} cannot be recast by {factor}: {why}")]
    Recast {
        /// The layout.
        layout: String,
        /// Elements of the narrow type in one of the wide type.
        factor: i64,
        /// The condition that fails.
        why: &'static str,
    },
    /// Parameters that are no swizzle.
    #[error("Swizzle<{bits},{base},{shift}>: {why}")]
    Swizzle {
        /// The number of bits.
        bits: u32,
        /// The number of bits that stay as they are.
        base: u32,
        /// The distance of the fields.
        shift: i32,
        /// The condition that fails.
        why: &'static str,
    },
    /// An argument outside its range.
    #[error("{what} of {value}: {why}")]
    Argument {
        /// Which argument.
        what: &'static str,
        /// Its value.
        value: i64,
        /// The condition that fails.
        why: &'static str,
    },
    /// No layout of a tile that keeps accesses free of bank conflicts.
    #[error(
        "no layout of {rows} x {columns} elements was found without bank conflicts: the best has {degree}-way ones"
    )]
    Conflicts {
        /// Rows of the tile.
        rows: i64,
        /// Columns of the tile.
        columns: i64,
        /// The degree of the best layout's worst access.
        degree: u64,
    },
    /// A text that is no layout.
    #[error("`{text}`, byte {at}: expected {expected}")]
    Parse {
        /// The text.
        text: String,
        /// Where, in bytes.
        at: usize,
        /// What should stand there.
        expected: &'static str,
    },
}

impl LayoutError {
    pub(super) fn too_large(what: impl ToString) -> Self {
        Self::TooLarge { what: what.to_string() }
    }

    pub(super) fn profile(operation: &'static str, inner: &impl ToString, outer: &impl ToString) -> Self {
        Self::Profile { operation, inner: inner.to_string(), outer: outer.to_string() }
    }
}

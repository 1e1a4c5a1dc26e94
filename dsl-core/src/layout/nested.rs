//! Trees whose leaves are extents, coordinates, tiles or modes.

use std::ops::{Range, RangeFull};

use super::LayoutError;
use super::dim::{Dim, Symbol};

/// A leaf, or a tuple of trees: the hierarchy of CuTe's tuples.
///
/// Rust tuples convert: `(8, (2, 4))`. A tuple of one is `(8,)`. The modes of a tuple are its elements; a leaf is
/// its own only mode.
///
/// ```
/// use lacewing_core::layout::IntTuple;
///
/// let shape = IntTuple::from((3, (2, 3)));
/// assert_eq!((shape.rank(), shape.depth()), (2, 2));
/// assert_eq!(shape.flatten().to_string(), "(3,2,3)");
/// assert_eq!(shape.product()?, 18);
/// # Ok::<(), lacewing_core::layout::LayoutError>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Nested<T> {
    /// One element.
    Leaf(T),
    /// A tuple of trees.
    Tuple(Vec<Nested<T>>),
}

/// A hierarchical tuple of integers: a shape, a stride or a profile.
pub type IntTuple = Nested<Dim>;

impl<T> Nested<T> {
    /// The number of modes; 1 for a leaf.
    pub fn rank(&self) -> usize {
        self.modes().len()
    }

    /// Levels of tuples; 0 for a leaf.
    pub fn depth(&self) -> usize {
        match self {
            Self::Leaf(_) => 0,
            Self::Tuple(modes) => 1 + modes.iter().map(Self::depth).max().unwrap_or(0),
        }
    }

    /// The modes. A leaf is its only mode.
    pub fn modes(&self) -> &[Self] {
        match self {
            Self::Leaf(_) => std::slice::from_ref(self),
            Self::Tuple(modes) => modes,
        }
    }

    /// The subtree at a path of mode numbers.
    pub fn at(&self, path: &[usize]) -> Option<&Self> {
        path.iter().try_fold(self, |tree, &mode| tree.modes().get(mode))
    }

    /// The leaves from left to right.
    pub fn leaves(&self) -> Vec<&T> {
        let mut leaves = Vec::new();
        self.push_leaves(&mut leaves);
        leaves
    }

    fn push_leaves<'a>(&'a self, leaves: &mut Vec<&'a T>) {
        match self {
            Self::Leaf(leaf) => leaves.push(leaf),
            Self::Tuple(modes) => modes.iter().for_each(|mode| mode.push_leaves(leaves)),
        }
    }

    /// The same tree of other leaves.
    pub fn map<U>(&self, f: &mut impl FnMut(&T) -> U) -> Nested<U> {
        match self {
            Self::Leaf(leaf) => Nested::Leaf(f(leaf)),
            Self::Tuple(modes) => Nested::Tuple(modes.iter().map(|mode| mode.map(f)).collect()),
        }
    }

    /// The tree in which each leaf is replaced by a tree.
    pub(super) fn try_expand<U>(
        &self,
        f: &mut impl FnMut(&T) -> Result<Nested<U>, LayoutError>,
    ) -> Result<Nested<U>, LayoutError> {
        match self {
            Self::Leaf(leaf) => f(leaf),
            Self::Tuple(modes) => {
                Ok(Nested::Tuple(modes.iter().map(|mode| mode.try_expand(f)).collect::<Result<_, _>>()?))
            }
        }
    }

    /// Whether both trees have the same tuples; leaves may differ.
    pub fn congruent<U>(&self, other: &Nested<U>) -> bool {
        match (self, other) {
            (Self::Leaf(_), Nested::Leaf(_)) => true,
            (Self::Tuple(left), Nested::Tuple(right)) => {
                left.len() == right.len() && left.iter().zip(right).all(|(left, right)| left.congruent(right))
            }
            _ => false,
        }
    }
}

impl<T: Clone> Nested<T> {
    /// The tuple of the leaves; a leaf stays a leaf.
    #[must_use]
    pub fn flatten(&self) -> Self {
        match self {
            Self::Leaf(_) => self.clone(),
            Self::Tuple(_) => Self::Tuple(self.leaves().into_iter().cloned().map(Self::Leaf).collect()),
        }
    }

    /// The tree with one more mode at the end.
    #[must_use]
    pub fn append(&self, mode: Self) -> Self {
        Self::Tuple([self.modes(), &[mode]].concat())
    }

    /// The tree with one more mode in front.
    #[must_use]
    pub fn prepend(&self, mode: Self) -> Self {
        Self::Tuple([&[mode], self.modes()].concat())
    }

    /// The tree with `mode` in place of mode number `at`.
    pub fn replace(&self, at: usize, mode: Self) -> Result<Self, LayoutError> {
        let mut modes = self.modes().to_vec();
        let rank = modes.len();
        *modes.get_mut(at).ok_or(LayoutError::Mode { operation: "replace", mode: at, rank })? = mode;
        Ok(Self::Tuple(modes))
    }

    fn range(&self, operation: &'static str, range: &Range<usize>) -> Result<&[Self], LayoutError> {
        let modes = self.modes();
        modes.get(range.clone()).filter(|part| !part.is_empty()).ok_or(LayoutError::Mode {
            operation,
            mode: range.end,
            rank: modes.len(),
        })
    }

    /// Modes `range` as a tuple.
    pub fn take(&self, range: Range<usize>) -> Result<Self, LayoutError> {
        Ok(Self::Tuple(self.range("take", &range)?.to_vec()))
    }

    /// The modes of these numbers, in this order, as a tuple.
    pub fn select(&self, modes: &[usize]) -> Result<Self, LayoutError> {
        let (all, operation) = (self.modes(), "select");
        let picked = modes
            .iter()
            .map(|&mode| all.get(mode).cloned().ok_or(LayoutError::Mode { operation, mode, rank: all.len() }));
        Ok(Self::Tuple(picked.collect::<Result<_, _>>()?))
    }

    /// The tree with modes `range` made one tuple in their place.
    pub fn group(&self, range: Range<usize>) -> Result<Self, LayoutError> {
        let grouped = Self::Tuple(self.range("group", &range)?.to_vec());
        let (before, after) = (self.modes().iter().take(range.start), self.modes().iter().skip(range.end));
        Ok(Self::Tuple(before.cloned().chain([grouped]).chain(after.cloned()).collect()))
    }
}

impl IntTuple {
    /// The product of all leaves: the size of a shape.
    pub fn product(&self) -> Result<Dim, LayoutError> {
        self.leaves().into_iter().try_fold(Dim::Static(1), |product, dim| product.times(dim))
    }

    /// Whether every coordinate of this shape is one of `other`, and both have one size: `other` splits leaves of
    /// this shape into tuples. `24` is compatible with `(4,6)`, and that with `((2,2),6)`.
    pub fn compatible(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Tuple(left), Self::Tuple(right)) => {
                left.len() == right.len() && left.iter().zip(right).all(|(left, right)| left.compatible(right))
            }
            (Self::Leaf(extent), _) => other.product().is_ok_and(|size| size == *extent),
            (Self::Tuple(_), Self::Leaf(_)) => false,
        }
    }
}

macro_rules! leaf_conversions {
    ($($leaf:ty),*) => {$(
        impl<T: From<$leaf>> From<$leaf> for Nested<T> {
            fn from(leaf: $leaf) -> Self {
                Self::Leaf(leaf.into())
            }
        }
    )*};
}

leaf_conversions!(i32, i64, u32, usize, Symbol, RangeFull);

impl From<Dim> for IntTuple {
    fn from(dim: Dim) -> Self {
        Self::Leaf(dim)
    }
}

impl<T: Clone> From<&Nested<T>> for Nested<T> {
    fn from(tree: &Nested<T>) -> Self {
        tree.clone()
    }
}

impl<T, A: Into<Nested<T>>> From<Vec<A>> for Nested<T> {
    fn from(modes: Vec<A>) -> Self {
        Self::Tuple(modes.into_iter().map(Into::into).collect())
    }
}

macro_rules! tuple_conversions {
    ($(($($name:ident)+))*) => {$(
        impl<T, $($name: Into<Nested<T>>),+> From<($($name,)+)> for Nested<T> {
            #[expect(non_snake_case, reason = "the type parameters name the elements")]
            fn from(($($name,)+): ($($name,)+)) -> Self {
                Self::Tuple(vec![$($name.into()),+])
            }
        }
    )*};
}

tuple_conversions! { (A) (A B) (A B C) (A B C D) (A B C D E) (A B C D E F) (A B C D E F G) (A B C D E F G H) }

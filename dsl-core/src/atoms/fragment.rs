//! Fragments: a thread's part of the operands of matrix instructions.

use std::marker::PhantomData;
use std::panic::Location;

use super::spec::{MatrixOp, MmaSpec, OperandSpec, Role};
use super::table::{AccumulatorAsA, AccumulatorAsB, MmaAtom};
use crate::rt::{Carried, State, Visitor};
use crate::trace::{self, Attr, Constant, IrType, Loc, RawValue};
use crate::types::{CastTarget, Num, Scalar, Vector};
use crate::{Diagnostic, ScalarType};

/// The roles of operands as types.
pub mod operand {
    use super::{MmaAtom, Role, Scalar};

    /// An operand's role as a type: [`A`], [`B`] or [`C`].
    pub trait OperandRole: Copy + std::fmt::Debug + 'static {
        /// As a value.
        const ROLE: Role;
        /// Element type of this operand of an atom.
        type Element<M: MmaAtom>: Scalar;
    }

    /// The left factor.
    #[derive(Clone, Copy, Debug)]
    pub struct A;
    /// The right factor.
    #[derive(Clone, Copy, Debug)]
    pub struct B;
    /// The accumulator.
    #[derive(Clone, Copy, Debug)]
    pub struct C;

    impl OperandRole for A {
        const ROLE: Role = Role::A;
        type Element<M: MmaAtom> = M::A;
    }
    impl OperandRole for B {
        const ROLE: Role = Role::B;
        type Element<M: MmaAtom> = M::B;
    }
    impl OperandRole for C {
        const ROLE: Role = Role::C;
        type Element<M: MmaAtom> = M::C;
    }
}

use operand::OperandRole;

/// A thread's values of a tile of operand `R` (A, B or C) of atom `M`: what one warp's instructions read and write.
///
/// The tile is a grid of atoms. Value `v` of atom `(i, j)` is an element of the atom's block of rows `i` and columns
/// `j`, which count `(m, k)` for A, `(n, k)` for B and `(m, n)` for C; where in the block it lies is
/// [`OperandSpec::tv`]'s business. Fragments live in registers: their indices are host numbers.
#[must_use = "a fragment that is never used computes nothing"]
#[derive(Clone, Debug)]
pub struct Fragment<M: MmaAtom, R: OperandRole> {
    /// By atom, rows first, then by register.
    registers: Vec<RawValue>,
    grid: [usize; 2],
    kind: PhantomData<(M, R)>,
}

/// Operand A of atom `M`.
pub type FragmentA<M> = Fragment<M, operand::A>;
/// Operand B of atom `M`.
pub type FragmentB<M> = Fragment<M, operand::B>;
/// Accumulators of atom `M`.
pub type FragmentC<M> = Fragment<M, operand::C>;

impl<M: MmaAtom, R: OperandRole> State for Fragment<M, R> {
    fn visit(&mut self, visitor: &mut dyn Visitor) {
        self.registers.iter_mut().for_each(|register| visitor.value(register));
        visitor.host(format!("a grid of {} x {} atoms", self.grid[0], self.grid[1]));
    }
}
impl<M: MmaAtom, R: OperandRole> Carried for Fragment<M, R> {}

/// Takes a register apart into its values.
pub(super) fn unpacked(operand: &OperandSpec, register: RawValue, loc: Loc) -> Vec<RawValue> {
    if operand.pack == 1 {
        return vec![register];
    }
    (0..operand.pack).map(|at| extract(operand.element, register, at, loc)).collect()
}

pub(super) fn extract(element: ScalarType, vector: RawValue, at: usize, loc: Loc) -> RawValue {
    let position = ("static_position", Attr::Text(format!("array<i64: {at}>")));
    trace::emit1("vector.extract", &[vector], IrType::Scalar(element), &[position], loc)
}

/// Makes registers of their values.
pub(super) fn packed(operand: &OperandSpec, values: &[RawValue], loc: Loc) -> Vec<RawValue> {
    if operand.pack == 1 {
        return values.to_vec();
    }
    let register =
        |values: &[RawValue]| trace::emit1("vector.from_elements", values, operand.register_type(), &[], loc);
    values.chunks(operand.pack).map(register).collect()
}

impl<M: MmaAtom, R: OperandRole> Fragment<M, R> {
    /// The operand's description.
    pub const OPERAND: OperandSpec = *M::SPEC.operand(R::ROLE);

    pub(super) fn from_registers(registers: Vec<RawValue>, grid: [usize; 2]) -> Self {
        Self { registers, grid, kind: PhantomData }
    }

    /// Replaces the registers of one atom.
    pub(super) fn set_atom(&mut self, at: [usize; 2], registers: &[RawValue]) {
        let count = Self::OPERAND.registers();
        let first = (at[0] * self.grid[1] + at[1]) * count;
        for (old, new) in self.registers.iter_mut().skip(first).zip(registers) {
            *old = *new;
        }
    }

    pub(super) fn atom(&self, at: [usize; 2]) -> &[RawValue] {
        if at[0] >= self.grid[0] || at[1] >= self.grid[1] {
            return &[];
        }
        let count = Self::OPERAND.registers();
        let first = (at[0] * self.grid[1] + at[1]) * count;
        self.registers.get(first..first + count).unwrap_or(&[])
    }

    /// A tile of `rows` x `columns` elements of one warp, every element of which is `value`. Rows and columns count
    /// as [`Fragment`] says and must be multiples of the atom's; otherwise it is a trace error here.
    #[track_caller]
    pub fn splat(rows: usize, columns: usize, value: R::Element<M>) -> Self {
        let loc = Location::caller();
        let grid = grid_of(&M::SPEC, R::ROLE, [rows, columns], loc);
        let operand = Self::OPERAND;
        let registers = match operand.pack {
            1 => vec![value.raw(); grid[0] * grid[1] * operand.registers()],
            _ => {
                let register = trace::emit1("vector.broadcast", &[value.raw()], operand.register_type(), &[], loc);
                vec![register; grid[0] * grid[1] * operand.registers()]
            }
        };
        Self::from_registers(registers, grid)
    }

    /// Atoms along the rows and along the columns.
    pub fn grid(&self) -> [usize; 2] {
        self.grid
    }

    /// Rows and columns of the tile.
    pub fn shape(&self) -> [usize; 2] {
        let [rows, columns] = M::SPEC.extents(R::ROLE);
        [self.grid[0] * rows, self.grid[1] * columns]
    }

    /// Values of the thread in one atom.
    pub fn values(&self) -> usize {
        Self::OPERAND.values()
    }

    /// Row and column of value `v` of atom `(i, j)`, as far as they are the same in all threads: the thread's own
    /// part is [`super::TiledMma::thread_coordinate`].
    pub fn coordinate(&self, at: [usize; 2], value: usize) -> [usize; 2] {
        let [rows, columns] = M::SPEC.extents(R::ROLE);
        let index = Self::OPERAND.tv.index(0, value);
        let along = |i: usize, extent: usize, inside: usize| at[i].saturating_mul(extent).saturating_add(inside);
        [along(0, rows, index % rows), along(1, columns, index / rows)]
    }

    fn check(&self, at: [usize; 2], value: usize, loc: Loc) -> bool {
        let inside = at[0] < self.grid[0] && at[1] < self.grid[1] && value < self.values();
        if !inside {
            let [rows, columns] = self.grid;
            let message = format!("value {value} of atom ({}, {}) of a fragment", at[0], at[1]);
            let label = format!("there are {rows} x {columns} atoms of {} values", self.values());
            trace::error(loc, Diagnostic::error(message).label(label));
        }
        inside
    }

    /// Value `value` of atom `at`, host numbers.
    #[track_caller]
    pub fn get(&self, at: [usize; 2], value: usize) -> R::Element<M> {
        let loc = Location::caller();
        let operand = Self::OPERAND;
        if !self.check(at, value, loc) {
            return R::Element::<M>::from_raw(trace::refused(IrType::Scalar(operand.element), loc));
        }
        R::Element::<M>::from_raw(self.value(at, value, loc).unwrap_or(RawValue::DEAD))
    }

    /// A value, taken out of its register.
    pub(super) fn value(&self, at: [usize; 2], value: usize, loc: Loc) -> Option<RawValue> {
        let operand = Self::OPERAND;
        let register = self.atom(at).get(value / operand.pack).copied()?;
        Some(match operand.pack {
            1 => register,
            pack => extract(operand.element, register, value % pack, loc),
        })
    }

    /// Replaces value `value` of atom `at`.
    #[track_caller]
    pub fn set(&mut self, at: [usize; 2], value: usize, to: R::Element<M>) {
        let loc = Location::caller();
        let operand = Self::OPERAND;
        if !self.check(at, value, loc) {
            return;
        }
        let first = (at[0] * self.grid[1] + at[1]) * operand.registers();
        if let Some(register) = self.registers.get_mut(first + value / operand.pack) {
            *register = match operand.pack {
                1 => to.raw(),
                pack => {
                    let position = ("static_position", Attr::Text(format!("array<i64: {}>", value % pack)));
                    let operands = [to.raw(), *register];
                    trace::emit1("vector.insert", &operands, operand.register_type(), &[position], loc)
                }
            };
        }
    }

    /// Where each value of the thread lies: atom, number in the atom, and the row and column of
    /// [`Fragment::coordinate`]. For `for x in constexpr(fragment.elements())`.
    pub fn elements(&self) -> Vec<Element> {
        let mut elements = Vec::new();
        for i in 0..self.grid[0] {
            for j in 0..self.grid[1] {
                for value in 0..self.values() {
                    let [row, column] = self.coordinate([i, j], value);
                    elements.push(Element { atom: [i, j], value, row, column });
                }
            }
        }
        elements
    }

    /// The atoms of columns `step` alone: one step of k of A and B.
    #[track_caller]
    pub fn step(&self, step: usize) -> Self {
        let loc = Location::caller();
        let rows = self.grid[0];
        if step >= self.grid[1] {
            let message = format!("columns {step} of a fragment of {rows} x {} atoms", self.grid[1]);
            trace::error(loc, Diagnostic::error(message).label("out of range"));
            return self.clone();
        }
        Self::from_registers((0..rows).flat_map(|row| self.atom([row, step]).to_vec()).collect(), [rows, 1])
    }

    /// Replaces every value by `f` of it.
    #[track_caller]
    pub fn map(&mut self, mut f: impl FnMut(R::Element<M>) -> R::Element<M>) {
        let loc = Location::caller();
        let operand = Self::OPERAND;
        let mut replaced = Vec::with_capacity(self.registers.len());
        for &register in &self.registers {
            let values = unpacked(&operand, register, loc).into_iter();
            let values: Vec<_> = values.map(|value| f(R::Element::<M>::from_raw(value)).raw()).collect();
            replaced.extend(packed(&operand, &values, loc));
        }
        self.registers = replaced;
    }

    /// Register `register` of atom `at` as a vector of `N` values, for instructions without an atom. `N` must be
    /// [`OperandSpec::pack`].
    #[track_caller]
    pub fn register<const N: usize>(&self, at: [usize; 2], register: usize) -> Vector<R::Element<M>, N> {
        let loc = Location::caller();
        let found = self.atom(at).get(register).copied().filter(|_| Self::OPERAND.pack == N && N > 1);
        Vector::from_raw(found.unwrap_or_else(|| {
            let message = format!("register {register} of atom ({}, {}) as a vector of {N}", at[0], at[1]);
            let label = format!("there are {} registers of {}", Self::OPERAND.registers(), Self::OPERAND.pack);
            trace::error(loc, Diagnostic::error(message).label(label));
            trace::refused(Vector::<R::Element<M>, N>::TYPE, loc)
        }))
    }
}

/// One value of a fragment: see [`Fragment::elements`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Element {
    /// The atom.
    pub atom: [usize; 2],
    /// The number in the atom.
    pub value: usize,
    /// The row, less the thread's own part.
    pub row: usize,
    /// The column, less the thread's own part.
    pub column: usize,
}

/// How many atoms make a tile of these rows and columns; an error at `loc` where they do not.
pub(super) fn grid_of(spec: &MmaSpec, role: Role, shape: [usize; 2], loc: Loc) -> [usize; 2] {
    let extents = spec.extents(role);
    let fits = |i: usize| shape[i] > 0 && shape[i].is_multiple_of(extents[i]);
    if !fits(0) || !fits(1) {
        let message = format!("operand {role} of {} x {} elements is no grid of atoms", shape[0], shape[1]);
        let [rows, columns] = extents;
        let label = format!("operand {role} of `{}` is {rows} x {columns}", spec.name());
        trace::error(loc, Diagnostic::error(message).label(label).help("round the tile up to whole atoms"));
    }
    let grid = [0, 1].map(|i| shape[i].div_ceil(extents[i]).max(1));
    if grid[0].saturating_mul(grid[1]).saturating_mul(spec.operand(role).registers()) > MAX_REGISTERS {
        let message = format!("operand {role} of {} x {} elements in the registers of one warp", shape[0], shape[1]);
        let label = format!("more than {MAX_REGISTERS} registers a thread");
        trace::error(loc, Diagnostic::error(message).label(label).help("take smaller tiles, or more warps"));
        return [1, 1];
    }
    grid
}

/// Registers of a fragment: many times what a thread has, and few enough to be written out.
const MAX_REGISTERS: usize = 4096;

impl<M: MmaAtom> FragmentC<M> {
    /// Accumulators of a tile of one warp, all 0.
    #[track_caller]
    pub fn zeros(rows: usize, columns: usize) -> Self {
        let loc = Location::caller();
        let zero = match M::SPEC.c.element.is_float() {
            true => Constant::Float(0.0),
            false => Constant::Int(0),
        };
        let grid = grid_of(&M::SPEC, Role::C, [rows, columns], loc);
        let mut zero = trace::constant(M::SPEC.c.element, zero, loc);
        if M::SPEC.c.pack > 1 {
            zero = trace::emit1("vector.broadcast", &[zero], M::SPEC.c.register_type(), &[], loc);
        }
        Self::from_registers(vec![zero; grid[0] * grid[1] * M::SPEC.c.registers()], grid)
    }

    /// The accumulators as the A operand of a next product, with N along its k, converted to A's type as
    /// `.cast` converts. No data moves between threads.
    #[track_caller]
    pub fn to_a(&self) -> FragmentA<M>
    where
        M: AccumulatorAsA<A: CastTarget, C: Num>,
    {
        self.convert(Location::caller())
    }

    /// The transposed accumulators as the B operand of a next product, with M along its k, converted to B's type as
    /// `.cast` converts. No data moves between threads.
    #[track_caller]
    pub fn to_b(&self) -> FragmentB<M>
    where
        M: AccumulatorAsB<B: CastTarget, C: Num>,
    {
        self.convert(Location::caller())
    }

    fn convert<R: OperandRole>(&self, loc: Loc) -> Fragment<M, R> {
        let spec = M::SPEC;
        let target = Fragment::<M, R>::OPERAND;
        // A's rows are C's rows; B's rows (n) are C's columns.
        let transposed = R::ROLE == Role::B;
        let flip = |[row, column]: [usize; 2]| if transposed { [column, row] } else { [row, column] };
        let [rows, columns] = flip(self.shape());
        let grid = grid_of(&spec, R::ROLE, [rows, columns], loc);
        let at = |element: &Element| flip([element.row, element.column]);
        let mut sums: Vec<_> = self.elements();
        sums.sort_by_key(at);
        let mut result = Fragment::<M, R>::from_registers(Vec::new(), grid);
        let mut registers = Vec::new();
        let wanted = result.elements();
        for group in wanted.chunks(target.pack) {
            let values: Option<Vec<RawValue>> = group
                .iter()
                .map(|value| {
                    let found = sums.binary_search_by_key(&[value.row, value.column], at).ok()?;
                    let sum = sums.get(found)?;
                    self.value(sum.atom, sum.value, loc)
                })
                .collect();
            let Some(values) = values else {
                let message = "these accumulators do not lie as the operand does";
                trace::error(loc, Diagnostic::error(message).label("a value would have to change its thread"));
                registers.push(trace::refused(target.register_type(), loc));
                continue;
            };
            registers.push(convert_register(&spec.c, &target, &values, loc));
        }
        result.registers = registers;
        result
    }
}

/// Converts a register's values together, so that pairs become one packed conversion.
fn convert_register(from: &OperandSpec, to: &OperandSpec, values: &[RawValue], loc: Loc) -> RawValue {
    use crate::types::arith::{Rounding, cast};
    match values {
        [one] if to.pack == 1 => cast(from.element, to.element, *one, Rounding::NearestEven, loc),
        _ => {
            let wide = IrType::Vector(from.element, values.len());
            let vector = trace::emit1("vector.from_elements", values, wide, &[], loc);
            cast(from.element, to.element, vector, Rounding::NearestEven, loc)
        }
    }
}

/// What can be the left factor of a product with atom `M`: [`FragmentA<M>`](FragmentA).
#[diagnostic::on_unimplemented(
    message = "the left factor of `gemm` must be a fragment A of the accumulators' atom",
    label = "this is `{Self}`",
    note = "`gemm(&a, &b, &mut acc)` multiplies A (M x K) by B (K x N); all three are of one atom",
    note = "`partition_a` of the atom's `TiledMma` loads an A, and `to_a` makes one of accumulators"
)]
pub trait FactorA<M: MmaAtom> {
    #[doc(hidden)]
    fn fragment(&self) -> &FragmentA<M>;
}

/// What can be the right factor of a product with atom `M`: [`FragmentB<M>`](FragmentB).
#[diagnostic::on_unimplemented(
    message = "the right factor of `gemm` must be a fragment B of the accumulators' atom",
    label = "this is `{Self}`",
    note = "`gemm(&a, &b, &mut acc)` multiplies A (M x K) by B (K x N); all three are of one atom",
    note = "`partition_b` of the atom's `TiledMma` loads a B, and `to_b` makes one of transposed accumulators"
)]
pub trait FactorB<M: MmaAtom> {
    #[doc(hidden)]
    fn fragment(&self) -> &FragmentB<M>;
}

impl<M: MmaAtom> FactorA<M> for FragmentA<M> {
    fn fragment(&self) -> &Self {
        self
    }
}
impl<M: MmaAtom> FactorB<M> for FragmentB<M> {
    fn fragment(&self) -> &Self {
        self
    }
}

/// `acc += a b`: one instruction for each atom of the accumulators and each step of k.
///
/// `a` is a grid of (m, k) atoms, `b` of (n, k), `acc` of (m, n); grids that do not go together are a trace error
/// here, and so is a chip without the instruction.
#[track_caller]
pub fn gemm<M: MmaAtom>(a: &impl FactorA<M>, b: &impl FactorB<M>, acc: &mut FragmentC<M>) {
    let loc = Location::caller();
    let (a, b) = (a.fragment(), b.fragment());
    let [[m, k], [n, k_of_b], [m_of_c, n_of_c]] = [a.grid(), b.grid(), acc.grid()];
    if (m, n, k) != (m_of_c, n_of_c, k_of_b) {
        let message = format!(
            "these tiles do not multiply: A is {m} x {k} atoms and B {n} x {k_of_b} for {m_of_c} x {n_of_c} sums"
        );
        let diagnostic = Diagnostic::error(message).label("A is (m, k), B is (n, k) and the sums are (m, n)");
        trace::error(loc, diagnostic);
        return;
    }
    if let Some(Err(reason)) = trace::with(|t| t.target()).map(|target| M::SPEC.legal_on(target)) {
        let target = crate::types::target();
        let message = format!("`{}` does not exist on {target}", M::SPEC.name());
        trace::error(loc, Diagnostic::error(message).label("this product needs it").help(reason));
        return;
    }
    for step in 0..k {
        for i in 0..m {
            for j in 0..n {
                let sums = emit(&M::SPEC, a.atom([i, step]), b.atom([j, step]), acc.atom([i, j]), loc);
                acc.set_atom([i, j], &sums);
            }
        }
    }
}

/// One instruction.
fn emit(spec: &MmaSpec, a: &[RawValue], b: &[RawValue], c: &[RawValue], loc: Loc) -> Vec<RawValue> {
    let operands = [a, b, c].concat();
    let results = vec![spec.c.register_type(); c.len()];
    if spec.op == MatrixOp::Fma {
        return vec![trace::emit1("math.fma", &operands, IrType::Scalar(spec.c.element), &[], loc)];
    }
    let [m, n, k] = spec.shape.map(|extent| extent as i64);
    let mut attributes =
        vec![("m", Attr::Int(m)), ("n", Attr::Int(n)), ("k", Attr::Int(k)), ("kind", Attr::Str(spec.kind.to_owned()))];
    if spec.op == MatrixOp::MmaSync {
        // Three variadic groups: the op must say where each ends.
        let segments = format!("array<i32: {}, {}, {}>", a.len(), b.len(), c.len());
        attributes.push(("operandSegmentSizes", Attr::Text(segments)));
    }
    trace::with(|t| t.emit(spec.op.name(), &operands, &results, &attributes, loc)).unwrap_or_default()
}

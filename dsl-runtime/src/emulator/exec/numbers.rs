//! Where a NaN or an infinity is born: the first operation that makes one of numbers.
//!
//! The interpreter looks at each float result for lanes that are not finite (a few vector operations);
//! what follows here is rare. A NaN among operands is passed on, not born. A birth alone is no mistake:
//! `empty.select(0, x / total)` divides by zero and throws the result away. So births are remembered,
//! and the report comes when a NaN reaches memory or turns into an integer.

use lacewing_core::atoms::Role;

use super::atom::AtomOp;
use super::warp::FaultKind;
use crate::emulator::exec::elementwise::{BinaryOp, UnaryOp};
use crate::emulator::isa;
use crate::emulator::lanes::{LANES, Reg, Registers, half_of};
use crate::emulator::numeric::narrow;
use crate::emulator::op::{Access, MatrixType, MfmaOp, MmaOp, NumberFormat, Op, Pc};
use crate::emulator::program::Program;

/// The bits of binary32's infinity.
const INFINITY: i32 = f32::INFINITY.to_bits() as i32;
/// Births that are remembered for a warp: later ones repeat the first, or follow from them.
const REMEMBERED: usize = 32;
/// The largest binary32 number that rounds to a finite binary16.
pub(crate) const LARGEST_TO_F16: f32 = 65519.996;

/// An operation that made a NaN or an infinity.
#[derive(Clone, Debug)]
pub(crate) struct Birth {
    pub(crate) pc: Pc,
    /// The first lane of the warp where it did.
    pub(crate) lane: u32,
    /// All lanes where it did.
    lanes: u64,
    /// What was computed, with the values: `-inf - -inf`.
    pub(crate) expression: String,
    pub(crate) rule: Rule,
    /// NaN, or an infinity.
    pub(crate) result: f64,
    /// Whether an operand was infinite.
    pub(crate) from_infinity: bool,
    /// The innermost loop around it.
    pub(crate) around: Option<LoopState>,
    /// Position among all births of the warp.
    order: usize,
}

/// The state of a loop when something happened.
#[derive(Clone, Copy, Debug)]
pub(crate) struct LoopState {
    pub(crate) pc: Pc,
    pub(crate) variable: i64,
    /// `None` when the start is not known any more.
    pub(crate) first: Option<bool>,
}

/// Which rule of arithmetic made it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Rule {
    /// Infinities that cancel, as -inf - -inf.
    InfinityMinusInfinity,
    /// +inf - +inf: no mask makes that, but numbers that were too large.
    TooLargeMinusTooLarge,
    /// inf / inf: both have been too large.
    InfinityOverInfinity,
    ZeroTimesInfinity,
    /// A zero divisor.
    DivisionByZero,
    /// An operand outside the function's domain.
    Domain,
    /// A result that is too large for its format.
    Overflow,
}

/// Births of a warp.
pub(crate) struct Births {
    nan: Vec<Birth>,
    infinite: Vec<Birth>,
    /// Whether the kernel moves values between lanes.
    crosses_lanes: bool,
}

impl Births {
    pub(crate) fn new(program: &Program) -> Self {
        let crosses = |op: &Op| {
            matches!(
                op,
                Op::ShuffleXor { .. } | Op::Shuffle { .. } | Op::Mma { .. } | Op::Mfma { .. } | Op::Atom { .. }
            )
        };
        let crosses_lanes = program.has_async || program.ops.iter().any(crosses);
        Self { nan: Vec::new(), infinite: Vec::new(), crosses_lanes }
    }

    pub(crate) fn clear(&mut self) {
        self.nan.clear();
        self.infinite.clear();
    }

    /// Whether a NaN was born.
    #[inline(always)]
    pub(crate) fn any(&self) -> bool {
        !self.nan.is_empty()
    }

    /// The earliest birth in a lane. A NaN of a lane without any was loaded, unless shuffles or products
    /// brought it from another.
    fn first_nan(&self, lane: u32) -> Option<&Birth> {
        self.nan
            .iter()
            .find(|birth| birth.lanes >> lane & 1 == 1)
            .or_else(|| self.nan.first().filter(|_| self.crosses_lanes))
    }

    /// Where the infinity that a NaN was made of came from: the latest birth before it.
    fn infinity_before(&self, nan: &Birth) -> Option<&Birth> {
        let before = || self.infinite.iter().rev().filter(|birth| birth.order < nan.order);
        before().find(|birth| birth.lanes >> nan.lane & 1 == 1).or_else(|| before().next())
    }

    /// Adds lanes to a birth that is known; true where there is nothing more to tell of one at `pc`.
    fn has_told(&mut self, pc: Pc, is_nan: bool, lanes: u64) -> bool {
        let list = if is_nan { &mut self.nan } else { &mut self.infinite };
        match list.iter_mut().find(|known| known.pc == pc) {
            Some(known) => {
                known.lanes |= lanes;
                true
            }
            None => list.len() >= REMEMBERED,
        }
    }

    fn remember(&mut self, mut birth: Birth) {
        birth.order = self.nan.len() + self.infinite.len();
        let list = if birth.result.is_nan() { &mut self.nan } else { &mut self.infinite };
        if let Some(known) = list.iter_mut().find(|known| known.pc == birth.pc) {
            known.lanes |= birth.lanes;
        } else if list.len() < REMEMBERED {
            list.push(birth);
        }
    }
}

/// A NaN that reached memory, or an infinity.
#[derive(Debug)]
pub(crate) struct NumberFault {
    pub(crate) birth: Birth,
    /// Where the infinity that the NaN was made of was born.
    pub(crate) infinity: Option<Birth>,
    /// Where the NaN was stored.
    pub(crate) stored: Option<Pc>,
}

impl BinaryOp {
    /// Whether the result is a binary32 number that may be the first NaN or infinity.
    #[inline(always)]
    pub(crate) fn bears_f32(self) -> bool {
        matches!(self, Self::AddF32 | Self::SubF32 | Self::MulF32 | Self::DivF32 | Self::RemF32)
    }

    /// The same for binary64.
    #[inline(always)]
    pub(crate) fn bears_f64(self) -> bool {
        matches!(self, Self::AddF64 | Self::SubF64 | Self::MulF64 | Self::DivF64 | Self::RemF64)
    }
}

impl UnaryOp {
    /// Whether the result is a binary32 number that may be the first NaN or infinity.
    #[inline(always)]
    pub(crate) fn bears_f32(self) -> bool {
        use UnaryOp as U;
        matches!(self, U::SqrtF32 | U::RsqrtFast | U::RcpFast | U::ExpFast | U::Exp2Fast | U::LogFast | U::Log2Fast)
            || matches!(self, U::RsqrtF32 | U::ExpF32 | U::Exp2F32 | U::LogF32 | U::Log2F32 | U::Log10F32)
            || matches!(self, U::Log10Fast | U::SinF32 | U::CosF32 | U::F64ToF32)
    }

    /// The same for binary64.
    #[inline(always)]
    pub(crate) fn bears_f64(self) -> bool {
        use UnaryOp as U;
        matches!(self, U::SqrtF64 | U::RsqrtF64 | U::ExpF64 | U::Exp2F64 | U::LogF64 | U::Log2F64)
            || matches!(self, U::Log10F64 | U::SinF64 | U::CosF64)
    }

    /// Whether a NaN operand becomes an integer.
    #[inline(always)]
    pub(crate) fn swallows_nan(self) -> bool {
        use UnaryOp as U;
        matches!(self, U::F32ToI8 | U::F32ToU8 | U::F32ToI16 | U::F32ToU16 | U::F32ToI32 | U::F32ToU32)
            || matches!(self, U::F32ToI64 | U::F32ToU64)
    }

    fn function(self) -> &'static str {
        use UnaryOp as U;
        match self {
            U::SqrtF32 | U::SqrtF64 => "sqrt",
            U::RsqrtFast | U::RsqrtF32 | U::RsqrtF64 => "rsqrt",
            U::ExpFast | U::ExpF32 | U::ExpF64 => "exp",
            U::Exp2Fast | U::Exp2F32 | U::Exp2F64 => "exp2",
            U::LogFast | U::LogF32 | U::LogF64 => "log",
            U::Log2Fast | U::Log2F32 | U::Log2F64 => "log2",
            U::Log10Fast | U::Log10F32 | U::Log10F64 => "log10",
            U::SinF32 | U::SinF64 => "sin",
            U::CosF32 | U::CosF64 => "cos",
            U::F64ToF32 => "f32",
            _ => "f",
        }
    }
}

impl Registers<'_> {
    /// Whether some lane of a binary32 value, active or not, has a magnitude above that of `limit`.
    #[inline(always)]
    pub(crate) fn any_above(&self, reg: Reg, limit: f32) -> bool {
        let limit = limit.to_bits() as i32;
        let mut largest = [0_i32; 8];
        for chunk in 0..LANES / 8 {
            let lanes = self.chunk::<i32>(reg, chunk);
            for i in 0..8 {
                largest[i] = largest[i].max(lanes[i] & 0x7fff_ffff);
            }
        }
        let mut above = [0_i32; 8];
        for i in 0..8 {
            above[i] = -i32::from(largest[i] > limit);
        }
        isa::pack_conditions(above) != 0
    }

    /// Whether some lane, active or not, is infinite or NaN.
    #[inline(always)]
    pub(crate) fn any_special(&self, reg: Reg) -> bool {
        self.any_above(reg, f32::MAX)
    }

    /// Whether some lane of a binary64 value is infinite or NaN.
    #[inline(always)]
    pub(crate) fn any_special_f64(&self, reg: Reg) -> bool {
        self.compare::<f64>(reg, reg, |x, _| !x.is_finite()) != 0
    }

    /// Whether some lane of a result, active or not, is further from a number than all operands, of the steps number,
    /// infinity, NaN. Kernels may go on for long with infinities that they were given: what tells them from the first
    /// one is as quick as an operation.
    #[inline(always)]
    pub(crate) fn any_birth<const N: usize>(&self, result: Reg, operands: [Reg; N]) -> bool {
        if !self.any_special(result) {
            return false;
        }
        let magnitude = |x: i32| x & 0x7fff_ffff;
        let mut born = [0_i32; 8];
        for chunk in 0..LANES / 8 {
            let of_result = self.chunk::<i32>(result, chunk);
            let of_operands = operands.map(|operand| self.chunk::<i32>(operand, chunk));
            for i in 0..8 {
                let mut operand = 0;
                for lanes in &of_operands {
                    operand = operand.max(magnitude(lanes[i]));
                }
                let result = magnitude(of_result[i]);
                let number_to_more = (operand < INFINITY) & (result >= INFINITY);
                let infinity_to_nan = (operand <= INFINITY) & (result > INFINITY);
                born[i] |= -i32::from(number_to_more | infinity_to_nan);
            }
        }
        isa::pack_conditions(born) != 0
    }

    /// [`Self::any_special`] of one of several.
    #[inline(always)]
    pub(crate) fn any_special_of(&self, regs: &[Reg]) -> bool {
        regs.iter().any(|&reg| self.any_special(reg))
    }
}

/// A float operation's result and operands.
struct Floats {
    result: Reg,
    wide: bool,
    operands: [Reg; 3],
    count: usize,
    operands_wide: bool,
}

impl Floats {
    fn of(op: &Op) -> Option<Self> {
        let floats =
            |result, wide, operands, count, operands_wide| Some(Self { result, wide, operands, count, operands_wide });
        match *op {
            Op::Unary { op, d, a } => {
                let operands_wide = op.bears_f64() || op == UnaryOp::F64ToF32;
                floats(d, op.bears_f64(), [a; 3], 1, operands_wide)
            }
            Op::Binary { op, d, a, b } => floats(d, op.bears_f64(), [a, b, b], 2, op.bears_f64()),
            Op::FmaF32 { d, a, b, c } | Op::FmaOdd { d, a, b, c } => floats(d, false, [a, b, c], 3, false),
            Op::FmaF64 { d, a, b, c } => floats(d, true, [a, b, c], 3, true),
            _ => None,
        }
    }

    fn lanes(regs: &Registers<'_>, reg: Reg, wide: bool, test: fn(f64) -> bool) -> u32 {
        if wide {
            regs.compare::<f64>(reg, reg, |x, _| test(x))
        } else {
            regs.compare::<f32>(reg, reg, |x, _| test(f64::from(x)))
        }
    }

    fn value(regs: &Registers<'_>, reg: Reg, wide: bool, lane: usize) -> f64 {
        if wide { regs.lane::<f64>(reg, lane) } else { f64::from(regs.lane::<f32>(reg, lane)) }
    }
}

/// Writes a value as its format prints it.
fn show(value: f64, wide: bool) -> String {
    if wide { format!("{value}") } else { format!("{}", value as f32) }
}

/// What was computed, in the values, and the rule that made a NaN or infinity of it.
fn explain(op: &Op, values: &[f64], wide: bool, result: f64) -> (String, Rule) {
    let text: Vec<String> = values.iter().map(|&value| show(value, wide)).collect();
    let infinite = values.iter().any(|value| value.is_infinite());
    let zero_times_infinity = |a: f64, b: f64| a == 0.0 && b.is_infinite() || a.is_infinite() && b == 0.0;
    match (op, text.as_slice(), values) {
        (Op::Unary { op: UnaryOp::RcpFast, .. }, [a], [value]) => {
            (format!("1 / {a}"), if *value == 0.0 { Rule::DivisionByZero } else { Rule::Overflow })
        }
        (Op::Unary { op, .. }, [a], [value]) => {
            let reciprocal = op.function() == "rsqrt" && *value == 0.0;
            let logarithm = op.function().starts_with("log") && *value == 0.0;
            let rule = match () {
                () if reciprocal => Rule::DivisionByZero,
                () if result.is_nan() || logarithm => Rule::Domain,
                () => Rule::Overflow,
            };
            (format!("{}({a})", op.function()), rule)
        }
        (Op::Binary { op, .. }, [a, b], [left, right]) => {
            use BinaryOp as B;
            let (sign, rule) = match op {
                // inf + -inf: the one of them that is no mask has been too large.
                B::AddF32 | B::AddF64 => ("+", Rule::TooLargeMinusTooLarge),
                B::SubF32 | B::SubF64 if *left == f64::INFINITY => ("-", Rule::TooLargeMinusTooLarge),
                B::SubF32 | B::SubF64 => ("-", Rule::InfinityMinusInfinity),
                B::MulF32 | B::MulF64 => ("*", Rule::ZeroTimesInfinity),
                B::DivF32 | B::DivF64 if *right == 0.0 => ("/", Rule::DivisionByZero),
                B::DivF32 | B::DivF64 => ("/", Rule::InfinityOverInfinity),
                _ if *right == 0.0 => ("%", Rule::DivisionByZero),
                _ => ("%", Rule::Domain),
            };
            let overflow = !result.is_nan() && rule != Rule::DivisionByZero;
            (format!("{a} {sign} {b}"), if overflow { Rule::Overflow } else { rule })
        }
        (_, [a, b, c], [x, y, _]) => {
            let rule = match () {
                () if !infinite => Rule::Overflow,
                () if zero_times_infinity(*x, *y) => Rule::ZeroTimesInfinity,
                () => Rule::InfinityMinusInfinity,
            };
            (format!("{a} * {b} + {c}"), rule)
        }
        _ => (String::new(), Rule::Overflow),
    }
}

/// What the interpreter knows when an operation's result is not finite.
pub(crate) struct Moment<'a, 'r> {
    pub(crate) program: &'a Program,
    pub(crate) regs: &'a Registers<'r>,
    pub(crate) births: &'a mut Births,
    pub(crate) pc: Pc,
    pub(crate) mask: u64,
    /// Report infinities too.
    pub(crate) strict: bool,
}

impl Moment<'_, '_> {
    /// Looks for births in the result of the operation at `pc`.
    #[cold]
    #[inline(never)]
    pub(crate) fn inspect(self) -> Option<Box<NumberFault>> {
        let program = self.program;
        let op = program.ops.get(self.pc as usize)?.general();
        match op {
            Op::PackF16 { low, high, .. } => self.narrowing(low, high),
            Op::Mma { table } => self.product(program.products.get(table as usize)?),
            Op::Mfma { table } => self.wave_product(program.wave_products.get(table as usize)?),
            Op::Atom { table } => self.atom_product(program.atoms.get(table as usize)?),
            _ => self.elementwise(&op),
        }
    }

    fn elementwise(self, op: &Op) -> Option<Box<NumberFault>> {
        let regs = self.regs;
        let half = self.program.half(self.pc);
        let active = half_of(self.mask, half);
        let floats = Floats::of(op)?;
        let operands = floats.operands.get(..floats.count)?;
        let of_operands = |test: fn(f64) -> bool| {
            operands.iter().fold(0, |lanes, &reg| lanes | Floats::lanes(regs, reg, floats.operands_wide, test))
        };
        let nan = active & Floats::lanes(regs, floats.result, floats.wide, f64::is_nan);
        let infinite = active & Floats::lanes(regs, floats.result, floats.wide, f64::is_infinite);
        let born_nan = if nan == 0 { 0 } else { nan & !of_operands(f64::is_nan) };
        let born_infinite = if infinite == 0 { 0 } else { infinite & !of_operands(|x| !x.is_finite()) };
        let mut fault = None;
        for (lanes, is_nan) in [(born_nan, true), (born_infinite, false)] {
            let of_warp = u64::from(lanes) << (32 * u32::from(half));
            // What is reported at once is told each time, of which there is one.
            let told = (is_nan || !self.strict) && self.births.has_told(self.pc, is_nan, of_warp);
            if lanes == 0 || told {
                continue;
            }
            let lane = lanes.trailing_zeros();
            let at = lane as usize;
            let values: Vec<f64> =
                operands.iter().map(|&reg| Floats::value(regs, reg, floats.operands_wide, at)).collect();
            let result = Floats::value(regs, floats.result, floats.wide, at);
            let (expression, rule) = explain(op, &values, floats.operands_wide, result);
            let birth = Birth {
                pc: self.pc,
                lane: lane + 32 * u32::from(half),
                lanes: of_warp,
                expression,
                rule,
                result: if is_nan { f64::NAN } else { result },
                from_infinity: values.iter().any(|value| value.is_infinite()),
                around: self.around(half, at),
                order: 0,
            };
            if !is_nan && self.strict {
                fault = Some(birth.clone());
            }
            self.births.remember(birth);
        }
        fault.map(|birth| Box::new(NumberFault { birth, infinity: None, stored: None }))
    }

    /// Numbers that are too large for binary16.
    fn narrowing(self, low: Reg, high: Reg) -> Option<Box<NumberFault>> {
        let half = self.program.half(self.pc);
        let active = half_of(self.mask, half);
        for reg in [low, high] {
            let large = active & self.regs.compare::<f32>(reg, reg, |x, _| x.is_finite() & (x.abs() > LARGEST_TO_F16));
            if large == 0 {
                continue;
            }
            let lane = large.trailing_zeros();
            let value = self.regs.lane::<f32>(reg, lane as usize);
            let birth = Birth {
                pc: self.pc,
                lane: lane + 32 * u32::from(half),
                lanes: u64::from(large) << (32 * u32::from(half)),
                expression: format!("f16({value})"),
                rule: Rule::Overflow,
                result: f64::INFINITY.copysign(value.into()),
                from_infinity: false,
                around: self.around(half, lane as usize),
                order: 0,
            };
            let fault = self.strict.then(|| birth.clone());
            self.births.remember(birth);
            if let Some(birth) = fault {
                return Some(Box::new(NumberFault { birth, infinity: None, stored: None }));
            }
        }
        None
    }

    /// `mma.sync`: finds the product or the sum that made it.
    fn product(self, op: &MmaOp) -> Option<Box<NumberFault>> {
        if self.births.has_told(self.pc, true, 0) {
            return None;
        }
        let regs = self.regs;
        let tf32 = op.ty == MatrixType::Tf32;
        let depth = usize::from(op.k);
        for (register, &d) in op.d.iter().enumerate() {
            for lane in 0..LANES {
                let result = regs.lane::<f32>(d, lane);
                if result.is_finite() {
                    continue;
                }
                let (row, column) = (lane / 4 + register / 2 * 8, lane % 4 * 2 + register % 2);
                let c = op.c.get(register).map_or(0.0, |&c| regs.lane::<f32>(c, lane));
                // Layouts as in `exec::matrix`.
                let factors = (0..depth).map(|k| {
                    if tf32 {
                        let a = op.a.get(row / 8 + k / 4 * 2).copied().unwrap_or(0);
                        let b = op.b.get(k / 4).copied().unwrap_or(0);
                        (regs.lane::<f32>(a, row % 8 * 4 + k % 4), regs.lane::<f32>(b, column * 4 + k % 4))
                    } else {
                        let a = op.a.get(row / 8 + k / 8 * 2).copied().unwrap_or(0);
                        let b = op.b.get(k / 8).copied().unwrap_or(0);
                        let of = |reg, lane| {
                            let word = regs.lane::<u32>(reg, lane);
                            narrow_value((word >> (16 * (k % 2))) as u16, op.ty)
                        };
                        (of(a, row % 8 * 4 + k % 8 / 2), of(b, column * 4 + k % 8 / 2))
                    }
                });
                if let Some(birth) = self.product_birth(factors, c, result, lane as u32) {
                    return self.keep(birth);
                }
            }
        }
        None
    }

    /// `mfma`, likewise.
    fn wave_product(self, op: &MfmaOp) -> Option<Box<NumberFault>> {
        if self.births.has_told(self.pc, true, 0) {
            return None;
        }
        let regs = self.regs;
        let size = usize::from(op.size);
        let depth = if size == 32 { 8 } else { 16 };
        for (register, &d) in op.d.iter().enumerate().take(op.registers()) {
            for lane in 0..64 {
                let result = regs.lane::<f32>(d + (lane / 32) as u32, lane % 32);
                if result.is_finite() {
                    continue;
                }
                let row = 8 * (register / 4) + 4 * (lane / size) + register % 4;
                let c = op.c.get(register).map_or(0.0, |&c| regs.lane::<f32>(c + (lane / 32) as u32, lane % 32));
                let element = |reg: Reg, index: usize, k: usize| {
                    let lane = k / 4 * size + index;
                    let word = regs.lane::<u32>(reg + (lane / 32 * 2 + k % 4 / 2) as u32, lane % 32);
                    narrow_value((word >> (16 * (k % 2))) as u16, op.ty)
                };
                let factors = (0..depth).map(|k| (element(op.a, row, k), element(op.b, lane % size, k)));
                if let Some(birth) = self.product_birth(factors, c, result, lane as u32) {
                    return self.keep(birth);
                }
            }
        }
        None
    }

    /// Any other matrix instruction, likewise.
    fn atom_product(self, op: &AtomOp) -> Option<Box<NumberFault>> {
        let (regs, [m, ..]) = (self.regs, op.spec.shape);
        for (index, &d) in op.d.iter().enumerate() {
            let result = op.float(regs, Role::C, d);
            if result.is_finite() {
                continue;
            }
            let c = op.c.get(index).map_or(0.0, |&c| op.float(regs, Role::C, c));
            if let Some(birth) = self.product_birth(op.factors(regs, index % m, index / m), c, result, d.lane.into()) {
                return self.keep(birth);
            }
        }
        None
    }

    /// One element of a warpgroup's product that is not finite: remembered, if it was made here.
    pub(crate) fn term(
        self,
        factors: impl Iterator<Item = (f32, f32)> + Clone,
        before: f32,
        result: f32,
        lane: u32,
    ) -> Option<Box<NumberFault>> {
        let birth = self.product_birth(factors, before, result, lane)?;
        self.keep(birth)
    }

    /// The birth in one element of a product: the first term that makes it, `None` when it was passed on.
    fn product_birth(
        &self,
        factors: impl Iterator<Item = (f32, f32)> + Clone,
        c: f32,
        result: f32,
        lane: u32,
    ) -> Option<Birth> {
        let specials = |test: fn(f32) -> bool| test(c) || factors.clone().any(|(a, b)| test(a) || test(b));
        if specials(f32::is_nan) || !result.is_nan() && specials(f32::is_infinite) {
            return None;
        }
        let mut sum = c;
        let (mut expression, mut rule) = (format!("a sum that ends in {result}"), Rule::Overflow);
        for (a, b) in factors.clone() {
            let next = a * b + sum;
            if next.is_nan() || !result.is_nan() && next.is_infinite() {
                expression = format!("{a} * {b} + {sum} in a matrix product");
                rule = match (a * b).is_nan() {
                    true => Rule::ZeroTimesInfinity,
                    false if next.is_nan() => Rule::InfinityMinusInfinity,
                    false => Rule::Overflow,
                };
                break;
            }
            sum = next;
        }
        Some(Birth {
            pc: self.pc,
            lane,
            lanes: 1 << lane,
            expression,
            rule,
            result: f64::from(result),
            from_infinity: specials(f32::is_infinite),
            around: self.around((lane / 32) as u8, (lane % 32) as usize),
            order: 0,
        })
    }

    fn keep(self, birth: Birth) -> Option<Box<NumberFault>> {
        let strict = self.strict && !birth.result.is_nan();
        let fault = strict.then(|| Box::new(NumberFault { birth: birth.clone(), infinity: None, stored: None }));
        self.births.remember(birth);
        fault
    }

    /// The innermost counted loop around the operation.
    fn around(&self, half: u8, lane: usize) -> Option<LoopState> {
        loop_around(self.program, self.regs, self.pc, half, lane)
    }
}

/// The innermost counted loop around an operation, as a lane sees it.
pub(crate) fn loop_around(program: &Program, regs: &Registers<'_>, at: Pc, half: u8, lane: usize) -> Option<LoopState> {
    let before = program.ops.get(..at as usize)?;
    before.iter().enumerate().rev().find_map(|(pc, op)| match *op {
        Op::For { kind, iv, low, end, .. } if end > at => {
            let offset = u32::from(half) * kind.slots();
            let variable = loop_value(regs, kind.slots(), iv + offset, lane);
            // Other slots may have been reused since the loop began.
            let kept = program.constants.iter().any(|&(slot, ..)| slot == low + offset);
            let first = kept.then(|| loop_value(regs, kind.slots(), low + offset, lane) == variable);
            Some(LoopState { pc: pc as Pc, variable, first })
        }
        _ => None,
    })
}

fn loop_value(regs: &Registers<'_>, slots: u32, reg: Reg, lane: usize) -> i64 {
    if slots == 2 { regs.lane::<i64>(reg, lane) } else { i64::from(regs.lane::<i32>(reg, lane)) }
}

fn narrow_value(bits: u16, ty: MatrixType) -> f32 {
    if ty == MatrixType::F16 { narrow::f16_to_f32(bits) } else { narrow::bf16_to_f32(bits) }
}

/// Whether an element of a stored value is NaN.
fn element_is_nan(regs: &Registers<'_>, value: Reg, lane: usize, element: u32, format: NumberFormat) -> bool {
    let part = |bits: u32| {
        let per_word = 32 / bits;
        regs.lane::<u32>(value + element / per_word, lane) >> (bits * (element % per_word))
    };
    match format {
        NumberFormat::Integer => false,
        NumberFormat::F64 => regs.lane::<f64>(value + 2 * element, lane).is_nan(),
        NumberFormat::F32 => regs.lane::<f32>(value + element, lane).is_nan(),
        NumberFormat::F16 => part(16) & 0x7fff > 0x7c00,
        NumberFormat::Bf16 => part(16) & 0x7fff > 0x7f80,
        NumberFormat::E4m3 => part(8) & 0x7f == 0x7f,
        NumberFormat::E5m2 => part(8) & 0x7f > 0x7c,
    }
}

/// The report of a store that takes a NaN to memory after one was born in this warp.
#[cold]
#[inline(never)]
pub(crate) fn nan_stored(
    regs: &Registers<'_>,
    births: &Births,
    value: Reg,
    active: u64,
    access: &Access,
    pc: Pc,
) -> Option<Box<NumberFault>> {
    let lanes = half_of(active, access.half);
    let elements = access.bytes / access.element.max(1);
    let lane = (0..LANES)
        .filter(|lane| lanes >> lane & 1 == 1)
        .find(|&lane| (0..elements).any(|element| element_is_nan(regs, value, lane, element, access.format)))?;
    escaped(births, lane as u32 + 32 * u32::from(access.half), pc)
}

/// The report of a conversion that makes integers of NaN.
#[cold]
#[inline(never)]
pub(crate) fn nan_converted(
    regs: &Registers<'_>,
    births: &Births,
    a: Reg,
    (mask, half): (u64, u8),
    pc: Pc,
) -> Option<Box<NumberFault>> {
    let lanes = half_of(mask, half) & regs.compare::<f32>(a, a, |x, _| x.is_nan());
    if lanes == 0 {
        return None;
    }
    escaped(births, lanes.trailing_zeros() + 32 * u32::from(half), pc)
}

fn escaped(births: &Births, lane: u32, pc: Pc) -> Option<Box<NumberFault>> {
    let birth = births.first_nan(lane)?.clone();
    let infinity = if birth.from_infinity { births.infinity_before(&birth).cloned() } else { None };
    Some(Box::new(NumberFault { birth, infinity, stored: Some(pc) }))
}

impl FaultKind {
    /// A number fault with the lane to blame.
    pub(crate) fn number(fault: Box<NumberFault>) -> (u32, Self) {
        (fault.birth.lane, Self::Number(fault))
    }
}

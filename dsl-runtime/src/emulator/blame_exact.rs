//! Values that are not what they should be, in the user's words.

use super::blame::Scene;
use super::exact::{Inexact, Origin, expression, show};
use super::exec::elementwise::UnaryOp;
use super::exec::numbers::LoopState;
use super::op::Op;
use super::report::{Report, ReportKind};

/// How far a value is off, as `25 %`.
fn distance([value, exact]: [f64; 2]) -> String {
    let error = (value - exact).abs() / exact.abs();
    match () {
        () if !error.is_finite() => "a loss of every digit".to_owned(),
        () if error >= 10.0 => format!("off by a factor of {}", show((error * 10.0).round() / 10.0)),
        () => format!("off by {} %", show((error * 1000.0).round() / 10.0)),
    }
}

/// The smallest binary16 number with all its digits.
const SMALLEST_F16: f64 = 6.103_515_625e-5;

/// Whether an operation makes a number of 16 or 8 bits.
fn is_narrowing(op: Option<&Op>) -> bool {
    use UnaryOp as U;
    match op {
        Some(Op::PackF16 { .. }) => true,
        Some(Op::Unary { op, .. }) => matches!(
            op,
            U::F32ToF16TowardZero | U::F32ToE4m3 | U::F32ToE5m2 | U::F32ToE4m3Saturating | U::F32ToE5m2Saturating
        ),
        _ => false,
    }
}

/// The usual way out.
fn advice(op: Option<&Op>, origin: &Origin) -> &'static str {
    let [value, exact] = origin.result;
    let largest = origin.operands.iter().flatten().fold(0.0_f64, |largest, value| largest.max(value.abs()));
    if value.is_infinite() && exact.is_finite() {
        "scale the value before it is narrowed, subtract the maximum before the exponential, or keep it in a wider type"
    } else if is_narrowing(op) && exact.abs() < SMALLEST_F16 {
        "the value is below the smallest of its type: scale it first, or keep it in a wider type"
    } else if exact.abs() < 0.1 * largest && value.abs() < 0.1 * largest {
        "two numbers that are nearly equal cancel: subtract before squaring or adding up (a second pass over x - mean), \
         or compute both in a wider type"
    } else {
        "add up in a wider type (`F32` for sums of `F16`), or in parts that are then added"
    }
}

impl Scene<'_> {
    pub(super) fn inexact(&self, found: &Inexact) -> Report {
        let Inexact { origin, shown, value, is_index, .. } = found;
        let op = self.program.ops.get(origin.pc as usize);
        let expression = expression(op, origin);
        let mut report = if *is_index {
            let [wrapped, exact] = origin.result.map(show);
            let message =
                format!("{expression} is {exact}, which an index of 32 bits has no room for: it wraps to {wrapped}");
            let mut report = self.at(ReportKind::IndexOverflow, message, origin.pc);
            report.notes.push(format!("an address is made of it{}", self.spot(*shown)));
            report.help =
                Some("compute the index in 64 bits: convert an operand first, as in `i.cast::<I64>() * n`".into());
            report
        } else {
            let [result, exact] = origin.result;
            let message = format!(
                "{expression} is {}, and {} without rounding: {}",
                show(result),
                show(exact),
                distance(origin.result)
            );
            let mut report = self.at(ReportKind::Inexact, message, origin.pc);
            if origin.operands.iter().any(|[value, exact]| value != exact && !(value.is_nan() && exact.is_nan())) {
                let exacts: Vec<String> = origin.operands.iter().map(|[_, exact]| show(*exact)).collect();
                report.notes.push(format!("without rounding the operands are {}", exacts.join(" and ")));
            }
            let [stored, right] = value.map(show);
            report.notes.push(format!(
                "what is stored{} is {stored} where {right} is right, {}",
                self.spot(*shown),
                distance(*value)
            ));
            report.help = Some(advice(op, origin).into());
            report
        };
        if let Some(LoopState { pc, variable, .. }) = origin.around {
            report.notes.push(format!("in the loop{}, whose variable is {variable}", self.spot(pc)));
        }
        report
    }
}

//! `printf!`: one line for each active lane.

use std::fmt::Write as _;

use crate::emulator::lanes::Registers;
use crate::emulator::numeric::narrow;
use crate::emulator::op::{PrintArg, PrintOp, PrintType};

/// Lines that a launch keeps.
pub(crate) const LINE_LIMIT: usize = 4096;

/// Formats the lines of the active lanes. The format is C's, as `gpu.printf` has it; of each `%..`
/// only the conversion letter and a precision matter.
pub(crate) fn print(regs: &Registers<'_>, op: &PrintOp, mask: u64, lines: &mut Vec<String>, dropped: &mut u64) {
    let mut rest = mask;
    while rest != 0 {
        let lane = rest.trailing_zeros() as usize;
        rest &= rest - 1;
        if lines.len() >= LINE_LIMIT {
            *dropped += 1;
            continue;
        }
        let text = format_line(regs, op, lane);
        let text = text.strip_suffix('\n').unwrap_or(&text);
        lines.extend(text.split('\n').map(str::to_owned));
    }
}

/// The message of an assertion that fails in a lane. Without values it is the text as it stands.
#[cold]
pub(crate) fn assertion(regs: &Registers<'_>, message: &PrintOp, lane: u32) -> String {
    if message.args.is_empty() { message.format.clone() } else { format_line(regs, message, lane as usize) }
}

fn format_line(regs: &Registers<'_>, op: &PrintOp, lane: usize) -> String {
    let mut line = String::new();
    let mut args = op.args.iter();
    let mut rest = op.format.chars();
    while let Some(c) = rest.next() {
        if c != '%' {
            line.push(c);
            continue;
        }
        let mut flags = String::new();
        let conversion = loop {
            match rest.next() {
                Some('%') if flags.is_empty() => break '%',
                Some(letter) if letter.is_ascii_alphabetic() && !matches!(letter, 'l' | 'h' | 'z') => break letter,
                Some(other) => flags.push(other),
                None => break '%',
            }
        };
        if conversion == '%' {
            line.push('%');
            continue;
        }
        let Some(arg) = args.next() else { continue };
        let precision =
            flags.split('.').nth(1).and_then(|digits| digits.trim_matches(char::is_alphabetic).parse().ok());
        // A `String` takes every write.
        let _ = write_value(&mut line, regs, arg, lane, conversion, precision);
    }
    line
}

fn write_value(
    line: &mut String,
    regs: &Registers<'_>,
    arg: &PrintArg,
    lane: usize,
    conversion: char,
    precision: Option<usize>,
) -> std::fmt::Result {
    let half = (lane / 32) as u32;
    let word = || regs.lane::<u32>(arg.reg + half * arg.half_stride, lane % 32);
    let double = || regs.lane::<u64>(arg.reg + half * arg.half_stride, lane % 32);
    let float = match arg.ty {
        PrintType::Bool => return write!(line, "{}", u8::from(regs.mask(arg.reg) >> lane & 1 == 1)),
        PrintType::Signed(bits) => {
            let raw = if bits == 64 { double() } else { u64::from(word()) };
            let bits = u32::from(bits.clamp(1, 64));
            let signed = (raw << (64 - bits)) as i64 >> (64 - bits);
            let unsigned = raw << (64 - bits) >> (64 - bits);
            return match conversion {
                'u' => write!(line, "{unsigned}"),
                'x' => write!(line, "{unsigned:x}"),
                _ => write!(line, "{signed}"),
            };
        }
        PrintType::F16 => f64::from(narrow::f16_to_f32(word() as u16)),
        PrintType::Bf16 => f64::from(narrow::bf16_to_f32(word() as u16)),
        PrintType::F32 => f64::from(f32::from_bits(word())),
        PrintType::F64 => f64::from_bits(double()),
    };
    match (conversion, float.is_finite()) {
        (_, false) => write!(
            line,
            "{}",
            if float.is_nan() {
                "nan"
            } else if float > 0.0 {
                "inf"
            } else {
                "-inf"
            }
        ),
        ('e', _) => write!(line, "{float:.*e}", precision.unwrap_or(6)),
        ('g', _) => write!(line, "{float}"),
        _ => write!(line, "{float:.*}", precision.unwrap_or(6)),
    }
}

//! `printf!`, `device_assert!` and `static_assert!`.

use std::panic::Location;

use super::arith::{self, Rounding};
use super::{BF16, Bool, F8E4M3, F8E5M2, F16, F32, F64, I8, I16, I32, I64, Index, Scalar, U8, U16, U32, U64};
use crate::trace::{self, Attr, RawValue};
use crate::{Diagnostic, ScalarType};

/// What `printf!` can print.
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot be printed by a kernel",
    label = "not a scalar",
    note = "`printf!` prints scalars and host values; print a vector element by element"
)]
pub trait Printable {
    #[doc(hidden)]
    fn argument(&self) -> PrintArgument;
}

/// One argument of `printf!`.
#[doc(hidden)]
#[derive(Clone, Debug)]
pub enum PrintArgument {
    /// A host value: part of the text.
    Text(String),
    /// A kernel value.
    Value(RawValue, ScalarType),
}

macro_rules! printable {
    (kernel $($ty:ident)*) => { $(
        impl Printable for $ty {
            fn argument(&self) -> PrintArgument {
                PrintArgument::Value(self.raw(), <$ty as Scalar>::TYPE)
            }
        }
    )* };
    (host $($ty:ty)*) => { $(
        impl Printable for $ty {
            fn argument(&self) -> PrintArgument {
                PrintArgument::Text(self.to_string())
            }
        }
    )* };
}
printable! { kernel Bool I8 I16 I32 I64 Index U8 U16 U32 U64 F16 BF16 F32 F64 F8E4M3 F8E5M2 }
printable! { host usize isize u64 i64 u32 i32 u16 i16 u8 i8 f32 f64 bool char str String }
impl<P: Printable + ?Sized> Printable for &P {
    fn argument(&self) -> PrintArgument {
        (**self).argument()
    }
}

/// How a value is passed to `gpu.printf`, and its conversion: C's promotions, made explicit. Floats of 8 and
/// 16 bits go as `f32`, narrow integers and conditions as `i32`.
fn conversion(ty: ScalarType) -> (ScalarType, &'static str) {
    match ty {
        ScalarType::Bool | ScalarType::I8 | ScalarType::I16 | ScalarType::I32 => (ScalarType::I32, "%d"),
        ScalarType::U8 | ScalarType::U16 | ScalarType::U32 => (ScalarType::U32, "%u"),
        ScalarType::I64 => (ScalarType::I64, "%lld"),
        ScalarType::U64 => (ScalarType::U64, "%llu"),
        ScalarType::F64 => (ScalarType::F64, "%f"),
        ScalarType::F16 | ScalarType::Bf16 | ScalarType::F32 | ScalarType::F8E4M3 | ScalarType::F8E5M2 => {
            (ScalarType::F32, "%f")
        }
    }
}

/// A piece of a format string.
#[derive(Debug, PartialEq)]
enum Piece {
    Text(String),
    Place,
}

/// Splits a format string; the error says what is wrong with it.
fn parse(format: &str) -> Result<Vec<Piece>, String> {
    let mut pieces = Vec::new();
    let mut text = String::new();
    let mut chars = format.chars().peekable();
    while let Some(c) = chars.next() {
        match c {
            '{' if chars.peek() == Some(&'{') => {
                chars.next();
                text.push('{');
            }
            '{' => {
                let inside: String = chars.by_ref().take_while(|c| *c != '}').collect();
                if !inside.is_empty() {
                    return Err(format!("`printf!` knows only `{{}}`, found `{{{inside}}}`"));
                }
                pieces.push(Piece::Text(std::mem::take(&mut text)));
                pieces.push(Piece::Place);
            }
            '}' if chars.peek() == Some(&'}') => {
                chars.next();
                text.push('}');
            }
            '}' => return Err("a `}` without its `{`; write `}}` for the character".to_owned()),
            other => text.push(other),
        }
    }
    pieces.push(Piece::Text(text));
    Ok(pieces)
}

/// What `printf!` expands to.
#[doc(hidden)]
#[track_caller]
pub fn printf(format: &str, arguments: &[PrintArgument]) {
    let loc = Location::caller();
    let pieces = match parse(format) {
        Ok(pieces) => pieces,
        Err(message) => {
            trace::error(loc, Diagnostic::error(message).help("print values with `{}`"));
            return;
        }
    };
    let places = pieces.iter().filter(|piece| **piece == Piece::Place).count();
    if places != arguments.len() {
        let plural = |count: usize, noun: &str| format!("{count} {noun}{}", if count == 1 { "" } else { "s" });
        let message = format!(
            "this `printf!` has {} and {}",
            plural(places, "place").replace("place", "`{}` place"),
            plural(arguments.len(), "argument")
        );
        trace::error(loc, Diagnostic::error(message).help("give one argument for each `{}`"));
        return;
    }
    let mut text = String::new();
    let mut operands = Vec::new();
    let mut arguments = arguments.iter();
    for piece in pieces {
        match piece {
            Piece::Text(piece) => text.push_str(&piece.replace('%', "%%")),
            Piece::Place => match arguments.next() {
                Some(PrintArgument::Text(argument)) => text.push_str(&argument.replace('%', "%%")),
                Some(PrintArgument::Value(value, ty)) => {
                    let (passed, conversion) = conversion(*ty);
                    operands.push(arith::cast(*ty, passed, *value, Rounding::NearestEven, loc));
                    text.push_str(conversion);
                }
                None => {}
            },
        }
    }
    trace::emit0("gpu.printf", &operands, &[("format", Attr::Str(text))], loc);
}

/// What `device_assert!` expands to.
#[doc(hidden)]
#[track_caller]
pub fn device_assert(condition: Bool, message: &str) {
    let loc = Location::caller();
    if trace::known(condition.raw()) == Some(1) {
        return;
    }
    trace::emit0("lw.assert", &[condition.raw()], &[("message", Attr::Str(message.to_owned()))], loc);
}

/// What `static_assert!` expands to.
#[doc(hidden)]
#[track_caller]
pub fn static_assert(condition: bool, message: &str) {
    if !condition {
        trace::stop(Location::caller(), Diagnostic::error(message).label("false for this kernel and target"));
    }
}

/// Prints from every thread that comes here, on the device as in the emulator: `printf!("{} of {}", i, n)`.
///
/// `{}` prints a scalar or a host value; `{{` and `}}` are braces. Floats print as C's `%f`, a `Bool` as 0 or 1.
/// No line end is added: write `\n`.
#[macro_export]
macro_rules! printf {
    ($format:expr $(, $argument:expr)* $(,)?) => {
        $crate::rt::printf($format, &[$($crate::rt::Printable::argument(&$argument)),*])
    };
}

/// Stops the kernel where the condition, a `Bool`, is false: `device_assert!(i < n, "outside the row")`.
///
/// The emulator reports thread and line; a GPU traps.
#[macro_export]
macro_rules! device_assert {
    ($condition:expr $(,)?) => {
        $crate::rt::device_assert($condition, concat!("assertion failed: ", stringify!($condition)))
    };
    ($condition:expr, $message:expr $(,)?) => {
        $crate::rt::device_assert($condition, $message)
    };
    ($condition:expr, $message:expr, $($values:tt)+) => {
        compile_error!("`device_assert!` takes a text without values; `printf!` prints them")
    };
}

/// Refuses the kernel where a host condition is false, and traces no further: `static_assert!(D % 16 == 0, "D must be a multiple of 16")`.
#[macro_export]
macro_rules! static_assert {
    ($condition:expr $(,)?) => {
        $crate::rt::static_assert($condition, concat!("static assertion failed: ", stringify!($condition)))
    };
    ($condition:expr, $($message:tt)+) => {
        $crate::rt::static_assert($condition, &format!($($message)+))
    };
}

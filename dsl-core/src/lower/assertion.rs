//! `lw.assert` on NVIDIA: a call of `__assertfail`, the function behind `assert` in CUDA C++. It prints the message, the
//! file and the line, and ends the kernel with an error.

use std::fmt::Write as _;

use melior::ir::block::BlockLike;
use melior::ir::operation::OperationLike;
use melior::ir::{BlockRef, Module, RegionLike};

use super::build::{Builder, Elem, I1, I32, I64, Op, Ty, Val, operand, string};
use super::printf;
use crate::Error;
use crate::mlir::{internal, name_of, source_location};

/// The driver's function; its arguments are message, file, line, function and the size of a character.
const FUNCTION: &str = "__assertfail";

const POINTER: Ty = Ty::scalar(Elem::Pointer(0));

/// Where the condition does not hold, the call. Its line is that of the innermost helper.
pub(super) fn assert<'m>(b: &Builder<'m>, op: Op<'m>) -> Result<(), Error> {
    // The driver prints a constant text: values that it cannot have are left to the emulator.
    let message = string(op, "message")?;
    let message = if op.operand_count() > 1 { printf::without_conversions(&message) } else { message };
    let (place, _) = source_location(op.location());
    let (file, line) = place.map_or(("(unknown)".to_owned(), 0), |place| (place.file, place.line));

    let fails = b.binary("arith.xori", operand(op, 0)?, b.constant(I1, 1)?)?;
    let names = declare(b, op, [&message, &file, "(unknown)"])?;
    b.if_then(fails, |b| {
        let address = |name: &str| -> Result<Val<'m>, Error> {
            b.value("llvm.mlir.addressof", &[], POINTER, &[("global_name", b.symbol_attr(name))])
        };
        let [message, file, function] = &names;
        let line = b.constant(I32, i64::from(line))?;
        let arguments = [address(message)?, address(file)?, line, address(function)?, b.constant(I64, 1)?];
        let attributes = [
            ("callee", b.symbol_attr(FUNCTION)),
            ("op_bundle_sizes", b.sizes_attr(&[])),
            ("operandSegmentSizes", b.sizes_attr(&[arguments.len() as i32, 0])),
        ];
        b.op("llvm.call", &arguments, &[], &attributes).map(|_| ())
    })
}

/// Puts the texts, and the function unless it is there, beside the kernel that `op` stands in; the texts' symbols.
fn declare<'m>(b: &Builder<'m>, op: Op<'m>, texts: [&str; 3]) -> Result<[String; 3], Error> {
    let body = enclosing(op).ok_or_else(|| internal("an assertion outside a gpu.module", vec![]))?;
    let (mut count, mut declared) = (0, false);
    let mut next = body.first_operation();
    while let Some(other) = next {
        count += 1;
        declared |= name_of(other) == "llvm.func" && string(other, "sym_name")? == FUNCTION;
        next = other.next_in_block();
    }
    // What stands beside a kernel grows with each assertion, so that its number is new.
    let names = ["message", "file", "function"].map(|what| format!("assert_{what}_{count}"));
    let mut source = String::new();
    for (name, text) in names.iter().zip(texts) {
        let _ = writeln!(
            source,
            "llvm.mlir.global internal constant @{name}(\"{}\\00\") {{addr_space = 0 : i32}}",
            escaped(text)
        );
    }
    if !declared {
        let _ = writeln!(
            source,
            "llvm.func @{FUNCTION}(!llvm.ptr, !llvm.ptr, i32, !llvm.ptr, i64) attributes {{passthrough = [\"noreturn\"]}}"
        );
    }
    let module = Module::parse(b.context(), &source).ok_or_else(|| internal("an assertion's texts", vec![]))?;
    let mut next = module.body().first_operation();
    while let Some(global) = next {
        body.insert_operation(0, (*global).clone());
        next = global.next_in_block();
    }
    Ok(names)
}

/// The block of the `gpu.module` around an op.
fn enclosing<'m>(op: Op<'m>) -> Option<BlockRef<'m, 'm>> {
    let mut current = op;
    while name_of(current) != "gpu.module" {
        current = current.parent_operation()?;
    }
    current.region(0).ok()?.first_block()
}

/// A text between the quotes of MLIR's strings.
fn escaped(text: &str) -> String {
    let mut escaped = String::new();
    for byte in text.bytes() {
        if matches!(byte, b' '..=b'~') && !matches!(byte, b'"' | b'\\') {
            escaped.push(char::from(byte));
        } else {
            let _ = write!(escaped, "\\{byte:02X}");
        }
    }
    escaped
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_keep_their_bytes() {
        assert_eq!(escaped("a \"b\" \\ é\n"), "a \\22b\\22 \\5C \\C3\\A9\\0A");
    }
}

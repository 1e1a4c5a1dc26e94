//! `gpu.printf`: C's variadic call on both vendors, and the library that AMD's needs.
//!
//! NVIDIA's driver has `vprintf`. On AMD, MLIR's conversion calls `__ockl_printf_begin` and its kin, which write into a
//! buffer that ROCm's host runtime hands to kernels and reads while they run (a hidden argument of the kernel). They
//! stand in ROCm's device library, bitcode that is linked into the kernel, and that LLVM does not bring along.

use std::path::{Path, PathBuf};

use melior::ir::operation::OperationLike;

use super::build::{Builder, Elem, I32, Op, Ty, operand, refuse, string, type_of};
use super::tools;
use super::walk::ops_inside;
use crate::mlir::{IrModule, name_of};
use crate::{Error, Target};

/// The device library for the kernels of a module that print, for AMD assembly; `None` where none does.
///
/// # Errors
/// At the first `printf!`, when the library is not found.
pub(super) fn device_library(
    module: &IrModule,
    target: Target,
    explicit: Option<&Path>,
) -> Result<Option<PathBuf>, Error> {
    let ops = ops_inside(module.module().as_operation());
    let Some((op, _)) = ops.into_iter().find(|(op, _)| name_of(*op) == "gpu.printf") else { return Ok(None) };
    tools::find_device_library(explicit).map(Some).map_err(|mut missing| {
        let message = format!("`printf!` on {target} needs ROCm's device library, which was not found");
        let mut error = refuse(op, message, "");
        if let (Some(error), Some(missing)) = (error.diagnostics.first_mut(), missing.diagnostics.first_mut()) {
            error.notes.append(&mut missing.notes);
            error.help = missing.help.take();
        }
        error
    })
}

/// `gpu.printf` with its arguments widened as C's variadic calls do: `vprintf` reads an `int`, a
/// `long long` or a `double`.
pub(super) fn printf<'m>(b: &Builder<'m>, op: Op<'m>) -> Result<(), Error> {
    let format = string(op, "format")?;
    let conversions = printf_conversions(&format);
    let mut arguments = Vec::new();
    for index in 0..op.operand_count() {
        let argument = operand(op, index)?;
        let ty = type_of(argument)?;
        let unsigned = matches!(conversions.get(index), Some('u' | 'x' | 'X' | 'o' | 'c'));
        arguments.push(match ty.elem {
            _ if ty.lanes.is_some() || ty.is_fp8() => {
                return Err(refuse(
                    op,
                    format!("printf cannot print a value of type {}", ty.spelling()),
                    "print elements, cast to F32",
                ));
            }
            Elem::Int(1) => b.cast("arith.extui", argument, I32)?,
            Elem::Int(8 | 16) if unsigned => b.cast("arith.extui", argument, I32)?,
            Elem::Int(8 | 16) => b.cast("arith.extsi", argument, I32)?,
            Elem::F16 | Elem::Bf16 | Elem::F32 => b.cast("arith.extf", argument, Ty::scalar(Elem::F64))?,
            _ => argument,
        });
    }
    b.op("gpu.printf", &arguments, &[], &[("format", b.string_attr(&format))])?;
    Ok(())
}

/// A printf format with `?` for each value.
pub(super) fn without_conversions(format: &str) -> String {
    let mut text = String::new();
    let mut rest = format.chars();
    while let Some(c) = rest.next() {
        match c {
            '%' => match rest.by_ref().find(|c| ends_conversion(*c)) {
                Some('%') => text.push('%'),
                _ => text.push('?'),
            },
            other => text.push(other),
        }
    }
    text
}

/// Whether a conversion that began with `%` ends here: at its letter, behind flags and lengths.
fn ends_conversion(c: char) -> bool {
    c.is_ascii_alphabetic() && !"lhzjt".contains(c) || c == '%'
}

/// The conversion letters of a printf format, in order.
fn printf_conversions(format: &str) -> Vec<char> {
    let mut letters = Vec::new();
    let mut rest = format.chars();
    while let Some(c) = rest.next() {
        if c == '%' {
            match rest.by_ref().find(|c| ends_conversion(*c)) {
                Some('%') | None => {}
                Some(letter) => letters.push(letter),
            }
        }
    }
    letters
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Traced;
    use crate::lower::{Emit, EmitOptions, emit};
    use crate::mlir::IrContext;

    #[test]
    fn conversions_of_a_format_are_found_in_order() {
        assert_eq!(printf_conversions("a %d, %5.2f%% %llu %hhx\n"), ['d', 'f', 'u', 'x']);
    }

    #[test]
    fn values_that_cannot_be_shown_leave_a_mark() {
        assert_eq!(without_conversions("i is %lld of 100 %%, above %5.2f"), "i is ? of 100 %, above ?");
    }

    const PRINTING: &str = "module attributes {gpu.container_module} { gpu.module @k {\ngpu.func @k(%i: i32) kernel attributes \
         {known_block_size = array<i32: 64, 1, 1>, lw.target = \"gfx942\", lw.shared_bytes = 0 : i64} {\n\
         gpu.printf \"i = %d\\0A\", %i : i32 loc(\"p.rs\":9:5)\ngpu.return\n}\n} }";

    fn traced() -> Traced {
        let context = IrContext::new().unwrap();
        Traced::from_module(IrModule::parse(&context, PRINTING).unwrap()).unwrap()
    }

    #[test]
    fn without_the_device_library_a_kernel_that_prints_is_refused_at_its_line() {
        let options = EmitOptions { device_library: Some("/nowhere".into()), ..EmitOptions::default() };
        for what in [Emit::Amdgcn, Emit::Hsaco] {
            let error = emit(&traced(), what, &options).unwrap_err();
            let [diagnostic] = error.diagnostics.as_slice() else { panic!("{error}") };
            assert_eq!(diagnostic.message, "`printf!` on gfx942 needs ROCm's device library, which was not found");
            assert_eq!(diagnostic.location.as_ref().map(|l| (l.file.as_str(), l.line)), Some(("p.rs", 9)));
            assert_eq!(diagnostic.notes, ["looked for ockl.bc in /nowhere"]);
            assert!(diagnostic.help.as_ref().is_some_and(|help| help.contains("rocm-device-libs")), "{error}");
        }
        // What links nothing needs no library.
        for what in [Emit::Lowered, Emit::Llvm] {
            emit(&traced(), what, &options).unwrap();
        }
    }

    #[test]
    fn with_the_device_library_printing_is_linked_into_the_kernel() {
        let Ok(_) = tools::find_device_library(None) else {
            eprintln!("SKIPPED: no ROCm device library, so that printing on AMD is compiled and not linked");
            return;
        };
        let assembly = emit(&traced(), Emit::Amdgcn, &EmitOptions::default()).unwrap();
        let assembly = assembly.text().unwrap();
        assert!(
            assembly.contains("hidden_hostcall_buffer") && assembly.contains("__ockl_hostcall_internal:"),
            "{assembly}"
        );
        if tools::find_lld(None).is_ok() {
            let object = emit(&traced(), Emit::Hsaco, &EmitOptions::default()).unwrap();
            assert!(object.as_bytes().starts_with(b"\x7fELF"));
        }
    }
}

//! The `math` dialect: intrinsics that every target selects, the targets' approximate instructions
//! for `fastmath<afn>`, and the expansions of [`super::math`] for the rest.

use melior::ir::operation::OperationLike;

use super::build::{Builder, Elem, F32, I1, Op, Ty, Val, operand, refuse, result, type_of};
use super::math;
use super::numeric::Numeric as _;
use crate::Error;

/// Lowers `math.<function>`.
pub(super) fn lower<'m>(b: &Builder<'m>, op: Op<'m>, function: &str) -> Result<Val<'m>, Error> {
    let ty = type_of(result(op, 0)?)?;
    let operands = (0..op.operand_count()).map(|i| operand(op, i)).collect::<Result<Vec<_>, _>>()?;
    let fast = b.may_approximate(op);
    if ty.is_fp8() {
        return Err(refuse(op, format!("`{function}` does not exist for 8-bit floats"), "cast to F32 first"));
    }
    // One instruction or a short, exact sequence on every target, for every width.
    match function {
        "absf" => return b.call("llvm.fabs", &operands, ty),
        "copysign" => return b.call("llvm.copysign", &operands, ty),
        "fma" => return b.call("llvm.fma", &operands, ty),
        "ctpop" => return b.call("llvm.ctpop", &operands, ty),
        "absi" | "ctlz" | "cttz" => {
            // The flag would make abs(MIN), and the count of 0, undefined.
            let defined = b.constant(I1, 0)?;
            let name = if function == "absi" { "llvm.abs".to_owned() } else { format!("llvm.{function}") };
            return b.call(&name, &[operand(op, 0)?, defined], ty);
        }
        _ => {}
    }
    if ty.lanes.is_some() {
        let mut elements = Vec::new();
        for lane in 0..ty.lane_count() {
            let parts = operands.iter().map(|v| b.extract(*v, lane)).collect::<Result<Vec<_>, _>>()?;
            elements.push(scalar(b, op, function, &parts, ty.element(), fast)?);
        }
        return b.vector_of(&elements);
    }
    scalar(b, op, function, &operands, ty, fast)
}

/// 16-bit floats are computed in f32 and rounded once more; f64 has what needs no expansion.
fn scalar<'m>(
    b: &Builder<'m>,
    op: Op<'m>,
    function: &str,
    operands: &[Val<'m>],
    ty: Ty,
    fast: bool,
) -> Result<Val<'m>, Error> {
    let [x, ..] = operands else {
        return Err(refuse(op, format!("`math.{function}` lacks an operand"), "this is a fault in the trace"));
    };
    match ty.elem {
        Elem::F32 => single(b, op, function, *x, fast),
        Elem::F16 | Elem::Bf16 => {
            let wide = b.cast("arith.extf", *x, F32)?;
            let y = single(b, op, function, wide, fast)?;
            b.cast("arith.truncf", y, ty)
        }
        Elem::F64 => match rounding(function) {
            Some(intrinsic) => b.call(intrinsic, &[*x], ty),
            None if function == "rsqrt" => {
                let one = b.float_bits(ty, 1f64.to_bits())?;
                b.binary("arith.divf", one, b.call("llvm.sqrt", &[*x], ty)?)
            }
            None => Err(refuse(
                op,
                format!("`{function}` does not exist for F64 on {}", b.target()),
                "compute it in F32; F64 has + - * / sqrt rsqrt fma abs floor ceil round trunc",
            )),
        },
        _ => Err(refuse(op, format!("`{function}` does not apply to {}", ty.spelling()), "cast to a float first")),
    }
}

/// Functions that are correctly rounded through one intrinsic.
fn rounding(function: &str) -> Option<&'static str> {
    Some(match function {
        "sqrt" => "llvm.sqrt",
        "floor" => "llvm.floor",
        "ceil" => "llvm.ceil",
        "trunc" => "llvm.trunc",
        "round" => "llvm.round",
        "roundeven" => "llvm.roundeven",
        _ => return None,
    })
}

fn single<'m>(b: &Builder<'m>, op: Op<'m>, function: &str, x: Val<'m>, fast: bool) -> Result<Val<'m>, Error> {
    if fast && let Some(y) = approximate(b, function, x)? {
        return Ok(y);
    }
    if let Some(intrinsic) = rounding(function) {
        return b.call(intrinsic, &[x], F32);
    }
    match function {
        // `ex2.approx` without `.ftz` takes and gives subnormals; `v_exp_f32` does not, and LLVM scales
        // round it.
        "exp2" if b.target().is_nvidia() => b.call("llvm.nvvm.ex2.approx", &[x], F32),
        "exp2" => b.call("llvm.exp2", &[x], F32),
        "exp" => math::exp(b, x),
        "log" => math::log(b, x),
        "log2" => math::log2(b, x),
        "log10" => math::log10(b, x),
        "rsqrt" => math::rsqrt(b, x),
        "tanh" => math::tanh(b, x),
        "erf" => math::erf(b, x),
        "sin" => math::sin(b, x),
        "cos" => math::cos(b, x),
        _ => Err(refuse(op, format!("`math.{function}` is not part of the kernel language"), "this is a fault")),
    }
}

/// The approximate form: the target's instructions, subnormals flushed. `None` where there is none.
///
/// PTX ISA: `ex2`, `lg2`, `rsqrt`, `sin`, `cos`, `tanh` with `.approx[.ftz].f32`. CDNA3 ISA: `v_exp_f32`,
/// `v_log_f32`, `v_rsq_f32`, `v_sin_f32`, `v_cos_f32` (angles in turns).
fn approximate<'m>(b: &Builder<'m>, function: &str, x: Val<'m>) -> Result<Option<Val<'m>>, Error> {
    use std::f32::consts::{LN_2, LOG2_E, LOG10_2};
    let nvidia = b.target().is_nvidia();
    let scaled = |value, factor: f32| b.mul(value, b.float(factor)?);
    let exp2 = |x| if nvidia { b.call("llvm.nvvm.ex2.approx.ftz", &[x], F32) } else { b.cast("rocdl.exp2", x, F32) };
    let log2 = |x| if nvidia { b.call("llvm.nvvm.lg2.approx.ftz.f", &[x], F32) } else { b.cast("rocdl.log", x, F32) };
    Ok(Some(match function {
        "exp2" => exp2(x)?,
        "exp" => exp2(scaled(x, LOG2_E)?)?,
        "log2" => log2(x)?,
        "log" => scaled(log2(x)?, LN_2)?,
        "log10" => scaled(log2(x)?, LOG10_2)?,
        "sqrt" => b.call_fast("llvm.sqrt", &[x], F32, "afn")?,
        "rsqrt" if nvidia => b.call("llvm.nvvm.rsqrt.approx.ftz.f", &[x], F32)?,
        "rsqrt" => b.call("llvm.amdgcn.rsq", &[x], F32)?,
        "sin" | "cos" if nvidia => b.call(&format!("llvm.nvvm.{function}.approx.ftz.f"), &[x], F32)?,
        "sin" | "cos" => {
            let turns = scaled(x, 1.0 / std::f32::consts::TAU)?;
            let turn = b.call("llvm.amdgcn.fract", &[turns], F32)?;
            b.cast(&format!("rocdl.{function}"), turn, F32)?
        }
        "tanh" if nvidia => b.call_fast("llvm.tanh", &[x], F32, "afn")?,
        "tanh" => {
            // 1 - 2 / (e^2x + 1): an absolute error of 2^-22, no relative one near 0.
            let e = exp2(scaled(x, 2.0 * LOG2_E)?)?;
            let one = b.float(1.0)?;
            let reciprocal = b.cast("rocdl.rcp", b.add(e, one)?, F32)?;
            b.fma(b.float(-2.0)?, reciprocal, one)?
        }
        _ => return Ok(None),
    }))
}

/// `lw.rcp` (PTX ISA, `rcp.approx.ftz.f32`; CDNA3 ISA, `v_rcp_f32`).
pub(super) fn approximate_reciprocal<'m>(b: &Builder<'m>, op: Op<'m>) -> Result<Val<'m>, Error> {
    let name = if b.target().is_nvidia() { "nvvm.rcp.approx.ftz.f" } else { "rocdl.rcp" };
    b.cast(name, operand(op, 0)?, F32)
}

//! Tests on small kernels in the traced form.

#![allow(clippy::type_complexity, reason = "tables of operations and their models")]

mod asynchronous;
mod atoms;
mod control;
mod elementwise;
mod kernels;
mod lds;
mod matrix;
mod matrix_store;
mod memory;
mod numbers;
mod races;
mod sync;
mod traffic;

use std::rc::Rc;

use lacewing_core::mlir::{IrContext, IrModule};
use lacewing_core::{Error, Traced};

use super::exec::interpret::{Interpreter, interpret_baseline, interpreter};
use super::launch::run_with;
use super::{ArgValue, Buffer, Checks, Launch, LaunchStats, Program, Report};

/// A kernel of one block dimension: arguments in MLIR's syntax, then the body.
pub(crate) struct Kernel<'a> {
    pub(crate) target: &'a str,
    pub(crate) block: [u32; 3],
    pub(crate) shared: u32,
    pub(crate) args: &'a str,
    pub(crate) body: &'a str,
    pub(crate) checks: Checks,
    /// More attributes of the function, each behind a comma.
    pub(crate) attributes: &'a str,
}

impl Default for Kernel<'_> {
    fn default() -> Self {
        Self {
            target: "sm_80",
            block: [32, 1, 1],
            shared: 0,
            args: "",
            body: "",
            checks: Checks::default(),
            attributes: "",
        }
    }
}

/// Short forms of arguments.
pub(crate) fn arg(name: &str, ty: &str) -> String {
    match ty {
        "in" | "out" => {
            let access = if ty == "out" { "write" } else { "read" };
            format!(
                "%{name}: !llvm.ptr<1> {{lw.name = \"{name}\", lw.elem = \"f32\", lw.access = \"{access}\", lw.rank = 1 : i64}}"
            )
        }
        // `map/bf16/64x8/128`: element, box, swizzle.
        _ if ty.starts_with("map/") => {
            let parts: Vec<&str> = ty.split('/').collect();
            let extents: Vec<&str> = parts[2].split('x').collect();
            format!(
                "%{name}: !llvm.ptr {{lw.name = \"{name}\", lw.role = \"tensor_map\", lw.elem = \"{}\", lw.rank = {} : i64, \
                 lw.box = array<i64: {}>, lw.swizzle = {} : i64}}",
                parts[1],
                extents.len(),
                extents.join(", "),
                parts[3]
            )
        }
        _ => format!("%{name}: {ty} {{lw.name = \"{name}\", lw.elem = \"f32\"}}"),
    }
}

impl Kernel<'_> {
    pub(crate) fn text(&self) -> String {
        let args: Vec<String> = self
            .args
            .split_whitespace()
            .map(|item| {
                let (name, ty) = item.split_once(':').unwrap();
                arg(name, ty)
            })
            .collect();
        let [x, y, z] = self.block;
        format!(
            "module attributes {{gpu.container_module}} {{ gpu.module @test {{\ngpu.func @test({}) kernel attributes \
             {{known_block_size = array<i32: {x}, {y}, {z}>, lw.target = \"{}\", lw.shared_bytes = {} : i64{}}} {{\n{}\n\
             gpu.return\n}} }} }}",
            args.join(", "),
            self.target,
            self.shared,
            self.attributes,
            self.body
        )
    }

    pub(crate) fn try_decode(&self) -> Result<Program, Error> {
        thread_local! {
            /// Contexts take milliseconds.
            static CONTEXT: Rc<IrContext> = IrContext::new().unwrap();
        }
        let module = CONTEXT.with(|context| IrModule::parse(context, &self.text()))?;
        Program::decode(&Traced::from_module(module)?)
    }

    pub(crate) fn decode(&self) -> Program {
        self.try_decode().unwrap_or_else(|error| panic!("{error}\n{}", self.text()))
    }

    /// Runs on each instruction set, which must agree, and returns the content of the buffers.
    pub(crate) fn run(&self, grid: [u32; 3], args: &[Arg]) -> Vec<Vec<u8>> {
        let program = self.decode();
        let results: Vec<Vec<Vec<u8>>> = INTERPRETERS()
            .into_iter()
            .map(|interpreter| {
                let (buffers, values) = bind(args);
                let launch = Launch { threads: 1, checks: self.checks, ..Launch::new(grid, values) };
                run_with(&program, &launch, interpreter).unwrap_or_else(|report| panic!("{report}"));
                buffers.iter().map(Buffer::read).collect()
            })
            .collect();
        assert!(results.windows(2).all(|pair| pair[0] == pair[1]), "instruction sets differ");
        results.into_iter().next().unwrap()
    }

    /// Runs a kernel that must fail.
    pub(crate) fn report(&self, args: &[Arg]) -> Box<Report> {
        let (_, values) = bind(args);
        let launch = Launch { checks: self.checks, ..Launch::new([1, 1, 1], values) };
        super::run(&self.decode(), &launch).expect_err("the kernel has a mistake")
    }
}

#[allow(non_snake_case, reason = "reads as a constant")]
pub(crate) fn INTERPRETERS() -> [Interpreter; 2] {
    [interpret_baseline, interpreter()]
}

/// An argument of a test.
#[derive(Clone)]
pub(crate) enum Arg {
    Bytes(Vec<u8>),
    Uninit(usize),
    Value(ArgValue),
}

pub(crate) fn f32s(values: &[f32]) -> Arg {
    Arg::Bytes(values.iter().flat_map(|v| v.to_le_bytes()).collect())
}

pub(crate) fn i32s(values: &[i32]) -> Arg {
    Arg::Bytes(values.iter().flat_map(|v| v.to_le_bytes()).collect())
}

pub(crate) fn u16s(values: &[u16]) -> Arg {
    Arg::Bytes(values.iter().flat_map(|v| v.to_le_bytes()).collect())
}

pub(crate) fn to_f32s(bytes: &[u8]) -> Vec<f32> {
    bytes.chunks(4).map(|c| f32::from_le_bytes(c.try_into().unwrap())).collect()
}

pub(crate) fn to_i32s(bytes: &[u8]) -> Vec<i32> {
    bytes.chunks(4).map(|c| i32::from_le_bytes(c.try_into().unwrap())).collect()
}

pub(crate) fn bind(args: &[Arg]) -> (Vec<Buffer>, Vec<ArgValue>) {
    let mut buffers = Vec::new();
    let values = args
        .iter()
        .map(|arg| {
            let buffer = match arg {
                Arg::Value(value) => return value.clone(),
                Arg::Bytes(bytes) => Buffer::from_bytes(bytes),
                Arg::Uninit(bytes) => Buffer::uninit(*bytes),
            };
            buffers.push(buffer.clone());
            ArgValue::from(&buffer)
        })
        .collect();
    (buffers, values)
}

/// Runs with all defaults.
pub(crate) fn launch(program: &Program, grid: [u32; 3], args: &[Arg], seed: u64) -> (Vec<Vec<u8>>, LaunchStats) {
    let (buffers, values) = bind(args);
    let launch = Launch { seed, ..Launch::new(grid, values) };
    let stats = super::run(program, &launch).unwrap_or_else(|report| panic!("{report}"));
    (buffers.iter().map(Buffer::read).collect(), stats)
}

/// Deterministic numbers.
pub(crate) struct Random(pub(crate) u64);

impl Random {
    pub(crate) fn next(&mut self) -> u64 {
        super::schedule::SplitMix::next(&mut super::schedule::SplitMix({
            self.0 += 1;
            self.0
        }))
    }

    /// Bits that often hit the edges of numeric formats.
    pub(crate) fn edgy(&mut self, bits: u32) -> u64 {
        let edges = [
            0,
            1,
            u64::MAX,
            1 << (bits - 1),
            (1 << (bits - 1)) - 1,
            0x7f80_0000,
            0xff80_0000,
            0x7fc0_0000,
            0x3f80_0000,
            0x8000_0000,
        ];
        let value = match self.next() % 4 {
            0 => edges[self.next() as usize % edges.len()],
            1 => self.next() % 64,
            _ => self.next(),
        };
        value & (u64::MAX >> (64 - bits))
    }
}

/// `%tid` as i32 and `%tid64`, the global thread number in x.
pub(crate) const THREAD: &str = r#"
  %tid_x = gpu.thread_id x
  %tid_b = gpu.block_id x
  %tid_n = gpu.block_dim x
  %tid_xi = arith.index_cast %tid_x : index to i32
  %tid_bi = arith.index_cast %tid_b : index to i32
  %tid_ni = arith.index_cast %tid_n : index to i32
  %tid_base = arith.muli %tid_bi, %tid_ni : i32
  %tid = arith.addi %tid_base, %tid_xi : i32
  %tid64 = arith.extsi %tid : i32 to i64
"#;

/// An element of a buffer by `%tid64`: `%NAME_p`.
pub(crate) fn element(buffer: &str, ty: &str) -> String {
    format!("%{buffer}_p = llvm.getelementptr %{buffer}[%tid64] : (!llvm.ptr<1>, i64) -> !llvm.ptr<1>, {ty}\n")
}

/// `%NAME_v` loaded from `%NAME[tid]`.
pub(crate) fn load(buffer: &str, ty: &str) -> String {
    let align = align(ty);
    format!(
        "{}%{buffer}_v = \"lw.load\"(%{buffer}_p) {{align = {align} : i64}} : (!llvm.ptr<1>) -> {ty}\n",
        element(buffer, ty)
    )
}

/// `%value` stored to `%NAME[tid]`.
pub(crate) fn store(value: &str, buffer: &str, ty: &str) -> String {
    let align = align(ty);
    format!(
        "{}\"lw.store\"(%{value}, %{buffer}_p) {{align = {align} : i64}} : ({ty}, !llvm.ptr<1>) -> ()\n",
        element(buffer, ty)
    )
}

fn align(ty: &str) -> u32 {
    match ty.trim_start_matches(|c: char| c != 'x').trim_matches(['x', '>']) {
        "" => scalar_bytes(ty),
        elem => scalar_bytes(elem),
    }
}

fn scalar_bytes(ty: &str) -> u32 {
    match ty {
        "i8" | "f8E4M3FN" | "f8E5M2" => 1,
        "i16" | "f16" | "bf16" => 2,
        "i64" | "f64" => 8,
        _ => 4,
    }
}

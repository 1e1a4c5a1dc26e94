//! mbarriers, tensor copies, warpgroup products and clusters: right programs against naive models, and wrong
//! ones with the report that they get (cases D17, D19, D20).

mod atoms;
mod barriers;
mod clusters;
mod copies;
mod mistakes;
mod products;
mod tensor_memory;

use std::fmt::Write;

use super::*;
use crate::emulator::TensorMap;

/// A body in MLIR under construction. Operations without a line of their own are on line 1.
#[derive(Default)]
pub(super) struct Body {
    pub(super) text: String,
    next: u32,
}

impl Body {
    /// `%tid`, the lane, the warp, and whether the thread is the first of its block.
    pub(super) fn new() -> Self {
        let mut body = Self { text: THREAD.to_owned(), next: 0 };
        body.text += "%c32 = arith.constant 32 : i32\n%zero = arith.constant 0 : i32\n\
                      %lane = arith.remui %tid_xi, %c32 : i32\n%warp = arith.divui %tid_xi, %c32 : i32\n\
                      %first = arith.cmpi eq, %tid_xi, %zero : i32\n";
        body
    }

    fn name(&mut self) -> String {
        self.next += 1;
        format!("%v{}", self.next)
    }

    pub(super) fn add(&mut self, text: &str) {
        self.text += text;
        self.text += "\n";
    }

    /// An operation at a line of `k.rs`.
    pub(super) fn at(&mut self, line: u32, text: &str) {
        writeln!(self.text, "{text} loc(\"k.rs\":{line}:5)").unwrap();
    }

    /// An operation with a result.
    pub(super) fn value(&mut self, text: &str) -> String {
        let name = self.name();
        writeln!(self.text, "{name} = {text}").unwrap();
        name
    }

    pub(super) fn i32(&mut self, value: i32) -> String {
        self.value(&format!("arith.constant {value} : i32"))
    }

    pub(super) fn i64(&mut self, value: i64) -> String {
        self.value(&format!("arith.constant {value} : i64"))
    }

    /// A member of shared memory.
    pub(super) fn shared(&mut self, name: &str, offset: u32, bytes: u32) -> String {
        self.value(&format!(
            "\"lw.shared\"() {{offset = {offset} : i64, bytes = {bytes} : i64, align = 16 : i64, name = \"{name}\"}} : () -> !llvm.ptr<3>"
        ))
    }

    /// The element of this number of a tile in shared memory.
    pub(super) fn element(&mut self, base: &str, index: &str, ty: &str) -> String {
        self.value(&format!("llvm.getelementptr {base}[{index}] : (!llvm.ptr<3>, i32) -> !llvm.ptr<3>, {ty}"))
    }

    /// What only the block's first thread does.
    pub(super) fn by_first(&mut self, inner: impl FnOnce(&mut Self)) {
        self.when("%first", inner);
    }

    pub(super) fn when(&mut self, condition: &str, inner: impl FnOnce(&mut Self)) {
        self.add(&format!("scf.if {condition} {{"));
        inner(self);
        self.add("}");
    }

    /// Copies `words` i32 from a buffer to the start of shared memory, all threads together.
    pub(super) fn fill_shared(&mut self, base: &str, buffer: &str, words: u32, threads: u32) {
        let (low, high, step) = ("%tid_xi".to_owned(), self.i32(words as i32), self.i32(threads as i32));
        let index = self.name();
        self.add(&format!("scf.for {index} = {low} to {high} step {step} : i32 {{"));
        let wide = self.value(&format!("arith.extsi {index} : i32 to i64"));
        let from =
            self.value(&format!("llvm.getelementptr {buffer}[{wide}] : (!llvm.ptr<1>, i64) -> !llvm.ptr<1>, i32"));
        let word = self.value(&format!("\"lw.load\"({from}) {{align = 4 : i64}} : (!llvm.ptr<1>) -> i32"));
        let to = self.element(base, &index, "i32");
        self.at(60, &format!("\"lw.store\"({word}, {to}) {{align = 4 : i64}} : (i32, !llvm.ptr<3>) -> ()"));
        self.add("}");
    }

    /// The opposite.
    pub(super) fn dump_shared(&mut self, base: &str, buffer: &str, words: u32, threads: u32) {
        let (low, high, step) = ("%tid_xi".to_owned(), self.i32(words as i32), self.i32(threads as i32));
        let index = self.name();
        self.add(&format!("scf.for {index} = {low} to {high} step {step} : i32 {{"));
        let from = self.element(base, &index, "i32");
        let word = self.name();
        self.at(70, &format!("{word} = \"lw.load\"({from}) {{align = 4 : i64}} : (!llvm.ptr<3>) -> i32"));
        let wide = self.value(&format!("arith.extsi {index} : i32 to i64"));
        let to = self.value(&format!("llvm.getelementptr {buffer}[{wide}] : (!llvm.ptr<1>, i64) -> !llvm.ptr<1>, i32"));
        self.add(&format!("\"lw.store\"({word}, {to}) {{align = 4 : i64}} : (i32, !llvm.ptr<1>) -> ()"));
        self.add("}");
    }

    pub(super) fn init(&mut self, line: u32, barrier: &str, count: u32) {
        self.at(line, &format!("\"lw.mbarrier_init\"({barrier}) {{count = {count} : i64}} : (!llvm.ptr<3>) -> ()"));
    }

    pub(super) fn arrive(&mut self, line: u32, barrier: &str) {
        self.at(line, &format!("\"lw.mbarrier_arrive\"({barrier}) : (!llvm.ptr<3>) -> ()"));
    }

    pub(super) fn expect(&mut self, line: u32, barrier: &str, bytes: u32) {
        self.at(
            line,
            &format!("\"lw.mbarrier_expect_tx\"({barrier}) {{bytes = {bytes} : i64}} : (!llvm.ptr<3>) -> ()"),
        );
    }

    pub(super) fn wait(&mut self, line: u32, barrier: &str, parity: &str) {
        self.at(line, &format!("\"lw.mbarrier_wait\"({barrier}, {parity}) : (!llvm.ptr<3>, i32) -> ()"));
    }

    pub(super) fn fence(&mut self, kind: &str) {
        self.add(&format!("\"lw.fence_proxy\"() {{kind = \"{kind}\"}} : () -> ()"));
    }

    pub(super) fn barrier(&mut self) {
        self.add("gpu.barrier");
    }

    pub(super) fn load(&mut self, line: u32, (to, map, barrier): (&str, &str, &str), at: &[String], multicast: u32) {
        let types = vec!["i32"; at.len()].join(", ");
        self.at(
            line,
            &format!(
                "\"lw.tma_load\"({to}, {map}, {barrier}, {}) {{multicast = {multicast} : i64, hint = \"none\"}} : \
                 (!llvm.ptr<3>, !llvm.ptr, !llvm.ptr<3>, {types}) -> ()",
                at.join(", ")
            ),
        );
    }

    pub(super) fn store(&mut self, line: u32, map: &str, from: &str, at: &[String]) {
        let types = vec!["i32"; at.len()].join(", ");
        self.at(
            line,
            &format!("\"lw.tma_store\"({map}, {from}, {}) : (!llvm.ptr, !llvm.ptr<3>, {types}) -> ()", at.join(", ")),
        );
    }

    pub(super) fn store_wait(&mut self, line: u32, groups: u32, read: bool) {
        self.at(line, &format!("\"lw.tma_wait\"() {{groups = {groups} : i64, read = {read}}} : () -> ()"));
    }

    /// Makes an mbarrier, in the first thread, known to all.
    pub(super) fn make(&mut self, barriers: &[(&str, u32)]) {
        self.by_first(|body| {
            for (barrier, count) in barriers {
                body.init(1, barrier, *count);
            }
            body.fence("mbarrier_init");
        });
        self.barrier();
    }
}

/// A kernel for sm_90a.
pub(super) fn hopper<'a>(threads: u32, shared: u32, args: &'a str, body: &'a str) -> Kernel<'a> {
    Kernel { target: "sm_90a", block: [threads, 1, 1], shared, args, body, ..Kernel::default() }
}

pub(super) fn line(report: &Report) -> Option<u32> {
    report.location.as_ref().map(|location| location.line)
}

/// Runs under ten seeds, which must all hold; the buffers of the last.
pub(super) fn under_seeds(kernel: &Kernel<'_>, grid: [u32; 3], args: &[Arg]) -> Vec<Vec<u8>> {
    let program = kernel.decode();
    let mut last = Vec::new();
    for seed in 0..10 {
        let (buffers, values) = bind(args);
        let launch = Launch { seed, checks: kernel.checks, ..Launch::new(grid, values) };
        crate::emulator::run(&program, &launch).unwrap_or_else(|report| panic!("seed {seed}: {report}"));
        last = buffers.iter().map(Buffer::read).collect();
    }
    last
}

/// The reports under ten seeds.
pub(super) fn reports(kernel: &Kernel<'_>, grid: [u32; 3], args: &[Arg]) -> Vec<Report> {
    let program = kernel.decode();
    (0..10)
        .map(|seed| {
            let (_, values) = bind(args);
            let launch = Launch { seed, checks: kernel.checks, ..Launch::new(grid, values) };
            *crate::emulator::run(&program, &launch).expect_err("the kernel has a mistake")
        })
        .collect()
}

/// A map of a contiguous tensor, outermost extent first.
pub(super) fn map_of(buffer: &Buffer, element_bytes: u32, extents: &[u64], box_shape: &[u32], swizzle: u32) -> Arg {
    let mut strides = Vec::new();
    let mut step = u64::from(element_bytes);
    for extent in extents {
        strides.push(step);
        step *= extent;
    }
    Arg::Value(ArgValue::Map(Box::new(TensorMap {
        buffer: buffer.clone(),
        byte_offset: 0,
        element_bytes,
        extents: extents.to_vec(),
        strides,
        box_shape: box_shape.to_vec(),
        swizzle,
    })))
}

//! Costs of the emulator: one operation of a warp, and a whole flash-attention launch.
//!
//! `cargo bench -p lacewing-runtime`; set `DIVAN_SAMPLE_COUNT` for more samples.

#![allow(clippy::expect_used, reason = "a benchmark that cannot run has nothing to measure")]
#![allow(clippy::needless_range_loop, reason = "tiles are numbered as in the algorithm")]

mod attention;

use divan::counter::ItemsCount;
use lacewing_core::Traced;
use lacewing_core::mlir::{IrContext, IrModule};
use lacewing_runtime::emulator::{ArgValue, Buffer, Checks, Launch, Program, run};

fn main() {
    divan::main();
}

fn decode(text: &str) -> Program {
    let context = IrContext::new().expect("the dialect loads");
    let module = IrModule::parse(&context, text).expect("the kernel parses");
    let traced = Traced::from_module(module).expect("the kernel describes itself");
    Program::decode(&traced).expect("the kernel decodes")
}

/// A loop of 64 copies of a line, run 200 times by one warp. `{i}` is the copy, `{p}` the one before.
fn repeated(line: &str, setup: &str, carried: &str) -> String {
    let mut body = String::new();
    for i in 1..=64 {
        body += &line.replace("{i}", &i.to_string()).replace("{p}", &(i - 1).to_string());
        body.push('\n');
    }
    format!(
        "module attributes {{gpu.container_module}} {{ gpu.module @b {{ gpu.func @b(\
         %x: !llvm.ptr<1> {{lw.name = \"x\", lw.elem = \"f32\", lw.access = \"write\", lw.rank = 1 : i64}}) kernel \
         attributes {{known_block_size = array<i32: 32, 1, 1>, lw.target = \"sm_80\", lw.shared_bytes = 512 : i64}} {{\n\
         %tx = gpu.thread_id x\n%t = arith.index_cast %tx : index to i32\n%tl = arith.extsi %t : i32 to i64\n\
         %lo = arith.constant 0 : i32\n%hi = arith.constant 200 : i32\n%one = arith.constant 1 : i32\n\
         %tf = arith.sitofp %t : i32 to f32\n%kf = arith.constant 1.0 : f32\n\
         %p = llvm.getelementptr %x[%tl] : (!llvm.ptr<1>, i64) -> !llvm.ptr<1>, f32\n\
         %s = \"lw.shared\"() {{offset = 0 : i64, bytes = 512 : i64, align = 16 : i64, name = \"s\"}} : () -> !llvm.ptr<3>\n\
         %sp = llvm.getelementptr %s[%t] : (!llvm.ptr<3>, i32) -> !llvm.ptr<3>, f32\n\
         \"lw.store\"(%tf, %sp) {{align = 4 : i64}} : (f32, !llvm.ptr<3>) -> ()\n\
         \"lw.store\"(%tf, %p) {{align = 4 : i64}} : (f32, !llvm.ptr<1>) -> ()\n{setup}\n\
         %r = scf.for %n = %lo to %hi step %one iter_args(%v0 = {carried}) -> ({}) : i32 {{\n{body}scf.yield %v64 : {}\n}}\n\
         gpu.return\n}} }} }}",
        if carried == "%t" { "i32" } else { "f32" },
        if carried == "%t" { "i32" } else { "f32" },
    )
}

/// Divide the time by 12800 for one operation.
const OPS: &[(&str, &str, &str)] = &[
    ("addi", "%v{i} = arith.addi %v{p}, %t : i32", "%t"),
    ("muli", "%v{i} = arith.muli %v{p}, %t : i32", "%t"),
    ("addf", "%v{i} = arith.addf %v{p}, %tf : f32", "%tf"),
    ("fma", "%v{i} = math.fma %v{p}, %tf, %kf : f32", "%tf"),
    ("maximumf", "%v{i} = arith.maximumf %v{p}, %tf : f32", "%tf"),
    ("divf", "%v{i} = arith.divf %v{p}, %tf : f32", "%tf"),
    ("exp2 fast", "%v{i} = math.exp2 %v{p} fastmath<afn> : f32", "%tf"),
    ("exp2", "%v{i} = math.exp2 %v{p} : f32", "%tf"),
    ("cmp and select", "%c{i} = arith.cmpf olt, %v{p}, %kf : f32\n%v{i} = arith.select %c{i}, %tf, %v{p} : f32", "%tf"),
    ("shuffle xor", "%v{i}, %ok{i} = gpu.shuffle xor %v{p}, %one, %w : f32", "%tf"),
    (
        "f16 add",
        "%h{i} = arith.truncf %v{p} : f32 to f16\n%g{i} = arith.addf %h{i}, %h{i} : f16\n%v{i} = arith.extf %g{i} : f16 to f32",
        "%tf",
    ),
    ("load global", "%v{i} = \"lw.load\"(%p) {align = 4 : i64} : (!llvm.ptr<1>) -> f32", "%tf"),
    ("load shared", "%v{i} = \"lw.load\"(%sp) {align = 4 : i64} : (!llvm.ptr<3>) -> f32", "%tf"),
    (
        "store global",
        "\"lw.store\"(%v{p}, %p) {align = 4 : i64} : (f32, !llvm.ptr<1>) -> ()\n%v{i} = arith.addf %v{p}, %tf : f32",
        "%tf",
    ),
];

#[divan::bench(args = OPS.iter().map(|op| op.0))]
fn warp_ops_12800(bencher: divan::Bencher, name: &str) {
    let Some((_, line, carried)) = OPS.iter().find(|op| op.0 == name) else { return };
    let program = decode(&repeated(line, "%w = arith.constant 32 : i32", carried));
    let buffer = Buffer::uninit(128);
    let launch = Launch { threads: 1, ..Launch::new([1, 1, 1], vec![ArgValue::from(&buffer)]) };
    let ops = run(&program, &launch).expect("the kernel runs").warp_ops;
    bencher.counter(ItemsCount::new(ops)).bench(|| run(&program, &launch));
}

#[divan::bench(args = [(2, 256, 1), (2, 256, 2), (9, 106, 1), (9, 106, 2)])]
fn attention_64x64(bencher: divan::Bencher, (heads, length, threads): (usize, usize, usize)) {
    let program = decode(&attention::kernel());
    let case = attention::Case::new(heads, length);
    let launch = Launch { threads, checks: Checks::default(), ..case.launch() };
    run(&program, &launch).expect("the kernel runs");
    case.check();
    bencher.bench(|| run(&program, &launch));
}

/// The same by check: all, none, and all but one. The default is `all`.
#[divan::bench(args = CHECKS)]
fn attention_checks_2x256(bencher: divan::Bencher, checks: &str) {
    checked(bencher, checks, 2, 256);
}

/// The same with tails.
#[divan::bench(args = CHECKS)]
fn attention_checks_9x106(bencher: divan::Bencher, checks: &str) {
    checked(bencher, checks, 9, 106);
}

const CHECKS: [&str; 8] = [
    "all",
    "none",
    "init",
    "nan,races,copies",
    "init,races,copies",
    "init,nan,copies",
    "init,nan,races",
    "all,performance",
];

fn checked(bencher: divan::Bencher, checks: &str, heads: usize, length: usize) {
    let program = decode(&attention::kernel());
    let case = attention::Case::new(heads, length);
    let checks = checks.parse().expect("names of checks");
    let launch = Launch { threads: 2, checks, ..case.launch() };
    run(&program, &launch).expect("the kernel runs");
    bencher.bench(|| run(&program, &launch));
}

#[divan::bench]
fn decode_attention(bencher: divan::Bencher) {
    let context = IrContext::new().expect("the dialect loads");
    let module = IrModule::parse(&context, &attention::kernel()).expect("the kernel parses");
    let traced = Traced::from_module(module).expect("the kernel describes itself");
    bencher.bench_local(|| Program::decode(&traced));
}

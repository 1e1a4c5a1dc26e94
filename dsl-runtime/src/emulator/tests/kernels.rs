//! Whole small kernels.

use super::*;

#[test]
fn axpy_runs_over_blocks_with_a_tail() {
    let body = format!(
        "{THREAD}%in_range = arith.cmpi slt, %tid, %n : i32\nscf.if %in_range {{\n{}{}\
         %p = arith.mulf %a, %x_v : f32\n%s = arith.addf %p, %y_v : f32\n{} }}",
        load("x", "f32"),
        load("y", "f32"),
        "\"lw.store\"(%s, %y_p) {align = 4 : i64} : (f32, !llvm.ptr<1>) -> ()\n"
    );
    let kernel = Kernel { block: [48, 1, 1], args: "a:f32 x:in y:out n:i32", body: &body, ..Kernel::default() };
    let n = 1000;
    let x: Vec<f32> = (0..n).map(|i| i as f32 * 0.5).collect();
    let y: Vec<f32> = (0..n).map(|i| 7.0 - i as f32).collect();
    let args = [Arg::Value(2.0_f32.into()), f32s(&x), f32s(&y), Arg::Value(n.into())];
    for seed in [0, 1, 99] {
        let (buffers, stats) = launch(&kernel.decode(), [21, 1, 1], &args, seed);
        let expected: Vec<f32> = x.iter().zip(&y).map(|(x, y)| 2.0 * x + y).collect();
        assert_eq!(to_f32s(&buffers[1]), expected);
        assert!(stats.warp_ops > 21 * 2 * 10);
    }
    kernel.run([21, 1, 1], &args);
}

#[test]
fn an_unknown_operation_is_an_error_at_its_line() {
    let kernel = Kernel {
        args: "x:out",
        body: "%c = arith.constant 1.0 : f32 loc(\"k.rs\":3:9)\n%t = math.atan %c : f32 loc(\"k.rs\":4:9)",
        ..Kernel::default()
    };
    let error = kernel.try_decode().unwrap_err();
    assert!(error.to_string().contains("the emulator does not know `math.atan` of (f32)"), "{error}");
    assert_eq!(error.diagnostics[0].location.as_ref().unwrap().line, 4);
}

#[test]
fn wrong_arguments_are_a_report() {
    let kernel = Kernel { args: "a:f32 x:out", ..Kernel::default() };
    let program = kernel.decode();
    let buffer = Buffer::zeroed(4);
    let message = |args: Vec<ArgValue>| super::super::run(&program, &Launch::new([1, 1, 1], args)).unwrap_err().message;
    assert_eq!(message(vec![]), "the kernel takes 2 flattened arguments; 0 are given");
    assert_eq!(message(vec![1_u64.into(), (&buffer).into()]), "argument `a` has 8 bytes; the kernel takes 4");
    assert_eq!(message(vec![1.0_f32.into(), 1.0_f32.into()]), "argument `x` is a scalar; the kernel takes a buffer");
}

#[test]
fn prints_by_block_and_thread() {
    let body = format!(
        "{THREAD}%c2 = arith.constant 2 : i32\n%small = arith.cmpi slt, %tid_xi, %c2 : i32\nscf.if %small {{\n\
         gpu.printf \"thread %d: %f %%\\0A\", %tid, %a : i32, f32\n}}"
    );
    let kernel = Kernel { args: "a:f32", body: &body, block: [64, 1, 1], ..Kernel::default() };
    let program = kernel.decode();
    for seed in [1, 2] {
        let (_, stats) = launch(&program, [2, 1, 1], &[Arg::Value(1.5_f32.into())], seed);
        let expected =
            ["thread 0: 1.500000 %", "thread 1: 1.500000 %", "thread 64: 1.500000 %", "thread 65: 1.500000 %"];
        assert_eq!(stats.printed, expected);
    }
}

//! Mistakes that are found when a kernel is traced: the text, and the line that it points at.

use lacewing::prelude::*;
use lacewing::{core, rt};

use super::line_of;

/// Everything that is said of a kernel, with the lines that are blamed.
pub(super) fn refusal(kernel: &impl rt::Kernel, target: Target) -> String {
    let Err(error) = core::trace_kernel(kernel, target) else { panic!("`{}` is not refused", kernel.name()) };
    let mut text = String::new();
    for found in &error.diagnostics {
        text += &format!("{}\n  at `{}`", found.message, line_of(&found.location));
        if !found.label.is_empty() {
            text += &format!(": {}", found.label);
        }
        text.push('\n');
        for call in &found.call_chain {
            text += &format!("  called at `{}`\n", line_of(&Some(call.clone())));
        }
        if let Some(help) = &found.help {
            text += &format!("  help: {help}\n");
        }
    }
    text
}

#[derive(Clone, Copy, Shared)]
struct Tile {
    rows: SharedTile<F32, 8, 8>,
}

#[kernel(block = [32, 1, 1])]
fn beyond_shared_memory(y: TensorMut<F32, 1>) {
    let array = shared_array::<F32>(64);
    let tile = shared::<Tile>();
    y.at(0).store(array.at(100).load() + array.at(-1).load());
    tile.rows.at((thread_id(X), 8)).store(array.at(63).load());
}

#[device]
fn last(array: SharedSlice<F32>) -> F32 {
    array.at(array.len()).load()
}

#[kernel(block = [32, 1, 1])]
fn beyond_shared_memory_in_a_helper(y: TensorMut<F32, 1>) {
    let array = shared_array::<F32>(64);
    y.at(0).store(last(array));
}

// F8
#[test]
fn a_constant_index_beyond_shared_memory() {
    insta::assert_snapshot!(refusal(&beyond_shared_memory::new(), Target::SM_80), @"
    shared-memory index 100 of 64
      at `y.at(0).store(array.at(100).load() + array.at(-1).load());`: out of range
    shared-memory index -1 of 64
      at `y.at(0).store(array.at(100).load() + array.at(-1).load());`: out of range
    shared-memory index 8 of 8
      at `tile.rows.at((thread_id(X), 8)).store(array.at(63).load());`: in dimension 1
    ");
    insta::assert_snapshot!(refusal(&beyond_shared_memory_in_a_helper::new(), Target::SM_80), @"
    shared-memory index 64 of 64
      at `array.at(array.len()).load()`: out of range
      called at `y.at(0).store(last(array));`
    ");
}

#[kernel(block = [block, 1, 1])]
fn shared_and_block(#[comptime] block: usize, #[comptime] kilobytes: usize, y: TensorMut<F32, 1>) {
    let memory = shared_array::<F32>(kilobytes * 256);
    memory.at(thread_id(X)).store(F32::from(1.0));
    y.at(thread_id(X)).store(memory.at(thread_id(X)).load());
}

#[kernel(block = [8, 1, 128])]
fn deep_block(y: TensorMut<F32, 1>) {
    y.at(thread_id(X)).store(F32::from(1.0));
}

// F8
#[test]
fn more_than_the_chip_has() {
    let all = |kernel: &shared_and_block| {
        Target::ALL.map(|target| refusal(kernel, target).lines().next().unwrap_or_default().to_owned()).join("\n")
    };
    insta::assert_snapshot!(refusal(&shared_and_block::new(32, 400), Target::SM_80), @"
    kernel `shared_and_block`: 409600 bytes of shared memory; sm_80 has 166912 a block
      at `fn shared_and_block(#[comptime] block: usize, #[comptime] kilobytes: usize, y: TensorMut<F32, 1>) {`
      help: use smaller tiles or fewer stages
    ");
    insta::assert_snapshot!(all(&shared_and_block::new(32, 400)), @"
    kernel `shared_and_block`: 409600 bytes of shared memory; sm_80 has 166912 a block
    kernel `shared_and_block`: 409600 bytes of shared memory; sm_90a has 232448 a block
    kernel `shared_and_block`: 409600 bytes of shared memory; sm_100a has 232448 a block
    kernel `shared_and_block`: 409600 bytes of shared memory; gfx942 has 65536 a block
    kernel `shared_and_block`: 409600 bytes of shared memory; gfx950 has 163840 a block
    ");
    insta::assert_snapshot!(refusal(&shared_and_block::new(4096, 1), Target::SM_80), @"
    kernel `shared_and_block`: a block of 4096 threads (4096 x 1 x 1); sm_80 allows 1024
      at `fn shared_and_block(#[comptime] block: usize, #[comptime] kilobytes: usize, y: TensorMut<F32, 1>) {`
      help: make the block smaller and loop over the rest
    ");
    insta::assert_snapshot!(all(&shared_and_block::new(4096, 1)), @"
    kernel `shared_and_block`: a block of 4096 threads (4096 x 1 x 1); sm_80 allows 1024
    kernel `shared_and_block`: a block of 4096 threads (4096 x 1 x 1); sm_90a allows 1024
    kernel `shared_and_block`: a block of 4096 threads (4096 x 1 x 1); sm_100a allows 1024
    kernel `shared_and_block`: a block of 4096 threads (4096 x 1 x 1); gfx942 allows 1024
    kernel `shared_and_block`: a block of 4096 threads (4096 x 1 x 1); gfx950 allows 1024
    ");
    insta::assert_snapshot!(refusal(&shared_and_block::new(0, 1), Target::SM_80), @"
    kernel `shared_and_block`: the block 0 x 1 x 1 has no threads
      at `fn shared_and_block(#[comptime] block: usize, #[comptime] kilobytes: usize, y: TensorMut<F32, 1>) {`
    ");
    insta::assert_snapshot!(refusal(&deep_block::new(), Target::SM_80), @"
    kernel `deep_block`: a block of 8 x 1 x 128; sm_80 allows 1024 x 1024 x 64 at most
      at `fn deep_block(y: TensorMut<F32, 1>) {`
    ");
}

#[kernel(block = [64, 1, 1])]
fn matrix_core(y: TensorMut<F32, 1>) {
    let ones = Vector::<F16, 4>::splat(F16::from(1.0));
    let sums = mfma_16x16x16(ones, ones, [F32::from(0.0); 4]);
    y.at(thread_id(X)).store(sums[0]);
}

#[kernel(block = [64, 1, 1])]
fn asynchronous_copy(x: Tensor<F32, 1>, y: TensorMut<F32, 1>) {
    let memory = shared_array::<F32>(64);
    cp_async::<4>(memory.at(thread_id(X)), x.at(thread_id(X)), Bool::from(true));
    cp_async_wait(0);
    y.at(thread_id(X)).store(memory.at(thread_id(X)).load());
}

// F8: also before an emulator runs it.
#[test]
fn an_instruction_that_the_chip_lacks() {
    insta::assert_snapshot!(refusal(&matrix_core::new(), Target::SM_80), @"
    `lw.mfma` does not exist on sm_80
      at `let sums = mfma_16x16x16(ones, ones, [F32::from(0.0); 4]);`: NVIDIA Ampere (A100) has no such instruction
      help: use `mma_m16n8k16`
    ");
    insta::assert_snapshot!(refusal(&asynchronous_copy::new(), Target::GFX942), @"
    `lw.cp_async` does not exist on gfx942
      at `cp_async::<4>(memory.at(thread_id(X)), x.at(thread_id(X)), Bool::from(true));`: AMD CDNA3 (MI300X, MI325X) has no such instruction
      help: use `load_to_shared`, whose lanes land side by side, or registers: `place.store_vec(source.load_vec())`
    `lw.cp_async_wait` does not exist on gfx942
      at `cp_async_wait(0);`: AMD CDNA3 (MI300X, MI325X) has no such instruction
      help: use `load_to_shared`, whose lanes land side by side, or registers: `place.store_vec(source.load_vec())`
    ");
    let dev = Device::emulator(Target::SM_80).unwrap();
    let mut y = dev.tensor_zeros::<f32, 1>([64]).unwrap();
    let outcome = matrix_core::new().grid([1, 1, 1]).launch(&dev, (&mut y,));
    assert!(matches!(outcome, Err(lacewing::Error::Kernel(_))), "{outcome:?}");
}

#[kernel(block = [32, 1, 1], max_regs = 64, min_blocks = 2)]
fn wishes_for_nvidia(y: TensorMut<F32, 1>) {
    y.at(0).store(F32::from(1.0));
}

#[kernel(block = [32, 1, 1], waves_per_eu = 2, cluster = [2, 1, 1])]
fn wishes_for_others(y: TensorMut<F32, 1>) {
    y.at(0).store(F32::from(1.0));
}

// F23
#[test]
fn a_wish_that_the_chip_cannot_honour() {
    insta::assert_snapshot!(refusal(&wishes_for_nvidia::new(), Target::GFX942), @"
    kernel `wishes_for_nvidia`: `min_blocks` is a wish for NVIDIA chips; gfx942 cannot honour it
      at `fn wishes_for_nvidia(y: TensorMut<F32, 1>) {`
      help: on AMD use `waves_per_eu`
    kernel `wishes_for_nvidia`: `max_regs` is a wish for NVIDIA chips; gfx942 cannot honour it
      at `fn wishes_for_nvidia(y: TensorMut<F32, 1>) {`
      help: on AMD use `waves_per_eu`
    ");
    insta::assert_snapshot!(refusal(&wishes_for_others::new(), Target::SM_80), @"
    kernel `wishes_for_others`: `waves_per_eu` is a wish for AMD chips; sm_80 cannot honour it
      at `fn wishes_for_others(y: TensorMut<F32, 1>) {`
      help: on NVIDIA use `min_blocks`
    kernel `wishes_for_others`: sm_80 has no clusters
      at `fn wishes_for_others(y: TensorMut<F32, 1>) {`
      help: clusters need sm_90a or later
    ");
}

#[kernel(block = [32, 1, 1])]
fn steps(#[comptime] step: i32, x: Tensor<I32, 1>, y: TensorMut<I32, 1>) {
    for i in range(0, x.extent(0), step) {
        y.at(i).store(x.at(i).load());
    }
    for i in range_constexpr(5, 9, step) {
        y.at(i).store(x.at(i).load());
    }
}

// F15, D15
#[test]
fn a_step_that_is_not_positive() {
    insta::assert_snapshot!(refusal(&steps::new(0), Target::SM_80), @"
    the step of this loop is zero
      at `for i in range(0, x.extent(0), step) {`: this loop cannot end
      help: steps are positive, as in Rust's `step_by`; to count down, compute `hi - 1 - i`
    `range_constexpr` needs bounds from 0 on and a step above 0
      at `for i in range_constexpr(5, 9, step) {`
      help: count from 0 and subtract, or use `constexpr(iter)` over any host iterator
    ");
    insta::assert_snapshot!(refusal(&steps::new(-2), Target::SM_80), @"
    the step of this loop is negative
      at `for i in range(0, x.extent(0), step) {`: run-time loops count up
      help: steps are positive, as in Rust's `step_by`; to count down, compute `hi - 1 - i`
    `range_constexpr` needs bounds from 0 on and a step above 0
      at `for i in range_constexpr(5, 9, step) {`
      help: count from 0 and subtract, or use `constexpr(iter)` over any host iterator
    ");
}

#[kernel(block = [32, 1, 1])]
fn host_state(x: Tensor<I32, 1>, y: TensorMut<I32, 1>) {
    let mut log = Vec::new();
    let mut last = None;
    for i in range(0, x.extent(0)) {
        log.push(x.at(i).load());
        if log[0] > 3 {
            last.replace(log[0]);
        }
    }
    y.at(0).store(log.len() as i32 + last.unwrap_or(I32::from(0)));
}

#[kernel(block = [32, 1, 1])]
fn kept_in_a_cell(x: Tensor<I32, 1>, y: TensorMut<I32, 1>) {
    let kept = std::cell::Cell::new(x.at(0).load());
    for i in range(0, x.extent(0)) {
        kept.set(x.at(i).load());
    }
    y.at(0).store(kept.get());
}

#[kernel(block = [32, 1, 1])]
fn divided_by_nothing(x: Tensor<I32, 1>, y: TensorMut<I32, 1>) {
    y.at(0).store(x.at(0).load() / 0);
    y.at(1).store(x.at(0).load() % (3 - 3));
}

#[kernel(block = [32, 1, 1])]
fn never_ends(y: TensorMut<I32, 1>) {
    let mut count = I32::from(0);
    loop {
        count += 1;
        y.at(0).store(count);
    }
}

// F5, F21: host state under run-time control flow, and what could not run.
#[test]
fn what_would_be_lost_or_never_end() {
    insta::assert_snapshot!(refusal(&host_state::new(), Target::SM_80), @"
    the host part of `last` changed inside a run-time branch, from `None` to `Some`
      at `if log[0] > 3 {`: this code is traced once, but runs any number of times
      help: keep what changes at run time in kernel types, or make the control flow compile-time
    the host part of `log` changed inside a run-time loop, from `length 0` to `length 1`
      at `for i in range(0, x.extent(0)) {`: this code is traced once, but runs any number of times
      help: keep what changes at run time in kernel types, or make the control flow compile-time
    the host part of `last` changed inside a run-time loop, from `None` to `Some`
      at `for i in range(0, x.extent(0)) {`: this code is traced once, but runs any number of times
      help: keep what changes at run time in kernel types, or make the control flow compile-time
    this value was made inside run-time control flow that has ended
      at `y.at(0).store(log.len() as i32 + last.unwrap_or(I32::from(0)));`: used here, where it may not exist
      help: assign it to a `let mut` variable of the outer scope; a value kept in a `Cell` is not seen
    ");
    insta::assert_snapshot!(refusal(&kept_in_a_cell::new(), Target::SM_80), @"
    this value was made inside run-time control flow that has ended
      at `y.at(0).store(kept.get());`: used here, where it may not exist
      help: assign it to a `let mut` variable of the outer scope; a value kept in a `Cell` is not seen
    ");
    insta::assert_snapshot!(refusal(&divided_by_nothing::new(), Target::SM_80), @"
    division by zero
      at `y.at(0).store(x.at(0).load() / 0);`: the divisor is the constant 0
    division by zero
      at `y.at(1).store(x.at(0).load() % (3 - 3));`: the divisor is the constant 0
    ");
    insta::assert_snapshot!(refusal(&never_ends::new(), Target::SM_80), @"
    this loop cannot end
      at `loop {`: no `break` leaves it
      help: add a `break` under a run-time condition, or count with `range`
    ");
}

#[kernel(block = [32, 1, 1])]
fn hint_on_a_loop_with_an_exit(x: Tensor<I32, 1>, y: TensorMut<I32, 1>) {
    for i in range(0, x.extent(0)).unroll(4) {
        if x.at(i).load() == 3 {
            break;
        }
        y.at(i).store(x.at(i).load());
    }
}

// F23
#[test]
fn a_hint_that_would_be_lost() {
    insta::assert_snapshot!(refusal(&hint_on_a_loop_with_an_exit::new(), Target::SM_80), @"
    a loop that can be left early cannot be unrolled or pipelined
      at `for i in range(0, x.extent(0)).unroll(4) {`: its number of rounds is not known when it starts
      help: drop the hint, or replace the `break` or `return` by a condition around the body
    ");
}

#[kernel(block = [32, 1, 1])]
fn static_assertion(#[comptime] tile: usize, y: TensorMut<I32, 1>) {
    static_assert!(tile % 16 == 0 && tile != 0);
    y.at(0).store(I32::from(tile as i32));
}

#[test]
fn a_static_assertion_says_what_was_written() {
    insta::assert_snapshot!(refusal(&static_assertion::new(24), Target::SM_80), @"
    static assertion failed: tile % 16 == 0 && tile != 0
      at `static_assert!(tile % 16 == 0 && tile != 0);`: false for this kernel and target
    ");
}

/// A host value cannot be changed by a run-time branch, so that this loop of the host would never end.
#[kernel(block = [32, 1, 1])]
fn endless_on_the_host(n: I32, y: TensorMut<I32, 1>) {
    let mut left = Some(n);
    while let Some(value) = left {
        if value > 3 {
            left = None;
        } else {
            y.at(value).store(value);
        }
    }
}

#[kernel(block = [32, 1, 1])]
fn without_end(n: I32, y: TensorMut<I32, 1>) {
    for k in constexpr(0..) {
        y.at(k as usize % 4).store(n + k);
    }
}

#[test]
fn a_loop_of_the_host_that_does_not_end_is_refused() {
    insta::assert_snapshot!(refusal(&endless_on_the_host::new(), Target::SM_80), @"
    the host part of `left` changed inside a run-time branch, from `Some` to `None`
      at `if value > 3 {`: this code is traced once, but runs any number of times
      help: keep what changes at run time in kernel types, or make the control flow compile-time
    ");
    insta::assert_snapshot!(refusal(&without_end::new(), Target::SM_80), @"
    this kernel has more than 200000 operations: does a compile-time loop end?
      at `y.at(k as usize % 4).store(n + k);`: made again and again
      help: loops over host values are unrolled; for one that runs on the device, write `range(..)`
    ");
}

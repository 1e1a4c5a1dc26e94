//! What a kernel may be called and may wish for, and by what launches tell kernels apart.

use std::fmt;

use lacewing::core::lower::{Emit, EmitOptions, emit};
use lacewing::prelude::*;

use super::refusals::refusal;

#[kernel(block = [32, 1, 1])]
fn größe(y: TensorMut<I32, 1>) {
    y.at(0).store(I32::from(1));
}

#[kernel(block = [32, 1, 1])]
fn vprintf(y: TensorMut<I32, 1>) {
    printf!("{}", y.extent(0));
}

#[kernel(block = [32, 1, 1], min_blocks = 0, max_regs = 0)]
fn wishes_for_nothing(y: TensorMut<I32, 1>) {
    y.at(0).store(I32::from(1));
}

#[kernel(block = [256, 1, 1], min_blocks = 9, max_regs = 256)]
fn wishes_for_too_much(y: TensorMut<I32, 1>) {
    y.at(0).store(I32::from(1));
}

#[kernel(block = [256, 1, 1], min_blocks = 8, max_regs = 255)]
fn wishes_for_all_there_is(y: TensorMut<I32, 1>) {
    y.at(0).store(I32::from(1));
}

#[kernel(block = [64, 1, 1], waves_per_eu = 9)]
fn wishes_for_waves(y: TensorMut<I32, 1>) {
    y.at(0).store(I32::from(1));
}

/// LLVM ends the process at a symbol that an assembler cannot spell.
#[test]
fn names_that_assemblers_do_not_know() {
    insta::assert_snapshot!(refusal(&größe::new(), Target::SM_80), @"
    kernel `größe`: assemblers know names of ASCII letters, digits and `_` only
      at `fn größe(y: TensorMut<I32, 1>) {`
      help: give the function another name
    ");
    insta::assert_snapshot!(refusal(&vprintf::new(), Target::SM_80), @"
    kernel `vprintf`: the name belongs to PTX, or to the system calls of CUDA
      at `fn vprintf(y: TensorMut<I32, 1>) {`
      help: give the function another name
    ");
}

#[test]
fn wishes_that_no_chip_grants() {
    insta::assert_snapshot!(refusal(&wishes_for_nothing::new(), Target::SM_80), @"
    kernel `wishes_for_nothing`: `min_blocks` is 0: from 1 to 32 can be had
      at `fn wishes_for_nothing(y: TensorMut<I32, 1>) {`
      help: a block has 32 threads, and a multiprocessor 2048 at once
    kernel `wishes_for_nothing`: `max_regs` is 0: from 1 to 255 can be had
      at `fn wishes_for_nothing(y: TensorMut<I32, 1>) {`
      help: a thread can name 255 registers
    ");
    insta::assert_snapshot!(refusal(&wishes_for_too_much::new(), Target::SM_80), @"
    kernel `wishes_for_too_much`: `min_blocks` is 9: from 1 to 8 can be had
      at `fn wishes_for_too_much(y: TensorMut<I32, 1>) {`
      help: a block has 256 threads, and a multiprocessor 2048 at once
    kernel `wishes_for_too_much`: `max_regs` is 256: from 1 to 255 can be had
      at `fn wishes_for_too_much(y: TensorMut<I32, 1>) {`
      help: a thread can name 255 registers
    ");
    insta::assert_snapshot!(refusal(&wishes_for_waves::new(), Target::GFX942), @"
    kernel `wishes_for_waves`: `waves_per_eu` is 9: from 1 to 8 can be had
      at `fn wishes_for_waves(y: TensorMut<I32, 1>) {`
      help: an execution unit holds 8 waves
    ");
    let traced = wishes_for_all_there_is::new().traced(Target::SM_80).unwrap();
    let ptx = emit(&traced, Emit::Ptx, &EmitOptions::default()).unwrap();
    let ptx = ptx.text().unwrap();
    assert!(ptx.contains(".minnctapersm 8") && ptx.contains(".maxnreg 255"), "{ptx}");
}

/// A function in a comptime parameter, whose text does not say which.
#[derive(Clone)]
struct Opaque<F>(F);

impl<F> fmt::Debug for Opaque<F> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("Opaque")
    }
}

#[kernel(block = [32, 1, 1])]
fn map_by<F: Fn(I32) -> I32 + Clone>(#[comptime] f: Opaque<F>, y: TensorMut<I32, 1>) {
    y.at(thread_id(X)).store((f.0)(thread_id(X)));
}

trait Operation {
    fn apply(x: I32) -> I32;
}

#[kernel(block = [32, 1, 1])]
fn map_as<O: Operation>(y: TensorMut<I32, 1>) {
    y.at(thread_id(X)).store(O::apply(thread_id(X)));
}

fn third(launch: impl FnOnce(&Device, &mut DevTensor<i32, 1>)) -> i32 {
    let device = Device::emulator(Target::SM_80).unwrap();
    let mut y = device.tensor_zeros::<i32, 1>([32]).unwrap();
    launch(&device, &mut y);
    y.to_vec().unwrap()[3]
}

/// Two closures of one function have one type name, and so have two types of one name in two of its blocks; each is a kernel
/// of its own, in the same process too.
#[test]
fn kernels_of_types_that_share_a_name_are_different_kernels() {
    let doubled = map_by::new(Opaque(|x: I32| x * 2));
    let raised = map_by::new(Opaque(|x: I32| x + 100));
    assert_eq!(third(|device, y| drop(doubled.grid([1, 1, 1]).launch(device, (y,)).unwrap())), 6);
    assert_eq!(third(|device, y| drop(raised.grid([1, 1, 1]).launch(device, (y,)).unwrap())), 103);
    let doubled = {
        struct Chosen;
        impl Operation for Chosen {
            fn apply(x: I32) -> I32 {
                x * 2
            }
        }
        third(|device, y| drop(map_as::<Chosen>::new().grid([1, 1, 1]).launch(device, (y,)).unwrap()))
    };
    let raised = {
        struct Chosen;
        impl Operation for Chosen {
            fn apply(x: I32) -> I32 {
                x + 100
            }
        }
        third(|device, y| drop(map_as::<Chosen>::new().grid([1, 1, 1]).launch(device, (y,)).unwrap()))
    };
    assert_eq!((doubled, raised), (6, 103));
}

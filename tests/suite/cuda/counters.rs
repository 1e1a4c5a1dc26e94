//! Counters that launches share: each launch finds a zero, whatever runs beside it.

use std::sync::Arc;

use cudarc::driver::{CudaContext, sys};
use lacewing::prelude::*;
use lacewing::runtime::Error;

use super::gpu;

/// Leaves more than it found, as no kernel should.
#[kernel(block = [32, 1, 1])]
fn bump(counter: TensorMut<I32, 1>) {
    if thread_id(X) == 0 {
        let _ = counter.at(0).atomic_add(I32::from(1));
    }
}

fn bump_on(device: &Device, kernel: &'static str) -> Result<(), Error> {
    bump::new().grid([1, 1, 1]).launch(device, (&mut device.work_counters(kernel, 1)?,)).map(drop)
}

fn count(device: &Device, kernel: &'static str) -> i32 {
    device.work_counters(kernel, 1).unwrap().to_vec().unwrap()[0]
}

#[test]
fn a_counter_belongs_to_a_kernel_and_a_stream() {
    let Some(device) = gpu() else { return };
    let device = device.with_synchronous(false);
    bump_on(&device, "one").unwrap();
    bump_on(&device.clone().with_synchronous(true), "one").unwrap();
    assert_eq!((count(&device, "one"), count(&device, "other")), (2, 0));
    let second = device.new_stream().unwrap();
    assert_eq!(count(&second, "one"), 0);
    // A graph has one of its own, for all its launches and replays.
    let graph = device.capture(|capturing| {
        bump_on(capturing, "one")?;
        bump_on(capturing, "one")
    });
    let graph = graph.unwrap();
    let read = device.capture(|capturing| bump_on(capturing, "one")).unwrap();
    for _ in 0..3 {
        graph.launch().unwrap();
        read.launch().unwrap();
    }
    assert_eq!((count(&device, "one"), count(&second, "one")), (2, 0));
}

/// A graph of another library may run beside the launches of the stream that it was captured from.
#[test]
fn a_counter_in_a_foreign_capture_is_new() {
    let Some(_) = gpu() else { return };
    let stream: Arc<_> = CudaContext::new(0).unwrap().new_stream().unwrap();
    let device = Device::from_cudarc(&stream).unwrap();
    // Compiled and loaded before the capture.
    bump_on(&device, "one").unwrap();
    stream.begin_capture(sys::CUstreamCaptureMode::CU_STREAM_CAPTURE_MODE_RELAXED).unwrap();
    let captured = bump_on(&device, "one").and_then(|()| bump_on(&device, "not yet made"));
    let graph = stream.end_capture(sys::CUgraphInstantiate_flags(0)).unwrap().unwrap();
    captured.unwrap();
    graph.launch().unwrap();
    graph.launch().unwrap();
    assert_eq!((count(&device, "one"), count(&device, "not yet made")), (1, 0));
}

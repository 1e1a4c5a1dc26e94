//! Launches in clusters, cooperative ones, and ones that overlap the launch before them.

use lacewing::prelude::*;
use lacewing::runtime::{Error, LaunchStats};

use crate::cuda::gpu;

fn emulator() -> Device {
    Device::emulator(Target::SM_90A).unwrap()
}

fn refusal(outcome: Result<LaunchStats, Error>) -> String {
    match outcome {
        Err(Error::Launch { reason, .. }) => reason,
        other => panic!("not refused: {other:?}"),
    }
}

/// y = x + 1 in blocks of 32, which run in clusters of two by two.
#[kernel(block = [32, 1, 1], cluster = [2, 2, 1])]
fn clustered(x: Tensor<F32, 2>, y: TensorMut<F32, 2>) {
    let (row, column) = (block_id(Y), block_id(X) * 32 + thread_id(X));
    y.at((row, column)).store(x.at((row, column)).load() + 1.0);
}

#[test]
fn a_grid_is_made_of_whole_clusters() {
    let device = emulator();
    let x = device.tensor_zeros::<f32, 2>([4, 64]).unwrap();
    let mut y = device.tensor_uninit::<f32, 2>([4, 64]).unwrap();
    for grid in [[3, 4, 1], [2, 3, 1]] {
        let text = refusal(clustered::new().grid(grid).launch(&device, (&x, &mut y)));
        assert!(text.contains("is not made of whole clusters of 2 x 2 x 1"), "{text}");
    }
}

#[test]
fn clusters_run_on_a_gpu() {
    let Some(device) = gpu() else { return };
    if device.target().generation() < 90 {
        return;
    }
    let x = device.tensor_from_slice(&(0..256).map(|i| i as f32).collect::<Vec<_>>(), [4, 64]).unwrap();
    let mut y = device.tensor_uninit::<f32, 2>([4, 64]).unwrap();
    clustered::new().grid([2, 4, 1]).launch(&device, (&x, &mut y)).unwrap();
    assert_eq!(y.to_vec().unwrap(), (0..256).map(|i| i as f32 + 1.0).collect::<Vec<_>>());
}

/// Each block counts itself in, waits until all have, and then writes how many it sees.
#[kernel(block = [32, 1, 1])]
fn meet(arrived: TensorMut<I32, 1>, seen: TensorMut<I32, 1>) {
    if thread_id(X) == 0 {
        let _ = arrived.at(0).atomic_add(I32::from(1));
        let mut now = arrived.at(0).atomic_add(I32::from(0));
        while now < grid_dim(X) {
            now = arrived.at(0).atomic_add(I32::from(0));
        }
        seen.at(block_id(X)).store(now);
    }
}

#[test]
fn a_cooperative_launch_runs_all_blocks_at_once_or_none() {
    let device = emulator();
    let mut arrived = device.tensor_zeros::<i32, 1>([1]).unwrap();
    let mut seen = device.tensor_uninit::<i32, 1>([2]).unwrap();
    let text = refusal(meet::new().grid([2, 1, 1]).cooperative().launch(&device, (&mut arrived, &mut seen)));
    assert_eq!(
        text,
        "emulator:sm_90a does not run all blocks at once, as a cooperative launch needs; a grid of one block can be tried \
         there"
    );
    meet::new().grid([1, 1, 1]).cooperative().launch(&device, (&mut arrived, &mut seen)).unwrap();
    assert_eq!(seen.slice(0, 0..1).unwrap().to_vec().unwrap(), [1]);

    let Some(device) = gpu() else { return };
    let blocks = 100;
    let mut arrived = device.tensor_zeros::<i32, 1>([1]).unwrap();
    let mut seen = device.tensor_uninit::<i32, 1>([blocks]).unwrap();
    meet::new().grid([blocks, 1, 1]).cooperative().launch(&device, (&mut arrived, &mut seen)).unwrap();
    assert_eq!(seen.to_vec().unwrap(), vec![blocks as i32; blocks]);
    let text = refusal(meet::new().grid([1 << 20, 1, 1]).cooperative().launch(&device, (&mut arrived, &mut seen)));
    assert!(text.contains("its grid has 1048576 blocks, and cuda:0 holds"), "{text}");
}

/// y = y + 1, after what the launch before has written.
#[kernel(block = [256, 1, 1])]
fn add_one_in_turn(y: TensorMut<F32, 1>) {
    let place = y.at(block_id(X) * 256 + thread_id(X));
    release_next_grid();
    wait_for_previous_grid();
    place.store(place.load() + 1.0);
}

/// The same without the wait.
#[kernel(block = [256, 1, 1])]
fn add_one(y: TensorMut<F32, 1>) {
    let place = y.at(block_id(X) * 256 + thread_id(X));
    place.store(place.load() + 1.0);
}

#[test]
fn only_a_kernel_that_waits_may_overlap_the_launch_before() {
    assert!(add_one_in_turn::new().traced(Target::SM_90A).unwrap().meta.waits_for_previous);
    assert!(!add_one::new().traced(Target::SM_90A).unwrap().meta.waits_for_previous);
    for device in [emulator(), Device::emulator(Target::GFX942).unwrap()] {
        let mut y = device.tensor_zeros::<f32, 1>([256]).unwrap();
        let text = refusal(add_one::new().grid([1, 1, 1]).overlapping().launch(&device, (&mut y,)));
        assert_eq!(text, "it would overlap the launch before it, and never calls `wait_for_previous_grid()`");
        add_one_in_turn::new().grid([1, 1, 1]).overlapping().launch(&device, (&mut y,)).unwrap();
        assert_eq!(y.to_vec().unwrap(), [1.0; 256]);
    }
}

#[test]
fn launches_that_overlap_see_what_the_ones_before_wrote() {
    let Some(device) = gpu() else { return };
    let device = device.with_synchronous(false);
    let (blocks, launches) = (2000, 200);
    let mut y = device.tensor_zeros::<f32, 1>([256 * blocks]).unwrap();
    let launch = add_one_in_turn::new().grid([blocks, 1, 1]).overlapping();
    let prepared = launch.prepare(&device).unwrap();
    for _ in 0..launches {
        prepared.launch((&mut y,)).unwrap();
    }
    assert!(y.to_vec().unwrap().iter().all(|y| *y == launches as f32));
}

/// Copies vectors of four.
#[kernel(block = [32, 1, 1])]
fn copy_vectors(x: Tensor<F32, 1>, y: TensorMut<F32, 1>) {
    let i = thread_id(X) * 4;
    y.at(i).store_vec(x.at(i).load_vec::<4>());
}

#[test]
fn a_tensor_that_starts_between_vectors_is_refused_on_a_gpu() {
    let meta = copy_vectors::new().traced(Target::SM_80).unwrap().meta;
    assert_eq!(meta.alignments, [16, 16]);
    assert_eq!(clustered::new().traced(Target::SM_90A).unwrap().meta.alignments, [4, 4]);
    let Some(device) = gpu() else { return };
    let x = device.tensor_zeros::<f32, 1>([132]).unwrap();
    let mut y = device.tensor_zeros::<f32, 1>([128]).unwrap();
    let text = refusal(copy_vectors::new().grid([1, 1, 1]).launch(&device, (&x.slice(0, 1..129).unwrap(), &mut y)));
    assert!(
        text.starts_with("tensor `x` starts 4 bytes into its buffer, and the kernel moves vectors of 16"),
        "{text}"
    );
    copy_vectors::new().grid([1, 1, 1]).launch(&device, (&x.slice(0, 4..132).unwrap(), &mut y)).unwrap();
}

#[test]
fn copies_of_pinned_memory_go_on_beside_the_host() {
    let Some(device) = gpu() else { return };
    let device = device.with_synchronous(false);
    let n = 1 << 24;
    let numbers: Vec<f32> = (0..n).map(|i| (i % 1000) as f32).collect();
    let mut host = device.pinned::<f32>(n).unwrap();
    host.copy_from(&numbers).unwrap();
    let mut y = device.tensor_uninit::<f32, 1>([n]).unwrap();
    let transfer = y.upload(host).unwrap();
    add_one::new().grid([n / 256, 1, 1]).launch(&device, (&mut y,)).unwrap();
    // In order of the stream: behind the launch, which is behind the copy.
    let back = y.download(device.pinned(n).unwrap()).unwrap();
    let host = transfer.wait().unwrap();
    assert_eq!(host.to_vec().unwrap(), numbers);
    let back = back.wait().unwrap().to_vec().unwrap();
    assert!(back.iter().zip(&numbers).all(|(got, x)| *got == x + 1.0));

    // Dropped under way, on another stream, with the tensor gone too; then forgotten.
    let other = device.new_stream().unwrap();
    let mut z = other.tensor_uninit::<f32, 1>([n]).unwrap();
    drop(z.upload(host).unwrap());
    let forgotten = z.download(other.pinned(n).unwrap()).unwrap();
    drop(z);
    std::mem::forget(forgotten);
    other.synchronize().unwrap();
    device.synchronize().unwrap();
    assert!(device.pinned::<u8>(1 << 50).unwrap_err().to_string().contains("page-locked memory"));
}

//! Distributed shared memory: what the blocks of a cluster do to each other's shared memory. Each kernel runs on the emulator
//! under several seeds, all checks on, and on a GPU, and is compared with plain Rust: bit for bit where the arithmetic is the
//! same, in binary64 else.

use half::bf16;
use lacewing::Error;
use lacewing::prelude::*;

use crate::cuda::gpu;
use crate::users::{assembled, random};

const SEEDS: std::ops::Range<u64> = 0..6;
/// Both generations that have clusters.
const WITH_CLUSTERS: [Target; 2] = [Target::SM_90A, Target::SM_100A];

/// Runs on the emulator under each seed, and on a GPU that has clusters, if there is one.
#[track_caller]
fn everywhere(run: impl Fn(&Device) -> Result<(), Error>) {
    for seed in SEEDS {
        let device = Device::emulator(Target::SM_90A).unwrap().with_seed(seed);
        run(&device).unwrap_or_else(|error| panic!("seed {seed}: {error}"));
    }
    if let Some(device) = gpu().filter(|device| device.target().generation() >= 90) {
        // Often enough for the blocks of a cluster to come in another order.
        for _ in 0..20 {
            run(&device).unwrap_or_else(|error| panic!("{}: {error}", device.target()));
        }
    }
}

/// The reduction of a value over a cluster of four blocks: each block's part lies in its own shared memory.
#[device]
fn reduce_cluster(part: SharedSlice<F32>, x: F32, op: impl Fn(F32, F32) -> F32 + Copy, identity: f32) -> F32 {
    let x = reduce_block(x, op, F32::from(identity));
    if thread_index() == 0 {
        part.at(0).store(x);
    }
    cluster_sync();
    let mut all = F32::from(identity);
    for rank in range_constexpr(4) {
        all = op(all, part.of_block(rank).at(0).load());
    }
    all
}

/// Softmax of rows that are too long for one block: four blocks have a quarter each, in registers, and exchange the maximum and
/// the sum.
#[kernel(block = [128, 1, 1], cluster = [4, 1, 1])]
fn softmax_of_a_row<const WIDE: usize>(x: Tensor<F32, 2>, y: TensorMut<F32, 2>) {
    let (largest, total) = (shared_array_named::<F32>("largest", 1), shared_array_named::<F32>("total", 1));
    let row = block_id(Y);
    let first = block_id(X) * (512 * WIDE) as i32 + thread_id(X) * 4;
    let mut own: [Vector<F32, 4>; WIDE] =
        std::array::from_fn(|part| x.at((row, first + (512 * part) as i32)).load_vec::<4>());
    let mut max = F32::from(f32::NEG_INFINITY);
    for part in range_constexpr(WIDE) {
        for lane in range_constexpr(4) {
            max = max.max(own[part].get(lane));
        }
    }
    let max = reduce_cluster(largest, max, |a, b| a.max(b), f32::NEG_INFINITY);
    let mut sum = F32::from(0.0);
    for part in range_constexpr(WIDE) {
        for lane in range_constexpr(4) {
            let weight = (own[part].get(lane) - max).exp();
            own[part] = own[part].with(lane, weight);
            sum += weight;
        }
    }
    let sum = reduce_cluster(total, sum, |a, b| a + b, 0.0);
    for part in range_constexpr(WIDE) {
        let scaled = own[part] * Vector::splat(sum.rcp());
        y.at((row, first + (512 * part) as i32)).store_vec(scaled);
    }
    // The others read this block's parts until here.
    cluster_sync();
}

#[test]
fn a_row_over_four_blocks_is_normalised() {
    assembled(&softmax_of_a_row::<2>::new(), &WITH_CLUSTERS);
    let (rows, columns) = (3, 4096);
    let x: Vec<f32> = random(rows * columns, 3).into_iter().map(|x| 6.0 * x).collect();
    everywhere(|device| {
        let input = device.tensor_from_slice(&x, [rows, columns])?;
        let mut y = device.tensor_uninit::<f32, 2>([rows, columns])?;
        softmax_of_a_row::<2>::new().grid([4, rows, 1]).launch(device, (&input, &mut y))?;
        let y = y.to_vec()?;
        for (x, y) in x.chunks(columns).zip(y.chunks(columns)) {
            let max = x.iter().fold(f64::NEG_INFINITY, |max, &x| max.max(x.into()));
            let sum: f64 = x.iter().map(|&x| (f64::from(x) - max).exp()).sum();
            for (i, (&x, &y)) in x.iter().zip(y).enumerate() {
                let wanted = (f64::from(x) - max).exp() / sum;
                // A few roundings of f32 in the exponential, and 32 steps of the sum.
                assert!((f64::from(y) - wanted).abs() <= 4e-6 * wanted, "{i}: {y}, not {wanted}");
            }
        }
        Ok(())
    });
}

/// Counts of keys whose bins are spread over the cluster: bin b is in block b / 128. The lanes of a warp go to all blocks at once.
#[kernel(block = [256, 1, 1], cluster = [4, 1, 1])]
fn histogram(keys: Tensor<U32, 1>, counts: TensorMut<U32, 1>) {
    let bins = shared_array_named::<U32>("bins", 128);
    let (rank, i) = (cluster_rank(), thread_id(X));
    if i < 128 {
        bins.at(i).store(U32::from(0));
    }
    cluster_sync();
    let first = block_id(X) * 256 + i;
    for at in range(first, keys.extent(0), grid_dim(X) * 256) {
        let bin = keys.at(at).load().cast::<I32>() % 512;
        let _ = bins.of_block(bin / 128).at(bin % 128).atomic_add(U32::from(1));
    }
    cluster_sync();
    if i < 128 {
        let _ = counts.at(*rank * 128 + i).atomic_add(bins.at(i).load());
    }
}

#[test]
fn bins_over_four_blocks_are_counted() {
    assembled(&histogram::new(), &WITH_CLUSTERS);
    let keys: Vec<u32> = random(5000, 7).into_iter().map(|x| (x * 70000.0).abs() as u32).collect();
    let mut wanted = vec![0_u32; 512];
    keys.iter().for_each(|key| wanted[*key as usize % 512] += 1);
    everywhere(|device| {
        let input = device.tensor_from_slice(&keys, [keys.len()])?;
        let mut counts = device.tensor_zeros::<u32, 1>([512])?;
        histogram::new().grid([8, 1, 1]).launch(device, (&input, &mut counts))?;
        assert_eq!(counts.to_vec()?, wanted);
        Ok(())
    });
}

/// Steps of y[i] = 0.25 x[i - 1] + 0.5 x[i] + 0.25 x[i + 1], with zeros outside, on a row of four blocks' length that stays in
/// shared memory: what lies beyond a block's edge is its neighbour's.
#[kernel(block = [128, 1, 1], cluster = [4, 1, 1])]
fn diffuse(steps: Uniform<I32>, x: Tensor<F32, 1>, y: TensorMut<F32, 1>) {
    let grids = [shared_array_named::<F32>("even", 128), shared_array_named::<F32>("odd", 128)];
    let (rank, i) = (cluster_rank(), thread_id(X));
    let at = *rank * 128 + i;
    grids[0].at(i).store(x.at(at).load());
    cluster_sync();
    for pair in range(steps / 2) {
        let _ = pair;
        for half in range_constexpr(2) {
            let (from, to) = (grids[half], grids[1 - half]);
            let zero = F32::from(0.0);
            // Only the threads at an edge go to a neighbour, and only where there is one.
            let (mut left, mut right) = (zero, zero);
            if i > 0 {
                left = from.at(i - 1).load();
            } else if rank > 0 {
                left = from.of_block(rank - 1).at(127).load();
            }
            if i < 127 {
                right = from.at(i + 1).load();
            } else if rank < 3 {
                right = from.of_block(rank + 1).at(0).load();
            }
            to.at(i).store((left + right) * 0.25 + from.at(i).load() * 0.5);
            cluster_sync();
        }
    }
    y.at(at).store(grids[0].at(i).load());
}

#[test]
fn edges_come_from_the_neighbours() {
    assembled(&diffuse::new(), &WITH_CLUSTERS);
    let x = random(512, 11);
    let mut wanted = x.clone();
    for _ in 0..6 {
        let at = |i: i64| usize::try_from(i).ok().and_then(|i| wanted.get(i)).copied().unwrap_or(0.0);
        // The product on the right is the one that is fused.
        wanted = (0..512).map(|i| (at(i - 1) + at(i + 1)) * 0.25 + at(i) * 0.5).collect();
    }
    everywhere(|device| {
        let input = device.tensor_from_slice(&x, [512])?;
        let mut y = device.tensor_uninit::<f32, 1>([512])?;
        diffuse::new().grid([4, 1, 1]).launch(device, (6, &input, &mut y))?;
        assert_eq!(y.to_vec()?, wanted);
        Ok(())
    });
}

/// A square of 64 transposed by four blocks: each has 16 rows, and scatters them to the blocks whose columns they are.
#[kernel(block = [64, 1, 1], cluster = [4, 1, 1])]
fn transpose_by_stores(x: Tensor<I32, 2>, y: TensorMut<I32, 2>) {
    #[derive(Shared)]
    struct Smem {
        /// Padded, so that a column is in as many banks as rows.
        turned: SharedTile<I32, 16, 64, 65>,
    }
    let tile = shared::<Smem>().turned;
    let (rank, column) = (cluster_rank(), thread_id(X));
    // Each block must be there before the others write to it.
    cluster_sync();
    for row in range_constexpr(16) {
        let from = *rank * 16 + row as i32;
        let there = tile.of_block(column / 16);
        there.at((column % 16, from)).store(x.at((from, column)).load());
    }
    cluster_sync();
    for row in range_constexpr(16) {
        y.at((*rank * 16 + row as i32, column)).store(tile.at((row as i32, column)).load());
    }
}

/// The same by loads of eight elements from swizzled tiles, of bf16; each thread turns them in registers.
#[kernel(block = [64, 1, 1], cluster = [4, 1, 1])]
fn transpose_by_loads(x: Tensor<BF16, 2>, y: TensorMut<BF16, 2>) {
    let tile = SwizzledTile::<BF16>::new("rows", 16, 64);
    let (rank, i) = (cluster_rank(), thread_id(X));
    for part in range_constexpr(2) {
        let (row, column) = (i / 8 + (8 * part) as i32, i % 8 * 8);
        tile.at((row, column)).store_vec(x.at((*rank * 16 + row, column)).load_vec::<8>());
    }
    cluster_sync();
    // Thread i has column i of the whole, of which this block wants 16 elements: those in its own 16 columns.
    let there = tile.of_block(i / 16);
    for part in range_constexpr(2) {
        let eight = there.at((i % 16, *rank * 16 + (8 * part) as i32)).load_vec::<8>();
        for lane in range_constexpr(8) {
            y.at((*rank * 16 + (8 * part + lane) as i32, i)).store(eight.get(lane));
        }
    }
    cluster_sync();
}

#[test]
fn squares_are_transposed_across_blocks() {
    assembled(&transpose_by_stores::new(), &WITH_CLUSTERS);
    assembled(&transpose_by_loads::new(), &WITH_CLUSTERS);
    let x: Vec<i32> = (0..64 * 64).map(|i| i * 7919 % 100_003).collect();
    let halves: Vec<bf16> = random(64 * 64, 5).into_iter().map(bf16::from_f32).collect();
    let turned = |i: usize| i % 64 * 64 + i / 64;
    everywhere(|device| {
        let input = device.tensor_from_slice(&x, [64, 64])?;
        let mut y = device.tensor_uninit::<i32, 2>([64, 64])?;
        transpose_by_stores::new().grid([4, 1, 1]).launch(device, (&input, &mut y))?;
        assert_eq!(y.to_vec()?, (0..64 * 64).map(|i| x[turned(i)]).collect::<Vec<_>>());

        let input = device.tensor_from_slice(&halves, [64, 64])?;
        let mut y = device.tensor_uninit::<bf16, 2>([64, 64])?;
        transpose_by_loads::new().grid([4, 1, 1]).launch(device, (&input, &mut y))?;
        assert_eq!(y.to_vec()?, (0..64 * 64).map(|i| halves[turned(i)]).collect::<Vec<_>>());
        Ok(())
    });
}

/// Running sums of tiles that block 0 sends to block 1 through a ring of two stages of block 1's memory. The threads of each
/// block tell the other's by arrivals, and nobody waits for the whole cluster.
#[kernel(block = [64, 1, 1], cluster = [2, 1, 1])]
fn sends(tiles: Uniform<I32>, x: Tensor<F32, 1>, y: TensorMut<F32, 1>) {
    let ring = shared_array_named::<F32>("ring", 128);
    let mut setup = BarrierSetup::new();
    let full = [setup.mbarrier("full even", 64), setup.mbarrier("full odd", 64)];
    let empty = [setup.mbarrier("empty even", 64), setup.mbarrier("empty odd", 64)];
    setup.finish();
    let i = thread_id(X);
    if cluster_rank() == 0 {
        for pair in range(tiles / 2) {
            for stage in range_constexpr(2) {
                // The first round finds the stages empty: the phase before the first has parity 1.
                empty[stage].wait((*pair + 1) % 2);
                let value = x.at((*pair * 2 + stage as i32) * 64 + i).load();
                ring.of_block(1).at(i + (64 * stage) as i32).store(value);
                full[stage].arrive_at(1);
            }
        }
        // The last releases come back before this block ends.
        for stage in range_constexpr(2) {
            empty[stage].wait((*tiles / 2 + 1) % 2);
        }
    } else {
        let mut sum = F32::from(0.0);
        for pair in range(tiles / 2) {
            for stage in range_constexpr(2) {
                full[stage].wait(*pair % 2);
                sum += ring.at(I32::from(63) - i + (64 * stage) as i32).load();
                empty[stage].arrive_at(0);
                y.at((*pair * 2 + stage as i32) * 64 + i).store(sum);
            }
        }
    }
}

#[test]
fn tiles_are_sent_through_a_ring() {
    assembled(&sends::new(), &WITH_CLUSTERS);
    let x = random(10 * 64, 13);
    let mut sums = vec![0.0_f32; 64];
    let wanted: Vec<f32> = (0..10 * 64)
        .map(|i| {
            sums[i % 64] += x[i / 64 * 64 + 63 - i % 64];
            sums[i % 64]
        })
        .collect();
    everywhere(|device| {
        let input = device.tensor_from_slice(&x, [640])?;
        let mut y = device.tensor_uninit::<f32, 1>([640])?;
        sends::new().grid([2, 1, 1]).launch(device, (10, &input, &mut y))?;
        assert_eq!(y.to_vec()?, wanted);
        Ok(())
    });
}

/// All ways to a place of another block: elements, vectors, masks, an offset, conditions, bytes, and the read-modify-writes.
#[kernel(block = [32, 1, 1], cluster = [2, 2, 1])]
fn every_access(y: TensorMut<I32, 2>, z: TensorMut<F32, 2>) {
    #[derive(Shared)]
    struct Smem {
        words: SharedArray<I32, 64>,
        bytes: SharedArray<U8, 32>,
        flags: SharedArray<Bool, 32>,
        wide: SharedArray<F64, 32>,
        floats: SharedTile<F32, 4, 32>,
    }
    let smem = shared::<Smem>();
    let (rank, i) = (cluster_rank(), thread_id(X));
    let next = (*rank + 1) % 4;
    smem.words.at(i).store(*rank * 1000 + i);
    smem.words.at(i + 32).store(I32::from(0));
    smem.bytes.at(i).store((*rank * 32 + i).cast::<U8>());
    smem.flags.at(i).store((i + *rank) % 2 == 0);
    smem.wide.at(i).store((*rank * 100 + i).cast::<F64>() * 0.5);
    for row in range_constexpr(4) {
        smem.floats.at((row as i32, i)).store((*rank * 1000 + i).cast::<F32>() + row as f32);
    }
    cluster_sync();
    let words = smem.words.of_block(next);
    let pair = words.at(i / 2 * 2).load_vec::<2>();
    let some = words.at(i).load_if(i < 16, I32::from(-1));
    let beyond = words.at(0).offset(i).load();
    let flag = smem.flags.of_block(next).at(i).load().select(I32::from(1), I32::from(0));
    let byte = smem.bytes.at(i).of_block(next).load().cast::<I32>();
    let wide = smem.wide.of_block(next).at(i).load();
    let four = smem.floats.of_block(next).at((i % 4, i / 4 * 4)).load_vec::<4>();
    // Every block adds to block 0's words; every thread of the cluster to one of them.
    let counts = smem.words.of_block(0);
    let before = counts.at(32).atomic_add(I32::from(1));
    let _ = counts.at(33).atomic_max(*rank * 32 + i);
    let _ = counts.at(34).atomic_or(I32::from(1) << i);
    let _ = counts.at(35).atomic_cas(I32::from(0), I32::from(7));
    let _ = counts.at(36).atomic_add_with(I32::from(2), Ordering::AcqRel, Scope::Cluster);
    device_assert!(before >= 0 && before < 128);
    cluster_sync();
    // The last block's threads alone write, a vector each, to the one before; the even ones with a mask.
    if rank == 3 {
        smem.floats.of_block(2).at((0, i / 4 * 4)).store_vec(Vector::<F32, 4>::splat((i / 4).cast::<F32>()));
        smem.words.of_block(2).at(i + 32).store_if(i % 2 == 0, i * 3);
    }
    cluster_sync();
    let row = *rank;
    y.at((row, i)).store(pair.get(0) * 2 + pair.get(1));
    y.at((row, i + 32)).store(some);
    y.at((row, i + 64)).store(beyond);
    y.at((row, i + 96)).store(flag * 256 + byte);
    y.at((row, i + 128)).store(smem.words.at(i + 32).load());
    z.at((row, i)).store(wide.cast::<F32>());
    z.at((row, i + 32)).store(four.get(0) + four.get(3));
    z.at((row, i + 64)).store(smem.floats.at((0, i)).load());
}

#[test]
fn every_access_goes_to_another_block() {
    assembled(&every_access::new(), &WITH_CLUSTERS);
    everywhere(|device| {
        let mut y = device.tensor_uninit::<i32, 2>([4, 160])?;
        let mut z = device.tensor_uninit::<f32, 2>([4, 96])?;
        every_access::new().grid([2, 2, 1]).launch(device, (&mut y, &mut z))?;
        let (y, z) = (y.to_vec()?, z.to_vec()?);
        for rank in 0..4_i32 {
            let next = (rank + 1) % 4;
            for i in 0..32_i32 {
                let y = |part: i32| y[(rank * 160 + part * 32 + i) as usize];
                let z = |part: i32| z[(rank * 96 + part * 32 + i) as usize];
                let word = |i: i32| next * 1000 + i;
                assert_eq!(y(0), word(i / 2 * 2) * 2 + word(i / 2 * 2 + 1));
                assert_eq!(y(1), if i < 16 { word(i) } else { -1 });
                assert_eq!(y(2), word(i));
                assert_eq!(y(3), i32::from((i + next) % 2 == 0) * 256 + next * 32 + i);
                let counts = [128, 127, -1, 7, 256];
                assert_eq!(
                    y(4),
                    match rank {
                        0 => counts.get(i as usize).copied().unwrap_or(0),
                        2 if i % 2 == 0 => i * 3,
                        _ => 0,
                    }
                );
                assert_eq!(z(0), (next * 100 + i) as f32 * 0.5);
                assert_eq!(z(1), 2.0 * ((next * 1000 + i / 4 * 4) as f32 + (i % 4) as f32) + 3.0);
                assert_eq!(z(2), if rank == 2 { (i / 4) as f32 } else { (rank * 1000 + i) as f32 });
            }
        }
        Ok(())
    });
}

/// As `sends`, by stores of four elements that complete their bytes at block 1's mbarrier: the sender never arrives, and one
/// thread of the receiver says how much will come.
#[kernel(block = [32, 1, 1], cluster = [2, 1, 1])]
fn sends_by_bytes(tiles: Uniform<I32>, x: Tensor<F32, 1>, y: TensorMut<F32, 1>) {
    let ring = shared_array_named::<F32>("ring", 256);
    let mut setup = BarrierSetup::new();
    let full = [setup.mbarrier("full even", 1), setup.mbarrier("full odd", 1)];
    let empty = [setup.mbarrier("empty even", 32), setup.mbarrier("empty odd", 32)];
    setup.finish();
    let i = thread_id(X);
    if cluster_rank() == 0 {
        for pair in range(tiles / 2) {
            for stage in range_constexpr(2) {
                empty[stage].wait((*pair + 1) % 2);
                let four = x.at((*pair * 2 + stage as i32) * 128 + i * 4).load_vec::<4>();
                ring.of_block(1).at(i * 4 + (128 * stage) as i32).store_vec_async(four, full[stage].of_block(1));
            }
        }
        for stage in range_constexpr(2) {
            empty[stage].wait((*tiles / 2 + 1) % 2);
        }
    } else {
        let mut sum = Vector::<F32, 4>::splat(F32::from(0.0));
        for pair in range(tiles / 2) {
            for stage in range_constexpr(2) {
                if i == 0 {
                    full[stage].expect(512);
                }
                full[stage].wait(*pair % 2);
                sum = sum + ring.at((I32::from(31) - i) * 4 + (128 * stage) as i32).load_vec::<4>();
                empty[stage].arrive_at(0);
                y.at((*pair * 2 + stage as i32) * 128 + i * 4).store_vec(sum);
            }
        }
    }
}

#[test]
fn tiles_are_sent_by_bytes() {
    assembled(&sends_by_bytes::new(), &WITH_CLUSTERS);
    let x = random(10 * 128, 17);
    let mut sums = vec![0.0_f32; 128];
    let wanted: Vec<f32> = (0..10 * 128)
        .map(|i| {
            let (thread, lane) = (i % 128 / 4, i % 4);
            sums[i % 128] += x[i / 128 * 128 + (31 - thread) * 4 + lane];
            sums[i % 128]
        })
        .collect();
    everywhere(|device| {
        let input = device.tensor_from_slice(&x, [1280])?;
        let mut y = device.tensor_uninit::<f32, 1>([1280])?;
        sends_by_bytes::new().grid([2, 1, 1]).launch(device, (10, &input, &mut y))?;
        assert_eq!(y.to_vec()?, wanted);
        Ok(())
    });
}

/// The sum over a cluster, element by element: each block's part goes around, from block to block, by bulk copies.
#[kernel(block = [64, 1, 1], cluster = [4, 1, 1])]
fn sum_around(x: Tensor<F32, 2>, y: TensorMut<F32, 2>) {
    #[derive(Shared)]
    struct Smem {
        parts: [SharedArray<F32, 64>; 4],
        one: SharedArray<F64, 2>,
    }
    let smem = shared::<Smem>();
    let mut setup = BarrierSetup::new();
    let came: [Mbarrier; 3] = std::array::from_fn(|step| setup.mbarrier(&format!("came {step}"), 1));
    let told = setup.mbarrier("told", 1);
    setup.finish();
    let (rank, i) = (cluster_rank(), thread_id(X));
    let next = (*rank + 1) % 4;
    smem.parts[0].at(i).store(x.at((*rank, i)).load());
    fence_proxy(ProxyFence::AsyncShared);
    if i == 0 {
        for step in range_constexpr(3) {
            came[step].expect(256);
        }
        told.expect(8);
        // Elements of 64 bits, and of a thread alone.
        smem.one.of_block(next).at(1).store_async((*rank + 1).cast::<F64>(), told.of_block(next));
    }
    barrier();
    let mut sum = smem.parts[0].at(i).load();
    for step in range_constexpr(3) {
        if i == 0 {
            smem.parts[step + 1].of_block(next).copy_from(smem.parts[step], came[step].of_block(next));
        }
        came[step].wait(I32::from(0));
        sum += smem.parts[step + 1].at(i).load();
    }
    told.wait(I32::from(0));
    y.at((*rank, i)).store(sum + smem.one.at(1).load().cast::<F32>());
    // The block's memory is read until the next has its last part.
    cluster_sync();
}

/// A swizzled tile of which block 0 has the original: the copy has its elements at the same places.
#[kernel(block = [64, 1, 1], cluster = [2, 1, 1])]
fn tile_of_another(x: Tensor<BF16, 2>, y: TensorMut<BF16, 2>) {
    let (tile, copy) = (SwizzledTile::<BF16>::new("tile", 16, 64), SwizzledTile::<BF16>::new("copy", 16, 64));
    let mut setup = BarrierSetup::new();
    let came = setup.mbarrier("came", 1);
    setup.finish();
    let i = thread_id(X);
    if cluster_rank() == 0 {
        for row in range_constexpr(16) {
            tile.at((row, i)).store(x.at((row as i32, i)).load());
        }
        fence_proxy(ProxyFence::AsyncShared);
        barrier();
        if i == 0 {
            copy.of_block(1).copy_from(tile, came.of_block(1));
        }
    } else {
        if i == 0 {
            came.expect(copy.bytes());
        }
        came.wait(I32::from(0));
        for row in range_constexpr(16) {
            y.at((row as i32, i)).store(copy.at((row, i)).load());
        }
    }
    cluster_sync();
}

#[test]
fn parts_go_around_by_bulk_copies() {
    assembled(&sum_around::new(), &WITH_CLUSTERS);
    assembled(&tile_of_another::new(), &WITH_CLUSTERS);
    let x = random(4 * 64, 19);
    let halves: Vec<bf16> = random(16 * 64, 23).into_iter().map(bf16::from_f32).collect();
    everywhere(|device| {
        let input = device.tensor_from_slice(&x, [4, 64])?;
        let mut y = device.tensor_uninit::<f32, 2>([4, 64])?;
        sum_around::new().grid([4, 1, 1]).launch(device, (&input, &mut y))?;
        let wanted: Vec<f32> = (0..4 * 64)
            .map(|at| {
                let (rank, i) = (at / 64, at % 64);
                let sum = (1..4).fold(x[at], |sum, step| sum + x[(rank + 4 - step) % 4 * 64 + i]);
                sum + ((rank + 3) % 4 + 1) as f32
            })
            .collect();
        assert_eq!(y.to_vec()?, wanted);

        let input = device.tensor_from_slice(&halves, [16, 64])?;
        let mut y = device.tensor_uninit::<bf16, 2>([16, 64])?;
        tile_of_another::new().grid([2, 1, 1]).launch(device, (&input, &mut y))?;
        assert_eq!(y.to_vec()?, halves);
        Ok(())
    });
}

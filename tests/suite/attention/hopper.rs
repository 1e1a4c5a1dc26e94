//! `fmha_fwd` of sm_90a for whole rows: every head dimension that it has tiles for, tails of rows and keys, padding, several rounds of
//! work a block.

use lacewing::kernels::fmha::hopper::{HopperGeometry, Shares, fmha_fwd_hopper, fmha_fwd_hopper_shared, mixed_heads};

use super::visibility::poisoned;
use super::*;

const HEAD_DIMS: [usize; 5] = [64, 96, 128, 192, 256];

/// Runs the kernel for whole rows, whatever a launch would take by itself.
fn forward<T: Dtype>(device: &Device, case: &Case, inputs: &Inputs) -> Got {
    case.forward_tiled::<T>(TilingChoice::Whole, device, inputs)
}

/// Compares on this chip alone: the other kernels have tests of their own.
fn check<T: Dtype>(case: &Case, inputs: &Inputs) {
    let device = Device::emulator(Target::SM_90A).unwrap();
    let got = forward::<T>(&device, case, inputs);
    case.wanted(inputs, T::PRECISION).compare(&got, &format!("fmha_fwd {} {case:?}", T::TYPE.name()));
}

#[test]
fn every_head_dimension_with_tails_of_rows_and_keys() {
    for head_dim in HEAD_DIMS {
        for causal in [false, true] {
            let case = Case { causal, ..Case::new(70, 203, head_dim) }.heads(2, 1);
            check::<BF16>(&case, &case.inputs::<BF16>());
        }
    }
}

/// More work than the emulated chip has multiprocessors, so that blocks take work several times.
#[test]
fn blocks_take_work_several_times() {
    for causal in [false, true] {
        let case = Case { causal, ..Case::new(400, 300, 64) }.heads(3, 1).kv_len(&[300, 300]);
        check::<F16>(&case, &case.inputs::<F16>());
    }
}

/// NaN in the keys and values of padding, from lengths at, before and behind the edges of tiles on.
#[test]
fn padding_may_hold_anything() {
    for causal in [false, true] {
        let case = Case { causal, ..Case::new(65, 170, 128) }.heads(2, 1).kv_len(&[0, 1, 80, 127, 169, 170]);
        check::<BF16>(&case, &poisoned::<BF16>(&case));
    }
}

/// Rows that see nothing, more rows than keys, one key, one row.
#[test]
fn odd_lengths() {
    for (seqlen_q, seqlen_kv) in [(1, 1), (1, 300), (200, 3), (129, 128), (191, 80)] {
        for causal in [false, true] {
            let case = Case { causal, ..Case::new(seqlen_q, seqlen_kv, 128) };
            check::<F16>(&case, &case.inputs::<F16>());
        }
    }
}

/// Other tiles than for little work: rows from 1025 on, and keys from 4097 or 8193 on.
#[test]
fn tiles_of_long_inputs() {
    for (seqlen_q, seqlen_kv, head_dim) in [(1030, 210, 96), (70, 8200, 64)] {
        let case = Case::new(seqlen_q, seqlen_kv, head_dim);
        check::<BF16>(&case, &case.inputs::<BF16>());
    }
    for head_dim in [96, 128] {
        let case = Case::new(70, 4200, head_dim).causal();
        check::<F16>(&case, &case.inputs::<F16>());
    }
}

/// Causal row blocks of which some warpgroups see nothing of the tiles on the right: more rows than keys, more keys than
/// rows, and padding.
#[test]
fn tiles_that_a_warpgroup_does_not_see() {
    for (seqlen_q, seqlen_kv, head_dim) in [(300, 300, 256), (1100, 700, 64), (190, 460, 192), (1030, 1030, 64)] {
        let case = Case::new(seqlen_q, seqlen_kv, head_dim).causal();
        check::<BF16>(&case, &case.inputs::<BF16>());
        let padded = case.kv_len(&[seqlen_kv / 2]);
        check::<BF16>(&padded, &poisoned::<BF16>(&padded));
    }
}

/// Keys that `size` multiplies, by their number. Tiles come from right to left.
fn sized<T: Dtype>(case: &Case, size: impl Fn(usize) -> f64) -> Inputs {
    let inputs = case.inputs::<T>();
    let mut k = inputs.k.to_f64().unwrap();
    for (key, row) in k.chunks_mut(case.head_dim).enumerate() {
        row.iter_mut().for_each(|x| *x *= size(key % case.seqlen_kv));
    }
    Inputs { k: host::<T>(&k, &case.shape().kv()), ..inputs }
}

/// Scores that outgrow the reference in every tile, in one tile, or by so much that a weight against it is infinite; and
/// in about half of the rows, as a key's score is as often negative.
#[test]
fn tiles_that_outgrow_the_reference() {
    for head_dim in HEAD_DIMS {
        for causal in [false, true] {
            let case = Case { causal, ..Case::new(150, 330, head_dim) };
            check::<BF16>(&case, &sized::<BF16>(&case, |key| 1.0 + 0.1 * (330 - key) as f64));
            check::<F16>(&case, &sized::<F16>(&case, |key| if key == 70 { 30.0 } else { 1.0 }));
            check::<BF16>(&case, &sized::<BF16>(&case, |key| if key < 9 { 1e4 } else { 1.0 }));
        }
    }
}

/// Scores that differ by less than the reference lets pass, and by more.
#[test]
fn growing_maxima() {
    for amplitude in [0.1, 3.0, 12.0] {
        let case = Case { amplitude, ..Case::new(64, 400, 128) };
        check::<BF16>(&case, &case.inputs::<BF16>());
    }
}

/// A key that is no number makes the rows that see it no numbers, and no others.
#[test]
fn a_key_that_is_no_number() {
    let case = Case::new(250, 250, 64).causal();
    let got = forward::<BF16>(
        &Device::emulator(Target::SM_90A).unwrap(),
        &case,
        &sized::<BF16>(&case, |key| if key == 100 { f64::NAN } else { 1.0 }),
    );
    for (row, o) in got.o.chunks(64).enumerate() {
        assert!(o.iter().all(|o| o.is_nan() == (row >= 100)), "row {row}: {o:?}");
    }
}

/// Weights of a row's first tile against a reference of 0 that serves, in bf16 alone, and not: scores near -40, -8, 2.4 and 10.
#[test]
fn references_of_zero() {
    fn check_around<T: Dtype>(case: &Case, score: f64) {
        let inputs = case.inputs::<T>();
        // Scores are a quarter of the products of 64 elements' means, and some noise.
        let around = |tensor: &HostTensor, mean: f64, shape: [usize; 4]| {
            host::<T>(&tensor.to_f64().unwrap().iter().map(|x| mean + 0.2 * x).collect::<Vec<_>>(), &shape)
        };
        let shape = case.shape();
        let (q, k) = (around(&inputs.q, 1.0, shape.q()), around(&inputs.k, score / 16.0, shape.kv()));
        check::<T>(case, &Inputs { q, k, ..inputs });
    }
    for score in [-40.0, -8.0, 2.4, 10.0] {
        for causal in [false, true] {
            let case = Case { causal, ..Case::new(100, 190, 64) }.scale(0.25);
            check_around::<BF16>(&case, score);
            check_around::<F16>(&case, score);
        }
    }
}

/// Launches that follow each other use one counter: each leaves it as it was.
#[test]
fn launches_share_a_counter() {
    let case = Case::new(400, 400, 64).heads(8, 2).kv_len(&[400, 37]).causal();
    let (device, inputs) = (Device::emulator(Target::SM_90A).unwrap(), case.inputs::<BF16>());
    let (on_device, kv_len) = (inputs.on::<BF16>(&device), case.lengths_on(&device));
    let mut counter = device.tensor_zeros::<i32, 1>([1]).unwrap();
    let tiles = HopperGeometry::new(64, true, 400, 400).unwrap();
    let wanted = case.wanted(&inputs, BF16::PRECISION);
    for _ in 0..2 {
        let mut out = Outputs::<half::bf16>::new(&device, &case.shape());
        let arguments = (
            &on_device.q,
            &on_device.k,
            &on_device.v,
            &kv_len,
            &mut out.o,
            &mut out.lse,
            &mut counter,
            4,
            400,
            mixed_heads(16, 2, 5) as i32,
            case.scale_value(),
        );
        fmha_fwd_hopper::<BF16>::new(tiles.clone()).grid([5, 1, 1]).overlapping().launch(&device, arguments).unwrap();
        wanted.compare(&out.read(), "launches that share a counter");
        assert_eq!(counter.to_vec().unwrap(), [0]);
    }
}

/// On a GPU launches need no counter of their own: they follow each other, run on two streams at once, and in a graph.
#[test]
fn a_gpu_runs_launches_back_to_back() {
    let Some(device) = gpu().filter(|device| device.target() == Target::SM_90A) else { return };
    let device = device.with_synchronous(false);
    let case = Case::new(1500, 1500, 64).heads(32, 4).causal();
    let inputs = case.inputs::<BF16>();
    let wanted = forward::<BF16>(&device, &case, &inputs);
    let second = device.new_stream().unwrap();
    std::thread::scope(|scope| {
        let (case, inputs, wanted) = (&case, &inputs, &wanted);
        for device in [&device, &second] {
            scope.spawn(move || {
                let (tensors, kv_len) = (inputs.on::<BF16>(device), case.lengths_on(device));
                for round in 0..8 {
                    let mut out = Outputs::<half::bf16>::new(device, &case.shape());
                    for _ in 0..25 {
                        let forward = tensors.forward(case, &kv_len);
                        forward.fmha_fwd_tiled::<BF16>(TilingChoice::Whole, &mut out.o, &mut out.lse).unwrap();
                    }
                    assert!(out.read().same(wanted), "round {round} on {device:?}");
                }
            });
        }
    });

    let (tensors, kv_len) = (inputs.on::<BF16>(&device), case.lengths_on(&device));
    let mut out = Outputs::<half::bf16>::new(&device, &case.shape());
    let tiles = HopperGeometry::new(64, true, 1500, 1500).unwrap();
    let launch = fmha_fwd_hopper::<BF16>::new(tiles).grid([100, 1, 1]).overlapping();
    let graph = device.capture(|capturing| {
        let mut counter = capturing.work_counters("fmha_fwd", 1)?;
        for _ in 0..5 {
            let (q, k, v, scale) = (&tensors.q, &tensors.k, &tensors.v, case.scale_value());
            let (o, lse, group) = (&mut out.o, &mut out.lse, mixed_heads(32, 6, 100) as i32);
            launch.launch(capturing, (q, k, v, &kv_len, o, lse, &mut counter, 8, 1500, group, scale))?;
        }
        Ok(())
    });
    let graph = graph.unwrap();
    for _ in 0..20 {
        graph.launch().unwrap();
    }
    assert!(out.read().same(&wanted), "a graph");
}

/// The order in which blocks draw their work does not reach the results.
#[test]
fn reruns_are_equal_bit_for_bit() {
    let case = Case::new(260, 260, 64).heads(4, 2).causal();
    let inputs = case.inputs::<BF16>();
    let run = |seed| forward::<BF16>(&Device::emulator(Target::SM_90A).unwrap().with_seed(seed), &case, &inputs);
    assert!(run(1).same(&run(2)));
}

/// Runs the kernel that shares out the last row blocks, on so many blocks, with as many shared out as do not go round; its
/// counters must be zeros behind it.
fn shared_out<T: Dtype>(case: &Case, inputs: &Inputs, blocks: usize, seed: u64) -> Got {
    let device = Device::emulator(Target::SM_90A).unwrap().with_seed(seed);
    let tiles = HopperGeometry::new(case.head_dim, false, case.seqlen_q, case.seqlen_kv).unwrap();
    let (on_device, kv_len) = (inputs.on::<T>(&device), case.lengths_on(&device));
    let shape = case.shape();
    let row_blocks = shape.seqlen_q.div_ceil(tiles.block_m()) * shape.heads_q * shape.batch;
    let shares = Shares::out_of(&tiles, row_blocks, shape.seqlen_kv, blocks).unwrap();
    let mut counter = device.tensor_zeros::<i32, 1>([shares.counters(&tiles)]).unwrap();
    let mut partial = device.tensor_uninit::<f32, 2>(shares.partial(&tiles)).unwrap();
    let mut out = Outputs::<T::Host>::new(&device, &shape);
    // A second launch finds what the first one left.
    for _ in 0..2 {
        let arguments = (
            &on_device.q,
            &on_device.k,
            &on_device.v,
            &kv_len,
            &mut out.o,
            &mut out.lse,
            &mut counter,
            &mut partial,
            (shape.heads_q / shape.heads_kv) as i32,
            shape.seqlen_kv as i32,
            shares.whole as i32,
            shares.row_blocks as i32,
            shares.tiles as i32,
            case.scale_value(),
        );
        let kernel = fmha_fwd_hopper_shared::<T>::new(tiles.clone()).grid([blocks, 1, 1]);
        kernel.overlapping().launch(&device, arguments).unwrap();
        assert!(counter.to_vec().unwrap().iter().all(|count| *count == 0));
    }
    out.read()
}

/// Row blocks in two parts and in many, shares of one tile, blocks without a share, the last tile with a tail; two query heads
/// for a key head.
#[test]
fn the_last_row_blocks_are_shared_out() {
    for (heads, rows, keys, head_dim, blocks) in [
        (4, 128, 500, 128, 3),
        (8, 70, 500, 128, 5),
        (6, 64, 800, 128, 4),
        (10, 30, 200, 256, 7),
        (6, 190, 290, 192, 5),
    ] {
        let case = Case::new(rows, keys, head_dim).heads(heads, heads / 2);
        let inputs = case.inputs::<BF16>();
        let got = shared_out::<BF16>(&case, &inputs, blocks, 1);
        case.wanted(&inputs, BF16::PRECISION).compare(&got, &format!("{blocks} blocks, {case:?}"));
    }
}

/// Sequences that are shorter than the longest are not cut, and NaN behind their ends does no harm.
#[test]
fn shorter_sequences_are_not_shared_out() {
    for lengths in [[500, 500, 130], [500, 130, 500], [0, 500, 1], [384, 385, 499]] {
        let case = Case::new(128, 500, 128).heads(3, 1).kv_len(&lengths);
        let inputs = poisoned::<F16>(&case);
        for blocks in [2, 4, 5] {
            let got = shared_out::<F16>(&case, &inputs, blocks, 1);
            case.wanted(&inputs, F16::PRECISION).compare(&got, &format!("{blocks} blocks, {case:?}"));
        }
    }
}

/// Which part of a row block comes last does not reach the results.
#[test]
fn shared_out_row_blocks_are_equal_bit_for_bit() {
    let case = Case::new(128, 640, 128).heads(5, 5);
    let inputs = case.inputs::<BF16>();
    let first = shared_out::<BF16>(&case, &inputs, 4, 1);
    for seed in 2..6 {
        assert!(first.same(&shared_out::<BF16>(&case, &inputs, 4, seed)), "seed {seed}");
    }
}

/// By the public call, where a launch shares out by itself.
#[test]
fn a_launch_shares_out_where_that_saves_enough() {
    let case = Case::new(100, 1408, 256).heads(5, 5);
    let tiles = HopperGeometry::new(256, false, 100, 1408).unwrap();
    let device = Device::emulator(Target::SM_90A).unwrap();
    let multiprocessors = device.multiprocessors() as usize;
    assert!(Shares::choose(&tiles, 5, 1408, multiprocessors).is_some());
    check::<BF16>(&case, &case.inputs::<BF16>());
}

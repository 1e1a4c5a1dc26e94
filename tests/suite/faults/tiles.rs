//! Tiles and what is done with them: stages, proxies, products, indices.

use super::*;

/// The Gram matrix of a tile that the threads double in place before the product reads it; `fenced` says whether they
/// make their stores known to it.
#[kernel(block = [128, 1, 1])]
fn doubled(#[comptime] fenced: bool, a: TensorMap<BF16, 2>, d: TensorMut<F32, 1>) {
    let tile = SwizzledTile::<BF16>::new("tile", 64, 64);
    let mut setup = BarrierSetup::new();
    let full = setup.mbarrier("full", 1);
    setup.finish();
    if warp_id() == 0 && elect_one() {
        full.expect(tile.bytes());
        a.load(tile, (0, 0), full);
    }
    full.wait(I32::from(0));
    for step in range(32) {
        let place = tile.at((step * 2 + thread_id(X) / 64, thread_id(X) % 64));
        place.store((place.load().cast::<F32>() * 2.0).cast::<BF16>());
    }
    if const_expr(fenced) {
        fence_proxy(ProxyFence::AsyncShared);
    }
    barrier();
    let sums = wgmma(tile, tile.t()).wait::<0>(); // <- DOUBLED
    d.at(thread_id(X)).store(sums[0]);
}

#[test]
fn a_tile_that_is_changed_in_place_before_a_product() {
    let run = |dev: &Device, fenced| {
        let a = ones(dev, 64, 64)?;
        let mut d = dev.tensor_uninit::<f32, 1>([128])?;
        let stats = doubled::new(fenced).grid([1, 1, 1]).launch(dev, (&a, &mut d))?;
        assert!(d.to_vec()?.iter().all(|&sum| sum == 256.0));
        Ok(stats)
    };
    clean(Target::SM_90A, |dev| run(dev, true));
    for report in faulty(Target::SM_90A, &[(ReportKind::Race, "DOUBLED")], |dev| run(dev, false)) {
        assert!(report.message.contains("no proxy fence"), "{report}");
    }
}

/// Two consumer warps and a ring of two stages. Faults: 1, one warp releases for both; 2, warps read the other stage, which
/// the producer may be filling.
#[kernel(block = [96, 1, 1])]
fn two_consumers(#[comptime] fault: usize, x: TensorMap<BF16, 2>, y: TensorMut<F32, 1>, steps: I32) {
    let ring = SwizzledRing::<BF16>::new("ring", 2, 8, 64);
    let mut setup = BarrierSetup::new();
    let stages = Pipeline::new(&mut setup, "stages", 2, 2);
    setup.finish();
    if warp_id() == 0 {
        if elect_one() {
            let mut at = stages.start();
            for step in range(steps) {
                let full = stages.acquire(at, ring.bytes()); // <- REFILLS A STAGE
                x.load(ring.stage(at.stage()), (step * 8, 0), full); // <- INTO A STAGE
                at.advance();
            }
        }
    } else {
        let mut at = stages.start();
        let column = lane_id() + (warp_id() - 1) * 32;
        let mut sum = F32::from(0.0);
        for _step in range(steps) {
            stages.wait(at); // <- WAITS FOR A STAGE
            let stage = if const_expr(fault > 1) { (at.stage() + 1) % 2 } else { at.stage() };
            for row in range_constexpr(8) {
                sum = sum + ring.stage(stage).at((row as i32, column)).load().cast::<F32>(); // <- OF A STAGE
            }
            warp_sync();
            if const_expr(fault == 1) {
                if warp_id() == 1 {
                    stages.release_warp(at);
                    stages.release_warp(at);
                }
            } else {
                stages.release_warp(at);
            }
            at.advance();
        }
        y.at(column).store(sum);
    }
}

#[test]
fn stages_that_a_wrong_warp_releases_or_reads() {
    let run = |dev: &Device, fault| {
        let x = ones(dev, 56, 64)?;
        let mut y = dev.tensor_uninit::<f32, 1>([64])?;
        let stats = two_consumers::new(fault).grid([1, 1, 1]).launch(dev, (&x, &mut y, 7))?;
        assert!(fault > 0 || y.to_vec()?.iter().all(|&sum| sum == 56.0));
        Ok(stats)
    };
    clean(Target::SM_90A, |dev| run(dev, 0));
    let kinds = [
        (ReportKind::Race, "INTO A STAGE"),
        (ReportKind::Race, "OF A STAGE"),
        (ReportKind::Uninitialized, "OF A STAGE"),
        (ReportKind::Deadlock, "WAITS FOR A STAGE"),
    ];
    faulty(Target::SM_90A, &kinds, |dev| run(dev, 1));
    faulty(Target::SM_90A, &kinds[..3], |dev| run(dev, 2));
}

/// Weights that overflow, by a product with a tile that has a zero.
#[kernel(block = [128, 1, 1])]
fn weighs(scale: F32, a: TensorMap<F16, 2>, d: TensorMut<F32, 1>) {
    let tile = SwizzledTile::<F16>::new("tile", 64, 64);
    let mut setup = BarrierSetup::new();
    let full = setup.mbarrier("full", 1);
    setup.finish();
    if warp_id() == 0 && elect_one() {
        full.expect(tile.bytes());
        a.load(tile, (0, 0), full);
    }
    full.wait(I32::from(0));
    let scores = wgmma(tile, tile.t()).wait::<0>();
    let mut weights = scores;
    for index in range_constexpr(32) {
        weights[index] = (weights[index] * scale).exp();
    }
    let sums = wgmma(&weights.cast::<F16>(), tile).wait::<0>(); // <- WEIGHS
    d.at(thread_id(X)).store(sums[0] + sums[1]);
}

#[test]
fn weights_too_large_for_a_product_with_zeros() {
    let run = |dev: &Device, scale: f32| {
        let numbers: Vec<f16> = (0..64 * 64).map(|i| f16::from_f32(if i % 64 == 0 { 0.0 } else { 1.0 })).collect();
        let a = dev.tensor_from_slice(&numbers, [64, 64])?;
        let mut d = dev.tensor_uninit::<f32, 1>([128])?;
        weighs::new().grid([1, 1, 1]).launch(dev, (scale, &a, &mut d))
    };
    clean(Target::SM_90A, |dev| run(dev, 0.01));
    for report in faulty(Target::SM_90A, &[(ReportKind::NotANumber, "WEIGHS")], |dev| run(dev, 10.0)) {
        assert!(report.message.contains("inf * 0"), "{report}");
    }
}

/// Sums of a tile and the one before it, which the first round does not have.
#[kernel(block = [32, 1, 1])]
fn with_the_last(#[comptime] first: i32, x: Tensor<F32, 1>, y: TensorMut<F32, 1>, tiles: I32) {
    let buffers = shared_array_named::<F32>("buffers", 64);
    let i = lane_id();
    let mut sum = F32::from(0.0);
    for tile in range(tiles) {
        buffers.at(tile % 2 * 32 + i).store(x.at(tile * 32 + i).load());
        if tile >= first {
            sum += buffers.at((tile + 1) % 2 * 32 + i).load(); // <- THE LAST
        }
    }
    y.at(i).store(sum);
}

#[test]
fn a_buffer_that_the_first_round_has_not_filled() {
    let run = |dev: &Device, first| {
        let x = dev.tensor_from_slice(&[1.0_f32; 160], [160])?;
        let mut y = dev.tensor_uninit::<f32, 1>([32])?;
        with_the_last::new(first).grid([1, 1, 1]).launch(dev, (&x, &mut y, 5))
    };
    clean(Target::SM_80, |dev| run(dev, 1));
    faulty(Target::SM_80, &[(ReportKind::Uninitialized, "THE LAST")], |dev| run(dev, 0));
}

/// Rows of a matrix as pairs, of which the last row's last pair is one too far for an odd width.
#[kernel(block = [32, 1, 1])]
fn in_pairs(x: Tensor<F32, 2>, y: TensorMut<F32, 1>) {
    let row = lane_id();
    let mut sum = F32::from(0.0);
    for pair in range((x.extent(1) + 1) / 2) {
        sum += x.at((row, pair * 2)).load() + x.at((row, pair * 2 + 1)).load(); // <- IN PAIRS
    }
    y.at(row).store(sum);
}

#[test]
fn a_pair_that_ends_one_past_the_matrix() {
    let run = |dev: &Device, width: usize| {
        let x = dev.tensor_from_slice(&vec![1.0_f32; 32 * width], [32, width])?;
        let mut y = dev.tensor_uninit::<f32, 1>([32])?;
        in_pairs::new().grid([1, 1, 1]).launch(dev, (&x, &mut y))
    };
    clean(Target::SM_80, |dev| run(dev, 6));
    for report in faulty(Target::SM_80, &[(ReportKind::OutOfBounds, "IN PAIRS")], |dev| run(dev, 7)) {
        assert_eq!(report.message, "index 7 of 7 along dimension 1: read outside `x`");
    }
}

/// Two places at once: both indices in a vector, multiplied by a pitch that is too large for 32 bits.
#[kernel(block = [32, 1, 1])]
fn two_places(pitch: I32, y: TensorMut<I32, 1>) {
    let row = lane_id() / 31 * 32;
    let rows = Vector::<I32, 2>::from([row, row + 32]);
    let starts = rows * Vector::<I32, 2>::splat(pitch); // <- PITCHES
    y.at(starts.get(0)).store(row);
    y.at(starts.get(1)).store(row + 32);
}

#[test]
fn indices_that_wrap_in_a_vector() {
    let run = |dev: &Device, pitch| {
        let mut y = dev.tensor_zeros::<i32, 1>([96])?;
        two_places::new().grid([1, 1, 1]).launch(dev, (pitch, &mut y))
    };
    clean(Target::SM_80, |dev| run(dev, 1));
    // 2^27: row 32 starts at 2^32, which is 0 in 32 bits.
    let kinds = [(ReportKind::IndexOverflow, "PITCHES")];
    faulty(Target::SM_80, &kinds, |dev| run(dev, 1 << 27));
}

/// A tile goes out; the last column of the last row is left to nobody, or the store's group is never closed.
#[kernel(block = [64, 1, 1])]
fn goes_out(#[comptime] fault: usize, y: TensorMap<F16, 2>) {
    let tile = SwizzledTile::<F16>::new("tile", 8, 64);
    for row in range_constexpr(8) {
        if const_expr(fault == 1 && row == 7) {
            if thread_id(X) < 63 {
                tile.at((row as i32, thread_id(X))).store(thread_id(X).cast::<F16>());
            }
        } else {
            tile.at((row as i32, thread_id(X))).store(thread_id(X).cast::<F16>());
        }
    }
    fence_proxy(ProxyFence::AsyncShared);
    barrier();
    if thread_id(X) == 0 {
        y.store((0, 0), tile); // <- LEAVES
        if const_expr(fault != 2) {
            tma_store_commit();
        }
        tma_store_wait(0);
    }
}

#[test]
fn stores_of_tiles_that_are_not_whole_or_not_closed() {
    let run = |dev: &Device, fault| {
        let mut y = dev.tensor_zeros::<f16, 2>([8, 64])?;
        goes_out::new(fault).grid([1, 1, 1]).launch(dev, (&mut y,))
    };
    clean(Target::SM_90A, |dev| run(dev, 0));
    for report in faulty(Target::SM_90A, &[(ReportKind::Uninitialized, "LEAVES")], |dev| run(dev, 1)) {
        assert!(report.message.contains("that nothing wrote"), "{report}");
    }
    faulty(Target::SM_90A, &[(ReportKind::CopyInFlight, "LEAVES")], |dev| run(dev, 2));
}

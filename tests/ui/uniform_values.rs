//! A value that lanes may have differently, where a whole warp goes by one.

use lacewing::prelude::*;

#[kernel(block = [32, 1, 1])]
fn undecided(n: I32, y: TensorMut<I32, 1>) {
    let lane: Uniform<I32> = lane_id();
    let sum: Uniform<I32> = Uniform::<I32>::from(1) + lane_id();
    let order = TileOrder::grouped(n, n, 8);
    let mut setup = BarrierSetup::new();
    let stages = Pipeline::new(&mut setup, "stages", 2, 1);
    setup.finish();
    let at = stages.at(lane_id(), 0);
    let plain: I32 = at.stage();
    y.at(lane).store(sum);
}

fn main() {}

//! Tensor copies of Hopper: phases, fences and maps.

use half::{bf16, f16};
use lacewing_core::prelude::*;
use lacewing_core::{ScalarType, Target};
use lacewing_runtime::registry::KernelEntry;
use lacewing_runtime::runner::{Dimension, Ladder, Laddered, SimpleRunner, TensorSpec, Wanted};
use lacewing_runtime::{Device, Error, KernelExt, Tensors};

use super::dimension;

/// The chips that have a copy engine for tensors.
const TARGETS: &[Target] = &[Target::SM_90A];
/// Rows of a tile.
const ROWS: usize = 16;

const fn matrix(name: &'static str, types: &'static [ScalarType], about: &'static str) -> TensorSpec {
    TensorSpec { name, dimensions: &["R", "C"], types, optional: false, about }
}

const BF16S: &[ScalarType] = &[ScalarType::Bf16];
const F16S: &[ScalarType] = &[ScalarType::F16];

/// An output that must be equal to the input.
fn copied(inputs: &Tensors) -> Result<Vec<Wanted>, Error> {
    Ok(vec![Wanted { tensor: "y", numbers: inputs["x"].to_f64()?, tolerance: 0.0 }])
}

/// Copies 16 rows of 96 columns by way of shared memory. The barrier waits for `arrivals` threads, and one arrives.
#[kernel(block = [32, 1, 1])]
pub fn copy_by_tile(#[comptime] arrivals: usize, x: TensorMap<BF16, 2>, y: TensorMut<BF16, 2>) {
    let tile = SwizzledTile::<BF16>::new("tile", ROWS, 96);
    let mut setup = BarrierSetup::new();
    let full = setup.mbarrier("full", arrivals);
    setup.finish();
    if elect_one() {
        full.expect(tile.bytes());
        x.load(tile, (0, 0), full);
    }
    full.wait(I32::from(0)); // <- D17
    for i in range(ROWS) {
        for part in range_constexpr(3) {
            let j = lane_id() + (32 * part) as i32;
            y.at((i, j)).store(tile.at((i, j)).load());
        }
    }
}

const WIDE: &[Dimension] = &[dimension("R", ROWS), dimension("C", 96)];

fn run_copy(arrivals: usize, pitch: usize, device: &Device, inputs: &Tensors) -> Result<Tensors, Error> {
    let given = device.tensor_from::<bf16, 2>(&inputs["x"])?;
    let [rows, columns] = given.shape();
    if [rows, columns] != [ROWS, 96] {
        return Err(Error::Shape(format!("the matrix is {rows} x {columns}, and a tile is 16 x 96")));
    }
    // Rows of a larger matrix, `pitch` elements apart.
    let mut wide = device.tensor_zeros::<bf16, 2>([rows, pitch])?;
    let numbers = given.to_vec()?;
    let mut all = vec![bf16::ZERO; rows * pitch];
    for (to, from) in all.chunks_mut(pitch).zip(numbers.chunks(columns)) {
        to.iter_mut().zip(from).for_each(|(to, from)| *to = *from);
    }
    wide.copy_from(&all)?;
    let x = wide.slice(1, 0..columns)?;
    let mut y = device.tensor_uninit::<bf16, 2>([rows, columns])?;
    copy_by_tile::new(arrivals).grid([1, 1, 1]).launch(device, (&x, &mut y))?;
    Ok(Tensors::from([("y".to_owned(), y.to_host()?)]))
}

macro_rules! copy_ladder {
    ($runner:ident, $ladder:ident, $arrivals:literal, $pitch:literal) => {
        static $runner: SimpleRunner = SimpleRunner {
            inputs: &[matrix("x", BF16S, "a tile")],
            outputs: &[matrix("y", BF16S, "the same")],
            dimensions: WIDE,
            run: |device, _, inputs| run_copy($arrivals, $pitch, device, inputs),
            reference: |_, inputs| copied(inputs),
        };
        static $ladder: Laddered = Laddered {
            runner: &$runner,
            ladder: Ladder { single: "R=16,C=96", shapes: &["R=16,C=96"], ..Ladder::DEFAULT },
        };
    };
}

copy_ladder!(SHORT, SHORT_LADDER, 2, 96);
copy_ladder!(ODD, ODD_LADDER, 1, 100);

/// D17.
pub(super) static D17: KernelEntry = KernelEntry {
    name: "planted_d17",
    about: "a barrier for two arrivals, of which one comes",
    targets: TARGETS,
    parameters: &[],
    build: |_, _| Ok(Box::new(copy_by_tile::new(2))),
    runner: Some(&SHORT_LADDER),
};

/// D23. The line is that of the kernel: the launch refuses the tensor before anything runs.
pub(super) static D23: KernelEntry = KernelEntry {
    name: "planted_d23",
    about: "a tensor map of rows that are 200 bytes apart",
    targets: TARGETS,
    parameters: &[],
    build: |_, _| Ok(Box::new(copy_by_tile::new(1))),
    runner: Some(&ODD_LADDER),
};

/// Copies eight rows of 64 columns into a tile by plain stores, and the tile out by the copy engine, without the fence
/// that lets the engine see the stores.
#[kernel(block = [64, 1, 1])]
pub fn store_by_tile(x: Tensor<F16, 2>, y: TensorMap<F16, 2>) {
    let tile = SwizzledTile::<F16>::new("tile", 8, 64);
    for i in range(8) {
        tile.at((i, thread_id(X))).store(x.at((i, thread_id(X))).load());
    }
    barrier();
    if warp_id() == 0 && elect_one() {
        y.store((0, 0), tile); // <- D19
        tma_store_commit();
        tma_store_wait(0);
    }
}

static STORED: SimpleRunner = SimpleRunner {
    inputs: &[matrix("x", F16S, "a tile")],
    outputs: &[matrix("y", F16S, "the same")],
    dimensions: &[dimension("R", 8), dimension("C", 64)],
    run: |device, _, inputs| {
        let x = device.tensor_from::<f16, 2>(&inputs["x"])?;
        let [rows, columns] = x.shape();
        if [rows, columns] != [8, 64] {
            return Err(Error::Shape(format!("the matrix is {rows} x {columns}, and a tile is 8 x 64")));
        }
        let mut y = device.tensor_uninit::<f16, 2>([rows, columns])?;
        store_by_tile::new().grid([1, 1, 1]).launch(device, (&x, &mut y))?;
        Ok(Tensors::from([("y".to_owned(), y.to_host()?)]))
    },
    reference: |_, inputs| copied(inputs),
};

static STORED_LADDER: Laddered =
    Laddered { runner: &STORED, ladder: Ladder { single: "R=8,C=64", shapes: &["R=8,C=64"], ..Ladder::DEFAULT } };

/// D19.
pub(super) static D19: KernelEntry = KernelEntry {
    name: "planted_d19",
    about: "plain stores that the copy engine reads without a proxy fence",
    targets: TARGETS,
    parameters: &[],
    build: |_, _| Ok(Box::new(store_by_tile::new())),
    runner: Some(&STORED_LADDER),
};

//! `matmul` for Hopper: tensor copies, warpgroup products, roles, persistent blocks.
//!
//! A block has one producer warpgroup, of which one thread starts copies, and one or two consumer warpgroups with
//! 64 rows of the tile of C each. A step of k brings 128 bytes of each row of A and column of B, through a ring of
//! stages. Consumers keep one product running: they start the next before they wait for the last, and only then
//! release its stage.
//!
//! Blocks are persistent: while consumers write a tile of C out, by way of shared memory and the copy engine, the
//! producer fetches the next tile's first stages. Pairs of blocks in a cluster take tiles that are neighbours in a
//! column of C: each loads half of their tile of B for both.
//!
//! docs/src/inside/hopper-matmul.md says what was tried.

use lacewing_core::prelude::*;
use lacewing_core::{Target, types};
use lacewing_runtime::{DevTensor, ElementOf, Error, KernelExt, LaunchStats};

use crate::views::{HostFloat, rows_are_vectors, tensor_map_describes};

/// Rows of a consumer warpgroup.
pub(super) const ROWS: usize = 64;
/// Threads of a warpgroup.
const WARPGROUP: usize = 128;
/// Bytes of a step of k, and of a row of a panel of C: those of the widest swizzle.
const PANEL: usize = 128;

/// What the kernel is compiled for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HopperTiles {
    /// Consumer warpgroups: 1 or 2.
    pub(super) consumers: usize,
    /// Columns of a tile of C: a multiple of 64 up to 256.
    pub(super) block_n: usize,
    /// Stages of the ring.
    pub(super) stages: usize,
    /// Blocks of a cluster: 1 or 2.
    pub(super) cluster: usize,
    /// Panels of C, 128 bytes wide, that a warpgroup has on their way out at most.
    pub(super) slots: usize,
    /// Rows of tiles (of pairs of them in a cluster) that are taken together.
    pub(super) group: usize,
    /// Whether B lies along k: its columns are contiguous, not its rows.
    pub(super) along_k: bool,
}

/// A shape of tiles to choose from, with what it takes on an H200 (docs/src/inside/hopper-matmul.md).
#[derive(Clone, Copy)]
struct Shape {
    consumers: usize,
    block_n: usize,
    cluster: usize,
    /// Nanoseconds of a step of k, when every multiprocessor works.
    step: usize,
    /// Nanoseconds of a tile besides: its output, and the wait for its first stage.
    tile: usize,
}

const fn shape(consumers: usize, block_n: usize, cluster: usize, step: usize, tile: usize) -> Shape {
    Shape { consumers, block_n, cluster, step, tile }
}

const SHAPES: [Shape; 8] = [
    shape(2, 256, 2, 852, 800),
    shape(2, 192, 1, 630, 600),
    shape(2, 128, 2, 430, 350),
    shape(2, 128, 1, 426, 350),
    shape(1, 128, 2, 295, 250),
    shape(1, 128, 1, 280, 250),
    shape(2, 64, 1, 395, 200),
    shape(1, 64, 1, 239, 150),
];

/// Picoseconds in which a byte of a tile comes from the L2 cache, where rows start at multiples of a cache line and
/// where they do not: there, a row of a box lies in two lines.
const LOAD: [usize; 2] = [12, 21];
/// Bytes of a line of the L2 cache.
pub(super) const LINE: usize = 128;

/// Bytes of shared memory of a block of sm_90a, less what mbarriers take.
const SHARED: usize = 227 * 1024 - 512;

impl HopperTiles {
    /// The tiles with the shortest estimated time for a product of `[rows, columns, inner]` with elements of `bytes`
    /// bytes, on a chip of so many multiprocessors. `aligned` says whether rows of A and B start at cache lines.
    pub fn new(
        [rows, columns, inner]: [usize; 3],
        bytes: usize,
        aligned: bool,
        multiprocessors: usize,
        along_k: bool,
    ) -> Self {
        let steps = inner.div_ceil(PANEL / bytes);
        let time = |shape: &&Shape| {
            let tiles = HopperTiles::of(shape, along_k);
            let in_column = rows.div_ceil(tiles.block_m()).next_multiple_of(tiles.cluster);
            let number = in_column.saturating_mul(columns.div_ceil(tiles.block_n));
            let at_once = (multiprocessors / tiles.cluster * tiles.cluster).max(1);
            let loads = (tiles.block_m() + tiles.block_n / tiles.cluster) * PANEL * LOAD[usize::from(!aligned)] / 1000;
            number.div_ceil(at_once).saturating_mul(steps.saturating_mul(shape.step.max(loads)) + shape.tile)
        };
        let [largest, ..] = &SHAPES;
        HopperTiles::of(SHAPES.iter().min_by_key(time).unwrap_or(largest), along_k)
    }

    /// Tiles of a shape, with as many stages as there is shared memory for.
    fn of(shape: &Shape, along_k: bool) -> Self {
        let Shape { consumers, block_n, cluster, .. } = *shape;
        let slots = 2;
        let (stage, out) = ((consumers * ROWS + block_n) * PANEL, consumers * slots * ROWS * PANEL);
        let group = 16 / cluster;
        HopperTiles { consumers, block_n, stages: (SHARED - out) / stage, cluster, slots, group, along_k }
    }

    /// Panels of C that a warpgroup has on their way out: they are used in turn, from tile to tile, so that their number
    /// divides that of a tile's.
    fn slots_of(&self, out_bytes: usize) -> usize {
        let panels = self.block_n * out_bytes / PANEL;
        (1..=self.slots).rev().find(|slots| panels.is_multiple_of(*slots)).unwrap_or(1)
    }

    /// Rows of a tile of C.
    pub fn block_m(&self) -> usize {
        self.consumers * ROWS
    }

    /// Columns of a tile of C.
    pub fn block_n(&self) -> usize {
        self.block_n
    }

    fn threads(&self) -> u32 {
        ((self.consumers + 1) * WARPGROUP) as u32
    }
}

/// Where C goes.
#[derive(Clone, Copy)]
enum Destination<Out: Scalar> {
    /// Through the copy engine.
    Map(TensorMap<Out, 2>),
    /// Element by element, for rows that are no 16-byte vectors.
    Elements(TensorMut<Out, 2>),
}

/// The sizes of a product.
#[derive(Clone, Copy)]
struct Sizes {
    rows: I32,
    columns: I32,
    inner: I32,
}

/// `a / b`, rounded up, of what is not negative.
#[device]
fn divide_up(a: I32, b: usize) -> I32 {
    let whole = (a + (b as i32 - 1)).cast::<U32>() / I32::from(b as i32).cast::<U32>();
    whole.cast::<I32>()
}

/// C = A B. A is `[rows, inner]`; B is `[inner, columns]`, or `[columns, inner]` where tiles lie along k; C is
/// `[rows, columns]`. No size is 0. The grid has a multiple of the cluster's blocks in x.
#[kernel(block = [geometry.threads(), 1, 1], cluster = [geometry.cluster, 1, 1], min_blocks = 1)]
pub fn matmul_hopper<T: WgmmaElement, Out: Float>(
    #[comptime] geometry: HopperTiles,
    a: TensorMap<T, 2>,
    b: TensorMap<T, 2>,
    c: TensorMap<Out, 2>,
    rows: I32,
    columns: I32,
    inner: I32,
) {
    multiply(&geometry, a, b, Destination::Map(c), Sizes { rows, columns, inner }, None);
}

/// [`matmul_hopper`] for a C of any strides.
#[kernel(block = [geometry.threads(), 1, 1], cluster = [geometry.cluster, 1, 1], min_blocks = 1)]
pub fn matmul_hopper_strided<T: WgmmaElement, Out: Float>(
    #[comptime] geometry: HopperTiles,
    a: TensorMap<T, 2>,
    b: TensorMap<T, 2>,
    c: TensorMut<Out, 2>,
    inner: I32,
) {
    let sizes = Sizes { rows: c.extent(0), columns: c.extent(1), inner };
    multiply(&geometry, a, b, Destination::Elements(c), sizes, None);
}

/// [`matmul_hopper`], with `scale` times the product.
#[kernel(block = [geometry.threads(), 1, 1], cluster = [geometry.cluster, 1, 1], min_blocks = 1)]
pub fn matmul_hopper_scaled<T: WgmmaElement, Out: Float>(
    #[comptime] geometry: HopperTiles,
    a: TensorMap<T, 2>,
    b: TensorMap<T, 2>,
    c: TensorMap<Out, 2>,
    rows: I32,
    columns: I32,
    inner: I32,
    scale: F32,
) {
    multiply(&geometry, a, b, Destination::Map(c), Sizes { rows, columns, inner }, Some(scale));
}

/// [`matmul_hopper_strided`], with `scale` times the product.
#[kernel(block = [geometry.threads(), 1, 1], cluster = [geometry.cluster, 1, 1], min_blocks = 1)]
pub fn matmul_hopper_scaled_strided<T: WgmmaElement, Out: Float>(
    #[comptime] geometry: HopperTiles,
    a: TensorMap<T, 2>,
    b: TensorMap<T, 2>,
    c: TensorMut<Out, 2>,
    inner: I32,
    scale: F32,
) {
    let sizes = Sizes { rows: c.extent(0), columns: c.extent(1), inner };
    multiply(&geometry, a, b, Destination::Elements(c), sizes, Some(scale));
}

/// Whether [`run`] can multiply these: tensor maps describe them, A along k and B along its rows or along k, which it
/// must for 8-bit elements. Gives whether B lies along k.
fn layout_of_b<A: lacewing_runtime::Element>(a: &DevTensor<A, 2>, b: &DevTensor<A, 2>) -> Option<bool> {
    /// Extents up to which no index of a tile overflows.
    const LARGEST: usize = 1 << 30;
    let describes = |tensor: &DevTensor<A, 2>| rows_are_vectors(tensor, 16) && tensor_map_describes(tensor);
    let small = a.shape().into_iter().chain(b.shape()).all(|extent| extent <= LARGEST);
    if !small || a.device().target() != Target::SM_90A || !describes(a) {
        return None;
    }
    let along_k = b.permute([1, 0]).is_ok_and(|b| describes(&b));
    let along_n = A::TYPE.bytes() > 1 && describes(b);
    (along_n || along_k).then_some(!along_n)
}

/// Runs the kernel of this file, on tiles that it chooses by the shape; `None` where it does not take such tensors.
/// Shapes go together. C becomes `scale` times the product, where there is a scale.
pub(super) fn run<T, Out>(
    a: &DevTensor<T::Host, 2>,
    b: &DevTensor<T::Host, 2>,
    c: &mut DevTensor<Out::Host, 2>,
    scale: Option<f32>,
) -> Option<Result<LaunchStats, Error>>
where
    T: WgmmaElement + types::Scalar<Host: ElementOf<T>>,
    Out: HostFloat,
{
    let along_k = layout_of_b(a, b)?;
    let ([rows, inner], [_, columns]) = (a.shape(), b.shape());
    let processors = a.device().multiprocessors() as usize;
    let turned = b.permute([1, 0]).ok()?;
    let aligned = rows_are_vectors(a, LINE) && rows_are_vectors(if along_k { &turned } else { b }, LINE);
    let tiles = HopperTiles::new([rows, columns, inner], T::BYTES, aligned, processors, along_k);
    Some(launch::<T, Out>(tiles, (a, b, c), scale))
}

/// Tensors of a product.
type Operands<'a, A, C> = (&'a DevTensor<A, 2>, &'a DevTensor<A, 2>, &'a mut DevTensor<C, 2>);

fn launch<T, Out>(
    tiles: HopperTiles,
    (a, b, c): Operands<'_, T::Host, Out::Host>,
    scale: Option<f32>,
) -> Result<LaunchStats, Error>
where
    T: WgmmaElement + types::Scalar<Host: ElementOf<T>>,
    Out: HostFloat,
{
    let device = a.device().clone();
    let ([rows, inner], [_, columns]) = (a.shape(), b.shape());
    let pairs = rows.div_ceil(tiles.block_m()).div_ceil(tiles.cluster) * columns.div_ceil(tiles.block_n);
    let at_once = (device.multiprocessors() as usize / tiles.cluster).max(1);
    let grid = [pairs.min(at_once) * tiles.cluster, 1, 1];
    let count = |number: usize| {
        i32::try_from(number).map_err(|_| Error::Shape(format!("{number} is more than a kernel can count")))
    };
    let (m, n, k) = (count(rows)?, count(columns)?, count(inner)?);
    let turned = b.permute([1, 0])?;
    let b = if tiles.along_k { &turned } else { b };
    let through_map = rows_are_vectors(c, 16) && tensor_map_describes(c);
    match (through_map, scale) {
        (true, None) => matmul_hopper::<T, Out>::new(tiles).grid(grid).launch(&device, (a, b, c, m, n, k)),
        (true, Some(scale)) => {
            matmul_hopper_scaled::<T, Out>::new(tiles).grid(grid).launch(&device, (a, b, c, m, n, k, scale))
        }
        (false, None) => matmul_hopper_strided::<T, Out>::new(tiles).grid(grid).launch(&device, (a, b, c, k)),
        (false, Some(scale)) => {
            matmul_hopper_scaled_strided::<T, Out>::new(tiles).grid(grid).launch(&device, (a, b, c, k, scale))
        }
    }
}

#[device]
fn multiply<T: WgmmaElement, Out: Float>(
    geometry: &HopperTiles,
    a: TensorMap<T, 2>,
    b: TensorMap<T, 2>,
    c: Destination<Out>,
    sizes: Sizes,
    scale: Option<F32>,
) {
    let (block_m, block_n, block_k) = (geometry.block_m(), geometry.block_n, PANEL / T::BYTES);
    let (consumers, cluster) = (geometry.consumers, geometry.cluster);
    let row_tiles = divide_up(divide_up(sizes.rows, block_m), cluster);
    let order = TileOrder::grouped(row_tiles, divide_up(sizes.columns, block_n), geometry.group);
    let schedule = Schedule::in_turn(order.count());
    let steps = divide_up(sizes.inner, block_k);
    let rank = if const_expr(cluster > 1) { cluster_rank() } else { I32::from(0) };

    let a_ring = SwizzledRing::<T>::new("a", geometry.stages, block_m, block_k);
    let (b_rows, b_columns) = if const_expr(geometry.along_k) { (block_n, block_k) } else { (block_k, block_n) };
    let b_ring = SwizzledRing::<T>::new("b", geometry.stages, b_rows, b_columns);
    let panels = SwizzledRing::<Out>::new("c", consumers * geometry.slots_of(Out::BYTES), ROWS, PANEL / Out::BYTES);
    let mut setup = BarrierSetup::new();
    let stages = Pipeline::multicast(&mut setup, "stages", geometry.stages, consumers);
    setup.finish();

    let [producer, consumer] = warpgroup_roles([(1, 40), (consumers, 232)]);
    if producer.is_mine() {
        producer.begin();
        if warp_id() == 0 && elect_one() {
            let mut at = stages.start();
            let mut ticket = schedule.start();
            while schedule.has(ticket) {
                let (row, column) = order.at(ticket.number());
                let first_row = (row * (cluster as i32) + rank) * (block_m as i32);
                let first_column = column * (block_n as i32);
                for step in range(steps) {
                    let k = step * (block_k as i32);
                    let full = stages.acquire(at, a_ring.bytes() + b_ring.bytes());
                    a.load(a_ring.stage(at.stage()), (first_row, k), full);
                    load_b(geometry, b, b_ring.stage(at.stage()), (k, first_column), rank, full);
                    at.advance();
                }
                schedule.draw(&mut ticket);
            }
            if const_expr(cluster > 1) {
                stages.drain(at);
            }
        }
    } else {
        consumer.begin();
        let number = consumer.number();
        let mut at = stages.start();
        let mut ticket = schedule.start();
        while schedule.has(ticket) {
            let (row, column) = order.at(ticket.number());
            stages.wait(at);
            let a_tile = a_ring.stage(at.stage()).row_block(ROWS, number);
            let mut product = first_product(a_tile, b_ring.stage(at.stage()), geometry.along_k);
            for _ in range(1, steps) {
                let before = at;
                at.advance();
                stages.wait(at);
                let a_tile = a_ring.stage(at.stage()).row_block(ROWS, number);
                product = next_product(product, a_tile, b_ring.stage(at.stage()), geometry.along_k);
                product.wait_before::<1>();
                stages.release(before);
            }
            let mut acc = product.wait::<0>();
            stages.release(at);
            at.advance();
            if let Some(scale) = scale {
                for i in range_constexpr(acc.len()) {
                    acc[i] *= scale;
                }
            }

            let first_row = (row * (cluster as i32) + rank) * (block_m as i32) + number * (ROWS as i32);
            let first = (first_row, column * (block_n as i32));
            if let Destination::Map(map) = c {
                store_panels(geometry, map, panels, number, first, &acc);
            }
            if let Destination::Elements(tensor) = c {
                store_elements(tensor, first, &acc);
            }
            schedule.receive(&mut ticket);
        }
        if thread_id(X) % (WARPGROUP as i32) == 0 {
            tma_store_wait(0);
        }
    }
}

/// Starts to load the tile of B from `(k, column)` on; in a cluster, this block's share of it to all blocks.
#[device]
fn load_b<T: WgmmaElement>(
    geometry: &HopperTiles,
    b: TensorMap<T, 2>,
    tile: SwizzledTile<T>,
    (k, column): (I32, I32),
    rank: I32,
    full: Mbarrier,
) {
    let share = geometry.block_n / geometry.cluster;
    let column = column + rank * (share as i32);
    let (part, at) = if const_expr(geometry.along_k) {
        (tile.row_block(share, rank), (column, k))
    } else {
        (tile.column_block(share, rank), (k, column))
    };
    if const_expr(geometry.cluster > 1) {
        b.load_multicast(part, at, full, (1 << geometry.cluster) - 1);
    } else {
        b.load(part, at, full);
    }
}

/// The product of a warpgroup's rows of a step.
#[device]
fn first_product<T: WgmmaElement>(a: SwizzledTile<T>, b: SwizzledTile<T>, along_k: bool) -> InFlight {
    if const_expr(along_k) { wgmma(a, b.t()) } else { wgmma(a, b) }
}

/// [`first_product`], added to those before.
#[device]
fn next_product<T: WgmmaElement>(
    before: InFlight,
    a: SwizzledTile<T>,
    b: SwizzledTile<T>,
    along_k: bool,
) -> InFlight {
    if const_expr(along_k) { before.add(a, b.t()) } else { before.add(a, b) }
}

/// Row and first column of a thread's first element in its warpgroup's tile of 64 rows.
#[device]
fn own_place() -> (I32, I32) {
    let thread = thread_id(X) % (WARPGROUP as i32);
    (thread / 32 * 16 + lane_id() / 4, lane_id() % 4 * 2)
}

/// Writes a warpgroup's 64 rows of C through shared memory, panel by panel: while the copy engine takes one to C,
/// the next is written.
#[device]
fn store_panels<Out: Float>(
    geometry: &HopperTiles,
    c: TensorMap<Out, 2>,
    panels: SwizzledRing<Out>,
    number: I32,
    (first_row, first_column): (I32, I32),
    acc: &Accumulator,
) {
    let (width, slots) = (PANEL / Out::BYTES, geometry.slots_of(Out::BYTES));
    let (row, column) = own_place();
    let leader = thread_id(X) % (WARPGROUP as i32) == 0;
    let together = named_barriers(1, geometry.consumers, WARPGROUP).at(number);
    for panel in range_constexpr(geometry.block_n / width) {
        let tile = panels.stage(number * (slots as i32) + ((panel % slots) as i32));
        // The slot is free when all but its younger neighbours have been read.
        if leader {
            tma_store_wait(slots - 1);
        }
        together.sync();
        for i in range_constexpr(0, width / 2, 2) {
            let element = panel * width / 2 + i;
            let pair = Vector::<F32, 2>::from([acc[element], acc[element + 1]]).cast::<Out>();
            let (below, beside) = ((i / 2 % 2 * 8) as i32, (i / 4 * 8) as i32);
            tile.at((row + below, column + beside)).store_vec(pair);
        }
        fence_proxy(ProxyFence::AsyncShared);
        together.sync();
        if leader {
            c.store((first_row, first_column + ((panel * width) as i32)), tile);
            tma_store_commit();
        }
    }
}

/// Writes a warpgroup's 64 rows of C as they lie in registers.
#[device]
fn store_elements<Out: Float>(c: TensorMut<Out, 2>, (first_row, first_column): (I32, I32), acc: &Accumulator) {
    let (row, column) = own_place();
    for i in range_constexpr(acc.len()) {
        let row = first_row + row + ((i / 2 % 2 * 8) as i32);
        let column = first_column + column + ((i / 4 * 8 + i % 2) as i32);
        let inside = (row < c.extent(0)) & (column < c.extent(1));
        c.at((row, column)).store_if(inside, acc[i].cast::<Out>());
    }
}

#[cfg(test)]
mod tests;

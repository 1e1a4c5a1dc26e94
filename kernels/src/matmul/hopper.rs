//! `matmul` for Hopper: tensor copies, warpgroup products, roles, persistent blocks.
//!
//! A block has one producer warpgroup, of which one thread starts copies, and one or two consumer warpgroups with
//! 64 rows of the tile of C each. A step of k brings 128 bytes of each row of A and column of B, through a ring of
//! stages. Consumers keep one product running: they start the next before they wait for the last, and only then
//! release its stage.
//!
//! Blocks are persistent: while consumers write a tile of C out, by way of shared memory and the copy engine, the
//! producer fetches the next tile's first stages. The blocks of a cluster take tiles that are neighbours in a column of
//! C: each loads a share of their tile of B for all.
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
    /// Columns of a tile of C: a multiple of 8 for each block of the cluster, from 16 to 256.
    pub(super) block_n: usize,
    /// Stages of the ring.
    pub(super) stages: usize,
    /// Blocks of a cluster: 1, 2 or 4.
    pub(super) cluster: usize,
    /// Panels of C, 128 bytes wide, that a warpgroup has on their way out at most.
    pub(super) slots: usize,
    /// Rows of tiles (in a cluster, of as many of them as it has blocks) that are taken together.
    pub(super) group: usize,
    /// Whether B lies along k: its columns are contiguous, not its rows.
    pub(super) along_k: bool,
}

/// Bytes of shared memory of a block of sm_90a, less what mbarriers take.
const SHARED: usize = 227 * 1024 - 512;
/// Most stages of a ring: no latency asks for more.
const MOST_STAGES: usize = 16;
/// Bytes of a sector of the L2 cache. Where rows do not start at one, their copies take twice the time.
pub(super) const SECTOR: usize = 32;
/// Columns of a panel of B that lies along its rows, of 16-bit elements.
const ROW_PANEL: usize = PANEL / 2;

/// What the choice of tiles goes by.
#[derive(Clone, Copy, Debug)]
pub struct Problem {
    /// M, N and K.
    pub sizes: [usize; 3],
    /// Bytes of an element of A and B.
    pub bytes: usize,
    /// Whether rows of A and B start at sectors of the L2 cache, of 32 bytes.
    pub aligned: bool,
    /// Whether B lies along k.
    pub along_k: bool,
    /// Multiprocessors of the chip.
    pub multiprocessors: usize,
}

impl HopperTiles {
    /// The tiles with the shortest estimated time.
    pub fn new(problem: &Problem) -> Self {
        let all = Self::candidates(problem.along_k);
        let best = all.min_by_key(|tiles| tiles.time(problem));
        best.unwrap_or_else(|| Self::of(2, 256, 2, problem.along_k))
    }

    /// The tiles to choose from; larger ones first, which are taken where times are equal.
    fn candidates(along_k: bool) -> impl Iterator<Item = Self> {
        let kinds = [(2, 1), (2, 2), (2, 4), (1, 1), (1, 2), (1, 4)];
        kinds.into_iter().flat_map(move |(consumers, cluster)| {
            // A share of B is made of whole groups of 8 rows; rows of it start at sectors, and few of its columns are loaded
            // in vain.
            let fits = move |width: &usize| match along_k {
                true => width.is_multiple_of(8 * cluster),
                false => width.is_multiple_of(64) || width.is_multiple_of(16) && *width > 192,
            };
            let widths = (16..=256).rev().filter(fits);
            widths.map(move |block_n| Self::of(consumers, block_n, cluster, along_k))
        })
    }

    /// Tiles of a shape, with as many stages as there is shared memory for.
    fn of(consumers: usize, block_n: usize, cluster: usize, along_k: bool) -> Self {
        let mut tiles = HopperTiles { consumers, block_n, stages: 0, cluster, slots: 2, group: 16 / cluster, along_k };
        let out = consumers * tiles.slots * ROWS * PANEL;
        tiles.stages = ((SHARED - out) / ((tiles.block_m() + tiles.loaded_n()) * PANEL)).min(MOST_STAGES);
        tiles
    }

    /// Columns of a tile of B in shared memory: whole panels for each block of the cluster.
    fn loaded_n(&self) -> usize {
        if self.along_k { self.block_n } else { self.block_n.next_multiple_of(ROW_PANEL * self.cluster) }
    }

    /// Clusters that run at once. Those of four find room only inside of a GPC: 30 on the 132 multiprocessors of an H200
    /// (`cuOccupancyMaxActiveClusters`). Any more would run after all others, with persistent blocks.
    fn at_once(&self, multiprocessors: usize) -> usize {
        let clusters = if self.cluster > 2 { multiprocessors * 5 / 22 } else { multiprocessors / self.cluster };
        clusters.max(1)
    }

    /// Estimated time of a product in picoseconds, with constants as measured on an H200
    /// (docs/src/inside/hopper-matmul.md).
    fn time(&self, problem: &Problem) -> usize {
        let [rows, columns, inner] = problem.sizes;
        let (steps, (m, n)) = (inner.div_ceil(PANEL / problem.bytes), (self.block_m(), self.block_n));
        let clusters = rows.div_ceil(m).div_ceil(self.cluster).saturating_mul(columns.div_ceil(n));
        let rounds = clusters.div_ceil(self.at_once(problem.multiprocessors));
        if self.cluster > 2 && rounds > 1 {
            // Over several rounds they fall behind pairs, for reasons unknown: 0.80 us a step where pairs take 0.76 us.
            return usize::MAX;
        }
        // A step takes as long as the tensor cores at their highest clock, ..
        let products = 18 * m * n;
        // .. shared memory, which each product of 64 rows reads its operands from and copies write, ..
        let traffic = 100_000 + 420 * (self.consumers * (64 + n) + m + n);
        // .. or the L2 cache, by the row of 128 bytes. Blocks of a cluster wait for the slowest one.
        let loads = (m + self.loaded_n() / self.cluster) * if problem.aligned { 1_350 } else { 2_800 };
        let step = products.max(traffic).max(loads) + 10_000 * (self.cluster - 1);
        // All steps of all blocks together take as long as the power of the chip allows: products, and loads.
        let all = clusters.saturating_mul(self.cluster * steps).saturating_mul(23 * m * n + 50 * (m + n));
        let power = all / problem.multiprocessors.max(1);
        // The output of a tile, and the wait for its first stage.
        let besides = (25 * m * n).saturating_sub(200_000).max(50_000);
        rounds.saturating_mul(steps.saturating_mul(step)).max(power).saturating_add(rounds.saturating_mul(besides))
    }

    /// Columns of a panel of C: 128 bytes, or less where a tile is narrower.
    fn panel(&self, out_bytes: usize) -> usize {
        let widths = [PANEL, PANEL / 2, PANEL / 4].map(|bytes| bytes / out_bytes);
        widths.into_iter().find(|width| *width <= self.block_n).unwrap_or(PANEL / 4 / out_bytes)
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
    rows: Uniform<I32>,
    columns: Uniform<I32>,
    inner: Uniform<I32>,
}

/// `a / b`, rounded up, of what is not negative.
#[device]
fn divide_up(a: Uniform<I32>, b: usize) -> Uniform<I32> {
    ((a + (b as i32 - 1)).cast::<U32>() / b as u32).cast::<I32>()
}

/// C = A B. A is `[rows, inner]`; B is `[inner, columns]`, or `[columns, inner]` where tiles lie along k; C is
/// `[rows, columns]`. No size is 0. The grid has a multiple of the cluster's blocks in x.
#[kernel(block = [geometry.threads(), 1, 1], cluster = [geometry.cluster, 1, 1], min_blocks = 1)]
pub fn matmul_hopper<T: WgmmaElement, Out: Float>(
    #[comptime] geometry: HopperTiles,
    a: TensorMap<T, 2>,
    b: TensorMap<T, 2>,
    c: TensorMap<Out, 2>,
    rows: Uniform<I32>,
    columns: Uniform<I32>,
    inner: Uniform<I32>,
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
    inner: Uniform<I32>,
) {
    let sizes = Sizes { rows: uniform(c.extent(0)), columns: uniform(c.extent(1)), inner };
    multiply(&geometry, a, b, Destination::Elements(c), sizes, None);
}

/// [`matmul_hopper`], with `scale` times the product.
#[kernel(block = [geometry.threads(), 1, 1], cluster = [geometry.cluster, 1, 1], min_blocks = 1)]
pub fn matmul_hopper_scaled<T: WgmmaElement, Out: Float>(
    #[comptime] geometry: HopperTiles,
    a: TensorMap<T, 2>,
    b: TensorMap<T, 2>,
    c: TensorMap<Out, 2>,
    rows: Uniform<I32>,
    columns: Uniform<I32>,
    inner: Uniform<I32>,
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
    inner: Uniform<I32>,
    scale: F32,
) {
    let sizes = Sizes { rows: uniform(c.extent(0)), columns: uniform(c.extent(1)), inner };
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

/// Whether C is computed as its transpose: few rows would leave most of a warpgroup's 64 empty, so that the columns of B
/// take their place, if they lie along k as rows of A do.
pub(super) fn is_turned([rows, columns]: [usize; 2], along_k: bool) -> bool {
    along_k && rows < ROWS && columns >= ROWS
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
    if is_turned([rows, columns], along_k) {
        let (Ok(a), Ok(b), Ok(mut c)) = (a.permute([1, 0]), b.permute([1, 0]), c.permute([1, 0])) else { return None };
        return run::<T, Out>(&b, &a, &mut c, scale);
    }
    let processors = a.device().multiprocessors() as usize;
    let turned = b.permute([1, 0]).ok()?;
    let aligned = rows_are_vectors(a, SECTOR) && rows_are_vectors(if along_k { &turned } else { b }, SECTOR);
    let sizes = [rows, columns, inner];
    let problem = Problem { sizes, bytes: T::BYTES, aligned, along_k, multiprocessors: processors };
    let tiles = HopperTiles::new(&problem);
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
    let clusters = rows.div_ceil(tiles.block_m()).div_ceil(tiles.cluster) * columns.div_ceil(tiles.block_n);
    let grid = [clusters.min(tiles.at_once(device.multiprocessors() as usize)) * tiles.cluster, 1, 1];
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
    let rank = if const_expr(cluster > 1) { cluster_rank() } else { 0.into() };

    let a_ring = SwizzledRing::<T>::new("a", geometry.stages, block_m, block_k);
    let (b_rows, b_columns) =
        if const_expr(geometry.along_k) { (block_n, block_k) } else { (block_k, geometry.loaded_n()) };
    let b_ring = SwizzledRing::<T>::new("b", geometry.stages, b_rows, b_columns);
    let panels = SwizzledRing::<Out>::new("c", consumers * geometry.slots, ROWS, geometry.panel(Out::BYTES));
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
        let mut slot = Uniform::<I32>::from(0);
        while schedule.has(ticket) {
            let (row, column) = order.at(ticket.number());
            stages.wait(at);
            let a_tile = a_ring.stage(at.stage()).row_block(ROWS, number);
            let mut product = first_product(geometry, a_tile, b_ring.stage(at.stage()));
            for _ in range(1, steps) {
                let before = at;
                at.advance();
                stages.wait(at);
                let a_tile = a_ring.stage(at.stage()).row_block(ROWS, number);
                product = next_product(geometry, product, a_tile, b_ring.stage(at.stage()));
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
                slot = store_panels(geometry, map, panels, number, slot, first, &acc);
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
    (k, column): (Uniform<I32>, Uniform<I32>),
    rank: Uniform<I32>,
    full: Mbarrier,
) {
    let share = geometry.loaded_n() / geometry.cluster;
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
fn first_product<T: WgmmaElement>(geometry: &HopperTiles, a: SwizzledTile<T>, b: SwizzledTile<T>) -> InFlight {
    if const_expr(geometry.along_k) { wgmma(a, b.t()) } else { wgmma(a, b.first_columns(geometry.block_n)) }
}

/// [`first_product`], added to those before.
#[device]
fn next_product<T: WgmmaElement>(
    geometry: &HopperTiles,
    before: InFlight,
    a: SwizzledTile<T>,
    b: SwizzledTile<T>,
) -> InFlight {
    if const_expr(geometry.along_k) { before.add(a, b.t()) } else { before.add(a, b.first_columns(geometry.block_n)) }
}

/// Row and first column of a thread's first element in its warpgroup's tile of 64 rows.
#[device]
fn own_place() -> (I32, I32) {
    let thread = thread_id(X) % (WARPGROUP as i32);
    (thread / 32 * 16 + lane_id() / 4, lane_id() % 4 * 2)
}

/// Writes a warpgroup's 64 rows of C through shared memory, panel by panel: while the copy engine takes one to C,
/// the next is written. The last panel of a tile overlaps the one before where the tile is no multiple of panels, and
/// writes the same there. Slots are taken in turn, from tile to tile; gives the next one.
#[device]
fn store_panels<Out: Float>(
    geometry: &HopperTiles,
    c: TensorMap<Out, 2>,
    panels: SwizzledRing<Out>,
    number: Uniform<I32>,
    slot: Uniform<I32>,
    (first_row, first_column): (Uniform<I32>, Uniform<I32>),
    acc: &Accumulator,
) -> Uniform<I32> {
    let (width, slots) = (geometry.panel(Out::BYTES), geometry.slots);
    let (row, column) = own_place();
    let leader = thread_id(X) % (WARPGROUP as i32) == 0;
    let together = named_barriers(1, geometry.consumers, WARPGROUP).at(number);
    let count = geometry.block_n.div_ceil(width);
    let mut slot = slot;
    for panel in range_constexpr(count) {
        let start = (panel * width).min(geometry.block_n - width);
        let tile = if const_expr(count % slots == 0) {
            panels.stage(number * (slots as i32) + ((panel % slots) as i32))
        } else {
            panels.stage(number * (slots as i32) + slot)
        };
        // The slot is free when all but its younger neighbours have been read.
        if leader {
            tma_store_wait(slots - 1);
        }
        together.sync();
        for i in range_constexpr(0, width / 2, 2) {
            let element = start / 2 + i;
            let pair = Vector::<F32, 2>::from([acc[element], acc[element + 1]]).cast::<Out>();
            let (below, beside) = ((i / 2 % 2 * 8) as i32, (i / 4 * 8) as i32);
            tile.at((row + below, column + beside)).store_vec(pair);
        }
        fence_proxy(ProxyFence::AsyncShared);
        together.sync();
        if leader {
            c.store((first_row, first_column + (start as i32)), tile);
            tma_store_commit();
        }
        if const_expr(count % slots != 0) {
            slot = (slot == slots as i32 - 1).select(0.into(), slot + 1);
        }
    }
    slot
}

/// Writes a warpgroup's 64 rows of C as they lie in registers.
#[device]
fn store_elements<Out: Float>(
    c: TensorMut<Out, 2>,
    (first_row, first_column): (Uniform<I32>, Uniform<I32>),
    acc: &Accumulator,
) {
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

//! `matmul` for Hopper: tensor copies, warpgroup products, roles, persistent blocks.
//!
//! A block has one producer warpgroup, of which one thread starts copies, and one to three consumer warpgroups with
//! 64 or 128 rows of the tile of C each. A step of k brings 128 bytes of each row of A and column of B, through a ring of
//! stages. Consumers keep one product running: they start the next before they wait for the last, and only then
//! release its stage.
//!
//! Blocks are persistent: while consumers write a tile of C out, by way of shared memory and the copy engine, the
//! producer fetches the next tile's first stages. The blocks of a cluster take tiles that are neighbours in a column of
//! C: each loads a share of their tile of B for all. A launch overlaps with the one before it.
//!
//! docs/src/inside/hopper-matmul.md says what was tried.

mod tiles;

use lacewing_core::prelude::*;
use lacewing_core::{Target, types};
use lacewing_runtime::{DevTensor, ElementOf, Error, KernelExt, LaunchStats};

pub(super) use self::tiles::SECTOR;
pub use self::tiles::{HopperTiles, Problem};
use super::divide_up;
use crate::views::{HostFloat, rows_are_vectors, tensor_map_describes};

/// Rows of a consumer warpgroup.
pub(super) const ROWS: usize = 64;
/// Threads of a warpgroup.
const WARPGROUP: usize = 128;
/// Bytes of a step of k, and of a row of a panel of C: those of the widest swizzle.
const PANEL: usize = 128;

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

/// C = A B. A is `[rows, inner]`, or `[inner, rows]` where it is M-major; B is `[inner, columns]`, or `[columns, inner]` where
/// it is K-major; C is `[rows, columns]`, or `[columns, rows]` where its columns are contiguous. No size is 0. The grid has a multiple of the cluster's blocks in x.
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

/// Which dimensions of A and B are contiguous.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Majors {
    /// A's columns are, not its rows.
    m: bool,
    /// B's columns are, not its rows.
    k: bool,
}

impl Majors {
    /// How A and B lie, where [`run`] can multiply them: tensor maps describe them, which 8-bit elements must be along k.
    fn of<A: lacewing_runtime::Element>(a: &DevTensor<A, 2>, b: &DevTensor<A, 2>) -> Option<Self> {
        /// Extents up to which no index of a tile overflows.
        const LARGEST: usize = 1 << 30;
        let describes = |tensor: &DevTensor<A, 2>| rows_are_vectors(tensor, 16) && tensor_map_describes(tensor);
        let in_columns = |tensor: &DevTensor<A, 2>| tensor.permute([1, 0]).is_ok_and(|columns| describes(&columns));
        let small = a.shape().into_iter().chain(b.shape()).all(|extent| extent <= LARGEST);
        if !small || a.device().target() != Target::SM_90A {
            return None;
        }
        let wide = A::TYPE.bytes() > 1;
        let a_along_k = describes(a);
        let b_along_n = wide && describes(b);
        let fits = (a_along_k || wide && in_columns(a)) && (b_along_n || in_columns(b));
        fits.then_some(Majors { m: !a_along_k, k: !b_along_n })
    }
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
    let Majors { m: m_major, k: k_major } = Majors::of(a, b)?;
    let ([rows, inner], [_, columns]) = (a.shape(), b.shape());
    let (a_columns, b_columns) = (a.permute([1, 0]).ok()?, b.permute([1, 0]).ok()?);
    let at_sectors = |tensor: &DevTensor<T::Host, 2>| rows_are_vectors(tensor, SECTOR);
    let aligned = [at_sectors(if m_major { &a_columns } else { a }), at_sectors(if k_major { &b_columns } else { b })];
    let problem = Problem {
        sizes: [rows, columns, inner],
        bytes: T::BYTES,
        aligned,
        m_major,
        k_major,
        c_in_columns: !through_map(c) && through_map(&c.permute([1, 0]).ok()?),
        multiprocessors: a.device().multiprocessors() as usize,
    };
    let (tiles, as_transpose) = HopperTiles::best(&problem);
    if as_transpose {
        let mut c_columns = c.permute([1, 0]).ok()?;
        return Some(launch::<T, Out>(tiles, (&b_columns, &a_columns, &mut c_columns), scale));
    }
    Some(launch::<T, Out>(tiles, (a, b, c), scale))
}

/// Whether C can go out through a tensor map.
fn through_map<H: lacewing_runtime::Element>(c: &DevTensor<H, 2>) -> bool {
    rows_are_vectors(c, 16) && tensor_map_describes(c)
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
    let (a_columns, b_columns) = (a.permute([1, 0])?, b.permute([1, 0])?);
    let (a, b) = (if tiles.m_major { &a_columns } else { a }, if tiles.k_major { &b_columns } else { b });
    let c_columns = &mut c.permute([1, 0])?;
    let lies = if tiles.c_in_columns { &*c_columns } else { &*c };
    let mapped = through_map(lies);
    let c = if mapped && tiles.c_in_columns { c_columns } else { c };
    match (mapped, scale) {
        (true, None) => {
            matmul_hopper::<T, Out>::new(tiles).grid(grid).overlapping().launch(&device, (a, b, c, m, n, k))
        }
        (true, Some(scale)) => matmul_hopper_scaled::<T, Out>::new(tiles)
            .grid(grid)
            .overlapping()
            .launch(&device, (a, b, c, m, n, k, scale)),
        (false, None) => {
            matmul_hopper_strided::<T, Out>::new(tiles).grid(grid).overlapping().launch(&device, (a, b, c, k))
        }
        (false, Some(scale)) => matmul_hopper_scaled_strided::<T, Out>::new(tiles)
            .grid(grid)
            .overlapping()
            .launch(&device, (a, b, c, k, scale)),
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
    let row_tiles = divide_up(divide_up(*sizes.rows, block_m), cluster);
    let column_tiles = divide_up(*sizes.columns, block_n);
    let order = TileOrder::grouped(uniform(row_tiles), uniform(column_tiles), geometry.group);
    let schedule = Schedule::in_turn(order.count());
    let steps = uniform(divide_up(*sizes.inner, block_k));
    let rank = if const_expr(cluster > 1) { cluster_rank() } else { 0.into() };

    let (a_rows, a_columns) = if const_expr(geometry.m_major) { (block_k, block_m) } else { (block_m, block_k) };
    let a_ring = SwizzledRing::<T>::new("a", geometry.stages, a_rows, a_columns);
    let (b_rows, b_columns) =
        if const_expr(geometry.k_major) { (block_n, block_k) } else { (block_k, geometry.loaded_n()) };
    let b_ring = SwizzledRing::<T>::new("b", geometry.stages, b_rows, b_columns);
    let width = geometry.panel(Out::BYTES);
    let panels = if const_expr(geometry.c_in_columns) {
        SwizzledRing::<Out>::new("c in columns", consumers * geometry.slots, width, ROWS)
    } else {
        SwizzledRing::<Out>::new("c", consumers * geometry.slots, ROWS, width)
    };
    let mut setup = BarrierSetup::new();
    let stages = Pipeline::multicast(&mut setup, "stages", geometry.stages, consumers);
    setup.finish();

    let (producer_registers, consumer_registers) = geometry.registers();
    let [producer, consumer] = warpgroup_roles([(1, producer_registers), (consumers, consumer_registers)]);
    if producer.is_mine() {
        producer.begin();
        if warp_id() == 0 && elect_one() {
            // All that a block reads and writes comes after this thread's first copy.
            wait_for_previous_grid();
            release_next_grid();
            let mut at = stages.start();
            let mut ticket = schedule.start();
            while schedule.has(ticket) {
                let (row, column) = order.at(ticket.number());
                let first_row = (row * (cluster as i32) + rank) * (block_m as i32);
                let first_column = column * (block_n as i32);
                for step in range(steps) {
                    let k = step * (block_k as i32);
                    let full = stages.acquire(at, a_ring.bytes() + b_ring.bytes());
                    let a_at = if const_expr(geometry.m_major) { (k, first_row) } else { (first_row, k) };
                    a.load(a_ring.stage(at.stage()), a_at, full);
                    load_b(geometry, b, b_ring.stage(at.stage()), (step, first_column), rank, full);
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
            let a_tile = own_rows(geometry, a_ring.stage(at.stage()), number);
            let mut products = first_products(geometry, a_tile, b_ring.stage(at.stage()));
            for _ in range(1, steps) {
                let before = at;
                at.advance();
                stages.wait(at);
                let a_tile = own_rows(geometry, a_ring.stage(at.stage()), number);
                products = next_products(geometry, products, a_tile, b_ring.stage(at.stage()));
                wait_for_those_before(&products);
                stages.release(before);
            }
            let sums = results(products);
            stages.release(at);
            at.advance();

            let first_row = (row * (cluster as i32) + rank) * (block_m as i32);
            let first_row = first_row + number * ((geometry.stacked * ROWS) as i32);
            for (i, acc) in constexpr(sums.into_iter().enumerate()) {
                let mut acc = acc;
                if let Some(scale) = scale {
                    for i in range_constexpr(acc.len()) {
                        acc[i] *= scale;
                    }
                }
                let first = (first_row + ((i * ROWS) as i32), column * (block_n as i32));
                if let Destination::Map(map) = c {
                    slot = store_panels(geometry, map, panels, number, slot, first, &acc);
                }
                if let Destination::Elements(tensor) = c {
                    store_elements(tensor, first, &acc);
                }
            }
            schedule.receive(&mut ticket);
        }
        if thread_id(X) % (WARPGROUP as i32) == 0 {
            tma_store_wait(0);
        }
    }
}

/// Starts to load the tile of B of a step; in a cluster for all blocks: this block's share of it, or all of it where it is
/// this block's turn.
#[device]
fn load_b<T: WgmmaElement>(
    geometry: &HopperTiles,
    b: TensorMap<T, 2>,
    tile: SwizzledTile<T>,
    (step, column): (Uniform<I32>, Uniform<I32>),
    rank: Uniform<I32>,
    full: Mbarrier,
) {
    let k = step * ((PANEL / T::BYTES) as i32);
    let cluster = geometry.cluster;
    let everyone = (1 << cluster) - 1;
    if const_expr(geometry.shares_are_whole_groups()) {
        let share = geometry.loaded_n() / cluster;
        let column = column + rank * (share as i32);
        let (part, at) = if const_expr(geometry.k_major) {
            (tile.row_block(share, rank), (column, k))
        } else {
            (tile.column_block(share, rank), (k, column))
        };
        if const_expr(cluster > 1) {
            b.load_multicast(part, at, full, everyone);
        } else {
            b.load(part, at, full);
        }
    } else {
        if step % (cluster as i32) == rank {
            b.load_multicast(tile, (column, k), full, everyone);
        }
    }
}

/// The part of a tile of A that has a warpgroup's rows.
#[device]
fn own_rows<T: WgmmaElement>(geometry: &HopperTiles, a: SwizzledTile<T>, number: Uniform<I32>) -> SwizzledTile<T> {
    let rows = geometry.stacked * ROWS;
    if const_expr(geometry.m_major) { a.column_block(rows, number) } else { a.row_block(rows, number) }
}

/// The products of a warpgroup's rows of a step, 64 rows each.
#[device]
fn first_products<T: WgmmaElement>(geometry: &HopperTiles, a: SwizzledTile<T>, b: SwizzledTile<T>) -> Vec<InFlight> {
    let mut products = Vec::new();
    for i in range_constexpr(geometry.stacked) {
        products.push(match (geometry.m_major, geometry.k_major) {
            (false, true) => wgmma(a.row_block(ROWS, i), b.t()),
            (false, false) => wgmma(a.row_block(ROWS, i), b.first_columns(geometry.block_n)),
            (true, true) => wgmma(a.column_block(ROWS, i).t(), b.t()),
            (true, false) => wgmma(a.column_block(ROWS, i).t(), b.first_columns(geometry.block_n)),
        });
    }
    products
}

/// [`first_products`], added to those before.
#[device]
fn next_products<T: WgmmaElement>(
    geometry: &HopperTiles,
    before: Vec<InFlight>,
    a: SwizzledTile<T>,
    b: SwizzledTile<T>,
) -> Vec<InFlight> {
    let mut products = Vec::new();
    for (i, before) in constexpr(before.into_iter().enumerate()) {
        products.push(match (geometry.m_major, geometry.k_major) {
            (false, true) => before.add(a.row_block(ROWS, i), b.t()),
            (false, false) => before.add(a.row_block(ROWS, i), b.first_columns(geometry.block_n)),
            (true, true) => before.add(a.column_block(ROWS, i).t(), b.t()),
            (true, false) => before.add(a.column_block(ROWS, i).t(), b.first_columns(geometry.block_n)),
        });
    }
    products
}

/// Waits until no product but these is under way.
#[device]
fn wait_for_those_before(products: &[InFlight]) {
    match products {
        [product] => product.wait_before::<1>(),
        [product, _] => product.wait_before::<2>(),
        _ => static_assert!(false, "a consumer has one or two products side by side"),
    }
}

/// Their results.
#[device]
fn results(products: Vec<InFlight>) -> Vec<Accumulator> {
    let mut sums = Vec::new();
    for product in constexpr(products) {
        sums.push(product.wait::<0>());
    }
    sums
}

/// Row and first column of a thread's first element in its warpgroup's tile of 64 rows.
#[device]
fn own_place() -> (I32, I32) {
    let thread = thread_id(X) % (WARPGROUP as i32);
    (thread / 32 * 16 + lane_id() / 4, lane_id() % 4 * 2)
}

/// Writes 64 rows of C through shared memory, panel by panel: while the copy engine takes one to C,
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
            let (row, column) = (row + ((i / 2 % 2 * 8) as i32), column + ((i / 4 * 8) as i32));
            if const_expr(geometry.c_in_columns) {
                tile.at((column, row)).store(acc[element].cast::<Out>());
                tile.at((column + 1, row)).store(acc[element + 1].cast::<Out>());
            } else {
                let pair = Vector::<F32, 2>::from([acc[element], acc[element + 1]]).cast::<Out>();
                tile.at((row, column)).store_vec(pair);
            }
        }
        fence_proxy(ProxyFence::AsyncShared);
        together.sync();
        if leader {
            let first_column = first_column + (start as i32);
            let first =
                if const_expr(geometry.c_in_columns) { (first_column, first_row) } else { (first_row, first_column) };
            c.store(first, tile);
            tma_store_commit();
        }
        if const_expr(count % slots != 0) {
            slot = (slot == slots as i32 - 1).select(0.into(), slot + 1);
        }
    }
    slot
}

/// Writes 64 rows of C as they lie in registers.
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

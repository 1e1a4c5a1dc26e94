//! Running a grid of blocks.

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};

use super::asynchronous::TensorMap;
use super::asynchronous::state::AsyncState;
use super::asynchronous::tensor_map::BoundMap;
use super::blame::{Scene, unflatten};
use super::exact::{ExactMemory, Follower};
use super::exec::interpret::{Interpreter, interpreter};
use super::exec::print::LINE_LIMIT;
use super::exec::traffic::Traffic;
use super::exec::warp::{BlockMemory, Warp};
use super::lanes::{Reg, Slot};
use super::memory::{GlobalMemory, LockedBuffers, ShadowShape, SharedMemory, SharedRaces, ThreadRaces, time_of_block};
use super::program::{Builtin, MapShape, ParameterKind};
use super::report::ReportKind;
use super::schedule::{SplitMix, run_cluster};
use super::writers::Writers;
use super::{BranchCost, Buffer, Checks, LineCost, Program, Report, WorkCost};

/// One kernel argument, in the flattened order of the traced function: a tensor is its pointer, its
/// extents (i32) and its strides (i64, in elements).
#[derive(Clone, Debug)]
pub enum ArgValue {
    /// A pointer `byte_offset` bytes into a buffer.
    Buffer {
        /// The bytes.
        buffer: Buffer,
        /// Where the pointer points.
        byte_offset: u64,
    },
    /// A scalar: its bits, zero-extended, and its size in bytes. Made by `From`.
    Scalar {
        /// The value's bits, little-endian, zero-extended.
        bits: u64,
        /// Size of the value: 1, 2, 4 or 8.
        bytes: u8,
    },
    /// A tensor map.
    Map(Box<TensorMap>),
}

impl From<&Buffer> for ArgValue {
    fn from(buffer: &Buffer) -> Self {
        Self::Buffer { buffer: buffer.clone(), byte_offset: 0 }
    }
}

macro_rules! scalar_arguments {
    ($($host:ty => $bits:expr;)*) => {$(
        impl From<$host> for ArgValue {
            fn from(value: $host) -> Self {
                #[allow(clippy::redundant_closure_call, reason = "one expression a type reads best as a closure")]
                let bits = ($bits)(value);
                Self::Scalar { bits, bytes: size_of::<$host>() as u8 }
            }
        }
    )*};
}

scalar_arguments! {
    bool => |v: bool| u64::from(v);
    i8 => |v: i8| u64::from(v as u8);
    u8 => |v: u8| u64::from(v);
    i16 => |v: i16| u64::from(v as u16);
    u16 => |v: u16| u64::from(v);
    i32 => |v: i32| u64::from(v as u32);
    u32 => |v: u32| u64::from(v);
    i64 => |v: i64| v as u64;
    u64 => |v: u64| v;
    half::f16 => |v: half::f16| u64::from(v.to_bits());
    half::bf16 => |v: half::bf16| u64::from(v.to_bits());
    f32 => |v: f32| u64::from(v.to_bits());
    f64 => |v: f64| v.to_bits();
}

/// One launch.
#[derive(Clone, Debug)]
pub struct Launch {
    /// Blocks in x, y and z.
    pub grid: [u32; 3],
    /// Arguments in the flattened order of the traced function.
    pub args: Vec<ArgValue>,
    /// Decides the order in which warps run.
    pub seed: u64,
    /// The checks.
    pub checks: Checks,
    /// Host threads; 0 for the current rayon pool.
    pub threads: usize,
}

impl Launch {
    /// A launch with the default checks, seed 0, on the current rayon pool.
    pub fn new(grid: [u32; 3], args: Vec<ArgValue>) -> Self {
        Self { grid, args, seed: 0, checks: Checks::default(), threads: 0 }
    }
}

/// What a launch did.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LaunchStats {
    /// Lines that the kernel printed, by block, then warp, then time, then lane.
    pub printed: Vec<String>,
    /// Lines that were dropped beyond the limit of 4096.
    pub printed_dropped: u64,
    /// Operations executed by all warps; each is done by all lanes of a warp at once.
    pub warp_ops: u64,
    /// What accesses cost, by source line, those that waste most first; empty unless
    /// [`Checks::performance`] asks for it.
    pub line_costs: Vec<LineCost>,
    /// How often branches parted the lanes of a warp, by source line, the worst first; empty unless
    /// [`Checks::performance`] asks for it.
    pub branches: Vec<BranchCost>,
    /// What source lines start beside the threads, or wait for: tensor copies, products of warpgroups; empty unless
    /// [`Checks::performance`] asks for it.
    pub work: Vec<WorkCost>,
}

/// Runs a kernel on every block of the grid.
///
/// # Errors
/// The first mistake of the lowest block that made one, or arguments that do not fit the kernel.
pub fn run(program: &Program, launch: &Launch) -> Result<LaunchStats, Box<Report>> {
    run_with(program, launch, interpreter())
}

/// [`run`], which also gives who wrote what.
///
/// # Errors
/// As [`run`].
pub(crate) fn run_recorded(program: &Program, launch: &Launch) -> Result<(LaunchStats, Writers), Box<Report>> {
    let mut writers = Writers::default();
    let stats = execute(program, launch, interpreter(), Some(&mut writers))?;
    Ok((stats, writers))
}

/// [`run`] by a given interpreter.
pub(crate) fn run_with(
    program: &Program,
    launch: &Launch,
    interpreter: Interpreter,
) -> Result<LaunchStats, Box<Report>> {
    execute(program, launch, interpreter, None)
}

fn execute(
    program: &Program,
    launch: &Launch,
    interpreter: Interpreter,
    writers: Option<&mut Writers>,
) -> Result<LaunchStats, Box<Report>> {
    let bound = Bound::new(program, launch)?;
    let blocks: u64 = launch.grid.iter().map(|&n| u64::from(n)).product();
    check_cluster(program, launch.grid)?;
    // A single block has no other to race with.
    let shadowed = launch.checks.races && (blocks > 1 || writers.is_some());
    let race_shift = shadowed.then(|| program.cell_shift(false));
    let mut locked = LockedBuffers::lock(&bound.buffers, launch.checks.initialized, race_shift, writers.is_some())
        .map_err(|message| Box::new(Report::new(ReportKind::BadLaunch, program.name(), message)))?;
    for (number, view) in locked.views.iter_mut().enumerate() {
        view.is_mixed = launch.checks.races && bound.mixed.contains(&number);
    }
    let grid = Grid {
        program,
        launch,
        interpreter,
        values: &bound.values,
        maps: &bound.maps,
        global: GlobalMemory(&locked.views),
        clusters: blocks / u64::from(program.cluster_blocks()),
        next: AtomicU64::new(0),
        failed: AtomicU64::new(u64::MAX),
        outcome: Mutex::new(Outcome::default()),
    };
    let available = if launch.threads == 1 { 1 } else { rayon::current_num_threads() };
    // Shadows of global memory belong to one worker.
    let available = if launch.checks.shadow { 1 } else { available };
    let limit = if launch.threads == 0 { available } else { launch.threads.min(available) };
    let workers = (limit as u64).min(grid.clusters);
    if workers <= 1 {
        grid.work();
    } else {
        rayon::scope(|scope| {
            for _ in 1..workers {
                scope.spawn(|_| grid.work());
            }
            grid.work();
        });
    }
    let outcome = grid.outcome.into_inner().unwrap_or_else(PoisonError::into_inner);
    if let Some(writers) = writers {
        let shadows = bound.buffers.iter().zip(locked.views.iter().skip(1));
        *writers = Writers::collect(program, launch.grid, shadows.map(|((buffer, ..), view)| (buffer, view)));
    }
    outcome.finish(program)
}

/// The arguments as the program wants them.
struct Bound {
    /// Distinct buffers, their names, and whether the kernel may write them.
    buffers: Vec<(Buffer, String, bool)>,
    /// Values of the arguments' slots, and whether they take pairs of slots.
    values: Vec<(Reg, u64, bool)>,
    /// The tensor maps, by parameter.
    maps: Vec<Option<BoundMap>>,
    /// Allocations that the kernel both loads from and stores to.
    mixed: Vec<usize>,
}

/// A grid is made of whole clusters, and a cluster has at most 16 blocks (CUDA C++ Programming Guide, "Thread
/// Block Clusters"; 8 are portable).
fn check_cluster(program: &Program, grid: [u32; 3]) -> Result<(), Box<Report>> {
    let bad = |message: String| Err(Box::new(Report::new(ReportKind::BadLaunch, program.name(), message)));
    let cluster = program.cluster;
    if cluster.contains(&0) || cluster.iter().map(|&n| u64::from(n)).product::<u64>() > 16 {
        return bad(format!("a cluster has 1 to 16 blocks, not {cluster:?}"));
    }
    if grid.iter().zip(cluster).any(|(blocks, of)| blocks % of != 0) {
        return bad(format!("the grid {grid:?} is not made of whole clusters of {cluster:?} blocks"));
    }
    let warps = program.warps() * program.cluster_blocks();
    if warps > MAX_CLUSTER_WARPS {
        return bad(format!("a cluster of {warps} warps; the emulator knows at most {MAX_CLUSTER_WARPS}"));
    }
    Ok(())
}

/// Warps of a cluster that the clocks of races have room for, beside a few mbarriers.
const MAX_CLUSTER_WARPS: u32 = 112;

/// Why a tensor map does not fit a kernel.
fn map_mismatch(map: &TensorMap, shape: &MapShape) -> Option<String> {
    let wanted = shape.box_shape.get(..shape.rank as usize).unwrap_or_default();
    if map.element_bytes != shape.element_bytes {
        return Some(format!("elements of {} bytes; the kernel's have {}", map.element_bytes, shape.element_bytes));
    }
    if map.extents.len() != wanted.len() {
        return Some(format!("{} dimensions; the kernel takes {}", map.extents.len(), wanted.len()));
    }
    if map.box_shape != wanted {
        return Some(format!("boxes of {:?}; the kernel copies boxes of {wanted:?}", map.box_shape));
    }
    if map.swizzle != shape.swizzle {
        return Some(format!("a swizzle of {} bytes; the kernel's tiles have {}", map.swizzle, shape.swizzle));
    }
    (!map.is_sound()).then(|| "an element outside its buffer".to_owned())
}

impl Bound {
    fn new(program: &Program, launch: &Launch) -> Result<Self, Box<Report>> {
        let bad = |message: String| Box::new(Report::new(ReportKind::BadLaunch, program.name(), message));
        let (given, expected) = (launch.args.len(), program.parameters.len());
        if given != expected {
            return Err(bad(format!("the kernel takes {expected} flattened arguments; {given} are given")));
        }
        let (buffers, values, mixed) = (Vec::new(), Vec::new(), Vec::new());
        let mut bound = Self { buffers, values, maps: vec![None; expected], mixed };
        for (index, (parameter, argument)) in program.parameters.iter().zip(&launch.args).enumerate() {
            let name = &parameter.name;
            let (bits, slots) = match (parameter.kind, argument) {
                (ParameterKind::Pointer { writable }, ArgValue::Buffer { buffer, byte_offset }) => {
                    if *byte_offset > buffer.len() as u64 {
                        return Err(bad(format!("argument `{name}` points outside its buffer")));
                    }
                    let allocation = bound.allocation(buffer, name, writable);
                    if program.is_mixed(index) {
                        bound.mixed.push(allocation);
                    }
                    (GlobalMemory::address(allocation, *byte_offset), 2)
                }
                (ParameterKind::Map { shape, writable }, ArgValue::Map(map)) => {
                    // A kernel that never uses the map wants no box.
                    let used = shape.box_shape.first().is_some_and(|&elements| elements > 0);
                    if let Some(mismatch) = map_mismatch(map, &shape).filter(|_| used) {
                        return Err(bad(format!("the tensor map `{name}` has {mismatch}")));
                    }
                    let allocation = bound.allocation(&map.buffer, name, writable);
                    let address = GlobalMemory::address(allocation, map.byte_offset);
                    let bound_map = BoundMap { address, map: TensorMap::clone(map) };
                    if let Some(slot) = bound.maps.get_mut(index) {
                        *slot = used.then_some(bound_map);
                    }
                    continue;
                }
                (ParameterKind::Map { .. }, _) => {
                    return Err(bad(format!("argument `{name}` is no tensor map; the kernel takes one")));
                }
                (_, ArgValue::Map(_)) => {
                    return Err(bad(format!("argument `{name}` is a tensor map; the kernel takes none")));
                }
                (ParameterKind::Scalar { bytes: wanted }, ArgValue::Scalar { bits, bytes }) if wanted == *bytes => {
                    (*bits, if wanted == 8 { 2 } else { 1 })
                }
                (ParameterKind::Scalar { bytes: wanted }, ArgValue::Scalar { bytes, .. }) => {
                    return Err(bad(format!("argument `{name}` has {bytes} bytes; the kernel takes {wanted}")));
                }
                (ParameterKind::Pointer { .. }, ArgValue::Scalar { .. }) => {
                    return Err(bad(format!("argument `{name}` is a scalar; the kernel takes a buffer")));
                }
                (ParameterKind::Scalar { .. }, ArgValue::Buffer { .. }) => {
                    return Err(bad(format!("argument `{name}` is a buffer; the kernel takes a scalar")));
                }
            };
            for half in 0..program.halves() {
                bound.values.push((parameter.slot + half * slots, bits, slots == 2));
            }
        }
        Ok(bound)
    }

    /// The number of a buffer's allocation; one buffer under two names is one allocation.
    fn allocation(&mut self, buffer: &Buffer, name: &str, writable: bool) -> usize {
        let known = self.buffers.iter_mut().enumerate().find(|(_, (other, ..))| other.same(buffer));
        if let Some((index, (_, names, may_write))) = known {
            *may_write |= writable;
            *names += "/";
            *names += name;
            return index + 1;
        }
        self.buffers.push((buffer.clone(), name.to_owned(), writable));
        self.buffers.len()
    }
}

/// A launch while its workers take blocks from it.
struct Grid<'a> {
    program: &'a Program,
    launch: &'a Launch,
    interpreter: Interpreter,
    values: &'a [(Reg, u64, bool)],
    maps: &'a [Option<BoundMap>],
    global: GlobalMemory<'a>,
    /// Clusters of the grid: its blocks, for most kernels.
    clusters: u64,
    next: AtomicU64,
    /// The lowest cluster that failed so far.
    failed: AtomicU64,
    outcome: Mutex<Outcome>,
}

/// What the blocks have done.
#[derive(Default)]
struct Outcome {
    warp_ops: u64,
    traffic: Traffic,
    /// Lines by cluster.
    printed: BTreeMap<u64, Vec<String>>,
    dropped: u64,
    failure: Option<(u64, Box<Report>)>,
}

impl Outcome {
    fn finish(self, program: &Program) -> Result<LaunchStats, Box<Report>> {
        if let Some((_, report)) = self.failure {
            return Err(report);
        }
        let mut printed: Vec<String> = self.printed.into_values().flatten().collect();
        let excess = printed.len().saturating_sub(LINE_LIMIT);
        printed.truncate(LINE_LIMIT);
        let line_costs = self.traffic.lines(program);
        let printed_dropped = self.dropped + excess as u64;
        let branches = self.traffic.branches(program);
        let work = self.traffic.work(program);
        Ok(LaunchStats { printed, printed_dropped, warp_ops: self.warp_ops, line_costs, branches, work })
    }
}

impl Grid<'_> {
    /// Runs clusters until there are none, on scratch memory of its own.
    fn work(&self) {
        let (program, checks) = (self.program, &self.launch.checks);
        let (bytes, blocks) = (program.shared_bytes as usize, program.cluster_blocks());
        let mut shared: Vec<SharedMemory> = (0..blocks).map(|_| SharedMemory::new(bytes, checks.initialized)).collect();
        let mut warps: Vec<Warp> =
            (0..blocks).flat_map(|_| 0..program.warps()).map(|index| Warp::new(program, index)).collect();
        for warp in &mut warps {
            self.set_arguments(warp);
            if checks.shadow {
                warp.follower = Some(Box::new(Follower::new(program, warp.index)));
            }
        }
        let exact = ExactMemory::default();
        let races = checks.races.then(|| {
            RefCell::new(SharedRaces::new(&ShadowShape {
                bytes,
                shift: program.cell_shift(true),
                warps: program.warps() as usize,
                threads: program.block_threads(),
                width: program.target.warp_size(),
                blocks: blocks as usize,
                lockstep: program.target.is_amd(),
                has_atomics: program.has_shared_atomics(),
                has_matrices: !program.matrix_loads.is_empty(),
                asynchronous: program.has_async,
                reaches_peers: program.reaches_peers(),
            }))
        });
        let mixed = races.is_some() && self.global.0.iter().any(|view| view.is_mixed);
        let threads = mixed.then(|| RefCell::new(ThreadRaces::new(program.cell_shift(false))));
        let mut warp_ops = 0;
        loop {
            // Clusters are taken in order: once one has failed, all lower ones are under way.
            let cluster = self.next.fetch_add(1, Ordering::Relaxed);
            if cluster >= self.clusters || cluster > self.failed.load(Ordering::Relaxed) {
                break;
            }
            if !checks.shadow {
                warps.iter_mut().for_each(|warp| warp.follower = None);
            }
            exact.next_cluster();
            self.run_cluster(cluster, &mut shared, &mut warps, (races.as_ref(), threads.as_ref(), &exact));
            warp_ops += warps.iter().map(|warp| warp.executed).sum::<u64>();
        }
        let mut outcome = self.outcome.lock().unwrap_or_else(PoisonError::into_inner);
        outcome.warp_ops += warp_ops;
        warps.iter_mut().for_each(|warp| outcome.traffic.merge(&mut warp.traffic));
    }

    /// Values that are the same in every block.
    fn set_arguments(&self, warp: &mut Warp) {
        let program = self.program;
        for &(slot, bits, wide) in self.values {
            warp.splat(slot, bits, wide);
        }
        let width = program.target.warp_size();
        for &(builtin, slot) in &program.builtins {
            for half in 0..program.halves() {
                let lanes = std::array::from_fn(|lane| {
                    let lane = 32 * half + lane as u32;
                    let [x, y, z] = unflatten(u64::from(warp.index * width + lane), program.block);
                    match builtin {
                        Builtin::ThreadId(0) => x,
                        Builtin::ThreadId(1) => y,
                        Builtin::ThreadId(_) => z,
                        Builtin::GridDim(axis) => self.launch.grid.get(usize::from(axis)).copied().unwrap_or(1),
                        Builtin::LaneId => lane,
                        Builtin::BlockId(_) | Builtin::ClusterRank => 0,
                    }
                });
                if let Some(slot) = warp.slots.get_mut((slot + half) as usize) {
                    *slot = Slot(lanes);
                }
            }
        }
    }

    /// The block of a cluster by its rank, and its number in the grid.
    fn block_of(&self, cluster: u64, rank: u32) -> ([u32; 3], u64) {
        let (grid, of) = (self.launch.grid, self.program.cluster);
        let clusters = std::array::from_fn(|axis| grid.get(axis).zip(of.get(axis)).map_or(1, |(n, of)| n / of.max(&1)));
        let (first, within) = (unflatten(cluster, clusters), unflatten(u64::from(rank), of));
        let [x, y, z]: [u32; 3] = std::array::from_fn(|axis| {
            let at = |of_axis: &[u32; 3]| of_axis.get(axis).copied().unwrap_or(0);
            at(&first) * at(&of) + at(&within)
        });
        let [nx, ny, _] = grid.map(u64::from);
        ([x, y, z], (u64::from(z) * ny + u64::from(y)) * nx + u64::from(x))
    }

    fn run_cluster(
        &self,
        cluster: u64,
        shared: &mut [SharedMemory],
        warps: &mut [Warp],
        (races, threads, exact): (Option<&RefCell<SharedRaces>>, Option<&RefCell<ThreadRaces>>, &ExactMemory),
    ) {
        let program = self.program;
        let blocks: Vec<([u32; 3], u64)> = (0..shared.len() as u32).map(|rank| self.block_of(cluster, rank)).collect();
        shared.iter_mut().for_each(SharedMemory::reset);
        let warps_of_block = (program.warps() as usize).max(1);
        for ((rank, warps), (block, _)) in warps.chunks_mut(warps_of_block).enumerate().zip(&blocks) {
            for warp in warps {
                warp.reset();
                for &(builtin, slot) in &program.builtins {
                    let value = match builtin {
                        Builtin::BlockId(axis) => block.get(usize::from(axis)).copied().unwrap_or(0),
                        Builtin::ClusterRank => rank as u32,
                        _ => continue,
                    };
                    (0..program.halves()).for_each(|half| warp.splat(slot + half, value.into(), false));
                }
            }
        }
        if let Some(races) = races {
            let mut races = races.borrow_mut();
            races.enter(0);
            races.start_block();
        }
        if let Some(threads) = threads {
            threads.borrow_mut().start_block();
        }
        let shared = &*shared;
        let state =
            program.has_async.then(|| RefCell::new(AsyncState::new(program, self.global, shared, self.maps, races)));
        let memories: Vec<BlockMemory<'_>> = shared
            .iter()
            .zip(&blocks)
            .enumerate()
            .map(|(rank, (shared, &(_, linear)))| BlockMemory {
                global: self.global,
                shared,
                checks: self.launch.checks,
                races,
                threads,
                time: time_of_block(linear),
                synchronised: Cell::new(false),
                rank: rank as u32,
                maps: self.maps,
                exact,
                asynchronous: state.as_ref(),
            })
            .collect();
        let mut random = SplitMix(self.launch.seed ^ cluster.wrapping_mul(0x9e37_79b9_7f4a_7c15));
        if self.launch.seed != 0 {
            // A sequence of its own: the order of warps stays that of the seed.
            let mut pace = SplitMix(!self.launch.seed ^ cluster);
            if let Some(state) = &state {
                state.borrow_mut().set_pace(SplitMix(pace.0 ^ u64::from(u32::MAX)).next() | 1);
            }
            warps.iter_mut().for_each(|warp| warp.copies.set_pace(pace.next() | 1));
        }
        let result = run_cluster(program, self.interpreter, warps, &memories, &mut random);

        let lines: Vec<String> = warps.iter_mut().flat_map(|warp| warp.printed.drain(..)).collect();
        let dropped: u64 = warps.iter().map(|warp| warp.printed_dropped).sum();
        if lines.is_empty() && dropped == 0 && result.is_ok() {
            return;
        }
        let mut outcome = self.outcome.lock().unwrap_or_else(PoisonError::into_inner);
        outcome.dropped += dropped;
        outcome.printed.insert(cluster, lines);
        if let Err(failed) = result {
            self.failed.fetch_min(cluster, Ordering::Relaxed);
            if outcome.failure.as_ref().is_none_or(|(other, _)| cluster < *other) {
                let rank = failed.rank as usize;
                let warps = warps.chunks(warps_of_block).nth(rank).unwrap_or_default();
                let block = blocks.get(rank).map_or([0; 3], |(block, _)| *block);
                let scene = Scene { program, global: self.global, warps, block, grid: self.launch.grid };
                outcome.failure = Some((cluster, Box::new(scene.report(&failed.failure))));
            }
        }
    }
}

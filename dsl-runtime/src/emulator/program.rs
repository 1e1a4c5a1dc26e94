//! A decoded kernel.

use lacewing_core::{Error, ScalarType, SourceLocation, Target, Traced};

use super::asynchronous::op::{AsyncOp, OperandA, PeerOp, SharedOperand, TensorCopyOp};
use super::asynchronous::tcgen05::TensorOp;
use super::decode;
use super::exec::atom::AtomOp;
use super::exec::matrix::slots_of_mma;
use super::exec::matrix_store::MatrixStoreOp;
use super::exec::progress::Watch;
use super::lanes::{LANES, MaskReg, Reg};
use super::op::{Access, AtomicOp, CopyOp, MatrixLoadOp, MfmaOp, MmaOp, Op, Pc, PrintOp, PrintType};

/// A place in the source with the calls that led there.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub(crate) struct Place {
    pub(crate) location: Option<SourceLocation>,
    pub(crate) call_chain: Vec<SourceLocation>,
}

/// A value that differs from thread to thread, block to block or launch to launch.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Builtin {
    ThreadId(u8),
    BlockId(u8),
    GridDim(u8),
    LaneId,
    ClusterRank,
}

/// One flattened kernel argument.
#[derive(Clone, Debug)]
pub(crate) struct Parameter {
    /// For messages: the tensor's name for its extents and strides too.
    pub(crate) name: String,
    pub(crate) kind: ParameterKind,
    /// First slot, in each half of the wave; the mask for conditions never occurs (they are bytes).
    pub(crate) slot: Reg,
}

/// An index of a tensor along one dimension.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Dimension {
    /// The parameter that the tensor's address is.
    pub(crate) parameter: u32,
    pub(crate) dim: u32,
    pub(crate) rank: u32,
    /// Lanes whose index is outside.
    pub(crate) mask: MaskReg,
    /// The index and the extent, in each half of a wave.
    pub(crate) index: [Reg; 2],
    pub(crate) extent: [Reg; 2],
}

/// The largest number of a [`Dimension`]: marks of addresses have 12 bits for it.
pub(crate) const LARGEST_DIMENSION: u32 = (1 << 12) - 1;

/// What an argument must be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ParameterKind {
    Pointer {
        writable: bool,
    },
    Scalar {
        bytes: u8,
    },
    /// A tensor map; its slots hold nothing.
    Map {
        shape: MapShape,
        writable: bool,
    },
}

/// What a kernel wants of a tensor map.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct MapShape {
    pub(crate) element_bytes: u32,
    pub(crate) rank: u32,
    /// Innermost first.
    pub(crate) box_shape: [u32; 5],
    pub(crate) swizzle: u32,
}

/// A line that accesses global memory through a parameter's pointer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Use {
    pub(crate) parameter: u32,
    /// Index into the program's places.
    pub(crate) place: u32,
    pub(crate) is_write: bool,
}

/// A member of shared memory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Member {
    pub(crate) name: String,
    pub(crate) low: u32,
    pub(crate) high: u32,
}

/// A kernel as the emulator runs it: bytecode, locations, constants. Decode once, run often.
#[derive(Debug)]
pub struct Program {
    pub(crate) name: String,
    pub(crate) target: Target,
    pub(crate) block: [u32; 3],
    /// Blocks of a cluster.
    pub(crate) cluster: [u32; 3],
    pub(crate) min_blocks: Option<u32>,
    pub(crate) max_regs: Option<u32>,
    pub(crate) shared_bytes: u32,
    pub(crate) parameters: Vec<Parameter>,
    /// Where global memory is accessed through which parameter, as far as pointers say so.
    pub(crate) uses: Vec<Use>,
    pub(crate) ops: Vec<Op>,
    /// Index into `places` for each op.
    pub(crate) locations: Vec<u32>,
    pub(crate) places: Vec<Place>,
    /// Half of the wave that each elementwise op computes.
    pub(crate) op_halves: Vec<u8>,
    /// Whether the kernel has fences.
    pub(crate) has_fence: bool,
    pub(crate) slot_count: u32,
    pub(crate) mask_count: u32,
    /// Nesting of regions.
    pub(crate) frame_depth: u32,
    /// Slots that hold one number in every lane, and whether it takes a pair of slots.
    pub(crate) constants: Vec<(Reg, u64, bool)>,
    pub(crate) mask_constants: Vec<(MaskReg, bool)>,
    /// First slots of built-in values.
    pub(crate) builtins: Vec<(Builtin, Reg)>,
    /// The first is the block's whole shared memory.
    pub(crate) members: Vec<Member>,
    pub(crate) accesses: Vec<Access>,
    pub(crate) atomics: Vec<AtomicOp>,
    pub(crate) copies: Vec<CopyOp>,
    pub(crate) matrix_loads: Vec<MatrixLoadOp>,
    pub(crate) matrix_stores: Vec<MatrixStoreOp>,
    pub(crate) products: Vec<MmaOp>,
    pub(crate) wave_products: Vec<MfmaOp>,
    pub(crate) atoms: Vec<AtomOp>,
    pub(crate) prints: Vec<PrintOp>,
    pub(crate) messages: Vec<PrintOp>,
    /// What decides about the rounds of a `while`.
    pub(crate) watches: Vec<Watch>,
    /// Indices that are compared with extents.
    pub(crate) dimensions: Vec<Dimension>,
    pub(crate) asynchronous: Vec<AsyncOp>,
    /// Whether warps share mbarriers, bulk copies, registers or the barrier of a cluster.
    pub(crate) has_async: bool,
    /// Registers of accumulators that live across each wait, by operation in ascending order.
    pub(crate) held: Vec<(Pc, u32)>,
}

impl Program {
    /// Decodes a traced kernel.
    ///
    /// # Errors
    /// At the first op that the emulator does not know, with its location.
    pub fn decode(traced: &Traced) -> Result<Self, Error> {
        decode::decode(traced)
    }

    /// The kernel's name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Where the kernel is defined, as far as the trace says.
    pub fn location(&self) -> Option<&SourceLocation> {
        // Decoding starts with the function itself.
        self.places.first().and_then(|place| place.location.as_ref())
    }

    /// The chip that the kernel was traced for.
    pub fn target(&self) -> Target {
        self.target
    }

    /// Threads of a block in x, y and z.
    pub fn block(&self) -> [u32; 3] {
        self.block
    }

    /// Number of flattened arguments that a launch must give.
    pub fn argument_count(&self) -> usize {
        self.parameters.len()
    }

    /// Where the parameter of a name is read, or written: location and call sites, in the order of the code.
    pub(crate) fn uses_of<'a>(&'a self, name: &'a str, is_write: bool) -> impl Iterator<Item = &'a Place> + 'a {
        let parameter = self.parameters.iter().position(|parameter| parameter.name == name);
        let matching = move |found: &&Use| Some(found.parameter as usize) == parameter && found.is_write == is_write;
        self.uses.iter().filter(matching).filter_map(|found| self.places.get(found.place as usize))
    }

    pub(crate) fn block_threads(&self) -> u32 {
        self.block.iter().product()
    }

    pub(crate) fn warps(&self) -> u32 {
        self.block_threads().div_ceil(self.target.warp_size())
    }

    /// Blocks of a cluster.
    pub(crate) fn cluster_blocks(&self) -> u32 {
        self.cluster.iter().product::<u32>().max(1)
    }

    /// Halves of 32 lanes in a warp.
    pub(crate) fn halves(&self) -> u32 {
        self.target.warp_size() / 32
    }

    /// Logarithm of the size of race cells: that of the smallest access, up to four bytes.
    pub(crate) fn cell_shift(&self, of_shared: bool) -> u32 {
        let accesses = self.ops.iter().filter_map(|op| match *op {
            Op::LoadShared { access, .. } | Op::StoreShared { access, .. } if of_shared => Some(access),
            Op::LoadGlobal { access, .. } | Op::StoreGlobal { access, .. } if !of_shared => Some(access),
            Op::Atomic { table } => {
                self.atomics.get(table as usize).filter(|op| op.shared == of_shared).map(|op| op.access)
            }
            Op::Async { table } if of_shared => match self.asynchronous.get(table as usize) {
                Some(AsyncOp::Peer(op)) => Some(op.access()),
                _ => None,
            },
            _ => None,
        });
        let sizes = accesses.filter_map(|access| self.accesses.get(access as usize));
        let smallest = sizes.map(|access| (access.bytes | access.align).trailing_zeros()).min();
        smallest.unwrap_or(2).min(2)
    }

    /// Accesses to the shared memory of other blocks of the cluster.
    fn peers(&self) -> impl Iterator<Item = &PeerOp> {
        self.asynchronous.iter().filter_map(|op| if let AsyncOp::Peer(op) = op { Some(op) } else { None })
    }

    /// Whether threads access the shared memory of other blocks of the cluster.
    pub(crate) fn reaches_peers(&self) -> bool {
        self.peers().next().is_some()
    }

    /// Whether there are read-modify-writes of shared memory.
    pub(crate) fn has_shared_atomics(&self) -> bool {
        self.atomics.iter().any(|op| op.shared) || self.peers().any(|op| matches!(op, PeerOp::Atomic(_)))
    }

    /// Whether the kernel both loads from a tensor and stores to it.
    pub(crate) fn is_mixed(&self, parameter: usize) -> bool {
        let uses = || self.uses.iter().filter(|found| found.parameter as usize == parameter);
        uses().any(|found| found.is_write) && uses().any(|found| !found.is_write)
    }

    /// Half of the wave that an elementwise op computes.
    pub(crate) fn half(&self, pc: Pc) -> u8 {
        self.op_halves.get(pc as usize).copied().unwrap_or_default()
    }

    pub(crate) fn place(&self, pc: Pc) -> Place {
        let index = self.locations.get(pc as usize).copied().unwrap_or_default();
        self.places.get(index as usize).cloned().unwrap_or_default()
    }
}

macro_rules! tables {
    ($($(#[$doc:meta])* $method:ident: $field:ident -> $ty:ty;)*) => {
        impl Program {$(
            $(#[$doc])*
            #[inline(always)]
            pub(crate) fn $method(&self, index: u32) -> &$ty {
                debug_assert!((index as usize) < self.$field.len());
                // SAFETY: `verify` has checked the indices of all ops.
                unsafe { self.$field.get_unchecked(index as usize) }
            }
        )*}
    };
}

tables! {
    access: accesses -> Access;
    atomic: atomics -> AtomicOp;
    copy: copies -> CopyOp;
    matrix_load: matrix_loads -> MatrixLoadOp;
    matrix_store: matrix_stores -> MatrixStoreOp;
    mma: products -> MmaOp;
    mfma: wave_products -> MfmaOp;
    atom: atoms -> AtomOp;
}

/// Checks one op's operands against the program's sizes.
struct Verifier<'a> {
    program: &'a Program,
    sound: bool,
}

impl Verifier<'_> {
    fn require(&mut self, holds: bool) {
        self.sound &= holds;
    }

    fn slots(&mut self, first: Reg, count: u32) {
        let end = u64::from(first) + u64::from(count);
        self.require(end <= u64::from(self.program.slot_count));
    }

    fn masks(&mut self, masks: &[MaskReg]) {
        for &mask in masks {
            self.require(mask < self.program.mask_count);
        }
    }

    fn target(&mut self, pc: Pc) {
        self.require((pc as usize) < self.program.ops.len());
    }

    fn access(&mut self, index: u32) -> Option<Access> {
        let access = self.program.accesses.get(index as usize).copied();
        self.require(access.is_some_and(|access| {
            access.high <= self.program.shared_bytes
                && access.align.is_power_of_two()
                && matches!(access.unit, 1 | 2 | 4 | 8)
                && access.half < 2
        }));
        access
    }

    fn print(&mut self, op: Option<&PrintOp>) {
        self.require(op.is_some());
        let high = self.program.halves() - 1;
        for arg in op.into_iter().flat_map(|op| &op.args) {
            match arg.ty {
                PrintType::Bool => self.masks(&[arg.reg]),
                PrintType::Signed(64) | PrintType::F64 => {
                    self.slots(arg.reg, 2);
                    self.slots(arg.reg.saturating_add(arg.half_stride * high), 2);
                }
                _ => {
                    self.slots(arg.reg, 1);
                    self.slots(arg.reg.saturating_add(arg.half_stride * high), 1);
                }
            }
        }
    }

    fn value_access(&mut self, value: Reg, address: Reg, address_slots: u32, access: u32) {
        self.slots(address, address_slots);
        if let Some(access) = self.access(access) {
            self.slots(value, access.slots());
        }
    }
}

impl Program {
    /// Checks every slot, mask, table index and jump, so that the interpreter need not.
    pub(crate) fn verify(&self) -> bool {
        let mut verifier = Verifier { program: self, sound: true };
        verifier.require(matches!(self.ops.last(), Some(Op::End)));
        verifier.require(self.locations.len() == self.ops.len());
        for op in &self.ops {
            self.verify_op(op, &mut verifier);
        }
        let halves = self.halves();
        for parameter in &self.parameters {
            let slots = match parameter.kind {
                ParameterKind::Pointer { .. } | ParameterKind::Scalar { bytes: 8 } => 2,
                ParameterKind::Map { .. } => 0,
                ParameterKind::Scalar { .. } => 1,
            };
            verifier.slots(parameter.slot, slots * halves);
        }
        for &(_, slot) in &self.builtins {
            verifier.slots(slot, halves);
        }
        verifier.sound
    }

    fn verify_op(&self, op: &Op, v: &mut Verifier<'_>) {
        let wave_halves = |wave: bool| 1 + u32::from(wave);
        match *op {
            Op::Unary { op, d, a } => {
                let (result, operand) = op.slots();
                v.slots(d, result);
                v.slots(a, operand);
            }
            Op::Binary { op, d, a, b } | Op::Index { op, d, a, b, .. } => {
                [d, a, b].into_iter().for_each(|r| v.slots(r, op.slots()));
            }
            Op::AddF32 { d, a, b } | Op::SubF32 { d, a, b } | Op::MulF32 { d, a, b } => {
                [d, a, b].into_iter().for_each(|r| v.slots(r, 1));
            }
            Op::FmaF32 { d, a, b, c } | Op::FmaOdd { d, a, b, c } => {
                [d, a, b, c].into_iter().for_each(|r| v.slots(r, 1));
            }
            Op::FmaF64 { d, a, b, c } => [d, a, b, c].into_iter().for_each(|r| v.slots(r, 2)),
            Op::Divide { op, half, d, a, b } => {
                v.require(half < 2);
                [d, a, b].into_iter().for_each(|r| v.slots(r, op.slots()));
            }
            Op::Compare { op, half, d, a, b, .. } => {
                v.require(half < 2);
                v.masks(&[d]);
                [a, b].into_iter().for_each(|r| v.slots(r, op.slots()));
            }
            Op::Select32 { half, d, mask, a, b } => {
                v.require(half < 2);
                v.masks(&[mask]);
                [d, a, b].into_iter().for_each(|r| v.slots(r, 1));
            }
            Op::Select64 { half, d, mask, a, b } => {
                v.require(half < 2);
                v.masks(&[mask]);
                [d, a, b].into_iter().for_each(|r| v.slots(r, 2));
            }
            Op::F16LowToF32 { d, a } | Op::F16HighToF32 { d, a } => [d, a].into_iter().for_each(|r| v.slots(r, 1)),
            Op::PackF16 { d, low, high } => [d, low, high].into_iter().for_each(|r| v.slots(r, 1)),
            Op::JoinWords { d, a } | Op::SplitWords { d, a } => [d, a].into_iter().for_each(|r| v.slots(r, 2)),
            Op::Address64 { d, base, index, .. } => [d, base, index].into_iter().for_each(|r| v.slots(r, 2)),
            Op::Beyond { table, half } => match self.dimensions.get(table as usize) {
                Some(dimension) => {
                    v.require(half < 2);
                    v.masks(&[dimension.mask]);
                    dimension.index.into_iter().for_each(|r| v.slots(r, 2));
                    dimension.extent.into_iter().for_each(|r| v.slots(r, 1));
                }
                None => v.require(false),
            },
            Op::MarkBeyond { d, table, half } => {
                v.require(half < 2 && (table as usize) < self.dimensions.len());
                v.slots(d, 2);
            }
            Op::Unmark { d } => v.slots(d, 2),
            Op::Address32 { d, base, index, .. } => [d, base, index].into_iter().for_each(|r| v.slots(r, 1)),
            Op::Move { d, a, count } | Op::MoveMasked { d, a, count, .. } => {
                [d, a].into_iter().for_each(|r| v.slots(r, count));
            }
            Op::MoveMasked64 { d, a, count, .. } => {
                [d, a].into_iter().for_each(|r| v.slots(r, count.saturating_mul(2)));
            }
            Op::MaskMove { d, a } | Op::MaskMoveMasked { d, a } | Op::MaskNot { d, a } => v.masks(&[d, a]),
            Op::MaskAnd { d, a, b } | Op::MaskOr { d, a, b } | Op::MaskXor { d, a, b } => v.masks(&[d, a, b]),
            Op::MaskSelect { d, mask, a, b } => v.masks(&[d, mask, a, b]),
            Op::LoadGlobal { d: value, address, mask, access } | Op::StoreGlobal { value, address, mask, access } => {
                v.masks(&[mask]);
                v.value_access(value, address, 2, access);
            }
            Op::LoadShared { d: value, address, mask, access } | Op::StoreShared { value, address, mask, access } => {
                v.masks(&[mask]);
                v.value_access(value, address, 1, access);
            }
            Op::BufferMask { d, mask, offset, bytes, access, .. } => {
                v.masks(&[d, mask]);
                v.slots(offset, 1);
                v.slots(bytes, 2);
                v.access(access);
            }
            Op::Atomic { table } => match self.atomics.get(table as usize) {
                Some(op) => {
                    v.value_access(op.d, op.address, if op.shared { 1 } else { 2 }, op.access);
                    v.value_access(op.value, op.address, 1, op.access);
                    v.value_access(op.expected, op.address, 1, op.access);
                    // A read-modify-write replaces one aligned element.
                    let natural = v.access(op.access).is_some_and(|a| a.align == a.bytes && a.bytes <= 8);
                    v.require(natural);
                }
                None => v.require(false),
            },
            Op::CopyAsync { table } => match self.copies.get(table as usize) {
                Some(op) => {
                    v.slots(op.destination, 1);
                    v.slots(op.source, 2);
                    v.masks(&[op.valid]);
                    op.lds.iter().for_each(|lds| v.slots(lds.first, 1));
                    for access in [op.to, op.from] {
                        let natural = v.access(access).is_some_and(|a| a.align == a.bytes && a.bytes >= 4);
                        v.require(natural);
                    }
                }
                None => v.require(false),
            },
            Op::LoadMatrix { table } => match self.matrix_loads.get(table as usize) {
                Some(op) => {
                    v.slots(op.address, 1);
                    op.d.iter().take(usize::from(op.count)).for_each(|&r| v.slots(r, 1));
                    let natural = v.access(op.access).is_some_and(|a| a.align == 16 && a.bytes == 16);
                    v.require(natural && op.count <= 4);
                }
                None => v.require(false),
            },
            Op::StoreMatrix { table } => match self.matrix_stores.get(table as usize) {
                Some(op) => {
                    v.slots(op.address, 1);
                    let spots = op.rows.iter().flat_map(|row| row.halves);
                    spots.for_each(|spot| v.slots(spot.slot, 1));
                    op.values.iter().for_each(|&r| v.slots(r, 1));
                    let natural = v.access(op.access).is_some_and(|a| a.align == 16 && a.bytes == 16);
                    let value = v.access(op.value).is_some_and(|a| a.bytes == 4);
                    v.require(natural && value && op.rows.iter().all(|row| usize::from(row.lane) < LANES));
                }
                None => v.require(false),
            },
            Op::Mma { table } => match self.products.get(table as usize) {
                Some(op) => slots_of_mma(op).for_each(|r| v.slots(r, 1)),
                None => v.require(false),
            },
            Op::Mfma { table } => match self.wave_products.get(table as usize) {
                Some(op) => {
                    [op.a, op.b].into_iter().for_each(|r| v.slots(r, 4));
                    op.c.into_iter().chain(op.d).for_each(|r| v.slots(r, 2));
                }
                None => v.require(false),
            },
            Op::Atom { table } => match self.atoms.get(table as usize) {
                Some(op) => {
                    let wide = |element: ScalarType| if element.bytes() == 8 { 2 } else { 1 };
                    let [a, b, c] = [op.spec.a, op.spec.b, op.spec.c].map(|operand| wide(operand.element));
                    for (spots, slots) in [(&op.a, a), (&op.b, b), (&op.c, c), (&op.d, c)] {
                        spots.iter().for_each(|spot| v.slots(spot.slot, slots));
                    }
                }
                None => v.require(false),
            },
            Op::ShuffleXor { d, a, .. } => [d, a].into_iter().for_each(|r| v.slots(r, 1)),
            Op::Shuffle { wave, d, a, index, .. } => {
                [d, a, index].into_iter().for_each(|r| v.slots(r, wave_halves(wave)));
            }
            Op::Ballot { wave, d, mask } => {
                v.slots(d, 2 * wave_halves(wave));
                v.masks(&[mask]);
            }
            Op::Elect { d } => v.masks(&[d]),
            Op::Assert { mask, message } => {
                v.masks(&[mask]);
                v.print(self.messages.get(message as usize));
            }
            Op::Print { table } => v.print(self.prints.get(table as usize)),
            Op::If { cond, otherwise: pc } | Op::WhileTest { cond, end: pc } => {
                v.masks(&[cond]);
                v.target(pc);
            }
            Op::Else { end: pc } => v.target(pc),
            Op::Repeat { body: pc, watch } => {
                v.target(pc);
                for &(first, stride, wide) in self.watches.get(watch as usize).into_iter().flat_map(|w| &w.numbers) {
                    let slots = if wide { 2 } else { 1 };
                    v.slots(first, slots);
                    v.slots(first.saturating_add(stride * (self.halves() - 1)), slots);
                }
                self.watches.get(watch as usize).into_iter().for_each(|watch| v.masks(&watch.masks));
            }
            Op::For { kind, wave, iv, low, high, step, end } => {
                [iv, low, high, step].into_iter().for_each(|r| v.slots(r, kind.slots() * wave_halves(wave)));
                v.target(end);
            }
            Op::Next { kind, wave, iv, high, step, body } => {
                [iv, high, step].into_iter().for_each(|r| v.slots(r, kind.slots() * wave_halves(wave)));
                v.target(body);
            }
            Op::Async { table } => match self.asynchronous.get(table as usize) {
                Some(op) => self.verify_async(op, v),
                None => v.require(false),
            },
            Op::CopyCommit
            | Op::CopyWait { .. }
            | Op::WarpSync
            | Op::EndIf
            | Op::While
            | Op::Barrier
            | Op::NamedSync { .. }
            | Op::NamedArrive { .. }
            | Op::End => {}
        }
    }
    fn verify_async(&self, op: &AsyncOp, v: &mut Verifier<'_>) {
        let slot = |v: &mut Verifier<'_>, reg: Reg| v.slots(reg, 1);
        let copy = |v: &mut Verifier<'_>, op: &TensorCopyOp| {
            let is_map = matches!(
                self.parameters.get(op.map as usize).map(|parameter| parameter.kind),
                Some(ParameterKind::Map { .. })
            );
            v.require(is_map);
            [op.address, op.barrier].into_iter().chain(op.coordinates).for_each(|reg| v.slots(reg, 1));
            // A swizzle stays inside 128 bytes.
            let aligned = v.access(op.access).is_some_and(|access| access.align >= 128);
            v.require(aligned);
            v.access(op.barrier_access);
        };
        let tile = |v: &mut Verifier<'_>, operand: &SharedOperand| {
            slot(v, operand.address);
            let aligned = v.access(operand.access).is_some_and(|access| access.align >= operand.layout.alignment());
            let inside = |&(at, len): &(u32, u32)| at + len <= operand.span;
            v.require(aligned && operand.ranges.iter().flatten().all(inside));
        };
        match op {
            AsyncOp::BarrierInit { address, access, .. } | AsyncOp::BarrierArrive { address, access, .. } => {
                slot(v, *address);
                v.access(*access);
            }
            AsyncOp::BarrierArrivePeer { address, rank: other, access }
            | AsyncOp::BarrierWait { address, parity: other, access } => {
                slot(v, *address);
                slot(v, *other);
                v.access(*access);
            }
            AsyncOp::TensorLoad(op) | AsyncOp::TensorStore(op) => copy(v, op),
            AsyncOp::Wgmma(op) => {
                match &op.a {
                    OperandA::Registers(registers) => {
                        registers.iter().for_each(|&reg| slot(v, reg));
                        v.require(registers.len() == op.k / op.spec.shape[2] * op.spec.a.registers());
                    }
                    OperandA::Shared(operand) => tile(v, operand),
                }
                tile(v, &op.b);
                op.c.iter().chain(&op.d).for_each(|&reg| slot(v, reg));
                v.require(op.d.len() == op.n / 2 && (op.c.is_empty() || op.c.len() == op.n / 2));
                v.require(op.n == op.spec.shape[1] && op.k.is_multiple_of(op.spec.shape[2]) && op.k > 0);
            }
            AsyncOp::WgmmaWait { values, results, .. } => {
                values.iter().chain(results).for_each(|&reg| slot(v, reg));
                v.require(values.len() == results.len());
            }
            AsyncOp::Uniform { d, a, .. } => d.iter().chain(a).for_each(|&reg| slot(v, reg)),
            AsyncOp::NamedBarrier { index, .. } => slot(v, *index),
            AsyncOp::Tensor(op) => {
                op.registers().for_each(|reg| slot(v, reg));
                if let Some(access) = op.access() {
                    v.access(access);
                }
                if let TensorOp::Multiply(op) = op {
                    tile(v, &op.a);
                    tile(v, &op.b);
                    v.masks(&[op.accumulate]);
                    v.require(op.n.is_multiple_of(8) && op.k.is_multiple_of(op.ty.step()) && op.k > 0);
                    v.require(matches!(op.m, 64 | 128) && op.n <= 256);
                }
            }
            AsyncOp::Peer(op) => {
                slot(v, op.rank());
                op.mask().iter().for_each(|mask| v.masks(&[*mask]));
                match op {
                    PeerOp::Load { d: value, address, access, .. } | PeerOp::Store { value, address, access, .. } => {
                        v.value_access(*value, *address, 1, *access);
                    }
                    PeerOp::Atomic(op) => {
                        for value in [op.d, op.value, op.expected] {
                            v.value_access(value, op.address, 1, op.access);
                        }
                        // A read-modify-write replaces one aligned element.
                        let natural = v.access(op.access).is_some_and(|a| a.align == a.bytes && a.bytes <= 8);
                        v.require(natural && op.shared);
                    }
                }
            }
            AsyncOp::StoreAsync(op) => {
                [op.address + 1, op.barrier, op.barrier + 1].into_iter().for_each(|reg| slot(v, reg));
                v.value_access(op.value, op.address, 1, op.access);
                let whole = v.access(op.access).is_some_and(|a| matches!(a.bytes, 4 | 8 | 16) && a.align == a.bytes);
                v.require(whole);
                v.access(op.barrier_access);
            }
            AsyncOp::BlockCopy(op) => {
                let peers = [op.destination, op.barrier].into_iter().flat_map(|reg| [reg, reg + 1]);
                peers.chain([op.source]).for_each(|reg| slot(v, reg));
                let aligned = [op.to, op.from].iter().all(|&access| v.access(access).is_some_and(|a| a.align >= 16));
                v.require(aligned && op.bytes.is_multiple_of(16));
                v.access(op.barrier_access);
            }
            AsyncOp::Landed { value, slots } => v.slots(*value, *slots),
            AsyncOp::FenceProxy(_)
            | AsyncOp::StoreCommit
            | AsyncOp::StoreWait { .. }
            | AsyncOp::SetRegisters { .. }
            | AsyncOp::ClusterSync { .. } => {}
        }
    }
}

//! The one table of the dialect `lw`. See [`super::OpRow`] for the columns.

use super::{Attr, Constraint, Effects, Legal, OpRow, Slot, blackwell, hopper};

pub(super) const fn one(name: &'static str, constraint: Constraint) -> Slot {
    Slot { name, constraint, variadic: false }
}

pub(super) const fn many(name: &'static str, constraint: Constraint) -> Slot {
    Slot { name, constraint, variadic: true }
}

pub(super) const fn attr(name: &'static str, constraint: Constraint, about: &'static str) -> Attr {
    Attr { name, constraint, about }
}

/// Identity of an op of the dialect.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum LwOp {
    /// `lw.shared`
    Shared,
    /// `lw.load`
    Load,
    /// `lw.load_masked`
    LoadMasked,
    /// `lw.store`
    Store,
    /// `lw.store_masked`
    StoreMasked,
    /// `lw.buffer_load`
    BufferLoad,
    /// `lw.buffer_store`
    BufferStore,
    /// `lw.atomic_rmw`
    AtomicRmw,
    /// `lw.atomic_cas`
    AtomicCas,
    /// `lw.cp_async`
    CpAsync,
    /// `lw.cp_async_commit`
    CpAsyncCommit,
    /// `lw.cp_async_wait`
    CpAsyncWait,
    /// `lw.load_lds`
    LoadLds,
    /// `lw.buffer_load_lds`
    BufferLoadLds,
    /// `lw.ldmatrix`
    Ldmatrix,
    /// `lw.stmatrix`
    Stmatrix,
    /// `lw.mma_sync`
    MmaSync,
    /// `lw.mfma`
    Mfma,
    /// `lw.ballot`
    Ballot,
    /// `lw.elect`
    Elect,
    /// `lw.warp_sync`
    WarpSync,
    /// `lw.sched_barrier`
    SchedBarrier,
    /// `lw.named_barrier`
    NamedBarrier,
    /// `lw.fence`
    Fence,
    /// `lw.grid_dependency`
    GridDependency,
    /// `lw.rcp`
    Rcp,
    /// `lw.to_fp8`
    ToFp8,
    /// `lw.assert`
    Assert,
    /// `lw.mbarrier_init`
    MbarrierInit,
    /// `lw.mbarrier_arrive`
    MbarrierArrive,
    /// `lw.mbarrier_arrive_peer`
    MbarrierArrivePeer,
    /// `lw.mbarrier_expect_tx`
    MbarrierExpectTx,
    /// `lw.mbarrier_wait`
    MbarrierWait,
    /// `lw.fence_proxy`
    FenceProxy,
    /// `lw.tma_load`
    TmaLoad,
    /// `lw.tma_store`
    TmaStore,
    /// `lw.tma_commit`
    TmaCommit,
    /// `lw.tma_wait`
    TmaWait,
    /// `lw.wgmma`
    Wgmma,
    /// `lw.wgmma_wait`
    WgmmaWait,
    /// `lw.setmaxnreg`
    Setmaxnreg,
    /// `lw.uniform`
    Uniform,
    /// `lw.cluster_sync`
    ClusterSync,
    /// `lw.cluster_rank`
    ClusterRank,
    /// `lw.mapa`
    Mapa,
    /// `lw.st_async`
    StAsync,
    /// `lw.bulk_copy`
    BulkCopy,
    /// `lw.tcgen05_alloc`
    Tcgen05Alloc,
    /// `lw.tcgen05_dealloc`
    Tcgen05Dealloc,
    /// `lw.tcgen05_relinquish_alloc_permit`
    Tcgen05RelinquishAllocPermit,
    /// `lw.tcgen05_ld`
    Tcgen05Ld,
    /// `lw.tcgen05_st`
    Tcgen05St,
    /// `lw.tcgen05_wait`
    Tcgen05Wait,
    /// `lw.tcgen05_fence`
    Tcgen05Fence,
    /// `lw.tcgen05_mma`
    Tcgen05Mma,
    /// `lw.tcgen05_commit`
    Tcgen05Commit,
}

impl LwOp {
    /// Every op.
    pub const ALL: &'static [LwOp] = &[
        LwOp::Shared,
        LwOp::Load,
        LwOp::LoadMasked,
        LwOp::Store,
        LwOp::StoreMasked,
        LwOp::BufferLoad,
        LwOp::BufferStore,
        LwOp::AtomicRmw,
        LwOp::AtomicCas,
        LwOp::CpAsync,
        LwOp::CpAsyncCommit,
        LwOp::CpAsyncWait,
        LwOp::LoadLds,
        LwOp::BufferLoadLds,
        LwOp::Ldmatrix,
        LwOp::Stmatrix,
        LwOp::MmaSync,
        LwOp::Mfma,
        LwOp::Ballot,
        LwOp::Elect,
        LwOp::WarpSync,
        LwOp::SchedBarrier,
        LwOp::NamedBarrier,
        LwOp::Fence,
        LwOp::GridDependency,
        LwOp::Rcp,
        LwOp::ToFp8,
        LwOp::Assert,
        LwOp::MbarrierInit,
        LwOp::MbarrierArrive,
        LwOp::MbarrierArrivePeer,
        LwOp::MbarrierExpectTx,
        LwOp::MbarrierWait,
        LwOp::FenceProxy,
        LwOp::TmaLoad,
        LwOp::TmaStore,
        LwOp::TmaCommit,
        LwOp::TmaWait,
        LwOp::Wgmma,
        LwOp::WgmmaWait,
        LwOp::Setmaxnreg,
        LwOp::Uniform,
        LwOp::ClusterSync,
        LwOp::ClusterRank,
        LwOp::Mapa,
        LwOp::StAsync,
        LwOp::BulkCopy,
        LwOp::Tcgen05Alloc,
        LwOp::Tcgen05Dealloc,
        LwOp::Tcgen05RelinquishAllocPermit,
        LwOp::Tcgen05Ld,
        LwOp::Tcgen05St,
        LwOp::Tcgen05Wait,
        LwOp::Tcgen05Fence,
        LwOp::Tcgen05Mma,
        LwOp::Tcgen05Commit,
    ];
}

/// Global memory, the block's shared memory, and that of a block of the cluster.
const ADDRESSES: &[&str] = &["!llvm.ptr<1>", "!llvm.ptr<3>", "!llvm.ptr<7>"];
/// Registers of multiplicands: see the table of atoms.
const MMA_SYNC_FACTORS: &[&str] =
    &["vector<2xf16>", "vector<2xbf16>", "f32", "f64", "vector<4xi8>", "vector<4xf8E4M3FN>", "vector<4xf8E5M2>"];
/// What `ldmatrix` and `stmatrix` move: four bytes a lane.
const MATRIX_WORDS: &[&str] =
    &["vector<2xf16>", "vector<2xbf16>", "f32", "vector<4xi8>", "vector<4xf8E4M3FN>", "vector<4xf8E5M2>"];
const MMA_SYNC_SUMS: &[&str] = &["f32", "i32", "f64", "vector<2xf16>"];
const MFMA_FACTORS: &[&str] = &[
    "vector<4xf16>",
    "vector<4xbf16>",
    "vector<8xf16>",
    "vector<8xbf16>",
    "vector<2xf32>",
    "f32",
    "f64",
    "vector<4xi8>",
    "vector<8xi8>",
    "vector<16xi8>",
    "vector<8xf8E4M3FN>",
    "vector<8xf8E5M2>",
    "vector<32xf8E4M3FN>",
    "vector<32xf8E5M2>",
];

/// Every op of the dialect.
pub static TABLE: &[OpRow] = &ROWS;

const ROWS: [OpRow; COMMON.len() + hopper::ROWS.len() + blackwell::ROWS.len()] = {
    let mut rows = [COMMON[0]; COMMON.len() + hopper::ROWS.len() + blackwell::ROWS.len()];
    let (hoppers, blackwells) = (COMMON.len(), COMMON.len() + hopper::ROWS.len());
    let mut index = 0;
    while index < rows.len() {
        rows[index] = if index < hoppers {
            COMMON[index]
        } else if index < blackwells {
            hopper::ROWS[index - hoppers]
        } else {
            blackwell::ROWS[index - blackwells]
        };
        index += 1;
    }
    rows
};

/// Rows of no family of chips alone.
const COMMON: &[OpRow] = &[
    OpRow {
        op: LwOp::Shared,
        name: "shared",
        about: "Address of one member of the block's shared memory.",
        operands: &[],
        results: &[one("address", Constraint::Is("!llvm.ptr<3>"))],
        attributes: &[
            attr("offset", Constraint::IntegerAttr, "bytes from the start of the block's shared memory"),
            attr("bytes", Constraint::IntegerAttr, "size of the member"),
            attr("align", Constraint::IntegerAttr, "alignment in bytes"),
            attr("name", Constraint::StringAttr, "type and field, for reports"),
        ],
        effects: Effects::Pure,
        nvidia: Legal::Always,
        amd: Legal::Always,
        emulation: "a constant offset; accesses through it are bounded by the member",
        nvvm: "address of the module's one shared global, plus the offset; above 48 KB that global is the launch's dynamic shared memory",
        rocdl: "address of the module's one LDS global, plus the offset",
    },
    OpRow {
        op: LwOp::Load,
        name: "load",
        about: "Loads a scalar or a short vector.",
        operands: &[one("address", Constraint::OneOf(ADDRESSES))],
        results: &[one("value", Constraint::Any('t'))],
        attributes: &[attr("align", Constraint::IntegerAttr, "alignment that the address has, in bytes")],
        effects: Effects::Read,
        nvidia: Legal::Always,
        amd: Legal::Always,
        emulation: "a masked, checked access of each lane; one copy when the lanes are contiguous",
        nvvm: "llvm.load with the alignment; ld.global, ld.shared, ld.shared::cluster (PTX ISA, ld)",
        rocdl: "llvm.load with the alignment; global_load, ds_read",
    },
    OpRow {
        op: LwOp::LoadMasked,
        name: "load_masked",
        about: "Loads where the mask is true, else gives the other value; no access is made there.",
        operands: &[
            one("address", Constraint::OneOf(ADDRESSES)),
            one("mask", Constraint::Is("i1")),
            one("other", Constraint::Any('t')),
        ],
        results: &[one("value", Constraint::Any('t'))],
        attributes: &[attr("align", Constraint::IntegerAttr, "alignment that the address has, in bytes")],
        effects: Effects::Read,
        nvidia: Legal::Always,
        amd: Legal::Always,
        emulation: "as load, with the mask and-ed to the lanes",
        nvvm: "a branch around llvm.load",
        rocdl: "a branch around llvm.load",
    },
    OpRow {
        op: LwOp::Store,
        name: "store",
        about: "Stores a scalar or a short vector.",
        operands: &[one("value", Constraint::Any('t')), one("address", Constraint::OneOf(ADDRESSES))],
        results: &[],
        attributes: &[attr("align", Constraint::IntegerAttr, "alignment that the address has, in bytes")],
        effects: Effects::Write,
        nvidia: Legal::Always,
        amd: Legal::Always,
        emulation: "a masked, checked access of each lane",
        nvvm: "llvm.store with the alignment; st.global, st.shared, st.shared::cluster (PTX ISA, st)",
        rocdl: "llvm.store with the alignment; global_store, ds_write",
    },
    OpRow {
        op: LwOp::StoreMasked,
        name: "store_masked",
        about: "Stores where the mask is true.",
        operands: &[
            one("value", Constraint::Any('t')),
            one("address", Constraint::OneOf(ADDRESSES)),
            one("mask", Constraint::Is("i1")),
        ],
        results: &[],
        attributes: &[attr("align", Constraint::IntegerAttr, "alignment that the address has, in bytes")],
        effects: Effects::Write,
        nvidia: Legal::Always,
        amd: Legal::Always,
        emulation: "as store, with the mask and-ed to the lanes",
        nvvm: "a branch around llvm.store",
        rocdl: "a branch around llvm.store",
    },
    OpRow {
        op: LwOp::BufferLoad,
        name: "buffer_load",
        about: "Loads from a bounded buffer: zero where the offset is out of range or the mask is false.",
        operands: &[
            one("base", Constraint::Is("!llvm.ptr<1>")),
            one("bytes", Constraint::Is("i64")),
            one("offset", Constraint::Is("i32")),
            one("mask", Constraint::Is("i1")),
        ],
        results: &[one("value", Constraint::Any('t'))],
        attributes: &[],
        effects: Effects::Read,
        nvidia: Legal::Always,
        amd: Legal::Always,
        emulation: "range and mask decide per lane; lanes out of range give zero",
        nvvm: "a branch around llvm.load; where a vector crosses the end or is not aligned, one branch an element",
        rocdl: "rocdl.raw.ptr.buffer.load, masked lanes out of range; the hardware's check of each dword gives zero",
    },
    OpRow {
        op: LwOp::BufferStore,
        name: "buffer_store",
        about: "Stores to a bounded buffer: vanishes where the offset is out of range or the mask is false.",
        operands: &[
            one("value", Constraint::Any('t')),
            one("base", Constraint::Is("!llvm.ptr<1>")),
            one("bytes", Constraint::Is("i64")),
            one("offset", Constraint::Is("i32")),
            one("mask", Constraint::Is("i1")),
        ],
        results: &[],
        attributes: &[],
        effects: Effects::Write,
        nvidia: Legal::Always,
        amd: Legal::Always,
        emulation: "range and mask decide per lane; other lanes store nothing",
        nvvm: "a branch around llvm.store",
        rocdl: "rocdl.raw.ptr.buffer.store, masked lanes out of range; the hardware drops what is out of range",
    },
    OpRow {
        op: LwOp::AtomicRmw,
        name: "atomic_rmw",
        about: "Reads, modifies and writes one element at once; gives the old value.",
        operands: &[one("address", Constraint::OneOf(ADDRESSES)), one("value", Constraint::Any('t'))],
        results: &[one("old", Constraint::Any('t'))],
        attributes: &[
            attr(
                "kind",
                Constraint::StringAttr,
                "add, sub, max, min, umax, umin, and, or, xor, exch, fadd, fmax or fmin",
            ),
            attr("ordering", Constraint::StringAttr, "relaxed, acquire, release, acq_rel or seq_cst"),
            attr("scope", Constraint::StringAttr, "block, cluster, device or system"),
        ],
        effects: Effects::ReadWrite,
        nvidia: Legal::Always,
        amd: Legal::Always,
        emulation: "lanes in order, each a host atomic on global memory",
        nvvm: "llvm.atomicrmw between the fences of its ordering; atom.relaxed.sys at system scope (PTX ISA, atom, fence)",
        rocdl: "llvm.atomicrmw with syncscope workgroup, agent or system",
    },
    OpRow {
        op: LwOp::AtomicCas,
        name: "atomic_cas",
        about: "Stores the desired value where the element equals the expected one; gives the old value.",
        operands: &[
            one("address", Constraint::OneOf(ADDRESSES)),
            one("expected", Constraint::Any('t')),
            one("desired", Constraint::Any('t')),
        ],
        results: &[one("old", Constraint::Any('t'))],
        attributes: &[
            attr("ordering", Constraint::StringAttr, "relaxed, acquire, release, acq_rel or seq_cst"),
            attr("scope", Constraint::StringAttr, "block, cluster, device or system"),
        ],
        effects: Effects::ReadWrite,
        nvidia: Legal::Always,
        amd: Legal::Always,
        emulation: "lanes in order, each a host compare-exchange",
        nvvm: "llvm.cmpxchg; atom.cas (PTX ISA, atom)",
        rocdl: "llvm.cmpxchg",
    },
    OpRow {
        op: LwOp::CpAsync,
        name: "cp_async",
        about: "Starts a copy from global to shared memory; where not valid, zeros are written and nothing is read.",
        operands: &[
            one("destination", Constraint::Is("!llvm.ptr<3>")),
            one("source", Constraint::Is("!llvm.ptr<1>")),
            one("valid", Constraint::Is("i1")),
        ],
        results: &[],
        attributes: &[attr("bytes", Constraint::IntegerAttr, "4, 8 or 16")],
        effects: Effects::ReadWrite,
        nvidia: Legal::From(80),
        amd: Legal::Never(
            "use `load_to_shared`, whose lanes land side by side, or registers: `place.store_vec(source.load_vec())`",
        ),
        emulation: "queued with the open group; data lands when its group is waited for",
        nvvm: "nvvm.cp.async.shared.global with the source size (PTX ISA, cp.async)",
        rocdl: "refused",
    },
    OpRow {
        op: LwOp::CpAsyncCommit,
        name: "cp_async_commit",
        about: "Closes the open group of asynchronous copies.",
        operands: &[],
        results: &[],
        attributes: &[],
        effects: Effects::Sync,
        nvidia: Legal::From(80),
        amd: Legal::Never(
            "use `load_to_shared`, whose lanes land side by side, or registers: `place.store_vec(source.load_vec())`",
        ),
        emulation: "closes the warp's open group",
        nvvm: "nvvm.cp.async.commit.group (PTX ISA, cp.async.commit_group)",
        rocdl: "refused",
    },
    OpRow {
        op: LwOp::CpAsyncWait,
        name: "cp_async_wait",
        about: "Waits until at most the given number of newest groups are pending.",
        operands: &[],
        results: &[],
        attributes: &[attr("groups", Constraint::IntegerAttr, "how many groups may stay pending")],
        effects: Effects::Sync,
        nvidia: Legal::From(80),
        amd: Legal::Never(
            "use `load_to_shared`, whose lanes land side by side, or registers: `place.store_vec(source.load_vec())`",
        ),
        emulation: "lands the older groups of the warp",
        nvvm: "nvvm.cp.async.wait.group (PTX ISA, cp.async.wait_group)",
        rocdl: "refused",
    },
    OpRow {
        op: LwOp::LoadLds,
        name: "load_lds",
        about: "Starts copies from global memory straight to LDS: lane l's bytes land at the destination, which is one for the wave, plus l times 4 or, of 12 and 16 bytes, l times 16.",
        operands: &[one("destination", Constraint::Is("!llvm.ptr<3>")), one("source", Constraint::Is("!llvm.ptr<1>"))],
        results: &[],
        attributes: &[attr("bytes", Constraint::IntegerAttr, "of a lane: 4, or on gfx950 also 12 and 16")],
        effects: Effects::ReadWrite,
        nvidia: Legal::Never("use `cp_async`, whose threads each name their own destination"),
        amd: Legal::Always,
        emulation: "queued; data lands at the wave's next barrier",
        nvvm: "refused",
        rocdl: "rocdl.global.load.lds (CDNA3 ISA, Memory reads to LDS)",
    },
    OpRow {
        op: LwOp::BufferLoadLds,
        name: "buffer_load_lds",
        about: "As load_lds, from a bounded buffer: zeros land where the offset is out of range or the mask is false.",
        operands: &[
            one("destination", Constraint::Is("!llvm.ptr<3>")),
            one("base", Constraint::Is("!llvm.ptr<1>")),
            one("range", Constraint::Is("i64")),
            one("offset", Constraint::Is("i32")),
            one("mask", Constraint::Is("i1")),
        ],
        results: &[],
        attributes: &[
            attr("bytes", Constraint::IntegerAttr, "of a lane: 4, or on gfx950 also 12 and 16"),
            attr("unit", Constraint::IntegerAttr, "bytes of an element, which the offset counts"),
        ],
        effects: Effects::ReadWrite,
        nvidia: Legal::Never("use `cp_async` with its condition"),
        amd: Legal::Always,
        emulation: "queued; range and mask decide for each dword of a lane",
        nvvm: "refused",
        rocdl: "rocdl.raw.ptr.buffer.load.lds, masked lanes out of range (CDNA3 ISA, Memory reads to LDS)",
    },
    OpRow {
        op: LwOp::Ldmatrix,
        name: "ldmatrix",
        about: "Loads 1, 2 or 4 matrices of 8 rows of 16 bytes into fragments, four bytes a lane; lanes 8i to 8i+7 give the row addresses of matrix i.",
        operands: &[one("row", Constraint::Is("!llvm.ptr<3>"))],
        results: &[many("fragment", Constraint::OneOf(MATRIX_WORDS))],
        attributes: &[attr("trans", Constraint::BoolAttr, "whether each matrix is transposed on the way")],
        effects: Effects::Read,
        nvidia: Legal::From(80),
        amd: Legal::Never("read the fragment with `load_vec`: CDNA3 has no such instruction"),
        emulation: "rows of 16 bytes into consecutive words of the slot",
        nvvm: "nvvm.ldmatrix (PTX ISA, ldmatrix)",
        rocdl: "refused",
    },
    OpRow {
        op: LwOp::Stmatrix,
        name: "stmatrix",
        about: "Stores 1, 2 or 4 matrices of 8 rows of 16 bytes from fragments, four bytes a lane; lanes 8i to 8i+7 give the row addresses of matrix i.",
        operands: &[one("row", Constraint::Is("!llvm.ptr<3>")), many("fragment", Constraint::OneOf(MATRIX_WORDS))],
        results: &[],
        attributes: &[attr("trans", Constraint::BoolAttr, "whether each matrix is transposed on the way")],
        effects: Effects::Write,
        nvidia: Legal::From(90),
        amd: Legal::Never("write the fragment with `store_vec`: CDNA has no such instruction"),
        emulation: "gathered from the lanes by the copy atom's layouts, then rows of 16 bytes",
        nvvm: "nvvm.stmatrix (PTX ISA, stmatrix)",
        rocdl: "refused",
    },
    OpRow {
        op: LwOp::MmaSync,
        name: "mma_sync",
        about: "One warp's matrix product D = A B + C, in the shapes of the table of atoms.",
        operands: &[
            many("a", Constraint::OneOf(MMA_SYNC_FACTORS)),
            many("b", Constraint::OneOf(MMA_SYNC_FACTORS)),
            many("c", Constraint::OneOf(MMA_SYNC_SUMS)),
        ],
        results: &[many("d", Constraint::OneOf(MMA_SYNC_SUMS))],
        attributes: &[
            attr("m", Constraint::IntegerAttr, "rows of A and D"),
            attr("n", Constraint::IntegerAttr, "columns of B and D"),
            attr("k", Constraint::IntegerAttr, "columns of A, rows of B"),
            attr(
                "kind",
                Constraint::StringAttr,
                "element types of A and B: f16, bf16, tf32, f64, s8, u8, or those of each as u8.s8 or e4m3.e5m2; f16+f16 with sums of f16",
            ),
        ],
        effects: Effects::Sync,
        nvidia: Legal::From(80),
        amd: Legal::Never("use `mfma_32x32x8` or `mfma_16x16x16`"),
        emulation: "gathered and scattered by the atom's layouts; products in k order, one fma a step",
        nvvm: "nvvm.mma.sync; 8-bit floats, from sm_89 on, as inline assembly (PTX ISA, mma)",
        rocdl: "refused",
    },
    OpRow {
        op: LwOp::Mfma,
        name: "mfma",
        about: "One wave's matrix product D = A B + C, in the shapes of the table of atoms.",
        operands: &[
            one("a", Constraint::OneOf(MFMA_FACTORS)),
            one("b", Constraint::OneOf(MFMA_FACTORS)),
            many("c", Constraint::OneOf(&["f32", "i32", "f64"])),
        ],
        results: &[many("d", Constraint::OneOf(&["f32", "i32", "f64"]))],
        attributes: &[
            attr("m", Constraint::IntegerAttr, "rows of A and D"),
            attr("n", Constraint::IntegerAttr, "columns of B and D"),
            attr("k", Constraint::IntegerAttr, "columns of A, rows of B"),
            attr(
                "kind",
                Constraint::StringAttr,
                "element types of A and B: f16, bf16, xf32, f32, f64, s8, or e4m3 or e5m2 of each as e4m3.e5m2",
            ),
        ],
        effects: Effects::Sync,
        nvidia: Legal::Never("use `mma_m16n8k16`"),
        amd: Legal::Always,
        emulation: "gathered and scattered by the atom's layouts; products in k order, one fma a step",
        nvvm: "refused",
        rocdl: "rocdl.mfma, rocdl.mfma.scale without scales (CDNA3 and CDNA4 ISA, matrix instructions)",
    },
    OpRow {
        op: LwOp::Ballot,
        name: "ballot",
        about: "Bit i is lane i's condition; inactive lanes give 0.",
        operands: &[one("condition", Constraint::Is("i1"))],
        results: &[one("lanes", Constraint::Is("i64"))],
        attributes: &[],
        effects: Effects::Sync,
        nvidia: Legal::Always,
        amd: Legal::Always,
        emulation: "the condition's mask and-ed with the active lanes",
        nvvm: "nvvm.vote.sync ballot of the whole warp, inside control flow of activemask; zero-extended (PTX ISA, vote.sync)",
        rocdl: "rocdl.ballot",
    },
    OpRow {
        op: LwOp::Elect,
        name: "elect",
        about: "True in the first active lane.",
        operands: &[],
        results: &[one("first", Constraint::Is("i1"))],
        attributes: &[],
        effects: Effects::Sync,
        nvidia: Legal::Always,
        amd: Legal::Always,
        emulation: "lowest set bit of the active lanes",
        nvvm: "compare of the lane with the lowest set bit of activemask",
        rocdl: "compare of the lane with the lowest set bit of ballot(true)",
    },
    OpRow {
        op: LwOp::WarpSync,
        name: "warp_sync",
        about: "The lanes of a warp meet; shared memory written before is visible after.",
        operands: &[],
        results: &[],
        attributes: &[],
        effects: Effects::Sync,
        nvidia: Legal::Always,
        amd: Legal::Always,
        emulation: "orders the warp's accesses; lanes run in step already",
        nvvm: "nvvm.bar.warp.sync (PTX ISA, bar.warp.sync)",
        rocdl: "llvm.amdgcn.wave.barrier between fences of wavefront scope",
    },
    OpRow {
        op: LwOp::SchedBarrier,
        name: "sched_barrier",
        about: "The compiler moves no instruction from one side to the other; the hardware does nothing.",
        operands: &[],
        results: &[],
        attributes: &[],
        effects: Effects::Sync,
        nvidia: Legal::Always,
        amd: Legal::Always,
        emulation: "nothing: instructions run in the order of the trace",
        nvvm: "an empty volatile asm that clobbers memory; it binds LLVM, and ptxas schedules as it likes",
        rocdl: "rocdl.sched.barrier 0 (AMDGPU Usage, llvm.amdgcn.sched.barrier)",
    },
    OpRow {
        op: LwOp::NamedBarrier,
        name: "named_barrier",
        about: "One of 15 barriers that a part of the block meets at.",
        operands: &[many("index", Constraint::Is("i32"))],
        results: &[],
        attributes: &[
            attr("id", Constraint::IntegerAttr, "1 to 15; with an index, the barrier is id + index"),
            attr("threads", Constraint::IntegerAttr, "threads that sync or arrive, a multiple of the warp size"),
            attr("kind", Constraint::StringAttr, "sync or arrive"),
        ],
        effects: Effects::Sync,
        nvidia: Legal::From(80),
        amd: Legal::Never("use `barrier()`: CDNA has one barrier a block"),
        emulation: "a count per barrier in the block's scheduler",
        nvvm: "nvvm.barrier, nvvm.barrier.arrive (PTX ISA, barrier)",
        rocdl: "refused",
    },
    OpRow {
        op: LwOp::Fence,
        name: "fence",
        about: "Orders the thread's earlier accesses before its later ones for the scope.",
        operands: &[],
        results: &[],
        attributes: &[attr("scope", Constraint::StringAttr, "block, cluster, device or system")],
        effects: Effects::Sync,
        nvidia: Legal::Always,
        amd: Legal::Always,
        emulation: "orders accesses in the happens-before relation",
        nvvm: "llvm.fence with the scope's syncscope; membar, fence (PTX ISA, membar)",
        rocdl: "llvm.fence with syncscope workgroup, agent or system",
    },
    OpRow {
        op: LwOp::GridDependency,
        name: "grid_dependency",
        about: "Waits for the launch before on the stream, or lets the next one start; nothing where launches never overlap.",
        operands: &[],
        results: &[],
        attributes: &[attr("kind", Constraint::StringAttr, "wait or release")],
        effects: Effects::Sync,
        nvidia: Legal::Always,
        amd: Legal::Always,
        emulation: "nothing: launches run one after the other",
        nvvm: "nvvm.griddepcontrol from sm_90 on (PTX ISA, griddepcontrol); nothing before",
        rocdl: "nothing: launches of a stream run one after the other",
    },
    OpRow {
        op: LwOp::Rcp,
        name: "rcp",
        about: "Approximate 1/x, within 1 ulp; subnormal inputs and results are flushed to zero.",
        operands: &[one("x", Constraint::Is("f32"))],
        results: &[one("y", Constraint::Is("f32"))],
        attributes: &[],
        effects: Effects::Pure,
        nvidia: Legal::Always,
        amd: Legal::Always,
        emulation: "division in f32, with subnormals flushed",
        nvvm: "nvvm.rcp.approx.ftz.f (PTX ISA, rcp)",
        rocdl: "rocdl.rcp",
    },
    OpRow {
        op: LwOp::ToFp8,
        name: "to_fp8",
        about: "f32 to an 8-bit float: to nearest even, saturating at the largest finite value; NaN stays NaN.",
        operands: &[one("x", Constraint::Is("f32"))],
        results: &[one("y", Constraint::OneOf(&["f8E4M3FN", "f8E5M2"]))],
        attributes: &[],
        effects: Effects::Pure,
        nvidia: Legal::Always,
        amd: Legal::Always,
        emulation: "integer form of the OCP rules",
        nvvm: "cvt.rn.satfinite (PTX ISA, cvt) from sm_89 on, else the integer form",
        rocdl: "the integer form: CDNA3's instruction gives FNUZ encodings",
    },
    OpRow {
        op: LwOp::Assert,
        name: "assert",
        about: "Stops the kernel with a message where the condition is false.",
        operands: &[one("condition", Constraint::Is("i1")), many("values", Constraint::Any('v'))],
        results: &[],
        attributes: &[attr(
            "message",
            Constraint::StringAttr,
            "what the user wrote; where there are values, a format of C's `printf` for them",
        )],
        effects: Effects::Sync,
        nvidia: Legal::Always,
        amd: Legal::Always,
        emulation: "a report that names thread and line, with the values",
        nvvm: "scf.if around a call of the driver's __assertfail with message, file and line; `?` for each value",
        rocdl: "a branch to llvm.trap; the message is lost without a device library",
    },
];

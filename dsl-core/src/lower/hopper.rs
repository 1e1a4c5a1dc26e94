//! Asynchronous copies, mbarriers, warpgroup products and clusters: the ops of [`crate::dialect`]'s rows for
//! Hopper, as PTX. Sections are the PTX ISA's.
//!
//! Addresses in shared memory are computed in 32 bits here: a block's shared memory has fewer than 2^18 bytes,
//! and the instructions take 32-bit addresses.

use std::fmt::Write as _;

use melior::ir::operation::OperationLike;

use super::build::{
    Builder, F32, I8, I16, I32, I64, Op, Val, boolean, integer, maker, operand, pointed_to, refuse, result, string,
    type_of,
};
use crate::Error;
use crate::atoms::{PanelLayout, WGMMA_ROWS, WgmmaSpec};
use crate::dialect::LwOp;
use crate::mlir::{internal, name_of};

/// Lowers one of Hopper's ops; gives the values of its results.
pub(super) fn lower<'m>(b: &Builder<'m>, op: Op<'m>, which: LwOp) -> Result<Vec<Val<'m>>, Error> {
    let none = |()| Vec::new();
    match which {
        LwOp::MbarrierInit => {
            let count = integer(op, "count")?;
            on_barrier(b, op, &format!("mbarrier.init.shared::cta.b64 [$0], {count};"))
        }
        LwOp::MbarrierArrive => on_barrier(b, op, "mbarrier.arrive.shared::cta.b64 _, [$0];"),
        LwOp::MbarrierExpectTx => {
            let bytes = integer(op, "bytes")?;
            on_barrier(b, op, &format!("mbarrier.arrive.expect_tx.shared::cta.b64 _, [$0], {bytes};"))
        }
        LwOp::MbarrierArrivePeer => {
            let operands = [shared_address(b, operand(op, 0)?)?, operand(op, 1)?];
            // `.release.cluster` is a full memory barrier each time. Where no stores go to other blocks, what is
            // released is the reading of shared memory by products that have been waited for, which needs none.
            let release = if b.reaches_peers() { ".release.cluster" } else { "" };
            let text = format!(
                "{{ .reg .b32 peer; mapa.shared::cluster.u32 peer, $0, $1; \
                 mbarrier.arrive{release}.shared::cluster.b64 _, [peer]; }}"
            );
            effect(b, &text, "r,r,~{memory}", &operands).map(none)
        }
        LwOp::MbarrierWait => {
            let operands = [shared_address(b, operand(op, 0)?)?, operand(op, 1)?];
            // A plain branch: with `bra.uni` ptxas schedules worse.
            let acquire = if b.reaches_peers() { ".acquire.cluster" } else { "" };
            let text = format!(
                "{{ .reg .pred done; again: mbarrier.try_wait.parity{acquire}.shared::cta.b64 done, [$0], $1; \
                 @done bra over; bra again; over: }}"
            );
            effect(b, &text, "r,r,~{memory}", &operands).map(none)
        }
        LwOp::FenceProxy => {
            let text = match string(op, "kind")?.as_str() {
                "async_shared" => "fence.proxy.async.shared::cta;",
                "async" => "fence.proxy.async;",
                "mbarrier_init" => "fence.mbarrier_init.release.cluster;",
                other => {
                    let help = "use async_shared, async or mbarrier_init";
                    return Err(refuse(op, format!("there is no proxy fence `{other}`"), help));
                }
            };
            effect(b, text, "~{memory}", &[]).map(none)
        }
        LwOp::TmaLoad => tma_load(b, op).map(none),
        LwOp::TmaStore => tma_store(b, op).map(none),
        LwOp::TmaCommit => effect(b, "cp.async.bulk.commit_group;", "~{memory}", &[]).map(none),
        LwOp::TmaWait => {
            let read = if boolean(op, "read") { ".read" } else { "" };
            let text = format!("cp.async.bulk.wait_group{read} {};", integer(op, "groups")?);
            effect(b, &text, "~{memory}", &[]).map(none)
        }
        LwOp::Wgmma => wgmma(b, op),
        LwOp::WgmmaWait => super::in_flight::wait(b, op),
        LwOp::Setmaxnreg => {
            let text = format!("setmaxnreg.{}.sync.aligned.u32 {};", string(op, "kind")?, integer(op, "regs")?);
            effect(b, &text, "~{memory}", &[]).map(none)
        }
        LwOp::Uniform => {
            let operands = [b.constant(I32, -1)?, operand(op, 0)?, b.constant(I32, 0)?, b.constant(I32, 31)?];
            let kind = b.attr("#nvvm<shfl_kind idx>")?;
            b.value("nvvm.shfl.sync", &operands, I32, &[("kind", kind)]).map(|value| vec![value])
        }
        LwOp::ClusterSync => {
            let kind = string(op, "kind")?;
            let mut text = String::new();
            if kind != "wait" {
                text.push_str("barrier.cluster.arrive.release.aligned;");
            }
            if kind != "arrive" {
                text.push_str("barrier.cluster.wait.acquire.aligned;");
            }
            effect(b, &text, "~{memory}", &[]).map(none)
        }
        LwOp::ClusterRank => b.value("nvvm.read.ptx.sreg.cluster.ctarank", &[], I32, &[]).map(|value| vec![value]),
        LwOp::Mapa => {
            let operands = [operand(op, 0)?, operand(op, 1)?];
            b.value("nvvm.mapa", &operands, type_of(result(op, 0)?)?, &[]).map(|value| vec![value])
        }
        LwOp::StAsync => st_async(b, op).map(none),
        LwOp::BulkCopy => {
            let bytes = integer(op, "bytes")?;
            if bytes <= 0 || bytes % 16 != 0 {
                return Err(refuse(op, format!("a bulk copy of {bytes} bytes"), "copy a multiple of 16 bytes"));
            }
            let operands = [
                peer_address(b, operand(op, 0)?)?,
                shared_address(b, operand(op, 1)?)?,
                peer_address(b, operand(op, 2)?)?,
            ];
            let text = format!(
                "cp.async.bulk.shared::cluster.shared::cta.mbarrier::complete_tx::bytes [$0], [$1], {bytes}, [$2];"
            );
            effect(b, &text, "r,r,r,~{memory}", &operands).map(none)
        }
        _ => Err(internal(&format!("`{}` is lowered elsewhere", name_of(op)), vec![])),
    }
}

/// Inline assembly that the optimiser neither moves across memory accesses nor drops.
pub(super) fn assembly<'m>(
    b: &Builder<'m>,
    text: &str,
    constraints: &str,
    operands: &[Val<'m>],
    results: usize,
) -> Result<Vec<Val<'m>>, Error> {
    let types = match results {
        0 => vec![],
        1 => vec![b.ty(F32)?],
        _ => vec![b.struct_type(&vec![F32; results])],
    };
    let attributes = [
        ("asm_string", b.string_attr(text)),
        ("constraints", b.string_attr(constraints)),
        ("has_side_effects", b.unit_attr()),
    ];
    let op = b.op("llvm.inline_asm", operands, &types, &attributes)?;
    match results {
        0 => Ok(vec![]),
        1 => Ok(vec![result(op, 0)?]),
        _ => {
            let together = result(op, 0)?;
            (0..results).map(|index| b.field(together, index, F32)).collect()
        }
    }
}

fn effect<'m>(b: &Builder<'m>, text: &str, constraints: &str, operands: &[Val<'m>]) -> Result<(), Error> {
    assembly(b, text, constraints, operands, 0).map(|_| ())
}

fn on_barrier<'m>(b: &Builder<'m>, op: Op<'m>, text: &str) -> Result<Vec<Val<'m>>, Error> {
    let operands = [shared_address(b, operand(op, 0)?)?];
    effect(b, text, "r,~{memory}", &operands).map(|()| vec![])
}

/// The 32-bit address of a pointer into shared memory. Chains of address computations are followed, so that
/// their arithmetic is 32 bits wide too.
pub(super) fn shared_address<'m>(b: &Builder<'m>, pointer: Val<'m>) -> Result<Val<'m>, Error> {
    if let Some(op) = maker(pointer)
        && name_of(op) == "llvm.getelementptr"
        && op.operand_count() == 2
        && let Some(element) = pointed_to(op)
    {
        let base = shared_address(b, operand(op, 0)?)?;
        let index = operand(op, 1)?;
        let index = if type_of(index)? == I64 { b.cast("arith.trunci", index, I32)? } else { index };
        let bytes = b.constant(I32, i64::from(element.bytes()))?;
        let offset = if element == I8 { index } else { b.binary("arith.muli", index, bytes)? };
        return b.binary("arith.addi", base, offset);
    }
    b.cast("llvm.ptrtoint", pointer, I32)
}

/// The coordinates of a box as PTX spells them, from placeholder `first` on.
fn coordinates(count: usize, first: usize) -> String {
    let places: Vec<_> = (first..first + count).map(|index| format!("${index}")).collect();
    format!("{{{}}}", places.join(", "))
}

fn rank_of(op: Op<'_>, others: usize) -> Result<usize, Error> {
    let rank = op.operand_count().saturating_sub(others);
    if (1..=5).contains(&rank) {
        return Ok(rank);
    }
    Err(refuse(op, format!("a tensor copy with {rank} coordinates"), "tensor maps have 1 to 5 dimensions"))
}

/// Cache policies as `createpolicy` would make them (CUTLASS, `TMA::CacheHintSm90`).
const EVICT_FIRST: i64 = 0x12F0_0000_0000_0000;
const EVICT_LAST: i64 = 0x14F0_0000_0000_0000;

fn tma_load<'m>(b: &Builder<'m>, op: Op<'m>) -> Result<(), Error> {
    let rank = rank_of(op, 3)?;
    let mut operands = vec![shared_address(b, operand(op, 0)?)?, operand(op, 1)?, shared_address(b, operand(op, 2)?)?];
    for index in 0..rank {
        operands.push(operand(op, 3 + index)?);
    }
    let mut constraints = format!("r,l,r{}", ",r".repeat(rank));
    let (mut modifiers, mut extra) = (String::new(), String::new());
    let multicast = integer(op, "multicast")?;
    if multicast != 0 {
        modifiers.push_str(".multicast::cluster");
        let _ = write!(extra, ", ${}", operands.len());
        operands.push(b.constant(I16, multicast)?);
        constraints.push_str(",h");
    }
    let policy = match string(op, "hint")?.as_str() {
        "none" => None,
        "evict_first" => Some(EVICT_FIRST),
        "evict_last" => Some(EVICT_LAST),
        other => {
            let help = "use none, evict_first or evict_last";
            return Err(refuse(op, format!("there is no cache hint `{other}`"), help));
        }
    };
    if let Some(policy) = policy {
        modifiers.push_str(".L2::cache_hint");
        let _ = write!(extra, ", ${}", operands.len());
        operands.push(b.constant(I64, policy)?);
        constraints.push_str(",l");
    }
    let text = format!(
        "cp.async.bulk.tensor.{rank}d.shared::cluster.global.tile.mbarrier::complete_tx::bytes{modifiers} \
         [$0], [$1, {}], [$2]{extra};",
        coordinates(rank, 3)
    );
    effect(b, &text, &format!("{constraints},~{{memory}}"), &operands)
}

fn tma_store<'m>(b: &Builder<'m>, op: Op<'m>) -> Result<(), Error> {
    let rank = rank_of(op, 2)?;
    let mut operands = vec![operand(op, 0)?, shared_address(b, operand(op, 1)?)?];
    for index in 0..rank {
        operands.push(operand(op, 2 + index)?);
    }
    let text = format!(
        "cp.async.bulk.tensor.{rank}d.global.shared::cta.tile.bulk_group [$0, {}], [$1];",
        coordinates(rank, 2)
    );
    effect(b, &text, &format!("l,r{},~{{memory}}", ",r".repeat(rank)), &operands)
}

/// An address in the shared memory of a block of the cluster, which has 32 bits.
fn peer_address<'m>(b: &Builder<'m>, pointer: Val<'m>) -> Result<Val<'m>, Error> {
    b.cast("llvm.ptrtoint", pointer, I32)
}

/// `st.async`: the bits of the value as one, two or four words.
fn st_async<'m>(b: &Builder<'m>, op: Op<'m>) -> Result<(), Error> {
    let value = operand(op, 0)?;
    let (words, vector) = match type_of(value)?.bytes() {
        4 => (1, ""),
        8 => (2, ".v2"),
        16 => (4, ".v4"),
        bytes => {
            return Err(refuse(
                op,
                format!("an asynchronous store of {bytes} bytes"),
                "store 4, 8 or 16 bytes a thread",
            ));
        }
    };
    let mut operands = vec![peer_address(b, operand(op, 1)?)?, peer_address(b, operand(op, 2)?)?];
    if words == 1 {
        operands.push(b.bitcast(value, I32)?);
    } else {
        let value = b.bitcast(value, I32.vector(words))?;
        for word in 0..words {
            operands.push(b.extract(value, word)?);
        }
    }
    let names: Vec<_> = (2..2 + words).map(|place| format!("${place}")).collect();
    let text = format!(
        "st.async.shared::cluster.mbarrier::complete_tx::bytes{vector}.b32 [$0], {{{}}}, [$1];",
        names.join(", ")
    );
    // A single word stands without braces.
    let text = if words == 1 { text.replace("{$2}", "$2") } else { text };
    effect(b, &text, &format!("r,r{},~{{memory}}", ",r".repeat(words as usize)), &operands)
}

/// The layout of an operand in shared memory.
pub(super) fn panels(op: Op<'_>, attribute: &str) -> Result<PanelLayout, Error> {
    let text = string(op, attribute)?;
    PanelLayout::parse(&text).ok_or_else(|| {
        refuse(op, format!("`{text}` is no layout of a matrix product"), "use k:SWIZZLE:ROWS or mn:SWIZZLE:ROWS")
    })
}

/// Lower word of the descriptor of an operand's first step: start address / 16 and leading offset.
fn descriptor<'m>(b: &Builder<'m>, pointer: Val<'m>, layout: &PanelLayout) -> Result<Val<'m>, Error> {
    let address = shared_address(b, pointer)?;
    let start = b.binary("arith.shrui", address, b.constant(I32, 4)?)?;
    // In a cluster, bits 24 and up of a shared address say whose memory it is in.
    let start = b.binary("arith.andi", start, b.constant(I32, 0x3FFF)?)?;
    b.binary("arith.addi", start, b.constant(I32, i64::from(layout.descriptor_leading()) << 16)?)
}

/// Shape and types of one `wgmma.mma_async`.
struct Shape {
    n: i64,
    steps: i64,
    /// Suffix, as `m64n128k16.f32.bf16.bf16`.
    name: String,
    /// Whether the instruction has bits for transposed operands.
    transposes: bool,
}

impl Shape {
    fn of(op: Op<'_>) -> Result<Self, Error> {
        let (m, n, k) = (integer(op, "m")?, integer(op, "n")?, integer(op, "k")?);
        let kind = string(op, "kind")?;
        let Some(step) = WgmmaSpec::step(&kind) else {
            let help = "use f16, bf16, e4m3 or e5m2";
            return Err(refuse(op, format!("there is no warpgroup product of {kind}"), help));
        };
        let spec = usize::try_from(n).ok().and_then(|n| WgmmaSpec::find(&kind, n));
        let depth = step as i64;
        match spec.filter(|_| m == WGMMA_ROWS as i64 && k >= depth && k % depth == 0) {
            Some(spec) => Ok(Shape { n, steps: k / depth, name: spec.name(), transposes: spec.transposes }),
            None => Err(refuse(
                op,
                format!("there is no warpgroup product of {m} x {n} x {k} for {kind}"),
                format!("64 rows, a multiple of 8 columns up to 256, a multiple of {step} in k"),
            )),
        }
    }
}

/// Fence, one `wgmma.mma_async` a step of k, commit: as one block of assembly, so that nothing comes between.
fn wgmma<'m>(b: &Builder<'m>, op: Op<'m>) -> Result<Vec<Val<'m>>, Error> {
    let shape = Shape::of(op)?;
    let results = (shape.n / 2) as usize;
    let zero = boolean(op, "zero");
    let sums = if zero { 0 } else { results };
    let first_b = op.operand_count().saturating_sub(1 + sums);
    let from_registers = string(op, "a_layout")? == "reg";
    let fragments = if from_registers { 4 * shape.steps as usize } else { 1 };
    if op.result_count() != results || first_b != fragments {
        return Err(refuse(
            op,
            "a warpgroup product with the wrong number of fragments",
            "this is a fault in the trace",
        ));
    }
    let b_layout = panels(op, "b_layout")?;
    let a_layout = if from_registers { None } else { Some(panels(op, "a_layout")?) };
    let transposed = |layout: &PanelLayout| i64::from(!layout.k_major);
    if !shape.transposes && (!b_layout.k_major || a_layout.as_ref().is_some_and(|layout| !layout.k_major)) {
        return Err(refuse(op, "8-bit products read both operands along k", "transpose the operand in shared memory"));
    }

    let mut operands = Vec::new();
    let mut constraints = vec!["=f".to_owned(); results];
    for index in 0..sums {
        operands.push(operand(op, first_b + 1 + index)?);
        constraints.push(index.to_string());
    }
    let mut place = results + sums;
    let b_place = place;
    operands.push(descriptor(b, operand(op, first_b)?, &b_layout)?);
    constraints.push("r".to_owned());
    place += 1;
    let a_place = place;
    match &a_layout {
        Some(layout) => {
            operands.push(descriptor(b, operand(op, 0)?, layout)?);
            constraints.push("r".to_owned());
        }
        None => {
            for index in 0..fragments {
                operands.push(b.bitcast(operand(op, index)?, I32)?);
                constraints.push("r".to_owned());
            }
        }
    }
    constraints.push("~{memory}".to_owned());

    let accumulators: Vec<_> = (0..results).map(|index| format!("${index}")).collect();
    let accumulators = accumulators.join(",");
    let mut text = String::from("{ .reg .pred add; .reg .b64 da, db; .reg .b32 la, lb; wgmma.fence.sync.aligned; ");
    let _ = write!(text, "setp.ne.b32 add, {}, 0; ", i64::from(!zero));
    // As a signed number of 32 bits, which is how PTX prints it too.
    let upper = |layout: &PanelLayout| layout.descriptor_upper() as i32;
    for step in 0..shape.steps as usize {
        if zero && step == 1 {
            text.push_str("setp.ne.b32 add, 1, 0; ");
        }
        let a = match &a_layout {
            Some(layout) => {
                let _ = write!(
                    text,
                    "add.s32 la, ${a_place}, {}; mov.b64 da, {{la, {}}}; ",
                    layout.step_bytes(step) / 16,
                    upper(layout)
                );
                "da".to_owned()
            }
            None => coordinates(4, a_place + 4 * step),
        };
        let _ = write!(
            text,
            "add.s32 lb, ${b_place}, {}; mov.b64 db, {{lb, {}}}; wgmma.mma_async.sync.aligned.{} \
             {{{accumulators}}}, {a}, db, add, 1, 1",
            b_layout.step_bytes(step) / 16,
            upper(&b_layout),
            shape.name
        );
        if shape.transposes {
            if let Some(layout) = &a_layout {
                let _ = write!(text, ", {}", transposed(layout));
            }
            let _ = write!(text, ", {}", transposed(&b_layout));
        }
        text.push_str("; ");
    }
    text.push_str("wgmma.commit_group.sync.aligned; }");
    assembly(b, &text, &constraints.join(","), &operands, results)
}

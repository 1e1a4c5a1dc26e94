//! Layouts that are static leave nothing behind: the instructions of the kernels that are written on tiles, compared with
//! those of the same kernels with their index arithmetic written by hand.
//!
//! The kernels by hand are in the repository's history. What they came to was counted in their snapshots, by the same rule
//! (`cargo xtask count --at COMMIT`). They had less to do: attention has since come to take scales of either sign and large
//! scores, and to leave its output in rows. So it is arithmetic on integers that must not grow, that is of addresses,
//! indices and masks. `matmul` for `mma.sync` has been given another algorithm; [`by_hand`] has that algorithm by hand.
//!
//! `now` is what the kernels come to. A change that lowers a number writes it here; one that raises it has to say why.

mod by_hand;

use lacewing::Target;
use lacewing::core::lower::{Emit, EmitOptions, emit};
use lacewing::kernels::ENTRIES;
use lacewing::prelude::*;
use lacewing::runtime::KernelExt;
use lacewing::runtime::registry::Settings;

/// A kernel with some settings for a chip.
struct Case {
    kernel: &'static str,
    settings: &'static [(&'static str, &'static str)],
    target: Target,
    /// The last commit with the kernel by hand, and what its assembly and its trace had of arithmetic on integers.
    by_hand: (&'static str, usize, Option<usize>),
    /// What they have now, at most.
    now: (usize, usize),
}

const D16: &[(&str, &str)] = &[("head_dim", "16"), ("causal", "true")];
const D64: &[(&str, &str)] = &[("head_dim", "64"), ("dtype", "bf16")];
const SCALAR: &[(&str, &str)] = &[("dtype", "bf16"), ("out", "same"), ("vectorized", "false")];

const CASES: &[Case] = &[
    Case {
        kernel: "fmha_fwd",
        settings: D16,
        target: Target::SM_80,
        by_hand: ("2809a71", 229, Some(472)),
        now: (210, 261),
    },
    Case { kernel: "fmha_fwd", settings: D64, target: Target::SM_80, by_hand: ("a1a7401", 315, None), now: (305, 371) },
    Case {
        kernel: "fmha_fwd",
        settings: D16,
        target: Target::GFX942,
        by_hand: ("2809a71", 312, Some(395)),
        now: (299, 186),
    },
    Case {
        kernel: "fmha_fwd",
        settings: D64,
        target: Target::GFX942,
        by_hand: ("2809a71", 603, None),
        now: (534, 218),
    },
    Case {
        kernel: "matmul",
        settings: &[],
        target: Target::GFX942,
        by_hand: ("2809a71", 271, Some(339)),
        now: (225, 196),
    },
    Case {
        kernel: "matmul",
        settings: SCALAR,
        target: Target::GFX942,
        by_hand: ("2809a71", 489, None),
        now: (404, 269),
    },
];

/// Words of instructions on integers.
const INTEGER: &[&str] = &[
    "add", "sub", "mul", "mad", "shl", "shr", "shf", "and", "or", "xor", "not", "neg", "bfe", "bfi", "prmt", "min",
    "max", "div", "rem", "lshl", "lshr", "ashr", "add3", "lshlrev", "lshrrev", "ashrrev", "subrev", "or3", "perm",
    "addc", "subb", "med3",
];
/// Words that say that an instruction is of something else.
const OTHER: &[&str] = &[
    "f16", "f32", "f64", "bf16", "f16x2", "bf16x2", "tf32", "pred", "mma", "mfma", "ld", "st", "cp", "load", "store",
    "read", "write", "atom", "red",
];

/// Instructions of an assembly on integers: the rule of `cargo xtask count`.
fn integers(assembly: &str) -> usize {
    let counted = |line: &&str| {
        let mut words = line.split_whitespace();
        let Some(first) = words.next().filter(|word| !word.starts_with(['.', '/', '$', '{', '}'])) else {
            return false;
        };
        let name = if first.starts_with('@') { words.next().unwrap_or_default() } else { first };
        let amd = ["v_", "s_"].iter().any(|prefix| name.starts_with(prefix));
        let parts: Vec<&str> = name.trim_end_matches(';').split(['.', '_']).collect();
        (amd || line.trim_end().ends_with(';'))
            && !name.starts_with("ldmatrix")
            && !name.starts_with("stmatrix")
            && parts.iter().any(|part| INTEGER.contains(part))
            && !parts.iter().any(|part| OTHER.contains(part))
    };
    assembly.lines().filter(counted).count()
}

/// Operations of a trace on integers and addresses, but for constants.
fn traced_integers(trace: &str) -> usize {
    const OPS: &[&str] = &[
        "arith.addi",
        "arith.subi",
        "arith.muli",
        "arith.divsi",
        "arith.divui",
        "arith.remsi",
        "arith.remui",
        "arith.andi",
        "arith.ori",
        "arith.xori",
        "arith.shli",
        "arith.shrui",
        "arith.shrsi",
        "arith.minsi",
        "arith.maxsi",
        "arith.cmpi",
        "arith.extsi",
        "arith.trunci",
        "arith.index_cast",
        "llvm.getelementptr",
        "gpu.thread_id",
        "gpu.lane_id",
        "gpu.block_id",
    ];
    let counted = |line: &&str| {
        let op = line.split_once(" = ").and_then(|(_, op)| op.split_whitespace().next());
        op.is_some_and(|op| OPS.contains(&op))
    };
    trace.lines().filter(counted).count()
}

fn counts(traced: &lacewing::Traced, target: Target) -> (usize, usize) {
    let stage = if target.is_nvidia() { Emit::Ptx } else { Emit::Amdgcn };
    let artifact = emit(traced, stage, &EmitOptions::default()).unwrap();
    (integers(artifact.text().unwrap()), traced_integers(&traced.text()))
}

#[test]
fn kernels_on_tiles_have_no_more_index_arithmetic_than_by_hand() {
    let mut wrong = Vec::new();
    for case in CASES {
        let entry = ENTRIES.iter().find(|entry| entry.name == case.kernel).unwrap();
        let mut values = Settings::defaults(entry.parameters);
        for (parameter, value) in case.settings {
            values.set(parameter, value).unwrap();
        }
        let traced = entry.build_for(&values, case.target).unwrap().trace(case.target).unwrap();
        let (assembly, trace) = counts(&traced, case.target);
        let (commit, assembly_by_hand, trace_by_hand) = case.by_hand;
        let more = assembly > assembly_by_hand || trace_by_hand.is_some_and(|by_hand| trace > by_hand);
        if more || assembly > case.now.0 || trace > case.now.1 {
            wrong.push(format!(
                "{} {:?} on {}: {assembly} in assembly and {trace} traced, before {:?}, by hand (at {commit}) {:?}",
                case.kernel,
                case.settings,
                case.target,
                case.now,
                (assembly_by_hand, trace_by_hand),
            ));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// The matrix product of today, on tiles and by hand, by the same compiler.
#[test]
fn the_matrix_product_on_tiles_has_no_more_index_arithmetic_than_by_hand() {
    let entry = ENTRIES.iter().find(|entry| entry.name == "matmul").unwrap();
    let values = Settings::defaults(entry.parameters);
    let tiles = entry.build_for(&values, Target::SM_80).unwrap().trace(Target::SM_80).unwrap();
    let hand = by_hand::matmul_by_hand::new().traced(Target::SM_80).unwrap();
    let (tiles, hand) = (counts(&tiles, Target::SM_80), counts(&hand, Target::SM_80));
    assert!(tiles.0 <= hand.0 && tiles.1 <= hand.1, "{tiles:?} on tiles, {hand:?} by hand");
    assert!(tiles.0 <= 246 && tiles.1 <= 467, "{tiles:?} on tiles are more than before");
}

/// What is compared computes the product.
#[test]
fn the_product_by_hand_is_right() {
    let device = Device::emulator(Target::SM_80).unwrap();
    let (m, n, k) = (130, 264, 192);
    let number = |seed: usize, at: usize| ((at * 7 + seed) % 5) as f32 - 2.0;
    let a: Vec<half::f16> = (0..m * k).map(|at| half::f16::from_f32(number(1, at))).collect();
    let b: Vec<half::f16> = (0..k * n).map(|at| half::f16::from_f32(number(3, at))).collect();
    let (a, b) = (device.tensor_from_slice(&a, [m, k]).unwrap(), device.tensor_from_slice(&b, [k, n]).unwrap());
    let mut c = device.tensor_uninit::<f32, 2>([m, n]).unwrap();
    let grid = [m.div_ceil(128) * n.div_ceil(256), 1, 1];
    by_hand::matmul_by_hand::new().grid(grid).launch(&device, (&a, &b, &mut c)).unwrap();
    let got = c.to_vec().unwrap();
    for (at, got) in got.iter().enumerate() {
        let (i, j) = (at / n, at % n);
        let sum: f32 = (0..k).map(|k_at| number(1, i * k + k_at) * number(3, k_at * n + j)).sum();
        assert_eq!(*got, sum, "at {i}, {j}");
    }
}

//! The table against the manuals' formulas, and against itself.

use std::collections::BTreeSet;

use super::spec::Chips;
use super::*;
use crate::{ScalarType, Target};

/// Where value `v` of lane `t` lies, as the manuals write it; `None` for rows with no such formula here.
fn by_the_manual(spec: &MmaSpec, role: Role, t: usize, v: usize) -> Option<(usize, usize)> {
    let [m, n, k] = spec.shape;
    let (group, thread) = (t / 4, t % 4);
    Some(match (spec.op, role) {
        // PTX ISA: "row = groupID for ci where i < 2, groupID + 8 else; col = threadID_in_group * 2 + (i & 1)".
        (MatrixOp::MmaSync, Role::C) => (group + if v < 2 { 0 } else { 8 }, thread * 2 + (v & 1)),
        (MatrixOp::MmaSync, _) => {
            // Elements of a 32-bit register, and k of the half of registers that starts the second half of k.
            let per_register = if spec.kind == "tf32" { 1 } else { 32 / spec.a.element.bytes() / 8 };
            let (register, part) = (v / per_register, v % per_register);
            let half = 4 * per_register;
            match role {
                Role::A => (group + 8 * (register % 2), thread * per_register + part + half * (register / 2)),
                _ => (group, thread * per_register + part + half * register),
            }
        }
        // AMD's matrix calculator: "k = E * (lane / size) + e" and the rules of the results.
        (MatrixOp::Mfma, Role::A | Role::B) => {
            let size = if role == Role::A { m } else { n };
            let per_lane = spec.operand(role).values();
            let at =
                if per_lane == 32 { k / 2 * (v / 16) + 16 * (t / size) + v % 16 } else { per_lane * (t / size) + v };
            (t % size, at)
        }
        (MatrixOp::Mfma, Role::C) if spec.kind == "f64" => (4 * v + t / 16, t % 16),
        (MatrixOp::Mfma, Role::C) if m == 32 => (8 * (v / 4) + 4 * (t / 32) + v % 4, t % 32),
        (MatrixOp::Mfma, Role::C) => (4 * (t / 16) + v, t % 16),
        (MatrixOp::Fma, _) => (0, 0),
    })
}

#[test]
fn every_row_is_a_bijection_and_follows_its_manual() {
    for spec in MMA_TABLE {
        for role in [Role::A, Role::B, Role::C] {
            let operand = spec.operand(role);
            let [rows, columns] = spec.extents(role);
            let layout = operand.tv.layout().unwrap();
            assert_eq!(operand.threads() * operand.values(), rows * columns, "{} {role}", spec.name());
            assert_eq!(operand.values() % operand.pack, 0, "{} {role}", spec.name());
            let mut seen = BTreeSet::new();
            for t in 0..operand.threads() {
                for v in 0..operand.values() {
                    let index = operand.tv.index(t, v);
                    assert_eq!(layout.crd2idx((t, v)).unwrap(), index as i64);
                    seen.insert(index);
                    let wanted = by_the_manual(spec, role, t, v).unwrap();
                    assert_eq!((index % rows, index / rows), wanted, "{} {role}: lane {t}, value {v}", spec.name());
                }
            }
            assert_eq!(seen.len(), rows * columns, "{} {role} has holes", spec.name());
        }
        assert_eq!([spec.a.threads(), spec.b.threads()], [spec.threads(); 2], "{}", spec.name());
        assert!(spec.isa.contains("ISA"), "{} cites nothing", spec.name());
    }
}

#[test]
fn names_and_attributes_find_their_row() {
    let names: BTreeSet<_> = MMA_TABLE.iter().map(MmaSpec::name).collect();
    assert_eq!(names.len(), MMA_TABLE.len(), "a row is twice");
    for spec in MMA_TABLE {
        assert_eq!(MmaSpec::find(spec.op, spec.shape, spec.kind), Some(spec));
        let warp = |target: &Target| target.warp_size() as usize;
        for target in Target::ALL.iter().filter(|target| spec.legal_on(**target).is_ok()) {
            assert!(spec.threads() == warp(target) || spec.chips == Chips::All, "{} on {target}", spec.name());
        }
        assert!(Target::ALL.iter().any(|target| spec.legal_on(*target).is_ok()), "{} exists nowhere", spec.name());
    }
}

/// Whether each thread holds the same elements of accumulators, side by side or one above the other, as of factors.
fn accumulator_is(spec: &MmaSpec, role: Role) -> bool {
    let [m, n, k] = spec.shape;
    // D of M x N becomes an A of M x K, N along k, or a B of N x K, M along k.
    let along = if role == Role::A { n } else { m };
    if !spec.operand(role).element.is_float() || k % along != 0 && along % k != 0 {
        return false;
    }
    let total = k.max(along);
    // The (row, k) of a thread's values of so many blocks.
    let held = |of: Role, t: usize| -> BTreeSet<(usize, usize)> {
        let operand = spec.operand(of);
        let rows = spec.extents(of)[0];
        let step = if of == Role::C { along } else { k };
        let values = (0..operand.values()).map(|v| operand.tv.index(t, v)).map(|index| (index % rows, index / rows));
        let values: Vec<_> =
            values.map(|(i, j)| if of == Role::C && role == Role::B { (j, i) } else { (i, j) }).collect();
        (0..total / step).flat_map(|block| values.iter().map(move |&(i, j)| (i, j + block * step))).collect()
    };
    (0..spec.threads()).all(|t| held(Role::C, t) == held(role, t))
}

#[test]
fn accumulators_convert_exactly_where_the_layouts_agree() {
    let names = |role| {
        let specs = MMA_TABLE.iter().filter(|spec| spec.threads() > 1 && accumulator_is(spec, role));
        specs.map(MmaSpec::name).collect::<Vec<_>>().join(" ")
    };
    // Traits `AccumulatorAsA` and `AccumulatorAsB` are implemented for these.
    assert_eq!(names(Role::A), "mma_sync.16x8x16.f16 mma_sync.16x8x16.bf16 mma_sync.16x8x8.f16 mma_sync.16x8x8.bf16");
    assert_eq!(
        names(Role::B),
        "mfma.32x32x8.f16 mfma.32x32x8.bf16 mfma.16x16x16.f16 mfma.16x16x16.bf16 mfma.16x16x4.f64"
    );
}

#[test]
fn refusals_say_where_an_instruction_exists() {
    let find = |op, shape, kind| MmaSpec::find(op, shape, kind).unwrap();
    let fp8 = find(MatrixOp::MmaSync, [16, 8, 32], "e4m3.e4m3");
    assert_eq!(fp8.legal_on(Target::SM_80).unwrap_err(), "it needs sm_89 or later");
    assert_eq!(fp8.legal_on(Target::SM_90A), Ok(()));
    assert!(fp8.legal_on(Target::GFX942).unwrap_err().contains("use an `Mfma` atom"));
    let wide = find(MatrixOp::Mfma, [32, 32, 16], "f16");
    assert_eq!(wide.legal_on(Target::GFX942).unwrap_err(), "it exists on gfx950 only");
    assert_eq!(wide.a.element, ScalarType::F16);
}

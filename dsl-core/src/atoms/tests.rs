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
            let per_register = if spec.a.element.bytes() >= 4 { 1 } else { 32 / spec.a.element.bytes() / 8 };
            let (register, part) = (v / per_register, v % per_register);
            let half = 4 * per_register;
            match role {
                Role::A => (group + 8 * (register % 2), thread * per_register + part + half * (register / 2)),
                _ => (group, thread * per_register + part + half * register),
            }
        }
        // AMD's matrix calculator: "k = E * (lane / size) + e" and the rules of the results.
        // "lane = (k / E) * dim * B + b * dim + i, element e = k % E" for B blocks side by side.
        (MatrixOp::Mfma, Role::A | Role::B) if spec.blocks > 1 => {
            let (size, per_lane) = (if role == Role::A { m } else { n }, spec.operand(role).values());
            let (block, at) = (t / size % spec.blocks, per_lane * (t / (size * spec.blocks)) + v);
            (t % size, at + k * block)
        }
        (MatrixOp::Mfma, Role::C) if spec.blocks > 1 => {
            let (row, column, block) = match (m, spec.kind) {
                (4, "f64") => (t / 16, t % 4, t / 4 % 4),
                (4, _) => (v, t % 4, t / 4),
                (16, _) => (4 * (t / 16) + v % 4, t % 16, v / 4),
                _ => (8 * (v % 16 / 4) + 4 * (t / 32) + v % 4, t % 32, v / 16),
            };
            (row, column + n * block)
        }
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
    if spec.blocks > 1 || !spec.operand(role).element.is_float() || k % along != 0 && along % k != 0 {
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
    assert_eq!(
        names(Role::A),
        "mma_sync.16x8x16.f16 mma_sync.16x8x16.bf16 mma_sync.16x8x8.f16 mma_sync.16x8x8.bf16 mma_sync.16x8x16.f16+f16 \
         mma_sync.16x8x8.f16+f16"
    );
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

#[test]
fn copies_name_and_get_the_same_bits() {
    let mut names = BTreeSet::new();
    for spec in COPY_TABLE {
        assert!(names.insert(spec.name), "{} is twice", spec.name);
        assert!(spec.isa.contains("ISA") && spec.from != spec.to, "{}", spec.name);
        let bits = |tv: &Tv, threads: usize, bits: usize| -> BTreeSet<usize> {
            (0..threads).flat_map(|t| (0..bits).map(move |v| tv.index(t, v))).collect()
        };
        let held = bits(spec.held(), spec.threads(), spec.bits());
        // Each bit has one place, and those are what the other side names.
        assert_eq!(held.len(), spec.threads() * spec.bits(), "{}", spec.name);
        let values = spec.named().value.iter().map(|&(extent, _)| extent as usize).product();
        assert_eq!(bits(spec.named(), spec.threads(), values), held, "{}", spec.name);
        assert!(spec.movement().is_ok() || spec.threads() > 1, "{}", spec.name);
    }
    let x4 = COPY_TABLE.iter().find(|spec| spec.name == "ldmatrix.x4").unwrap();
    assert!(x4.legal_on(Target::SM_80).is_ok());
    assert_eq!(x4.legal_on(Target::GFX942).unwrap_err(), "`ldmatrix.x4` does not exist on gfx942");
    for (count, trans) in [(1, false), (2, true), (4, false)] {
        // What `ldmatrix` reads, `stmatrix` writes.
        let [load, store] = [false, true].map(|store| CopySpec::of_matrices(store, count, trans).unwrap());
        assert_eq!((load.held(), load.named()), (store.held(), store.named()));
        assert!(store.legal_on(Target::SM_80).is_err() && store.legal_on(Target::SM_90A).is_ok());
    }
    assert_eq!(CopySpec::of_matrices(true, 3, false), None);
    // Thread 5 gets bits 32 to 63 of row 1: thread 1's.
    assert_eq!(x4.movement().unwrap().crd2idx((5, 3)).unwrap(), 1 + 32 * (32 + 3));
}

mod messages {
    //! What a kernel is told about tiles that do not go together.

    use crate::Target;
    use crate::atoms::*;
    use crate::layout;
    use crate::types::testing::{messages, trace_with};
    use crate::types::{F16, F32, I32, Tensor, TensorMut};

    type Atom = MmaSync<16, 8, 16, F16>;

    fn said<P: crate::rt::KernelParams + Clone + 'static>(body: impl Fn(P) + Clone + 'static) -> Vec<String> {
        messages(trace_with(Target::SM_80, [128, 1, 1], body))
    }

    #[test]
    fn layouts_that_are_not_defined_end_the_trace_at_their_line() {
        let text = trace_with(Target::SM_80, [128, 1, 1], |(_x,): (I32,)| {
            let _ = shared_tensor::<F16>("tile", layout![(8, 8); 1]);
        })
        .unwrap_err()
        .to_string();
        assert!(text.contains("shape (8,8) and stride 1 are not congruent") && text.contains("tests.rs"), "{text}");
        let refused = said(|(_x,): (I32,)| {
            let rows: layout::Layout =
                layout![(4, 3); (3, 1)].and_then(|rows| rows.composition(layout![6; 1]?)).in_kernel();
            let _ = shared_tensor::<F16>("tile", rows);
        });
        assert_eq!(refused, ["(4,3):(3,1) o 6:1: 6 elements are not a multiple of 4, so they end inside a mode"]);
        let dynamic = said(|(_x,): (I32,)| {
            let _ = shared_tensor::<F16>("tile", "(?0,8):(8,1)".parse::<layout::Layout>());
        });
        assert_eq!(dynamic, ["cosize needs a value that is known at trace time, and ?0 is not"]);
    }

    #[test]
    fn products_and_copies_say_what_does_not_fit() {
        assert_eq!(
            said(|(_x,): (I32,)| {
                let _ = TiledMma::<Atom>::new([2, 1]);
            }),
            ["2 x 1 warps of `mma_sync.16x8x16.f16` are 64 threads"]
        );
        assert_eq!(
            said(|(_x,): (I32,)| drop(TiledMma::<Atom>::new([4, 1]).accumulators(72, 8))),
            ["operand C of 18 x 8 elements is no grid of atoms"]
        );
        assert_eq!(
            said(|(_x,): (I32,)| drop(TiledMma::<Atom>::new([4, 1]).accumulators(62, 8)))[0],
            "a tile of 62 x 8 does not divide among 4 x 1 warps"
        );
        let grids = said(|(_x,): (I32,)| {
            let a = FragmentA::<Atom>::splat(16, 16, F16::from(0.0));
            let b = FragmentB::<Atom>::splat(16, 16, F16::from(0.0));
            gemm(&a, &b, &mut FragmentC::<Atom>::zeros(16, 8));
        });
        assert_eq!(grids, ["these tiles do not multiply: A is 1 x 1 atoms and B 2 x 1 for 1 x 1 sums"]);
        let lacks = said(|(_x,): (I32,)| {
            type Wide = MmaSync<16, 8, 32, crate::types::F8E4M3>;
            let a = FragmentA::<Wide>::splat(16, 32, 0.0f32.into_fp8());
            let b = FragmentB::<Wide>::splat(8, 32, 0.0f32.into_fp8());
            gemm(&a, &b, &mut FragmentC::<Wide>::zeros(16, 8));
        });
        assert_eq!(lacks, ["`mma_sync.16x8x32.e4m3.e4m3` does not exist on sm_80"]);
        let threads = said(|(_x,): (I32,)| drop(TiledCopy::<F16>::new(CopyAtom::Registers, layout![(8, 8)], [1, 1])));
        assert_eq!(threads, ["a copy by 64 threads in a block of 128"]);
        let tile = said(|(x,): (Tensor<F32, 2>,)| {
            let tiled = TiledCopy::<F32>::new(CopyAtom::Registers, layout![(16, 8)], [1, 4]);
            let to = shared_tensor::<F32>("to", layout![(16, 46)]);
            copy(&tiled, &tiled.partition_global(&x.tile([16, 46], (0, 0))), &tiled.partition_shared(&to));
        });
        assert_eq!(tile, ["a tile of 16 x 46 in pieces of 1 x 4"]);
        let nested = said(|(_x,): (I32,)| {
            let tiled = TiledCopy::<F32>::new(CopyAtom::Registers, layout![(16, 8)], [1, 4]);
            let _ = tiled.partition_shared(&shared_tensor::<F32>("to", layout![((3, 8), 32); ((32, 100), 1)]));
        });
        assert_eq!(nested, ["Sw<0,0,0> o 0 o ((3,8),32):((32,100),1) does not divide among the threads of this copy"]);
        let foreign = said(|(x,): (Tensor<F32, 2>,)| {
            let tiled = TiledCopy::<F32>::new(CopyAtom::Registers, layout![(16, 8)], [1, 4]);
            let other = TiledCopy::<F32>::new(CopyAtom::Registers, layout![(8, 16)], [1, 4]);
            let to = shared_tensor::<F32>("to", layout![(16, 64)]);
            copy(&tiled, &other.partition_global(&x.tile([16, 64], (0, 0))), &tiled.partition_shared(&to));
        });
        assert_eq!(foreign, ["these parts are of another copy: its threads have other elements"]);
        let rows = said(|(_x,): (I32,)| drop(TiledCopy::<F32>::rows(CopyAtom::Registers, 128, 20, 8)));
        assert_eq!(rows, ["rows of 20 elements in pieces of 8"]);
        let few = said(|(_x,): (I32,)| drop(TiledCopy::<F32>::rows(CopyAtom::Registers, 96, 48, 4)));
        assert_eq!(few, ["a copy by 96 threads in a block of 128"]);
        let nothing = said(|(_x,): (I32,)| {
            let _ = TiledCopy::<F32>::new(CopyAtom::Registers, layout![(16, 8)], [0, 4]);
        });
        assert_eq!(nothing, ["a copy of 0 x 4 elements a thread"]);
        let none = said(|(_x,): (I32,)| {
            let _ = TiledMma::<Atom>::new([4, 0]);
        });
        assert_eq!(none[0], "4 x 0 warps: there is at least one along each");
        let shapes = said(|(x,): (Tensor<F32, 2>,)| {
            let tiled = TiledCopy::<F32>::new(CopyAtom::Registers, layout![(16, 8)], [1, 4]);
            let to = shared_tensor::<F32>("to", layout![(16, 64)]);
            copy(&tiled, &tiled.partition_global(&x.tile([16, 32], (0, 0))), &tiled.partition_shared(&to));
        });
        assert_eq!(shapes, ["a tile of [16, 32] elements to one of [16, 64]"]);
        let width = said(|(x,): (Tensor<F32, 2>,)| {
            let _ = x.tile([16, 32], (0, 0)).vectors(8);
        });
        assert_eq!(width, ["vectors of 8 elements of 4 bytes"]);
        let stage = said(|(i,): (I32,)| {
            let _ = shared_tensor::<F16>("s", layout![(8, 8, 2)]).stage(i).stage(9);
        });
        assert_eq!(stage, ["stage 9 of 8"]);
    }

    /// Numbers that no tile has are refused where they are given, and nothing is written out for them.
    #[test]
    fn sizes_at_the_ends_are_refused() {
        const HUGE: usize = usize::MAX / 2;
        let empty = said(|(x,): (Tensor<F32, 2>,)| {
            let _ = x.tile([0, 32], (0, 0));
        });
        assert_eq!(empty, ["a tile of 0 x 32 elements"]);
        let huge = format!("a tile of 32 x {HUGE} elements");
        let wide = said(|(x,): (Tensor<F32, 2>,)| {
            let _ = x.tile([32, HUGE], (0, 0));
        });
        assert_eq!(wide, [huge]);
        let threads = said(|(_x,): (I32,)| {
            let _ = TiledCopy::<F32>::new(CopyAtom::Registers, layout![(1_usize << 40, 8)], [1, 1]);
        });
        assert_eq!(threads, ["a number of threads of 8796093022208: a block has at most 1024"]);
        let values = said(|(_x,): (I32,)| {
            let _ = TiledCopy::<F32>::new(CopyAtom::Registers, layout![(16, 8)], [HUGE, HUGE]);
        });
        assert_eq!(values, [format!("a copy of {HUGE} x {HUGE} elements a thread")]);
        let none = said(|(_x,): (I32,)| drop(TiledCopy::<F32>::rows(CopyAtom::Registers, 0, 8, 4)));
        assert_eq!(none, ["an extent of 0: extents start at 1"]);
        let warps = said(|(_x,): (I32,)| {
            let _ = TiledMma::<Atom>::new([HUGE, HUGE]);
        });
        assert_eq!(warps.len(), 1, "{warps:?}");
        let side = 1 << 40;
        let sums = said(move |(_x,): (I32,)| drop(FragmentC::<Atom>::zeros(side, side)));
        assert_eq!(sums, [format!("operand C of {side} x {side} elements in the registers of one warp")]);
        let broadcast = said(|(_x,): (I32,)| {
            let tiled = TiledCopy::<F32>::new(CopyAtom::Registers, layout![(16, 8)], [1, 4]);
            let _ = tiled.partition_shared(&shared_tensor::<F32>("to", layout![(1 << 30, 1 << 30); (0, 0)]));
        });
        assert!(broadcast[0].starts_with("a tile's size of"), "{broadcast:?}");
        let access = WarpAccess { lanes: vec![[1, 0]], bytes: 4, store: false };
        let far = layout![(2, 1); (1_i64 << 61, 1)].into_layout().unwrap();
        assert!(access_conflicts(Target::SM_80, &far, HUGE, &access).is_err());
    }

    /// What does not go together is refused where it is put together, and not written to other elements.
    #[test]
    fn parts_that_do_not_go_together_are_refused() {
        let sums = "sums of 16 x 32 elements for a warp's part of 8 x 32";
        let global = said(|(x,): (TensorMut<F32, 2>,)| {
            let mma = TiledMma::<Atom>::new([4, 1]);
            mma.partition_c(&x.tile([32, 32], (0, 0))).store(&mma.accumulators(64, 32));
        });
        assert_eq!(global, [sums]);
        let shared = said(|(_x,): (I32,)| {
            let mma = TiledMma::<Atom>::new([4, 1]);
            mma.store_c(&mma.accumulators(64, 32), &shared_tensor::<F16>("s", layout![(64, 16); (16, 1)]));
        });
        assert_eq!(shared, ["sums of 16 x 32 elements for a warp's part of 16 x 16"]);
        let step = said(|(x,): (Tensor<F16, 2>,)| {
            drop(TiledMma::<Atom>::new([4, 1]).partition_a_global(&x.tile([64, 32], (0, 0))).load(2));
        });
        assert_eq!(step, ["step 2 of 2 along k"]);
        let register = said(|(_x,): (I32,)| {
            let _ = FragmentA::<Atom>::splat(32, 16, F16::from(0.0)).register::<2>([0, 1], 0);
        });
        assert_eq!(register, ["register 0 of atom (0, 1) as a vector of 2"]);
        let vectors = said(|(x,): (Tensor<F32, 2>,)| {
            let _ = x.tile([16, 32], (0, 0)).vectors(1 << 63);
        });
        assert_eq!(vectors, [format!("vectors of {} elements of 4 bytes", 1_u64 << 63)]);
        let along = said(|(x,): (Tensor<F32, 2>,)| {
            let _ = x.tile([16, 32], (0, 0)).whole_along(2);
        });
        assert_eq!(along, ["dimension 2 of a tile, which has rows (0) and columns (1)"]);
        let extent = said(|(x,): (Tensor<F32, 2>,)| {
            let _ = x.tile([16, 32], (0, 0)).with_extent(1, 33);
        });
        assert_eq!(extent, ["33 elements along dimension 1 of a tile of [16, 32]"]);
        let warps = said(|(_x,): (I32,)| {
            let mma = TiledMma::<Atom>::new([usize::MAX, 2]);
            let _ = mma.partition_a(&shared_tensor::<F16>("s", layout![(16, 16); (16, 1)]));
            assert_eq!(mma.threads(), 32);
        });
        assert!(warps[0].starts_with(&format!("{} x 2 warps", usize::MAX)), "{warps:?}");
        let foreign = said(|(_x,): (I32,)| {
            let tile = shared_tensor::<F32>("s", layout![(16, 64); (64, 1)]);
            let tiled = |rows: usize| TiledCopy::<F32>::new(CopyAtom::Registers, layout![(rows, 128 / rows)], [1, 4]);
            tiled(16).partition_shared(&tile).map(&tiled(8), |x| x);
        });
        assert_eq!(foreign, ["these parts are of another copy: its threads have other elements"]);
    }

    #[test]
    fn parts_of_shared_tensors_stay_inside() {
        let rank = said(|(_x,): (I32,)| drop(shared_tensor::<F16>("s", layout![(8, 8, 2)]).transposed()));
        assert_eq!(rank, ["the transpose of Sw<0,0,0> o 0 o (8,8,2):(1,8,64), which has 3 modes"]);
        let beyond =
            said(|(_x,): (I32,)| drop(shared_tensor::<F16>("s", layout![(32, 8); (8, 1)]).local_tile((24, 8), (1, 0))));
        assert_eq!(beyond, ["the tile Sw<0,0,0> o 192 o (24,8):(8,1) reaches element 384 of 256"]);
    }

    /// Stages that are an odd number of elements apart cannot be read by wide accesses, of which one alone could be.
    #[test]
    fn vectors_are_aligned_in_every_stage() {
        let loads = |stride: usize| {
            let text = crate::types::testing::body(trace_with(Target::SM_80, [128, 1, 1], move |(i,): (I32,)| {
                let tile = shared_tensor::<F16>("s", layout![(64, 16, 2); (16, 1, stride)]).stage(i);
                let _ = TiledMma::<Atom>::new([4, 1]).partition_a(&tile).load(0);
            }));
            (text.matches("lw.ldmatrix").count(), text.matches("align = 2").count(), text.matches("align = 4").count())
        };
        assert_eq!(loads(1024), (1, 0, 0));
        assert_eq!(loads(1025), (0, 8, 0));
        assert_eq!(loads(1026), (0, 0, 4));
    }

    trait IntoFp8 {
        fn into_fp8(self) -> crate::types::F8E4M3;
    }
    impl IntoFp8 for f32 {
        fn into_fp8(self) -> crate::types::F8E4M3 {
            crate::types::F8E4M3::from(float8::F8E4M3::from_f32(self))
        }
    }
}

mod offsets {
    //! Offsets under swizzles against the swizzle itself.

    use super::super::offset::Offset;
    use crate::layout::{ComposedLayout, Layout, Swizzle};
    use crate::types::testing::{body, trace_body};
    use crate::types::*;
    use crate::{atoms::*, layout};

    /// Four lanes' worth of bits below, constants above and inside of the swizzle's target: sums, xors, immediates.
    #[test]
    fn what_is_known_stays_an_immediate_under_a_swizzle() {
        let text = body(trace_body(|(_x,): (I32,)| {
            let swizzled = ComposedLayout::new(Swizzle::new(3, 3, 3).unwrap(), layout![(64, 64); (64, 1)].unwrap());
            let tile = shared_tensor::<F16>("tile", swizzled);
            let part = TiledMma::<MmaSync<16, 8, 16, F16>>::new([4, 1]).partition_a(&tile);
            for step in 0..4 {
                let _ = part.load(step);
            }
        }));
        // The thread's offset is swizzled once; steps of 16 columns are one xor each.
        assert_eq!(text.matches("arith.xori").count(), 1 + 3, "{text}");
        assert_eq!(text.matches("lw.ldmatrix").count(), 4, "{text}");
    }

    /// Values of run time that may carry into the constant are swizzled as a sum.
    #[test]
    fn a_sum_that_may_carry_is_swizzled_whole() {
        let swizzle = Swizzle::new(2, 1, 3).unwrap();
        let text = body(trace_body(move |(x,): (I32,)| {
            let offset = Offset::run_time(x.raw(), 7, 1).plus(Offset::known(4), std::panic::Location::caller());
            let swizzled = offset.swizzled(swizzle, std::panic::Location::caller());
            assert_eq!(swizzled.known, 0);
            let apart = Offset::run_time(x.raw(), 7, 1).plus(Offset::known(64), std::panic::Location::caller());
            assert_eq!(apart.swizzled(swizzle, std::panic::Location::caller()).known, 64);
        }));
        assert_eq!(text.matches("arith.addi").count(), 1, "{text}");
    }

    /// A number's coordinate takes bits apart where extents are powers of two, and divides by what is known of run time.
    #[test]
    fn coordinates_of_numbers_are_computed() {
        let text = body(trace_body(|(number, columns): (I32, I32)| {
            let _ = coordinate_of(&layout![(16, 4)].in_kernel(), number, []);
            let _ = coordinate_of(&"(?0,16):(16,1)".parse::<Layout>().in_kernel(), number, [columns]);
            let _ = coordinate_of(&layout![(16, 4)].in_kernel(), I32::from(35), []);
        }));
        insta::assert_snapshot!(text, @"
        %c16_i32 = arith.constant 16 : i32
        %c15_i32 = arith.constant 15 : i32
        %0 = arith.andi %arg0, %c15_i32 : i32
        %c4_i32 = arith.constant 4 : i32
        %1 = arith.shrui %arg0, %c4_i32 : i32
        %2 = arith.remui %arg0, %arg1 : i32
        %3 = arith.divui %arg0, %arg1 : i32
        %c35_i32 = arith.constant 35 : i32
        %c3_i32 = arith.constant 3 : i32
        %c2_i32 = arith.constant 2 : i32
        ");
        let text = body(trace_body(|(number,): (I32,)| {
            let _ = coordinate_of(&"(?0,16):(16,1)".parse::<Layout>().in_kernel(), number, []);
        }));
        assert!(text.contains("an index needs a value that is known at trace time, and ?0 is not"), "{text}");
    }

    /// Dynamic extents and strides in `I64`, a swizzle in `I32`.
    #[test]
    fn indices_of_kernel_values_fold_what_is_known() {
        let text = body(trace_body(|(row, column, pitch): (I64, I64, I64)| {
            let rows: Layout = "(?1,64):(?0,1)".parse().in_kernel();
            let _ = offset_of(&rows, [row, column], [pitch, pitch]);
            let _ = offset_of(&layout![(8, (2, 4)); (8, (4, 1))].in_kernel(), [I64::from(1), I64::from(3)], []);
        }));
        insta::assert_snapshot!(text, @"
        %0 = arith.muli %arg0, %arg2 : i64
        %1 = arith.addi %0, %arg1 : i64
        %c1_i64 = arith.constant 1 : i64
        %c3_i64 = arith.constant 3 : i64
        %c13_i64 = arith.constant 13 : i64
        ");
    }
}

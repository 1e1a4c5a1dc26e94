//! Tensor-core operations against definitions written from the instruction sets' tables.

use super::*;
use crate::emulator::numeric::narrow;

/// An element of A, B as f32 from its 16 bits.
fn widen(kind: &str, bits: u16) -> f32 {
    if kind == "f16" { narrow::f16_to_f32(bits) } else { narrow::bf16_to_f32(bits) }
}

fn random_halves(kind: &str, count: usize, seed: u64) -> Vec<u16> {
    let mut random = Random(seed);
    (0..count)
        .map(|_| {
            let value = (random.next() % 2001) as f32 / 500.0 - 2.0;
            if kind == "f16" { narrow::f32_to_f16(value) } else { narrow::f32_to_bf16(value) }
        })
        .collect()
}

fn random_floats(count: usize, seed: u64) -> Vec<f32> {
    let mut random = Random(seed);
    (0..count).map(|_| (random.next() % 2001) as f32 / 500.0 - 2.0).collect()
}

/// D = A B + C with sums in k order. `a(i, k)`, `b(k, j)`, `c(i, j)`.
fn product(
    m: usize,
    n: usize,
    k: usize,
    a: impl Fn(usize, usize) -> f32,
    b: impl Fn(usize, usize) -> f32,
    c: impl Fn(usize, usize) -> f32,
) -> Vec<f32> {
    let mut d = Vec::new();
    for i in 0..m {
        for j in 0..n {
            d.push((0..k).fold(c(i, j), |sum, k| sum + a(i, k) * b(k, j)));
        }
    }
    d
}

#[test]
fn mma_of_halves_follows_ptx() {
    for (kind, k) in [("f16", 16), ("f16", 8), ("bf16", 16), ("bf16", 8)] {
        // Each thread loads its fragments from a[thread][register][2] and so on.
        let (na, nb) = if k == 16 { (4, 2) } else { (2, 1) };
        let pair = format!("vector<2x{kind}>");
        let mut body = THREAD.to_owned();
        for (name, count, ty) in [("a", na, pair.as_str()), ("b", nb, &pair), ("c", 4, "f32")] {
            body += &format!("%{name}n = arith.constant {count} : i64\n%{name}i = arith.muli %tid64, %{name}n : i64\n");
            for i in 0..count {
                body += &format!(
                    "%{name}k{i} = arith.constant {i} : i64\n%{name}j{i} = arith.addi %{name}i, %{name}k{i} : i64\n\
                     %{name}p{i} = llvm.getelementptr %{name}[%{name}j{i}] : (!llvm.ptr<1>, i64) -> !llvm.ptr<1>, i32\n\
                     %{name}{i} = \"lw.load\"(%{name}p{i}) {{align = 4 : i64}} : (!llvm.ptr<1>) -> {ty}\n"
                );
            }
        }
        let list = |name: &str, count: usize| (0..count).map(|i| format!("%{name}{i}")).collect::<Vec<_>>().join(", ");
        body += &format!(
            "%d:4 = \"lw.mma_sync\"({}, {}, {}) {{m = 16 : i64, n = 8 : i64, k = {k} : i64, kind = \"{kind}\", \
             operandSegmentSizes = array<i32: {na}, {nb}, 4>}} : ({}) -> (f32, f32, f32, f32)\n",
            list("a", na),
            list("b", nb),
            list("c", 4),
            [vec![pair.as_str(); na + nb], vec!["f32"; 4]].concat().join(", ")
        );
        for i in 0..4 {
            body += &format!(
                "%dp{i} = llvm.getelementptr %out[%cj{i}] : (!llvm.ptr<1>, i64) -> !llvm.ptr<1>, f32\n\
                 \"lw.store\"(%d#{i}, %dp{i}) {{align = 4 : i64}} : (f32, !llvm.ptr<1>) -> ()\n"
            );
        }
        let kernel = Kernel { args: "a:in b:in c:in out:out", body: &body, ..Kernel::default() };
        let (a, b, c) =
            (random_halves(kind, 32 * na * 2, 1), random_halves(kind, 32 * nb * 2, 9999), random_floats(128, 77));
        let results = kernel.run([1, 1, 1], &[u16s(&a), u16s(&b), f32s(&c), Arg::Uninit(512)]);
        let d = to_f32s(results.last().unwrap());

        // PTX ISA, m16n8k16: with group = lane / 4 and t = lane % 4, register r and part p of A hold row
        // group + 8 (r % 2) and column 2 t + p + 8 (r / 2); of B row 2 t + p + 8 r and column group;
        // register r of C has row group + 8 (r / 2) and column 2 t + r % 2.
        let mut dense_a = vec![f32::NAN; 16 * k];
        let mut dense_b = vec![f32::NAN; k * 8];
        let mut dense_c = vec![f32::NAN; 16 * 8];
        for lane in 0..32 {
            let (group, t) = (lane / 4, lane % 4);
            for r in 0..na {
                for p in 0..2 {
                    dense_a[(group + 8 * (r % 2)) * k + 2 * t + p + 8 * (r / 2)] =
                        widen(kind, a[(lane * na + r) * 2 + p]);
                }
            }
            for r in 0..nb {
                for p in 0..2 {
                    dense_b[(2 * t + p + 8 * r) * 8 + group] = widen(kind, b[(lane * nb + r) * 2 + p]);
                }
            }
            for r in 0..4 {
                dense_c[(group + 8 * (r / 2)) * 8 + 2 * t + r % 2] = c[lane * 4 + r];
            }
        }
        let expected =
            product(16, 8, k, |i, l| dense_a[i * k + l], |l, j| dense_b[l * 8 + j], |i, j| dense_c[i * 8 + j]);
        for lane in 0..32 {
            for r in 0..4 {
                let at = (lane / 4 + 8 * (r / 2)) * 8 + 2 * (lane % 4) + r % 2;
                assert_eq!(d[lane * 4 + r].to_bits(), expected[at].to_bits(), "{kind} k{k} lane {lane} register {r}");
            }
        }
    }
}

#[test]
fn mma_of_tf32_follows_ptx() {
    let mut body = THREAD.to_owned();
    for (name, count) in [("a", 4), ("b", 2), ("c", 4)] {
        body += &format!("%{name}n = arith.constant {count} : i64\n%{name}i = arith.muli %tid64, %{name}n : i64\n");
        for i in 0..count {
            body += &format!(
                "%{name}k{i} = arith.constant {i} : i64\n%{name}j{i} = arith.addi %{name}i, %{name}k{i} : i64\n\
                 %{name}p{i} = llvm.getelementptr %{name}[%{name}j{i}] : (!llvm.ptr<1>, i64) -> !llvm.ptr<1>, f32\n\
                 %{name}{i} = \"lw.load\"(%{name}p{i}) {{align = 4 : i64}} : (!llvm.ptr<1>) -> f32\n"
            );
        }
    }
    body += "%d:4 = \"lw.mma_sync\"(%a0, %a1, %a2, %a3, %b0, %b1, %c0, %c1, %c2, %c3) {m = 16 : i64, n = 8 : i64, k = 8 : i64, \
             kind = \"tf32\", operandSegmentSizes = array<i32: 4, 2, 4>} : \
             (f32, f32, f32, f32, f32, f32, f32, f32, f32, f32) -> (f32, f32, f32, f32)\n";
    for i in 0..4 {
        body += &format!(
            "%dp{i} = llvm.getelementptr %out[%cj{i}] : (!llvm.ptr<1>, i64) -> !llvm.ptr<1>, f32\n\
             \"lw.store\"(%d#{i}, %dp{i}) {{align = 4 : i64}} : (f32, !llvm.ptr<1>) -> ()\n"
        );
    }
    let kernel = Kernel { args: "a:in b:in c:in out:out", body: &body, ..Kernel::default() };
    let (a, b, c) = (random_floats(128, 1), random_floats(64, 900), random_floats(128, 2000));
    let d = to_f32s(kernel.run([1, 1, 1], &[f32s(&a), f32s(&b), f32s(&c), Arg::Uninit(512)]).last().unwrap());
    let tf32 = |x: f32| f32::from_bits(x.to_bits() & !0x1fff);
    let (mut dense_a, mut dense_b, mut dense_c) = ([0.0; 128], [0.0; 64], [0.0; 128]);
    for lane in 0..32 {
        let (group, t) = (lane / 4, lane % 4);
        for r in 0..4 {
            dense_a[(group + 8 * (r % 2)) * 8 + t + 4 * (r / 2)] = tf32(a[lane * 4 + r]);
            dense_c[(group + 8 * (r / 2)) * 8 + 2 * t + r % 2] = c[lane * 4 + r];
        }
        for r in 0..2 {
            dense_b[(t + 4 * r) * 8 + group] = tf32(b[lane * 2 + r]);
        }
    }
    let expected = product(16, 8, 8, |i, l| dense_a[i * 8 + l], |l, j| dense_b[l * 8 + j], |i, j| dense_c[i * 8 + j]);
    for lane in 0..32 {
        for r in 0..4 {
            let at = (lane / 4 + 8 * (r / 2)) * 8 + 2 * (lane % 4) + r % 2;
            assert_eq!(d[lane * 4 + r].to_bits(), expected[at].to_bits(), "lane {lane} register {r}");
        }
    }
}

#[test]
fn mfma_follows_cdna3() {
    for (kind, size, k, registers) in [("f16", 32, 8, 16), ("bf16", 32, 8, 16), ("f16", 16, 16, 4), ("bf16", 16, 16, 4)]
    {
        let quad = format!("vector<4x{kind}>");
        let mut body = format!("{THREAD}{}{}", load("a", &quad), load("b", &quad));
        body += &format!("%n = arith.constant {registers} : i64\n%base = arith.muli %tid64, %n : i64\n");
        for i in 0..registers {
            body += &format!(
                "%k{i} = arith.constant {i} : i64\n%j{i} = arith.addi %base, %k{i} : i64\n\
                 %p{i} = llvm.getelementptr %c[%j{i}] : (!llvm.ptr<1>, i64) -> !llvm.ptr<1>, f32\n\
                 %c{i} = \"lw.load\"(%p{i}) {{align = 4 : i64}} : (!llvm.ptr<1>) -> f32\n"
            );
        }
        let floats = vec!["f32"; registers].join(", ");
        let list = (0..registers).map(|i| format!("%c{i}")).collect::<Vec<_>>().join(", ");
        body += &format!(
            "%d:{registers} = \"lw.mfma\"(%a_v, %b_v, {list}) {{m = {size} : i64, n = {size} : i64, k = {k} : i64, kind = \"{kind}\"}} \
             : ({quad}, {quad}, {floats}) -> ({floats})\n"
        );
        for i in 0..registers {
            body += &format!(
                "%q{i} = llvm.getelementptr %out[%j{i}] : (!llvm.ptr<1>, i64) -> !llvm.ptr<1>, f32\n\
                 \"lw.store\"(%d#{i}, %q{i}) {{align = 4 : i64}} : (f32, !llvm.ptr<1>) -> ()\n"
            );
        }
        let kernel = Kernel {
            target: "gfx942",
            block: [64, 1, 1],
            args: "a:in b:in c:in out:out",
            body: &body,
            ..Kernel::default()
        };
        let (a, b, c) = (random_halves(kind, 256, 5), random_halves(kind, 256, 8000), random_floats(64 * registers, 3));
        let results = kernel.run([1, 1, 1], &[u16s(&a), u16s(&b), f32s(&c), Arg::Uninit(256 * registers)]);
        let d = to_f32s(results.last().unwrap());
        // AMD's matrix calculator, v_mfma_f32_32x32x8_f16 and 16x16x16: A[i][k] and B[k][j] lie in lane
        // size * (k / 4) + i, element k % 4; D[i][j] as below.
        let element = |v: &[u16], index: usize, k: usize| widen(kind, v[(size * (k / 4) + index) * 4 + k % 4]);
        let place = |i: usize, j: usize| {
            let (lane, register) =
                if size == 32 { (32 * (i / 4 % 2) + j, 4 * (i / 8) + i % 4) } else { (16 * (i / 4) + j, i % 4) };
            lane * registers + register
        };
        let expected =
            product(size, size, k, |i, l| element(&a, i, l), |l, j| element(&b, j, l), |i, j| c[place(i, j)]);
        for i in 0..size {
            for j in 0..size {
                assert_eq!(d[place(i, j)].to_bits(), expected[i * size + j].to_bits(), "{kind} {size} at {i}, {j}");
            }
        }
    }
}

/// Fills shared memory with its index as halves, then each lane loads by `ldmatrix`.
pub(super) fn ldmatrix(count: usize, trans: bool) -> Vec<u16> {
    let results = vec!["vector<2xf16>"; count].join(", ");
    // Row addresses: matrix lane / 8, row lane % 8, at pitch 16 bytes and rows reversed within a matrix.
    let mut body = format!(
        "{THREAD}%s = \"lw.shared\"() {{offset = 0 : i64, bytes = 512 : i64, align = 16 : i64, name = \"tile\"}} : () -> !llvm.ptr<3>\n\
         %c1 = arith.constant 1 : i32\n%c8 = arith.constant 8 : i32\n%c0 = arith.constant 0 : i32\n%c7 = arith.constant 7 : i32\n%c256 = arith.constant 256 : i32\n%c32 = arith.constant 32 : i32\n\
         scf.for %i = %tid_xi to %c256 step %c32 : i32 {{\n\
           %v = arith.trunci %i : i32 to i16\n%h = arith.bitcast %v : i16 to f16\n\
           %p = llvm.getelementptr %s[%i] : (!llvm.ptr<3>, i32) -> !llvm.ptr<3>, f16\n\
           \"lw.store\"(%h, %p) {{align = 2 : i64}} : (f16, !llvm.ptr<3>) -> ()\n}}\ngpu.barrier\n\
         %row = arith.xori %tid_xi, %c7 : i32\n%at = arith.muli %row, %c8 : i32\n\
         %q = llvm.getelementptr %s[%at] : (!llvm.ptr<3>, i32) -> !llvm.ptr<3>, f16\n\
         %m:{count} = \"lw.ldmatrix\"(%q) {{trans = {trans}}} : (!llvm.ptr<3>) -> ({results})\n\
         %n = arith.constant {count} : i64\n%base = arith.muli %tid64, %n : i64\n"
    );
    for i in 0..count {
        body += &format!(
            "%k{i} = arith.constant {i} : i64\n%j{i} = arith.addi %base, %k{i} : i64\n\
             %o{i} = llvm.getelementptr %out[%j{i}] : (!llvm.ptr<1>, i64) -> !llvm.ptr<1>, i32\n\
             \"lw.store\"(%m#{i}, %o{i}) {{align = 4 : i64}} : (vector<2xf16>, !llvm.ptr<1>) -> ()\n"
        );
    }
    let kernel = Kernel { shared: 512, args: "out:out", body: &body, ..Kernel::default() };
    let result = kernel.run([1, 1, 1], &[Arg::Uninit(128 * count)]).pop().unwrap();
    result.chunks(2).map(|c| u16::from_le_bytes([c[0], c[1]])).collect()
}

#[test]
fn ldmatrix_follows_ptx() {
    for count in [1, 2, 4] {
        for trans in [false, true] {
            let fragments = ldmatrix(count, trans);
            for lane in 0..32 {
                for matrix in 0..count {
                    for part in 0..2 {
                        // Lane l holds row l / 4, columns 2 (l % 4) and one more; transposed the reverse.
                        let (mut row, mut column) = (lane / 4, 2 * (lane % 4) + part);
                        if trans {
                            (row, column) = (column, row);
                        }
                        let expected = (8 * matrix + (row ^ 7)) * 8 + column;
                        let got = fragments[(lane * count + matrix) * 2 + part];
                        assert_eq!(usize::from(got), expected, "x{count} trans {trans} lane {lane} matrix {matrix}");
                    }
                }
            }
        }
    }
}

#[test]
fn a_partial_warp_cannot_multiply() {
    let body = format!(
        "{THREAD}%c5 = arith.constant 5 : i32\n%z = arith.constant dense<0.0> : vector<2xf16>\n%f = arith.constant 0.0 : f32\n\
         %few = arith.cmpi slt, %tid, %c5 : i32\nscf.if %few {{\n\
         %d:4 = \"lw.mma_sync\"(%z, %z, %z, %f, %f, %f, %f) {{m = 16 : i64, n = 8 : i64, k = 8 : i64, kind = \"f16\", \
         operandSegmentSizes = array<i32: 2, 1, 4>}} : (vector<2xf16>, vector<2xf16>, vector<2xf16>, f32, f32, f32, f32) -> (f32, f32, f32, f32)\n}}\n"
    );
    let report = Kernel { body: &body, ..Kernel::default() }.report(&[]);
    assert_eq!(report.kind, crate::emulator::ReportKind::PartialWarp);
    assert_eq!(report.notes, ["lanes 5-31 are elsewhere"]);
}

//! Warpgroup products against a naive model, bit for bit.

use super::*;
use crate::emulator::ReportKind;
use crate::emulator::numeric::narrow::{self, Fp8};

/// One way to lay a tile out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Layout {
    Registers,
    /// K-major and MN-major, with the bytes of the swizzle.
    K(usize),
    Mn(usize),
}

/// A product of 64 x n x k.
#[derive(Clone, Copy, Debug)]
pub(super) struct Product {
    pub(super) kind: &'static str,
    pub(super) n: usize,
    pub(super) k: usize,
    pub(super) a: Layout,
    pub(super) b: Layout,
    pub(super) zero: bool,
    pub(super) seed: u64,
}

impl Product {
    fn size(&self) -> usize {
        if self.kind.starts_with('e') { 1 } else { 2 }
    }

    fn widen(&self, bits: u16) -> f32 {
        match self.kind {
            "f16" => narrow::f16_to_f32(bits),
            "bf16" => narrow::bf16_to_f32(bits),
            "e4m3" => narrow::fp8_to_f32(Fp8::E4m3, bits as u8),
            _ => narrow::fp8_to_f32(Fp8::E5m2, bits as u8),
        }
    }

    fn narrow(&self, value: f32) -> u16 {
        match self.kind {
            "f16" => narrow::f32_to_f16(value),
            "bf16" => narrow::f32_to_bf16(value),
            "e4m3" => narrow::f32_to_fp8(Fp8::E4m3, value, true).into(),
            _ => narrow::f32_to_fp8(Fp8::E5m2, value, true).into(),
        }
    }

    /// A as `[row][k]` and B as `[column][k]`, in the bits of their type.
    pub(super) fn operands(&self) -> (Vec<Vec<u16>>, Vec<Vec<u16>>) {
        let mut random = Random(self.seed);
        let mut matrix = |rows: usize| -> Vec<Vec<u16>> {
            (0..rows)
                .map(|_| (0..self.k).map(|_| self.narrow((random.next() % 2001) as f32 / 500.0 - 2.0)).collect())
                .collect()
        };
        (matrix(64), matrix(self.n))
    }

    /// The bytes of a tile in shared memory.
    pub(super) fn image(&self, layout: Layout, matrix: &[Vec<u16>]) -> Vec<u8> {
        let (size, rows) = (self.size(), matrix.len());
        let (sw, bytes) = match layout {
            Layout::Registers => return Vec::new(),
            Layout::K(sw) => (sw, (self.k * size).div_ceil(sw) * rows * sw),
            Layout::Mn(sw) => (sw, (rows * size).div_ceil(sw) * self.k * sw),
        };
        let mut image = vec![0xff; bytes];
        let per_row = sw / size;
        for (row, elements) in matrix.iter().enumerate() {
            for (k, bits) in elements.iter().enumerate() {
                let at = match layout {
                    Layout::Mn(_) => row / per_row * self.k * sw + k * sw + row % per_row * size,
                    _ => k / per_row * rows * sw + row * sw + k % per_row * size,
                };
                // Bits 4.. are XORed with bits 7..: three of them, two, one.
                let at = (0..(sw / 32).ilog2() + 1).fold(at, |moved, bit| moved ^ (at >> (7 + bit) & 1) << (4 + bit));
                image[at..at + size].copy_from_slice(&bits.to_le_bytes()[..size]);
            }
        }
        image
    }

    pub(super) fn layout_text(&self, layout: Layout, rows: usize) -> String {
        match layout {
            Layout::Registers => "reg".to_owned(),
            Layout::K(sw) => format!("k:{sw}:{rows}"),
            Layout::Mn(sw) => format!("mn:{sw}:{}", self.k),
        }
    }

    /// The attributes of the operation.
    pub(super) fn attributes(&self, fragments: usize) -> String {
        let c = if self.zero { 0 } else { self.n / 2 };
        format!(
            "{{m = 64 : i64, n = {} : i64, k = {} : i64, kind = \"{}\", zero = {}, a_layout = \"{}\", b_layout = \"{}\", \
             operandSegmentSizes = array<i32: {}, 1, {c}>}}",
            self.n,
            self.k,
            self.kind,
            self.zero,
            self.layout_text(self.a, 64),
            self.layout_text(self.b, self.n),
            fragments.max(1),
        )
    }

    pub(super) fn fragment_type(&self) -> &'static str {
        match self.kind {
            "f16" => "vector<2xf16>",
            "bf16" => "vector<2xbf16>",
            "e4m3" => "vector<4xf8E4M3FN>",
            _ => "vector<4xf8E5M2>",
        }
    }

    /// Element type of the operation's types in a list.
    pub(super) fn types(&self, fragments: usize) -> String {
        let mut types = if fragments > 0 { vec![self.fragment_type(); fragments] } else { vec!["!llvm.ptr<3>"] };
        types.push("!llvm.ptr<3>");
        types.extend(std::iter::repeat_n("f32", if self.zero { 0 } else { self.n / 2 }));
        types.join(", ")
    }

    /// A's fragments of each thread: four registers for each step of k.
    pub(super) fn fragments(&self, a: &[Vec<u16>]) -> Vec<u8> {
        let per_register = 4 / self.size();
        let step = 32 / self.size();
        let mut bytes = Vec::new();
        for thread in 0..128 {
            let (warp, lane) = (thread / 32, thread % 32);
            for first in (0..self.k).step_by(step) {
                for register in 0..4 {
                    let row = 16 * warp + lane / 4 + 8 * (register % 2);
                    let k = first + register / 2 * (step / 2) + lane % 4 * per_register;
                    for element in 0..per_register {
                        bytes.extend(&a[row][k + element].to_le_bytes()[..self.size()]);
                    }
                }
            }
        }
        bytes
    }

    /// Where thread and register of an accumulator's element are.
    pub(super) fn place(row: usize, column: usize) -> (usize, usize) {
        let thread = row / 16 * 32 + row % 8 * 4 + column % 8 / 2;
        (thread, column / 8 * 4 + row % 16 / 8 * 2 + column % 2)
    }

    /// The whole kernel, and its results by thread and register.
    pub(super) fn check(&self) {
        let (a, b) = self.operands();
        let (image_a, image_b) = (self.image(self.a, &a), self.image(self.b, &b));
        let registers = self.n / 2;
        let offset_b = image_a.len().next_multiple_of(1024) as u32;
        let mut body = Body::new();
        let tile_b = body.shared("b", offset_b, image_b.len() as u32);
        body.fill_shared(&tile_b, "%b", image_b.len() as u32 / 4, 128);
        let mut fragments = Vec::new();
        if self.a == Layout::Registers {
            let count = body.i64((self.k / (32 / self.size()) * 4) as i64);
            let base = body.value(&format!("arith.muli %tid64, {count} : i64"));
            for index in 0..self.k / (32 / self.size()) * 4 {
                let index = body.i64(index as i64);
                let at = body.value(&format!("arith.addi {base}, {index} : i64"));
                let from =
                    body.value(&format!("llvm.getelementptr %a[{at}] : (!llvm.ptr<1>, i64) -> !llvm.ptr<1>, i32"));
                let ty = self.fragment_type();
                fragments
                    .push(body.value(&format!("\"lw.load\"({from}) {{align = 4 : i64}} : (!llvm.ptr<1>) -> {ty}")));
            }
        } else {
            let tile_a = body.shared("a", 0, image_a.len() as u32);
            body.fill_shared(&tile_a, "%a", image_a.len() as u32 / 4, 128);
            fragments.push(tile_a);
        }
        let count = if self.a == Layout::Registers { fragments.len() } else { 0 };
        body.fence("async_shared");
        body.barrier();
        let per_thread = body.i64(registers as i64);
        let first = body.value(&format!("arith.muli %tid64, {per_thread} : i64"));
        let mut slots = Vec::new();
        for register in 0..registers {
            let register = body.i64(register as i64);
            slots.push(body.value(&format!("arith.addi {first}, {register} : i64")));
        }
        let mut operands = fragments;
        operands.push(tile_b);
        if !self.zero {
            for slot in &slots {
                let from =
                    body.value(&format!("llvm.getelementptr %c[{slot}] : (!llvm.ptr<1>, i64) -> !llvm.ptr<1>, f32"));
                operands.push(body.value(&format!("\"lw.load\"({from}) {{align = 4 : i64}} : (!llvm.ptr<1>) -> f32")));
            }
        }
        let results = vec!["f32"; registers].join(", ");
        body.at(
            20,
            &format!(
                "%acc:{registers} = \"lw.wgmma\"({}) {} : ({}) -> ({results})",
                operands.join(", "),
                self.attributes(count),
                self.types(count)
            ),
        );
        let list: Vec<String> = (0..registers).map(|i| format!("%acc#{i}")).collect();
        body.at(
            21,
            &format!(
                "%d:{registers} = \"lw.wgmma_wait\"({}) {{groups = 0 : i64}} : ({results}) -> ({results})",
                list.join(", ")
            ),
        );
        for (register, slot) in slots.iter().enumerate() {
            let to = body.value(&format!("llvm.getelementptr %out[{slot}] : (!llvm.ptr<1>, i64) -> !llvm.ptr<1>, f32"));
            body.add(&format!("\"lw.store\"(%d#{register}, {to}) {{align = 4 : i64}} : (f32, !llvm.ptr<1>) -> ()"));
        }
        let shared = offset_b + image_b.len() as u32;
        let kernel = hopper(128, shared, "a:in b:in c:in out:out", &body.text);
        let mut random = Random(self.seed + 5);
        let c: Vec<f32> = (0..128 * registers).map(|_| (random.next() % 2001) as f32 / 500.0 - 2.0).collect();
        let given_a = if self.a == Layout::Registers { self.fragments(&a) } else { image_a };
        let args = [Arg::Bytes(given_a), Arg::Bytes(image_b), f32s(&c), Arg::Uninit(4 * c.len())];
        let results = to_f32s(kernel.run([1, 1, 1], &args).last().unwrap());
        for (row, a) in a.iter().enumerate() {
            for (column, b) in b.iter().enumerate() {
                let (thread, register) = Self::place(row, column);
                let at = thread * registers + register;
                let start = if self.zero { 0.0 } else { c[at] };
                let wanted = a.iter().zip(b).fold(start, |sum, (&a, &b)| sum + self.widen(a) * self.widen(b));
                assert_eq!(results[at].to_bits(), wanted.to_bits(), "{self:?} row {row} column {column}");
            }
        }
    }
}

#[test]
fn every_width_layout_and_type_agrees_with_the_definition() {
    let mut number = 0;
    for n in (8..=256).step_by(8) {
        for b in [Layout::K(128), Layout::K(64), Layout::K(32), Layout::Mn(128), Layout::Mn(64), Layout::Mn(32)] {
            number += 1;
            let small = matches!(b, Layout::K(_)) && number % 3 == 0;
            let kind = match (small, number % 2) {
                (true, 0) => "e4m3",
                (true, _) => "e5m2",
                (_, 0) => "f16",
                _ => "bf16",
            };
            let layouts = [
                Layout::Registers,
                Layout::K(128),
                Layout::K(64),
                Layout::K(32),
                Layout::Mn(128),
                Layout::Mn(64),
                Layout::Mn(32),
            ];
            let a = layouts[number % if small { 4 } else { 7 }];
            let step = if small { 32 } else { 16 };
            let k = step * (1 + number % 5);
            Product { kind, n, k, a, b, zero: number % 4 == 0, seed: number as u64 }.check();
        }
    }
}

#[test]
fn numbers_at_the_ends_of_bf16_give_the_same_bits_on_every_host() {
    // Products that underflow: the fused and the separate operations differ, so the latter are used.
    let product = Product { kind: "bf16", n: 8, k: 16, a: Layout::K(32), b: Layout::K(32), zero: true, seed: 1 };
    let tiny = narrow::f32_to_bf16(1.1e-22);
    let a = vec![vec![tiny; 16]; 64];
    let b = vec![vec![narrow::f32_to_bf16(1.3e-20); 16]; 8];
    let (image_a, image_b) = (product.image(product.a, &a), product.image(product.b, &b));
    let mut body = Body::new();
    let (tile_a, tile_b) = (body.shared("a", 0, 2048), body.shared("b", 2048, 256));
    body.fill_shared(&tile_a, "%a", 512, 128);
    body.fill_shared(&tile_b, "%b", 64, 128);
    body.fence("async_shared");
    body.barrier();
    body.add(&format!(
        "%acc:4 = \"lw.wgmma\"({tile_a}, {tile_b}) {} : ({}) -> (f32, f32, f32, f32)\n\
         %r:4 = \"lw.wgmma_wait\"(%acc#0, %acc#1, %acc#2, %acc#3) {{groups = 0 : i64}} : (f32, f32, f32, f32) -> (f32, f32, f32, f32)",
        product.attributes(0),
        product.types(0)
    ));
    body.text += &store("r#0", "d", "f32");
    let kernel = hopper(128, 2304, "a:in b:in d:out", &body.text);
    let results =
        to_f32s(kernel.run([1, 1, 1], &[Arg::Bytes(image_a), Arg::Bytes(image_b), Arg::Uninit(512)]).last().unwrap());
    let (x, y) = (narrow::bf16_to_f32(tiny), narrow::bf16_to_f32(narrow::f32_to_bf16(1.3e-20)));
    let wanted = (0..16).fold(0.0_f32, |sum, _| sum + x * y);
    assert!(wanted > 0.0 && wanted < f32::MIN_POSITIVE);
    assert!(results.iter().all(|result| result.to_bits() == wanted.to_bits()), "{results:?}");
}

#[test]
fn shapes_and_layouts_that_do_not_exist_are_refused() {
    let product = Product { kind: "f16", n: 8, k: 16, a: Layout::K(32), b: Layout::K(32), zero: true, seed: 1 };
    let mut body = Body::new();
    let tile = body.shared("a", 0, 4096);
    body.add(&format!(
        "%acc:4 = \"lw.wgmma\"({tile}, {tile}) {} : ({}) -> (f32, f32, f32, f32)",
        product.attributes(0),
        product.types(0)
    ));
    for (from, to, message) in [
        ("k = 16", "k = 24", "the emulator knows no wgmma of shape 64 x 8 x 24"),
        ("m = 64", "m = 32", "the emulator knows no wgmma of shape 32 x 8 x 16"),
        ("k:32:64", "k:16:64", "no operand with the layout `k:16:64`"),
        ("kind = \"f16\"", "kind = \"tf32\"", "does not know `lw.wgmma`"),
    ] {
        let wrong = body.text.replace(from, to);
        let refused = hopper(128, 4096, "", &wrong).try_decode().unwrap_err().to_string();
        assert!(refused.contains(message), "{refused}");
    }
    let report = hopper(96, 4096, "", &body.text).report(&[]);
    assert_eq!(report.kind, ReportKind::Warpgroup);
}

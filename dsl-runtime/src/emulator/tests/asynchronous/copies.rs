//! Tensor copies against a naive model.

use super::*;
use crate::emulator::ReportKind;

/// A problem: a tensor with 16-bit or other elements, and a box.
pub(super) struct Case {
    elem: &'static str,
    pub(super) bytes: u32,
    /// Innermost first.
    extents: &'static [u64],
    pub(super) box_shape: &'static [u32],
    pub(super) swizzle: u32,
    at: &'static [i32],
}

pub(super) const CASES: &[Case] = &[
    Case { elem: "bf16", bytes: 2, extents: &[64], box_shape: &[32], swizzle: 0, at: &[16] },
    Case { elem: "bf16", bytes: 2, extents: &[64, 20], box_shape: &[64, 16], swizzle: 128, at: &[0, 0] },
    Case { elem: "bf16", bytes: 2, extents: &[40, 20], box_shape: &[64, 16], swizzle: 128, at: &[0, 10] },
    Case { elem: "bf16", bytes: 2, extents: &[100, 9], box_shape: &[32, 24], swizzle: 64, at: &[96, -8] },
    Case { elem: "f16", bytes: 2, extents: &[96, 30], box_shape: &[16, 8], swizzle: 32, at: &[48, 25] },
    Case { elem: "f16", bytes: 2, extents: &[48, 5], box_shape: &[64, 8], swizzle: 128, at: &[-7, 1] },
    Case { elem: "f32", bytes: 4, extents: &[20, 6, 3], box_shape: &[16, 4, 2], swizzle: 64, at: &[8, 4, -1] },
    Case {
        elem: "f8e4m3",
        bytes: 1,
        extents: &[160, 3, 4, 2],
        box_shape: &[128, 2, 3, 1],
        swizzle: 128,
        at: &[64, 1, 2, 1],
    },
    Case {
        elem: "i8",
        bytes: 1,
        extents: &[48, 3, 2, 2, 3],
        box_shape: &[32, 2, 1, 2, 2],
        swizzle: 32,
        at: &[16, 2, 1, 0, 2],
    },
    Case { elem: "f64", bytes: 8, extents: &[10, 7], box_shape: &[8, 4], swizzle: 0, at: &[5, 5] },
];

impl Case {
    fn tensor(&self) -> Vec<u8> {
        let count: u64 = self.extents.iter().product();
        let mut random = Random(count);
        (0..count * u64::from(self.bytes)).map(|_| random.next() as u8).collect()
    }

    pub(super) fn box_bytes(&self) -> u32 {
        self.box_shape.iter().product::<u32>() * self.bytes
    }

    /// Each element of the box: where it lies in the tensor, if it does, and in shared memory.
    pub(super) fn places(&self) -> Vec<(Option<usize>, usize)> {
        let count: u32 = self.box_shape.iter().product();
        (0..count)
            .map(|number| {
                let (mut rest, mut at, mut step, mut inside) = (number, 0, 1, true);
                for ((&extent, &length), &origin) in self.extents.iter().zip(self.box_shape).zip(self.at) {
                    let index = i64::from(origin) + i64::from(rest % length);
                    rest /= length;
                    inside &= (0..extent as i64).contains(&index);
                    at += index * step;
                    step *= extent as i64;
                }
                let flat = (number * self.bytes) as usize;
                let shared = swizzle_by_bits(flat, self.swizzle);
                (inside.then(|| at as usize * self.bytes as usize), shared)
            })
            .collect()
    }

    fn args(&self, more: &str) -> String {
        let shape: Vec<String> = self.box_shape.iter().map(u32::to_string).collect();
        format!("m:map/{}/{}/{} {more}", self.elem, shape.join("x"), self.swizzle)
    }
}

/// Bits 4 to 6 of the address (4 and 5, 4) are XORed with bits 7 to 9 (7 and 8, 7).
fn swizzle_by_bits(address: usize, swizzle: u32) -> usize {
    let bit = |n: usize| address >> n & 1;
    let count = match swizzle {
        128 => 3,
        64 => 2,
        32 => 1,
        _ => 0,
    };
    (0..count).fold(address, |moved, i| moved ^ bit(7 + i) << (4 + i))
}

#[test]
fn loads_bring_boxes_with_zeros_outside_the_tensor() {
    for case in CASES {
        let bytes = case.box_bytes();
        let words = bytes / 4;
        let mut body = Body::new();
        let tile = body.shared("tile", 0, bytes);
        let bar = body.shared("full", 61440, 8);
        body.make(&[(&bar, 1)]);
        let at: Vec<String> = case.at.iter().map(|&x| body.i32(x)).collect();
        body.by_first(|body| {
            body.expect(9, &bar, bytes);
            body.load(10, (&tile, "%m", &bar), &at, 0);
        });
        body.wait(11, &bar, "%zero");
        body.dump_shared(&tile, "%d", words, 64);
        let args = case.args("d:out");
        let kernel = hopper(64, 61448, &args, &body.text);
        let tensor = case.tensor();
        let source = Buffer::from_bytes(&tensor);
        let map = map_of(&source, case.bytes, case.extents, case.box_shape, case.swizzle);
        let results = under_seeds(&kernel, [1, 1, 1], &[map, Arg::Uninit(bytes as usize)]);
        let size = case.bytes as usize;
        for (global, shared) in case.places() {
            let wanted = global.map_or(vec![0; size], |at| tensor[at..at + size].to_vec());
            assert_eq!(results[0][shared..shared + size], wanted, "{} {:?}", case.elem, case.at);
        }
    }
}

#[test]
fn stores_drop_what_leaves_the_tensor() {
    for case in CASES {
        let bytes = case.box_bytes();
        let words = bytes / 4;
        let mut body = Body::new();
        let tile = body.shared("tile", 0, bytes);
        body.fill_shared(&tile, "%x", words, 64);
        body.fence("async_shared");
        body.barrier();
        let at: Vec<String> = case.at.iter().map(|&x| body.i32(x)).collect();
        body.by_first(|body| {
            body.store(10, "%m", &tile, &at);
            body.add("\"lw.tma_commit\"() : () -> ()");
            body.store_wait(11, 0, true);
        });
        let args = case.args("x:in");
        let kernel = hopper(64, bytes, &args, &body.text);
        let mut random = Random(7);
        let content: Vec<u8> = (0..bytes).map(|_| random.next() as u8).collect();
        let before = case.tensor();
        let target = Buffer::from_bytes(&before);
        let map = map_of(&target, case.bytes, case.extents, case.box_shape, case.swizzle);
        under_seeds(&kernel, [1, 1, 1], &[map, Arg::Bytes(content.clone())]);
        let mut wanted = before;
        let size = case.bytes as usize;
        for (global, shared) in case.places() {
            if let Some(at) = global {
                wanted[at..at + size].copy_from_slice(&content[shared..shared + size]);
            }
        }
        assert!(target.read() == wanted, "{} {:?}", case.elem, case.at);
    }
}

#[test]
fn a_ring_of_stages_is_filled_as_it_is_emptied() {
    // Tile i of 8 rows of 64 bf16; two stages; warp 0 loads, warp 1 stores what it sees.
    let mut body = Body::new();
    let tiles = body.shared("tiles", 0, 2048);
    let full = body.shared("full", 2048, 16);
    let empty = body.shared("empty", 2064, 16);
    let (one, two) = (body.i32(1), body.i32(2));
    let [full1, empty1] = [&full, &empty].map(|base| body.element(base, &one, "i64"));
    body.make(&[(&full, 1), (&full1, 1), (&empty, 32), (&empty1, 32)]);
    let is_producer = body.value("arith.cmpi eq, %warp, %zero : i32");
    let (count, eight, size) = (body.i32(6), body.i32(8), body.i32(1024));
    let words = body.i32(256);
    let open = |body: &mut Body| -> [String; 5] {
        body.add(&format!("scf.for %it = %zero to {count} step {one} : i32 {{"));
        let stage = body.value(&format!("arith.remui %it, {two} : i32"));
        let turn = body.value(&format!("arith.divui %it, {two} : i32"));
        let phase = body.value(&format!("arith.andi {turn}, {one} : i32"));
        let at = body.value(&format!("arith.muli {stage}, {size} : i32"));
        let tile = body.element(&tiles, &at, "i8");
        [phase, body.element(&full, &stage, "i64"), body.element(&empty, &stage, "i64"), tile, at]
    };
    body.add(&format!("scf.if {is_producer} {{"));
    let elected = body.value("\"lw.elect\"() : () -> i1");
    body.add(&format!("scf.if {elected} {{"));
    let [phase, full_s, empty_s, tile, _] = open(&mut body);
    let free = body.value(&format!("arith.xori {phase}, {one} : i32"));
    body.wait(10, &empty_s, &free);
    body.expect(11, &full_s, 1024);
    let row = body.value(&format!("arith.muli %it, {eight} : i32"));
    body.load(12, (&tile, "%m", &full_s), &["%zero".to_owned(), row], 0);
    body.add("}\n}\n} else {");
    let [phase, full_s, empty_s, tile, _] = open(&mut body);
    body.wait(20, &full_s, &phase);
    body.add(&format!("scf.for %w = %lane to {words} step %c32 : i32 {{"));
    let from = body.element(&tile, "%w", "i32");
    body.at(21, &format!("%x = \"lw.load\"({from}) {{align = 4 : i64}} : (!llvm.ptr<3>) -> i32"));
    let base = body.value(&format!("arith.muli %it, {words} : i32"));
    let slot = body.value(&format!("arith.addi {base}, %w : i32"));
    let slot = body.value(&format!("arith.extsi {slot} : i32 to i64"));
    let to = body.value(&format!("llvm.getelementptr %d[{slot}] : (!llvm.ptr<1>, i64) -> !llvm.ptr<1>, i32"));
    body.add(&format!("\"lw.store\"(%x, {to}) {{align = 4 : i64}} : (i32, !llvm.ptr<1>) -> ()\n}}"));
    body.arrive(22, &empty_s);
    body.add("}\n}");

    let kernel = hopper(64, 2080, "m:map/bf16/64x8/0 d:out", &body.text);
    let mut random = Random(3);
    let tensor: Vec<u8> = (0..48 * 128).map(|_| random.next() as u8).collect();
    let source = Buffer::from_bytes(&tensor);
    let map = map_of(&source, 2, &[64, 48], &[64, 8], 0);
    let results = under_seeds(&kernel, [1, 1, 1], &[map.clone(), Arg::Uninit(48 * 128)]);
    assert!(results[0] == tensor);

    // A producer that does not wait for the readers overwrites what may still be read.
    let early: Vec<&str> = body.text.lines().filter(|line| !line.contains("k.rs\":10:")).collect();
    for report in reports(
        &hopper(64, 2080, "m:map/bf16/64x8/0 d:out", &early.join("\n")),
        [1, 1, 1],
        &[map, Arg::Uninit(48 * 128)],
    ) {
        // The second expectation for one phase, or the copy itself.
        let found = (report.kind, line(&report));
        assert!(matches!(found, (ReportKind::Mbarrier, Some(11)) | (ReportKind::Race, Some(12 | 21))), "{report}");
    }
}

//! `stmatrix` against the manual's formula, and its mistakes.

use super::*;
use crate::emulator::ReportKind;

/// Each lane stores registers whose halves hold `2 (lane count + register) + half`; lane l names the row at
/// `16 (l ^ swap)` bytes. Then the tile is written out as words.
fn body(count: usize, trans: bool, row: &str) -> String {
    let types = vec!["vector<2xf16>"; count].join(", ");
    let mut text = format!(
        "{THREAD}%s = \"lw.shared\"() {{offset = 0 : i64, bytes = 512 : i64, align = 16 : i64, name = \"tile\"}} : () -> !llvm.ptr<3>\n\
         %c1 = arith.constant 1 : i32\n%c7 = arith.constant 7 : i32\n%c16 = arith.constant 16 : i32\n\
         %n = arith.constant {count} : i32\n%first = arith.muli %tid_xi, %n : i32\n{row}\n\
         %q = llvm.getelementptr %s[%at] : (!llvm.ptr<3>, i32) -> !llvm.ptr<3>, i8\n"
    );
    let mut values = Vec::new();
    for i in 0..count {
        text += &format!(
            "%k{i} = arith.constant {i} : i32\n%w{i} = arith.addi %first, %k{i} : i32\n%l{i} = arith.addi %w{i}, %w{i} : i32\n\
             %h{i} = arith.addi %l{i}, %c1 : i32\n%lt{i} = arith.trunci %l{i} : i32 to i16\n%ht{i} = arith.trunci %h{i} : i32 to i16\n\
             %lf{i} = arith.bitcast %lt{i} : i16 to f16\n%hf{i} = arith.bitcast %ht{i} : i16 to f16\n\
             %v{i} = vector.from_elements %lf{i}, %hf{i} : vector<2xf16>\n"
        );
        values.push(format!("%v{i}"));
    }
    text += &format!(
        "\"lw.stmatrix\"(%q, {}) {{trans = {trans}}} : (!llvm.ptr<3>, {types}) -> ()\n\"lw.warp_sync\"() : () -> ()\n",
        values.join(", ")
    );
    // Word `lane + 32 i` of the tile: as many as were written.
    for i in 0..count {
        text += &format!(
            "%f{i} = arith.constant {} : i32\n%t{i} = arith.addi %tid_xi, %f{i} : i32\n%u{i} = arith.extsi %t{i} : i32 to i64\n\
             %r{i} = llvm.getelementptr %s[%t{i}] : (!llvm.ptr<3>, i32) -> !llvm.ptr<3>, i32\n\
             %x{i} = \"lw.load\"(%r{i}) {{align = 4 : i64}} : (!llvm.ptr<3>) -> i32\n\
             %o{i} = llvm.getelementptr %out[%u{i}] : (!llvm.ptr<1>, i64) -> !llvm.ptr<1>, i32\n\
             \"lw.store\"(%x{i}, %o{i}) {{align = 4 : i64}} : (i32, !llvm.ptr<1>) -> ()\n",
            32 * i
        );
    }
    text
}

/// Rows in reverse within each matrix.
const REVERSED: &str = "%rr = arith.xori %tid_xi, %c7 : i32\n%at = arith.muli %rr, %c16 : i32";

fn kernel(body: &str) -> Kernel<'_> {
    Kernel { target: "sm_90a", shared: 512, args: "out:out", body, ..Kernel::default() }
}

#[test]
fn stmatrix_follows_ptx() {
    for count in [1, 2, 4] {
        for trans in [false, true] {
            let body = body(count, trans, REVERSED);
            let result = kernel(&body).run([1, 1, 1], &[Arg::Uninit(128 * count)]).pop().unwrap();
            let halves: Vec<u16> = result.chunks(2).map(|c| u16::from_le_bytes([c[0], c[1]])).collect();
            for lane in 0..32 {
                for matrix in 0..count {
                    for part in 0..2 {
                        // PTX ISA, stmatrix: lane l holds row l / 4, columns 2 (l % 4) and one more; transposed the
                        // reverse.
                        let (mut row, mut column) = (lane / 4, 2 * (lane % 4) + part);
                        if trans {
                            (row, column) = (column, row);
                        }
                        let got = halves[(8 * matrix + (row ^ 7)) * 8 + column];
                        let wanted = 2 * (lane * count + matrix) + part;
                        assert_eq!(usize::from(got), wanted, "x{count} trans {trans} lane {lane} matrix {matrix}");
                    }
                }
            }
        }
    }
}

/// What `stmatrix` writes, `ldmatrix` reads back.
#[test]
fn a_matrix_survives_the_way_there_and_back() {
    for trans in [false, true] {
        let mut text = body(4, trans, REVERSED);
        let at = text.find("%f0").unwrap();
        text.truncate(at);
        text += &format!(
            "%m:4 = \"lw.ldmatrix\"(%q) {{trans = {trans}}} : (!llvm.ptr<3>) -> (vector<2xf16>, vector<2xf16>, vector<2xf16>, vector<2xf16>)\n"
        );
        for i in 0..4 {
            text += &format!(
                "%j{i} = arith.extsi %w{i} : i32 to i64\n%o{i} = llvm.getelementptr %out[%j{i}] : (!llvm.ptr<1>, i64) -> !llvm.ptr<1>, i32\n\
                 \"lw.store\"(%m#{i}, %o{i}) {{align = 4 : i64}} : (vector<2xf16>, !llvm.ptr<1>) -> ()\n"
            );
        }
        let result = kernel(&text).run([1, 1, 1], &[Arg::Uninit(512)]).pop().unwrap();
        let halves: Vec<u16> = result.chunks(2).map(|c| u16::from_le_bytes([c[0], c[1]])).collect();
        assert!(halves.iter().enumerate().all(|(at, &half)| usize::from(half) == at), "trans {trans}");
    }
}

#[test]
fn its_mistakes_are_told() {
    let said = |row: &str| {
        let text = body(4, false, row);
        let report = kernel(&text).report(&[Arg::Uninit(512)]);
        (report.kind, report.to_string())
    };
    let (kind, text) = said("%c8 = arith.constant 8 : i32\n%at = arith.muli %tid_xi, %c8 : i32");
    assert_eq!(kind, ReportKind::Misaligned, "{text}");
    let (kind, text) = said("%c32 = arith.constant 32 : i32\n%at = arith.muli %tid_xi, %c32 : i32");
    assert_eq!(kind, ReportKind::OutOfBounds, "{text}");
    // All rows in one place.
    let (kind, text) = said("%at = arith.constant 0 : i32");
    assert_eq!(kind, ReportKind::Race, "{text}");
    // A part of a warp.
    let few = "%at = arith.muli %tid_xi, %c16 : i32\n%half = arith.cmpi slt, %tid_xi, %c16 : i32";
    let text = body(4, false, few).replace("\"lw.stmatrix\"", "scf.if %half {\n\"lw.stmatrix\"");
    let text = text.replace(") -> ()\n\"lw.warp_sync\"", ") -> ()\n}\n\"lw.warp_sync\"");
    assert_eq!(kernel(&text).report(&[Arg::Uninit(512)]).kind, ReportKind::PartialWarp);
}

/// Another warp reads what this one stores, and nothing orders the two.
#[test]
fn a_race_with_another_warp_is_found() {
    let row =
        "%c31 = arith.constant 31 : i32\n%lane = arith.andi %tid_xi, %c31 : i32\n%at = arith.muli %lane, %c16 : i32";
    let mut text = body(1, false, row);
    text.truncate(text.find("\"lw.stmatrix\"").unwrap());
    text += "%c32 = arith.constant 32 : i32\n%mine = arith.cmpi slt, %tid_xi, %c32 : i32\nscf.if %mine {\n\
             \"lw.stmatrix\"(%q, %v0) {trans = false} : (!llvm.ptr<3>, vector<2xf16>) -> ()\n} else {\n\
             %z = arith.constant 0 : i32\n\"lw.store\"(%z, %s) {align = 4 : i64} : (i32, !llvm.ptr<3>) -> ()\n}\n";
    let kernel = Kernel { block: [64, 1, 1], ..kernel(&text) };
    assert_eq!(kernel.report(&[Arg::Uninit(512)]).kind, ReportKind::Race);
}

//! Bank conflicts (D24) and uncoalesced accesses, counted per source line.

use super::*;
use crate::emulator::{Check, LineCost, Space};

/// Costs of a kernel whose lanes store to shared memory at `pitch * lane` words and load from global
/// memory at `stride * lane`.
fn costs(target: &str, threads: u32, pitch: u32, stride: u32) -> Vec<LineCost> {
    let body = format!(
        "{THREAD}%s = \"lw.shared\"() {{offset = 0 : i64, bytes = 32768 : i64, align = 16 : i64, name = \"tile\"}} : () -> !llvm.ptr<3>\n\
         %pitch = arith.constant {pitch} : i32\n%stride = arith.constant {stride} : i64\n%i = arith.muli %tid_xi, %pitch : i32\n\
         %j = arith.muli %tid64, %stride : i64\n%p = llvm.getelementptr %s[%i] : (!llvm.ptr<3>, i32) -> !llvm.ptr<3>, f32\n\
         %q = llvm.getelementptr %x[%j] : (!llvm.ptr<1>, i64) -> !llvm.ptr<1>, f32\n\
         %v = \"lw.load\"(%q) {{align = 4 : i64}} : (!llvm.ptr<1>) -> f32 loc(\"k.rs\":10:5)\n\
         \"lw.store\"(%v, %p) {{align = 4 : i64}} : (f32, !llvm.ptr<3>) -> () loc(\"k.rs\":20:5)\n"
    );
    let kernel =
        Kernel { target, block: [threads, 1, 1], shared: 32768, args: "x:in", body: &body, ..Kernel::default() };
    let (_, values) = bind(&[f32s(&vec![1.0; (threads * stride.max(1)) as usize])]);
    let checks = Checks::default().with(Check::Performance);
    let launch = Launch { checks, ..Launch::new([1, 1, 1], values) };
    crate::emulator::run(&kernel.decode(), &launch).unwrap().line_costs
}

fn of(costs: &[LineCost], space: Space) -> &LineCost {
    costs.iter().find(|cost| cost.space == space).unwrap()
}

#[test]
fn d24_a_row_pitch_that_puts_a_column_in_one_bank() {
    for target in ["sm_80", "gfx942"] {
        let all = costs(target, 64, 64, 1);
        // The worst line comes first.
        let LineCost { location, accesses, cost, least, degree, .. } = &all[0];
        assert_eq!((location.line, *accesses, *cost, *least, *degree), (20, 2, 64, 2, 32), "{target}");
        for (pitch, degree) in [(1, 1), (2, 2), (33, 1), (36, 4), (65, 1)] {
            assert_eq!(of(&costs(target, 64, pitch, 1), Space::Shared).degree, degree, "{target}: pitch {pitch}");
        }
    }
}

#[test]
fn lanes_that_are_not_side_by_side_waste_sectors() {
    for (target, bytes) in [("sm_80", 32), ("gfx942", 64)] {
        let side_by_side = costs(target, 64, 1, 1);
        let cost = of(&side_by_side, Space::Global);
        assert_eq!((cost.location.line, cost.cost, cost.least, cost.degree), (10, 256 / bytes, 256 / bytes, 1));
        let scattered = costs(target, 64, 1, 32);
        let cost = of(&scattered, Space::Global);
        assert_eq!((cost.cost, cost.least), (64, 256 / bytes));
        assert!(cost.degree >= 8, "{cost:?}");
    }
    // All lanes at one place.
    assert_eq!(of(&costs("sm_80", 32, 0, 0), Space::Global).cost, 1);
    assert_eq!(of(&costs("sm_80", 32, 1, 0), Space::Global).degree, 1);
}

#[test]
fn nothing_is_counted_unless_asked() {
    let kernel =
        Kernel { args: "d:out", body: &format!("{THREAD}{}", store("tid", "d", "i32")), ..Kernel::default() }.decode();
    let (_, stats) = launch(&kernel, [1, 1, 1], &[Arg::Uninit(128)], 0);
    assert!(stats.line_costs.is_empty());
}

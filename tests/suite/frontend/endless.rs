//! Loops that cannot end are reported at their line, soon; long ones that do end are not.

use lacewing::prelude::*;
use lacewing::runtime::emulator::{Checks, Report, ReportKind};
use lacewing::{Error, rt};

use super::{IntKernel, TARGETS, line_of, run};

const BUDGET: u64 = 1 << 24;

fn endless<K: IntKernel>(kernel: &K, x: &[i32]) -> Vec<Report> {
    let report = |target| {
        let dev = Device::emulator(target).unwrap().with_checks(Checks::default().with_op_budget(BUDGET));
        let x = dev.tensor_from_slice(x, [x.len()]).unwrap();
        let mut y = dev.tensor_from_slice(&[0; 64], [64]).unwrap();
        match kernel.grid([1, 1, 1]).launch(&dev, (&x, &mut y)) {
            Err(Error::Report(report)) => *report,
            other => panic!("{}: not reported: {other:?}", rt::Kernel::name(kernel)),
        }
    };
    TARGETS.map(report).to_vec()
}

/// The step was forgotten: what is summed up changes, what the condition depends on does not.
#[kernel(block = [64, 1, 1])]
fn forgotten_step(x: Tensor<I32, 1>, y: TensorMut<I32, 1>) {
    let i = thread_id(X);
    let mut sum = I32::from(0);
    while i < x.at(0).load() {
        sum += x.at(1).load();
        y.at(i).store(sum);
    }
}

/// The same over memory that somebody may write.
#[kernel(block = [64, 1, 1])]
fn nobody_writes(x: Tensor<I32, 1>, y: TensorMut<I32, 1>) {
    let i = thread_id(X);
    let mut sum = x.at(1).load();
    while y.at(i).load() == 0 {
        sum += 1;
    }
    y.at(i).store(sum);
}

/// `continue` before the step, by what a tensor holds that is only read.
#[kernel(block = [64, 1, 1])]
fn step_behind_the_continue(x: Tensor<I32, 1>, y: TensorMut<I32, 1>) {
    let (mut i, mut sum) = (I32::from(0), I32::from(0));
    while i < x.extent(0) {
        let value = x.at(i).load_if(i < 100, I32::from(0));
        if value < 5 {
            continue;
        }
        sum += value;
        i += 1;
    }
    y.at(thread_id(X)).store(sum);
}

#[kernel(block = [64, 1, 1])]
fn forgotten_step_in_registers(x: Tensor<I32, 1>, y: TensorMut<I32, 1>) {
    let (i, n) = (thread_id(X), x.at(0).load());
    let mut sum = I32::from(0);
    while i < n {
        sum += x.at(1).load();
        y.at(i).store(sum);
    }
}

/// Most lanes leave; in one the state goes round in a circle of three.
#[kernel(block = [64, 1, 1])]
fn circle(x: Tensor<I32, 1>, y: TensorMut<I32, 1>) {
    let (mut state, turn) = (thread_id(X), x.at(0).load());
    let mut rounds = I64::from(0);
    loop {
        if state > 8 || state < 5 {
            break;
        }
        state = (state - 5 + turn) % 3 + 5;
        rounds += 1;
    }
    y.at(thread_id(X)).store(state + rounds.cast::<I32>());
}

/// A condition over several variables, some of them conditions, with a branch that never changes them.
#[kernel(block = [64, 1, 1])]
fn search_that_stands_still(x: Tensor<I32, 1>, y: TensorMut<I32, 1>) {
    let (mut low, mut high) = (I32::from(0), I32::from(64));
    let mut found = thread_id(X) != 17;
    while !found && low < high {
        let middle = (low + high) / 2;
        let value = x.at(middle).load();
        if value == 1000 {
            found = Bool::from(true);
        } else if middle < thread_id(X) {
            // Right would be `middle + 1`.
            low = middle;
        } else {
            high = middle;
        }
    }
    y.at(thread_id(X)).store(low);
}

#[test]
fn what_no_round_changes_ends_no_loop() {
    let increasing: Vec<i32> = (0..64).collect();
    let all = [
        (endless(&forgotten_step_in_registers::new(), &[40, 1]), "while i < n {", None),
        (endless(&circle::new(), &[1]), "loop {", Some([5, 0, 0])),
        (endless(&forgotten_step::new(), &[40, 1]), "while i < x.at(0).load() {", None),
        (endless(&step_behind_the_continue::new(), &[9, 8, 1, 7]), "while i < x.extent(0) {", None),
        (endless(&search_that_stands_still::new(), &increasing), "while !found && low < high {", None),
    ];
    for (reports, line, thread) in all {
        for report in reports {
            assert_eq!(report.kind, ReportKind::OpBudget, "{report}");
            // Which warp comes first is up to the scheduler; of the circle's warps, one has lanes that stay.
            assert!(thread.is_none() || report.thread == thread, "{report}");
            let message = "this loop cannot end: all that its condition depends on is as it was some rounds before";
            assert_eq!(report.message, message);
            assert_eq!(line_of(&report.location), line);
        }
    }
}

// What the condition reads could change: these are left to the budget.
#[test]
fn a_loop_over_what_memory_holds_runs_until_its_budget() {
    for report in endless(&nobody_writes::new(), &[40, 1]) {
        assert_eq!(report.kind, ReportKind::OpBudget);
        assert!(report.message.ends_with("operations: this loop seems not to end"), "{report}");
        assert_eq!(line_of(&report.location), "while y.at(i).load() == 0 {");
    }
}

/// Loops of very many rounds that end: one that counts, one inside it that begins anew with the same values, one
/// whose state comes back to what it was in lanes that have left.
#[kernel(block = [64, 1, 1])]
fn long(x: Tensor<I32, 1>, y: TensorMut<I32, 1>) {
    let rounds = x.at(0).load();
    let mut i = I32::from(0);
    let mut sum = I32::from(0);
    while i < rounds {
        let mut k = I32::from(0);
        while k < 3 {
            k += 1;
            sum += k;
        }
        let mut state = thread_id(X) % 3;
        while state != 2 {
            state = (state + 1) % 3;
        }
        i += 1;
    }
    y.at(thread_id(X)).store(sum);
}

#[test]
fn a_long_loop_is_not_refused() {
    let rounds = 200_000;
    assert_eq!(run(&long::new(), 1, &[rounds], &[0; 64]), [6 * rounds; 64]);
}

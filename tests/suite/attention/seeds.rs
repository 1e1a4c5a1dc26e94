//! The whole list of lengths under ten orders of the scheduler: no check reports anything, and no order changes a bit.

use lacewing::runtime::emulator::{Check, Checks};

use super::shapes::every_length;
use super::*;

/// With seed 0 whatever runs beside the threads happens as late as it may; others move it about.
const SEEDS: u64 = 10;

fn check<T: Dtype>(target: Target, head_dim: usize, causal: bool) {
    let checks = Checks::default().with(Check::Performance);
    for (seqlen_q, seqlen_kv) in every_length() {
        let case = Case { causal, ..Case::new(seqlen_q, seqlen_kv, head_dim) };
        let inputs = case.inputs::<T>();
        let run = |seed| {
            let device = Device::emulator(target).unwrap().with_seed(seed).with_checks(checks);
            case.forward::<T>(&device, &inputs)
        };
        let first = run(0);
        for seed in 1..SEEDS {
            assert!(first.same(&run(seed)), "seed {seed} gives other numbers on {target}: {case:?}");
        }
    }
}

macro_rules! orders {
    ($($name:ident: $target:ident;)*) => {$(
        #[test]
        fn $name() {
            check::<F16>(Target::$target, 64, true);
            check::<BF16>(Target::$target, 128, false);
        }
    )*};
}

orders! {
    every_length_on_sm_80: SM_80;
    every_length_on_sm_90a: SM_90A;
    every_length_on_gfx942: GFX942;
}

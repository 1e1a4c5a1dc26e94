//! Each kernel by name on random inputs, against its host reference: the quickest test of an edit,
//! `cargo test -p lacewing-kernels NAME`. The hard inputs are in the integration suite.

use lacewing_core::Target;
use lacewing_runtime::Device;
use lacewing_runtime::host::Random;
use lacewing_runtime::registry::Settings;
use lacewing_runtime::runner::Sizes;

use crate::ENTRIES;

fn holds(name: &str) {
    let entry = ENTRIES.iter().find(|entry| entry.name == name).unwrap();
    let runner = entry.runner.unwrap();
    let targets = [Target::SM_80, Target::SM_90A, Target::GFX942];
    for target in targets.into_iter().filter(|target| entry.targets.contains(target)) {
        let device = Device::emulator(target).unwrap();
        let mut settings = Settings::defaults(entry.parameters);
        let sizes = Sizes::defaults(runner.dimensions());
        let mut inputs = runner.random(&settings, &sizes, &mut Random::new(1)).unwrap();
        runner.prepare(&mut settings, &mut inputs, &mut Vec::new()).unwrap();
        let outputs = runner.run(&device, &settings, &inputs).unwrap_or_else(|error| panic!("{name}: {error}"));
        let comparisons = runner.compare(&settings, &inputs, &outputs).unwrap();
        assert!(!comparisons.is_empty(), "{name} compares nothing");
        for comparison in comparisons {
            assert!(comparison.holds(), "{name} on {target}: {comparison:?}");
        }
    }
}

macro_rules! kernels {
    ($($name:ident)*) => {
        $(
            #[test]
            fn $name() {
                holds(stringify!($name));
            }
        )*

        #[test]
        fn every_kernel_has_a_test_here() {
            let mut tested = vec![$(stringify!($name)),*];
            let mut known: Vec<_> = ENTRIES.iter().map(|entry| entry.name).collect();
            tested.sort_unstable();
            known.sort_unstable();
            assert_eq!(tested, known);
        }
    };
}
kernels! { axpy transpose softmax rms_norm matmul matmul_fp8 fmha_fwd fmha_ref }

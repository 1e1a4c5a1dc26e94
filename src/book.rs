//! The code of the book and of the README, compiled and run as documentation tests.
//!
//! `cargo xtask check` sees that no chapter with code is missing here.

macro_rules! chapters {
    ($($name:ident = $path:literal),* $(,)?) => {$(
        #[doc = include_str!($path)]
        pub mod $name {}
    )*};
}

chapters! {
    readme = "../README.md",
    introduction = "../docs/src/introduction.md",
    write = "../docs/src/tour/write.md",
    trace = "../docs/src/tour/trace.md",
    run = "../docs/src/tour/run.md",
    bug = "../docs/src/tour/bug.md",
    nan = "../docs/src/tour/nan.md",
    kernels = "../docs/src/reference/kernels.md",
    stages = "../docs/src/reference/stages.md",
    types = "../docs/src/reference/types.md",
    math = "../docs/src/reference/math.md",
    control_flow = "../docs/src/reference/control-flow.md",
    carried_state = "../docs/src/reference/carried-state.md",
    tensors = "../docs/src/reference/tensors.md",
    shared_memory = "../docs/src/reference/shared-memory.md",
    layouts = "../docs/src/reference/layouts.md",
    atoms = "../docs/src/reference/atoms.md",
    tiles = "../docs/src/reference/tiles.md",
    cute = "../docs/src/reference/cute.md",
    threads = "../docs/src/reference/threads.md",
    collectives = "../docs/src/reference/collectives.md",
    hopper = "../docs/src/reference/hopper.md",
    tensor_memory = "../docs/src/reference/tensor-memory.md",
    atomics = "../docs/src/reference/atomics.md",
    printing = "../docs/src/reference/printing.md",
    emulator = "../docs/src/reference/emulator.md",
    check = "../docs/src/reference/check.md",
    artifacts = "../docs/src/reference/artifacts.md",
}

//! Kernels that are ready to run, so that each is traced and decoded once.
//!
//! The key is what a kernel is: its type (with type arguments), where it is defined, the values of its
//! compile-time parameters, and the target. Two kernels with the same key have the same trace, as
//! long as the `Debug` text of a compile-time value says all of it and the kernel reads no global
//! that changes while the program runs. The cache lives as long as the process, whose code cannot
//! change: it cannot be stale. (Nothing is kept on disk yet.)

use std::collections::HashMap;
use std::sync::{Arc, LazyLock, Mutex, OnceLock, PoisonError};

use lacewing_core::{KernelMeta, SourceLocation, Target, rt, trace_kernel};

use crate::emulator::Program;
use crate::error::Error;

#[derive(PartialEq, Eq, Hash)]
struct Key {
    type_name: &'static str,
    location: SourceLocation,
    comptime: Vec<(&'static str, String)>,
    target: Target,
}

/// A kernel ready to run, with what a launch must know of it.
pub(crate) struct Compiled {
    pub(crate) program: Program,
    pub(crate) meta: KernelMeta,
}

/// Filled by the first thread that asks; the others wait for it.
type Entry = Arc<OnceLock<Result<Arc<Compiled>, Error>>>;

static CACHE: LazyLock<Mutex<HashMap<Key, Entry>>> = LazyLock::new(Mutex::default);

/// The kernel, ready to run on `target`: traced and decoded once however many threads ask.
pub(crate) fn compiled<K: rt::Kernel>(kernel: &K, target: Target) -> Result<Arc<Compiled>, Error> {
    let key = Key {
        type_name: std::any::type_name::<K>(),
        location: SourceLocation::from_caller(kernel.location()),
        comptime: kernel.comptime(),
        target,
    };
    // The map is locked only to find the entry: kernels are traced side by side.
    let entry = Arc::clone(CACHE.lock().unwrap_or_else(PoisonError::into_inner).entry(key).or_default());
    entry
        .get_or_init(|| {
            let traced = trace_kernel(kernel, target)?;
            let program = Program::decode(&traced)?;
            Ok(Arc::new(Compiled { program, meta: traced.meta }))
        })
        .clone()
}

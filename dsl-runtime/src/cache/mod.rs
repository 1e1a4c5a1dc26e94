//! Kernels that are ready to run, so that each is traced and compiled once.
//!
//! The key is what a kernel is: its type (with type arguments; not the type's name, which others can have), the values of
//! its compile-time parameters, the target, and for a GPU the driver's context and how it is compiled. Two kernels with
//! the same key have the same trace, as long as the `Debug` text of a compile-time value says all of it and the
//! kernel reads no global that changes while the program runs. The cache lives as long as the process, whose code
//! cannot change: it cannot be stale. What [`disk`] keeps for later processes has a key of its own.

pub mod disk;

use std::any::TypeId;
use std::collections::HashMap;
use std::sync::{Arc, LazyLock, Mutex, OnceLock, PoisonError};

use lacewing_core::{Target, rt, trace_kernel};

use crate::cuda::{CompileOptions, compile};
use crate::device::{Backend, Device};
use crate::emulator::Program;
use crate::error::Error;
use crate::launch::{Code, Compiled};

#[derive(PartialEq, Eq, Hash)]
struct Key {
    kernel: TypeId,
    comptime: Vec<(&'static str, String)>,
    target: Target,
    place: Place,
}

/// Where code can be used.
#[derive(PartialEq, Eq, Hash)]
enum Place {
    Emulator,
    Cuda { context: usize, options: CompileOptions },
}

/// Filled by the first thread that asks; the others wait for it.
type Entry = Arc<OnceLock<Result<Arc<Compiled>, Error>>>;

static CACHE: LazyLock<Mutex<HashMap<Key, Entry>>> = LazyLock::new(Mutex::default);

/// The kernel, ready to run on `device`: traced and compiled once however many threads ask.
pub(crate) fn compiled<K: rt::Kernel>(kernel: &K, device: &Device) -> Result<Arc<Compiled>, Error> {
    let target = device.target();
    let place = match device.backend() {
        Backend::Emulator => Place::Emulator,
        Backend::Cuda(gpu) => Place::Cuda { context: gpu.context_id(), options: device.compile_options() },
    };
    let key = Key { kernel: TypeId::of::<K>(), comptime: kernel.comptime(), target, place };
    // The map is locked only to find the entry: kernels are traced side by side.
    let entry = Arc::clone(CACHE.lock().unwrap_or_else(PoisonError::into_inner).entry(key).or_default());
    let outcome = entry
        .get_or_init(|| {
            let traced = trace_kernel(kernel, target)?;
            let code = match device.backend() {
                Backend::Emulator => Code::Emulated(Box::new(Program::decode(&traced)?)),
                Backend::Cuda(gpu) => Code::Cuda(compile(gpu, &traced, device.compile_options())?),
            };
            Ok(Arc::new(Compiled { code, meta: traced.meta }))
        })
        .clone();
    if matches!(&outcome, Err(error) if !matches!(error, Error::Kernel(_))) {
        // The device's trouble (no memory left, say), not the kernel's: worth another try.
        CACHE.lock().unwrap_or_else(PoisonError::into_inner).retain(|_, other| !Arc::ptr_eq(other, &entry));
    }
    outcome
}

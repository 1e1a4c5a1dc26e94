//! Kernels that were compiled before the program: one file with code for several targets, launched as typed and as
//! checked as any kernel, by programs that link neither LLVM nor MLIR.
//!
//! ```text
//! lacewing compile axpy --target sm_80 --target sm_90a --emit artifact -o axpy.lwa
//! ```
//!
//! ```ignore
//! let module = lacewing::artifact!("axpy.lwa")?;
//! let axpy = module.kernel::<(F32, Tensor<F32, 1>, TensorMut<F32, 1>)>("axpy")?;
//! axpy.grid([n.div_ceil(256), 1, 1]).launch(&device, (2.0f32, &x, &mut y))?;
//! ```
//!
//! The form of the file is described in the book (`reference/artifacts.md`) and, for other languages, in
//! `dsl-runtime/include/lacewing_artifact.h`.

#[cfg(feature = "mlir")]
mod compile;
mod format;

use std::borrow::Cow;
use std::collections::HashMap;
use std::fmt;
use std::marker::PhantomData;
use std::sync::{Arc, Mutex, PoisonError};

use lacewing_core::signature::{Signature, has_type};
use lacewing_core::{KernelMeta, ParamKind, Target};

use crate::cuda::{CudaKernel, Gpu, Manner};
use crate::device::Device;
use crate::error::{Error, unknown};
use crate::launch::{Args, Arguments, Code, Compiled, Ready};
use format::Variant;

#[cfg(feature = "mlir")]
pub use compile::compile;
pub use format::{MAGIC, NewVariant, VERSION, encode};

/// The kernels of one artifact.
#[derive(Clone)]
pub struct Module {
    shared: Arc<Shared>,
}

struct Shared {
    bytes: Cow<'static, [u8]>,
    variants: Vec<Variant>,
    /// What has been loaded, by context of the driver and by the kernel's name. A loaded function keeps its context
    /// alive, so a context's address means one context only.
    loaded: Mutex<HashMap<(usize, String), Arc<Compiled>>>,
}

impl Module {
    /// Reads an artifact and checks all of it. No GPU is needed.
    ///
    /// # Errors
    /// [`Error::Artifact`], which says whether the bytes are foreign, truncated, damaged, or of another version.
    pub fn from_artifact(bytes: impl Into<Cow<'static, [u8]>>) -> Result<Self, Error> {
        let bytes = bytes.into();
        let variants = format::decode(&bytes)?;
        Ok(Self { shared: Arc::new(Shared { bytes, variants, loaded: Mutex::default() }) })
    }

    /// Reads an artifact from a file.
    ///
    /// # Errors
    /// As [`from_artifact`](Self::from_artifact), and when the file cannot be read; the path is named.
    pub fn from_file(path: impl AsRef<std::path::Path>) -> Result<Self, Error> {
        let path = path.as_ref();
        let refuse = |reason: &dyn fmt::Display| Error::Artifact(format!("{}: {reason}", path.display()));
        let bytes = std::fs::read(path).map_err(|error| refuse(&format!("cannot be read: {error}")))?;
        Self::from_artifact(bytes).map_err(|error| refuse(&error))
    }

    /// What is known of each kernel for each target.
    pub fn metas(&self) -> impl Iterator<Item = &KernelMeta> {
        self.shared.variants.iter().map(|variant| &variant.meta)
    }

    /// The compile-time parameters that a kernel was compiled with, as names and values; empty for a kernel that is not
    /// there.
    pub fn settings(&self, kernel: &str) -> &[(String, String)] {
        let found = self.shared.variants.iter().find(|variant| variant.meta.name == kernel);
        found.map_or(&[], |variant| &variant.settings)
    }

    /// The PTX or the machine code of a kernel for a target, as it lies in the artifact.
    pub fn image(&self, kernel: &str, target: Target, form: Form) -> Option<&[u8]> {
        let mut variants = self.shared.variants.iter();
        let variant = variants.find(|variant| variant.meta.name == kernel && variant.meta.target == target)?;
        self.shared.image(variant, form)
    }

    /// A kernel with parameters of these types: a tuple of the kernel language's types, as the kernel declares them.
    ///
    /// # Errors
    /// [`Error::Artifact`] when there is no kernel of that name, or it has other parameters.
    pub fn kernel<P: Signature>(&self, name: &str) -> Result<Kernel<P>, Error> {
        let mut variants = self.shared.variants.iter().filter(|variant| variant.meta.name == name).peekable();
        if variants.peek().is_none() {
            let mut known: Vec<&str> = self.metas().map(|meta| meta.name.as_str()).collect();
            known.dedup();
            return Err(Error::Artifact(format!("in the artifact {}", unknown("kernel", name, known))));
        }
        for variant in variants {
            let params = &variant.meta.params;
            let typed = params.iter().zip(P::KINDS).all(|(parameter, kind)| has_type(&parameter.kind, kind));
            if params.len() != P::KINDS.len() || !typed {
                let has: Vec<String> =
                    params.iter().map(|parameter| format!("{}: {}", parameter.name, spelt(&parameter.kind))).collect();
                let asked: Vec<String> = P::KINDS.iter().map(spelt).collect();
                return Err(Error::Artifact(format!(
                    "kernel `{name}` of the artifact takes ({}), and is asked for with ({})",
                    has.join(", "),
                    asked.join(", ")
                )));
            }
        }
        Ok(Kernel { shared: Arc::clone(&self.shared), name: name.to_owned(), parameters: PhantomData })
    }
}

impl fmt::Debug for Module {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.metas().map(|meta| format!("{} for {}", meta.name, meta.target))).finish()
    }
}

/// The two forms that an artifact has of a kernel for an NVIDIA target.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Form {
    /// Text, which the driver compiles for the GPU that is there.
    Ptx,
    /// Machine code for one family of GPUs: a cubin, or a code object for an AMD target.
    Code,
}

/// A parameter's type as a kernel's source has it.
fn spelt(kind: &ParamKind) -> String {
    let scalar = |name: &str| if name == "bool" { "Bool".to_owned() } else { name.to_uppercase() };
    match kind {
        ParamKind::Scalar(ty) => scalar(ty.name()),
        ParamKind::Tensor { elem, rank, mutable } => {
            format!("Tensor{}<{}, {rank}>", if *mutable { "Mut" } else { "" }, scalar(elem.name()))
        }
        ParamKind::TensorMap { elem, rank, .. } => format!("TensorMap<{}, {rank}>", scalar(elem.name())),
    }
}

impl Shared {
    fn image(&self, variant: &Variant, form: Form) -> Option<&[u8]> {
        let range = match form {
            Form::Ptx => variant.ptx.clone(),
            Form::Code => variant.code.clone(),
        };
        self.bytes.get(range?)
    }

    /// The kernel on a device: loaded by the first launch there.
    fn load(&self, name: &str, device: &Device) -> Result<Arc<Compiled>, Error> {
        let Some(gpu) = device.gpu() else {
            return Err(Error::Device(format!(
                "kernel `{name}` of an artifact is machine code, which {device} does not run: launch the kernel itself \
                 there"
            )));
        };
        let key = (gpu.context_id(), name.to_owned());
        let mut loaded = self.loaded.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(found) = loaded.get(&key) {
            return Ok(Arc::clone(found));
        }
        let compiled = Arc::new(self.load_on(name, device, gpu)?);
        loaded.insert(key, Arc::clone(&compiled));
        Ok(compiled)
    }

    fn load_on(&self, name: &str, device: &Device, gpu: &Gpu) -> Result<Compiled, Error> {
        let variants = || self.variants.iter().filter(|variant| variant.meta.name == name);
        let mut refused = None;
        for (variant, form) in candidates(variants(), gpu.target(), |target| gpu.runs_code_for(target)) {
            let Some(image) = self.image(variant, form) else { continue };
            match CudaKernel::load(gpu, image, &variant.meta) {
                Ok(kernel) => return Ok(Compiled { code: Code::Cuda(kernel), meta: variant.meta.clone() }),
                // An older driver may not know the form; the next one may do.
                Err(error) if error.is_of_form() => refused = Some(error.into_error(gpu, name)),
                Err(error) => return Err(error.into_error(gpu, name)),
            }
        }
        Err(refused.unwrap_or_else(|| {
            let there: Vec<&str> = variants().map(|variant| variant.meta.target.name()).collect();
            Error::Artifact(format!(
                "the artifact has kernel `{name}` for {}, and {device} ({}) runs none of it: compile it with `--target {}`",
                there.join(", "),
                gpu.name(),
                gpu.target()
            ))
        }))
    }
}

/// The images that a GPU may run, the best first: machine code for its own target, then PTX for it, then what sm_80 has,
/// which runs on every later GPU.
fn candidates<'a>(
    variants: impl Iterator<Item = &'a Variant> + Clone,
    own: Target,
    runs_code_for: impl Fn(Target) -> bool,
) -> Vec<(&'a Variant, Form)> {
    let fallback = (own != Target::SM_80).then_some(Target::SM_80);
    let mut found = Vec::new();
    for target in std::iter::once(own).chain(fallback) {
        for variant in variants.clone().filter(|variant| variant.meta.target == target) {
            if variant.code.is_some() && runs_code_for(target) {
                found.push((variant, Form::Code));
            }
            if variant.ptx.is_some() {
                found.push((variant, Form::Ptx));
            }
        }
    }
    found
}

/// A kernel of an artifact, with parameters of the types `P`.
pub struct Kernel<P> {
    shared: Arc<Shared>,
    name: String,
    parameters: PhantomData<fn() -> P>,
}

impl<P> Kernel<P> {
    /// A launch of the kernel on a grid of blocks (x, y, z).
    pub fn grid(&self, grid: [usize; 3]) -> Launch<'_, P> {
        Launch { kernel: self, grid, manner: Manner::default() }
    }
}

impl<P> Clone for Kernel<P> {
    fn clone(&self) -> Self {
        Kernel { shared: Arc::clone(&self.shared), name: self.name.clone(), parameters: PhantomData }
    }
}

impl<P> fmt::Debug for Kernel<P> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Kernel({})", self.name)
    }
}

/// A launch that has not happened yet.
#[must_use = "nothing runs until `.launch(&device, arguments)` is called"]
#[derive(Debug)]
pub struct Launch<'a, P> {
    kernel: &'a Kernel<P>,
    grid: [usize; 3],
    manner: Manner,
}

impl<P> Launch<'_, P> {
    /// The same launch, of which all blocks run at once, so that they may wait for each other; one whose blocks do not all
    /// fit on the device is refused.
    pub fn cooperative(mut self) -> Self {
        self.manner.cooperative = true;
        self
    }

    /// The same launch, which may start before the launch before it on the stream is through (programmatic dependent
    /// launch), where its code is for sm_90 or later; elsewhere it runs in order. Refused for a kernel that never calls
    /// `wait_for_previous_grid()`.
    pub fn overlapping(mut self) -> Self {
        self.manner.overlapping = true;
        self
    }

    /// Checks the arguments against the kernel and puts it on the device's stream; the host goes on.
    ///
    /// # Errors
    /// As [`prepare`](Self::prepare) and [`Prepared::launch`].
    pub fn launch<A: Args<P>>(&self, device: &Device, args: A) -> Result<(), Error> {
        self.prepare(device)?.launch(args)
    }

    /// Loads the kernel on a device, unless that has been done, and checks grid and block.
    ///
    /// # Errors
    /// [`Error::Artifact`] when the artifact has no code that the device runs, [`Error::Launch`] when grid, block or
    /// shared memory break a rule of the device, [`Error::Device`] when the driver refuses the code or the device is
    /// emulated.
    pub fn prepare(&self, device: &Device) -> Result<Prepared<P>, Error> {
        let compiled = self.kernel.shared.load(&self.kernel.name, device)?;
        Ok(Prepared { ready: Ready::new(device, compiled, self.grid, self.manner)?, parameters: PhantomData })
    }
}

/// A launch that needs nothing more than its arguments.
#[must_use = "nothing runs until `.launch(arguments)` is called"]
pub struct Prepared<P> {
    ready: Ready,
    parameters: PhantomData<fn() -> P>,
}

impl<P> Prepared<P> {
    /// Checks the arguments against the kernel and puts it on the device's stream; the host goes on.
    ///
    /// # Errors
    /// [`Error::Launch`] when the arguments break a rule of the device, [`Error::Fault`] when an earlier kernel has
    /// failed.
    pub fn launch<A: Args<P>>(&self, args: A) -> Result<(), Error> {
        let mut arguments = Arguments::default();
        args.pass(&mut arguments);
        self.ready.launch(&mut arguments).map(drop)
    }
}

impl<P> Clone for Prepared<P> {
    fn clone(&self) -> Self {
        Prepared { ready: self.ready.clone(), parameters: PhantomData }
    }
}

impl<P> fmt::Debug for Prepared<P> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Prepared({})", self.ready)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use lacewing_core::types::{BF16, F32, I32, Tensor, TensorMut};
    use lacewing_core::{KernelAttributes, ParamDesc, ScalarType};

    fn variant(target: Target, code: bool, ptx: bool) -> NewVariant {
        let tensor = |mutable| ParamKind::Tensor { elem: ScalarType::F32, rank: 1, mutable };
        let param = |name: &str, kind| ParamDesc { name: name.to_owned(), kind };
        NewVariant {
            meta: KernelMeta {
                name: "axpy".to_owned(),
                target,
                attributes: KernelAttributes {
                    block: [256, 1, 1],
                    min_blocks: None,
                    max_regs: None,
                    waves_per_eu: None,
                    cluster: None,
                },
                shared_bytes: 0,
                params: vec![
                    param("a", ParamKind::Scalar(ScalarType::F32)),
                    param("x", tensor(false)),
                    param("y", tensor(true)),
                ],
                alignments: vec![1, 4, 4],
                waits_for_previous: false,
            },
            settings: Vec::new(),
            ptx: ptx.then(|| b"ptx".to_vec()),
            code: code.then(|| b"code".to_vec()),
        }
    }

    fn module(variants: &[NewVariant]) -> Module {
        Module::from_artifact(encode(variants).unwrap()).unwrap()
    }

    #[test]
    fn a_kernel_is_asked_for_by_its_name_and_types() {
        let module = module(&[variant(Target::SM_80, true, true), variant(Target::SM_90A, false, true)]);
        assert!(module.kernel::<(F32, Tensor<F32, 1>, TensorMut<F32, 1>)>("axpy").is_ok());
        let refused = module.kernel::<(I32, Tensor<BF16, 2>, TensorMut<F32, 1>)>("axpy").unwrap_err().to_string();
        assert_eq!(
            refused,
            "kernel `axpy` of the artifact takes (a: F32, x: Tensor<F32, 1>, y: TensorMut<F32, 1>), and is asked for \
             with (I32, Tensor<BF16, 2>, TensorMut<F32, 1>)"
        );
        assert!(module.kernel::<()>("axpy").unwrap_err().to_string().ends_with("asked for with ()"));
        let refused = module.kernel::<()>("axpi").unwrap_err().to_string();
        assert!(refused.contains("there is no kernel `axpi`; did you mean `axpy`?"), "{refused}");
        assert_eq!(module.image("axpy", Target::SM_90A, Form::Ptx).unwrap(), b"ptx");
        assert_eq!(module.image("axpy", Target::SM_90A, Form::Code), None);
        assert_eq!(format!("{module:?}"), r#"["axpy for sm_80", "axpy for sm_90a"]"#);
    }

    #[test]
    fn a_gpu_gets_the_best_code_that_it_runs() {
        let module = module(&[
            variant(Target::SM_80, true, true),
            variant(Target::SM_90A, true, true),
            variant(Target::GFX942, true, false),
        ]);
        let chosen = |own: Target, major: u32| -> Vec<(&str, Form)> {
            let found = candidates(module.shared.variants.iter(), own, |target| major == target.generation() / 10);
            found.iter().map(|(variant, form)| (variant.meta.target.name(), *form)).collect()
        };
        let hopper = [("sm_90a", Form::Code), ("sm_90a", Form::Ptx), ("sm_80", Form::Ptx)];
        assert_eq!(chosen(Target::SM_90A, 9), hopper);
        assert_eq!(chosen(Target::SM_80, 8), [("sm_80", Form::Code), ("sm_80", Form::Ptx)]);
        // An sm_80 kernel wished for on a later chip; a chip that there is no code for.
        assert_eq!(chosen(Target::SM_80, 9), [("sm_80", Form::Ptx)]);
        assert_eq!(chosen(Target::SM_100A, 10), [("sm_80", Form::Ptx)]);
        assert_eq!(chosen(Target::SM_100A, 10).len(), 1);
    }

    #[test]
    fn a_file_is_named_when_it_cannot_be_read() {
        let text = Module::from_file("/nowhere/axpy.lwa").unwrap_err().to_string();
        assert!(text.starts_with("/nowhere/axpy.lwa: cannot be read: "), "{text}");
        assert!(Module::from_artifact(b"x".as_slice()).is_err());
    }

    #[cfg(feature = "mlir")]
    #[test]
    fn the_emulator_does_not_run_machine_code() {
        let module = module(&[variant(Target::SM_80, true, true)]);
        let axpy = module.kernel::<(F32, Tensor<F32, 1>, TensorMut<F32, 1>)>("axpy").unwrap();
        let device = Device::emulator(Target::SM_80).unwrap();
        let x = device.tensor_zeros::<f32, 1>([1]).unwrap();
        let mut y = device.tensor_zeros::<f32, 1>([1]).unwrap();
        let text = axpy.grid([1, 1, 1]).launch(&device, (1.0f32, &x, &mut y)).unwrap_err().to_string();
        assert!(text.contains("is machine code, which emulator:sm_80 does not run"), "{text}");
    }
}

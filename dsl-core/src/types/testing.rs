//! Traces small bodies for the tests of this crate.

use std::panic::Location;

use crate::KernelAttributes;
use crate::rt::{Kernel, KernelParams};
use crate::{Error, Target, Traced, trace_kernel};

/// A kernel whose body is a closure.
#[derive(Clone)]
pub(crate) struct Closure<F, P> {
    pub(crate) body: F,
    pub(crate) attributes: KernelAttributes,
    pub(crate) location: &'static Location<'static>,
    pub(crate) params: std::marker::PhantomData<fn(P)>,
}

impl<P: KernelParams + Clone + 'static, F: Fn(P) + Clone + 'static> Kernel for Closure<F, P> {
    type Params = P;
    fn name(&self) -> &'static str {
        "test"
    }
    fn location(&self) -> &'static Location<'static> {
        self.location
    }
    fn comptime(&self) -> Vec<(&'static str, String)> {
        Vec::new()
    }
    fn param_names() -> &'static [&'static str] {
        &["a", "b", "c", "d", "e", "f"]
    }
    fn attributes(&self) -> KernelAttributes {
        self.attributes.clone()
    }
    fn trace(&self, params: P) {
        (self.body)(params);
    }
}

/// Traces a body for a block and a target.
#[track_caller]
pub(crate) fn trace_with<P: KernelParams + Clone + 'static>(
    target: Target,
    block: [u32; 3],
    body: impl Fn(P) + Clone + 'static,
) -> Result<Traced, Error> {
    let location = Location::caller();
    let attributes = KernelAttributes { block, min_blocks: None, max_regs: None, waves_per_eu: None, cluster: None };
    trace_kernel(&Closure { body, attributes, location, params: std::marker::PhantomData }, target)
}

/// Traces a body for 128 threads of an `sm_80`.
#[track_caller]
pub(crate) fn trace_body<P: KernelParams + Clone + 'static>(
    body: impl Fn(P) + Clone + 'static,
) -> Result<Traced, Error> {
    trace_with(Target::SM_80, [128, 1, 1], body)
}

/// The ops of the kernel's body, one a line; or the errors.
pub(crate) fn body(traced: Result<Traced, Error>) -> String {
    let text = match traced {
        Ok(traced) => traced.text(),
        Err(error) => return error.to_string(),
    };
    let lines = text.lines().map(str::trim).skip_while(|line| !line.starts_with("gpu.func"));
    lines.skip(1).take_while(|line| *line != "gpu.return").collect::<Vec<_>>().join("\n")
}

/// The messages of a refused kernel, without snippets.
pub(crate) fn messages(traced: Result<Traced, Error>) -> Vec<String> {
    match traced {
        Ok(_) => vec!["no error".to_owned()],
        Err(error) => error
            .diagnostics
            .iter()
            .map(|d| match &d.location {
                Some(_) => d.message.clone(),
                None => format!("{} (nowhere)", d.message),
            })
            .collect(),
    }
}

//! Kernels by name: what the command line lists, compiles and runs.
//!
//! A library of kernels exports one [`KernelEntry`] per kernel; a binary hands a slice of them to
//! `lacewing::cli::main`. An entry says which compile-time parameters the kernel has
//! ([`Parameter`]), how to build it from their values ([`KernelEntry::build`]) and, if it can be
//! run from files, how ([`Runner`]).
//!
//! ```ignore
//! pub static AXPY: KernelEntry = KernelEntry {
//!     name: "axpy",
//!     about: "y = a * x + y",
//!     targets: Target::ALL,
//!     parameters: &[Parameter::usize("block", 256, "threads in a block")],
//!     build: |settings, _target| Ok(Box::new(axpy::<F32>::new(settings.usize("block")?))),
//!     runner: Some(&AxpyRunner),
//! };
//! ```

use std::fmt;

use lacewing_core::{SourceLocation, Target, Traced, rt, trace_kernel};

use crate::error::Error;
pub use crate::error::unknown;
use crate::runner::Runner;

/// One kernel that can be named.
pub struct KernelEntry {
    /// Its name on the command line; also the name of the function.
    pub name: &'static str,
    /// One line about what it computes.
    pub about: &'static str,
    /// The targets it can be compiled for.
    pub targets: &'static [Target],
    /// Its compile-time parameters, each with a default.
    pub parameters: &'static [Parameter],
    /// Builds the kernel for parameter values. Values that do not go together are refused with
    /// [`Error::Setting`].
    pub build: Build,
    /// How to run it on tensors from a file, if it can be.
    pub runner: Option<&'static dyn Runner>,
}

/// Makes a kernel from the values of its compile-time parameters, for a target.
pub type Build = fn(&Settings, Target) -> Result<Box<dyn AnyKernel>, Error>;

impl fmt::Debug for KernelEntry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("KernelEntry")
            .field("name", &self.name)
            .field("parameters", &self.parameters)
            .finish_non_exhaustive()
    }
}

impl KernelEntry {
    /// Builds the kernel after checking that `target` is one of its targets.
    pub fn build_for(&self, settings: &Settings, target: Target) -> Result<Box<dyn AnyKernel>, Error> {
        if !self.targets.contains(&target) {
            let known: Vec<_> = self.targets.iter().map(|t| t.name()).collect();
            return Err(Error::Setting(format!(
                "kernel `{}` has no version for {}; it has one for {}",
                self.name,
                target.name(),
                known.join(", ")
            )));
        }
        (self.build)(settings, target)
    }
}

/// A kernel whose type has been forgotten: it can still be traced.
pub trait AnyKernel {
    /// Name of the kernel function.
    fn name(&self) -> &'static str;
    /// Name and text of each compile-time parameter.
    fn comptime(&self) -> Vec<(&'static str, String)>;
    /// Where the kernel is defined.
    fn location(&self) -> SourceLocation;
    /// Traces the kernel to MLIR for `target`.
    fn trace(&self, target: Target) -> Result<Traced, Error>;
}

impl<K: rt::Kernel> AnyKernel for K {
    fn name(&self) -> &'static str {
        rt::Kernel::name(self)
    }

    fn comptime(&self) -> Vec<(&'static str, String)> {
        rt::Kernel::comptime(self)
    }

    fn location(&self) -> SourceLocation {
        SourceLocation::from_caller(rt::Kernel::location(self))
    }

    fn trace(&self, target: Target) -> Result<Traced, Error> {
        Ok(trace_kernel(self, target)?)
    }
}

/// A compile-time parameter of a kernel, as the command line knows it.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Parameter {
    /// The name in `--set name=value`.
    pub name: &'static str,
    /// What values it takes.
    pub kind: ParameterKind,
    /// Its value when nothing is set.
    pub default: Value,
    /// One line about what it does.
    pub about: &'static str,
}

impl Parameter {
    /// A number of something.
    pub const fn usize(name: &'static str, default: usize, about: &'static str) -> Self {
        Parameter { name, kind: ParameterKind::Usize, default: Value::Usize(default), about }
    }

    /// A yes or no.
    pub const fn bool(name: &'static str, default: bool, about: &'static str) -> Self {
        Parameter { name, kind: ParameterKind::Bool, default: Value::Bool(default), about }
    }

    /// One of a few names.
    pub const fn choice(
        name: &'static str,
        choices: &'static [&'static str],
        default: &'static str,
        about: &'static str,
    ) -> Self {
        Parameter { name, kind: ParameterKind::Choice(choices), default: Value::Choice(default), about }
    }

    /// A real number.
    pub const fn f32(name: &'static str, default: f32, about: &'static str) -> Self {
        Parameter { name, kind: ParameterKind::F32, default: Value::F32(default), about }
    }

    fn parse(&self, text: &str) -> Result<Value, Error> {
        let value = match self.kind {
            ParameterKind::Usize => text.parse().ok().map(Value::Usize),
            ParameterKind::Bool => text.parse().ok().map(Value::Bool),
            ParameterKind::Choice(choices) => {
                choices.iter().find(|choice| **choice == text).map(|choice| Value::Choice(choice))
            }
            ParameterKind::F32 => text.parse().ok().filter(|x: &f32| x.is_finite()).map(Value::F32),
        };
        value.ok_or_else(|| Error::Setting(format!("`{}` takes {}, not `{text}`", self.name, self.kind)))
    }
}

/// What values a [`Parameter`] takes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ParameterKind {
    /// A natural number.
    Usize,
    /// `true` or `false`.
    Bool,
    /// One of these names.
    Choice(&'static [&'static str]),
    /// A finite real number.
    F32,
}

impl ParameterKind {
    /// The kind in one word, as `list --json` gives it.
    pub fn name(&self) -> &'static str {
        match self {
            ParameterKind::Usize => "usize",
            ParameterKind::Bool => "bool",
            ParameterKind::Choice(_) => "choice",
            ParameterKind::F32 => "f32",
        }
    }
}

impl fmt::Display for ParameterKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ParameterKind::Usize => f.write_str("a natural number"),
            ParameterKind::Bool => f.write_str("`true` or `false`"),
            ParameterKind::Choice(choices) => write!(f, "one of {}", choices.join(", ")),
            ParameterKind::F32 => f.write_str("a finite number"),
        }
    }
}

/// The value of a [`Parameter`].
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Value {
    /// A natural number.
    Usize(usize),
    /// A yes or no.
    Bool(bool),
    /// One of the names of a [`ParameterKind::Choice`].
    Choice(&'static str),
    /// A real number.
    F32(f32),
}

impl fmt::Display for Value {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Value::Usize(x) => x.fmt(f),
            Value::Bool(x) => x.fmt(f),
            Value::Choice(x) => x.fmt(f),
            Value::F32(x) => x.fmt(f),
        }
    }
}

/// The values of a kernel's compile-time parameters.
#[derive(Debug, Clone)]
pub struct Settings {
    parameters: &'static [Parameter],
    values: Vec<(Value, Origin)>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Origin {
    Default,
    Inferred,
    Given,
}

impl Settings {
    /// Every parameter at its default.
    pub fn defaults(parameters: &'static [Parameter]) -> Self {
        let values = parameters.iter().map(|p| (p.default, Origin::Default)).collect();
        Settings { parameters, values }
    }

    /// Sets a parameter from text, as in `--set name=value`.
    pub fn set(&mut self, name: &str, text: &str) -> Result<(), Error> {
        let (index, parameter) = self.find(name)?;
        let value = parameter.parse(text)?;
        self.store(index, value, Origin::Given);
        Ok(())
    }

    /// Sets a parameter to what the inputs say (a head dimension, an element type). Refused when
    /// the user has set another value.
    pub fn infer(&mut self, name: &str, value: Value) -> Result<(), Error> {
        let (index, parameter) = self.find(name)?;
        if let Some((given, Origin::Given)) = self.values.get(index) {
            if *given == value {
                return Ok(());
            }
            return Err(Error::Setting(format!(
                "`{name}` is set to {given}, but the inputs need {value}; leave it out and it is \
                 taken from the inputs"
            )));
        }
        // Through the text, so that an inferred value obeys the parameter's kind as a given one does.
        let value = parameter.parse(&value.to_string())?;
        self.store(index, value, Origin::Inferred);
        Ok(())
    }

    /// Whether the user set this parameter.
    pub fn is_given(&self, name: &str) -> bool {
        self.find(name)
            .ok()
            .and_then(|(index, _)| self.values.get(index))
            .is_some_and(|(_, origin)| *origin == Origin::Given)
    }

    /// Whether the kernel has a parameter of this name.
    pub fn has(&self, name: &str) -> bool {
        self.find(name).is_ok()
    }

    /// The value of a parameter.
    pub fn get(&self, name: &str) -> Result<Value, Error> {
        let (index, parameter) = self.find(name)?;
        Ok(self.values.get(index).map_or(parameter.default, |(value, _)| *value))
    }

    /// The value of a [`ParameterKind::Usize`].
    pub fn usize(&self, name: &str) -> Result<usize, Error> {
        match self.get(name)? {
            Value::Usize(x) => Ok(x),
            _ => Err(self.mistyped(name, "usize")),
        }
    }

    /// The value of a [`ParameterKind::Bool`].
    pub fn bool(&self, name: &str) -> Result<bool, Error> {
        match self.get(name)? {
            Value::Bool(x) => Ok(x),
            _ => Err(self.mistyped(name, "bool")),
        }
    }

    /// The value of a [`ParameterKind::Choice`].
    pub fn choice(&self, name: &str) -> Result<&'static str, Error> {
        match self.get(name)? {
            Value::Choice(x) => Ok(x),
            _ => Err(self.mistyped(name, "choice")),
        }
    }

    /// The value of a [`ParameterKind::F32`].
    pub fn f32(&self, name: &str) -> Result<f32, Error> {
        match self.get(name)? {
            Value::F32(x) => Ok(x),
            _ => Err(self.mistyped(name, "f32")),
        }
    }

    /// Every parameter with its value, in the order of the entry.
    pub fn iter(&self) -> impl Iterator<Item = (&'static Parameter, Value)> + '_ {
        self.parameters.iter().zip(&self.values).map(|(parameter, (value, _))| (parameter, *value))
    }

    fn find(&self, name: &str) -> Result<(usize, &'static Parameter), Error> {
        let found = self.parameters.iter().enumerate().find(|(_, p)| p.name == name);
        found.ok_or_else(|| {
            let known = self.parameters.iter().map(|p| p.name);
            Error::Setting(unknown("parameter", name, known))
        })
    }

    fn store(&mut self, index: usize, value: Value, origin: Origin) {
        if let Some(slot) = self.values.get_mut(index) {
            *slot = (value, origin);
        }
    }

    fn mistyped(&self, name: &str, wanted: &str) -> Error {
        Error::Setting(format!("parameter `{name}` is no {wanted} (a fault of the kernel's entry)"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    static PARAMETERS: &[Parameter] = &[
        Parameter::usize("head_dim", 64, ""),
        Parameter::bool("causal", false, ""),
        Parameter::choice("dtype", &["f16", "bf16"], "f16", ""),
        Parameter::f32("scale", 0.5, ""),
    ];

    #[test]
    fn a_setting_has_the_type_of_its_parameter() {
        let mut settings = Settings::defaults(PARAMETERS);
        settings.set("head_dim", "128").unwrap();
        settings.set("causal", "true").unwrap();
        settings.set("dtype", "bf16").unwrap();
        assert_eq!(settings.usize("head_dim").unwrap(), 128);
        assert!(settings.bool("causal").unwrap());
        assert_eq!(settings.choice("dtype").unwrap(), "bf16");
        assert_eq!(settings.f32("scale").unwrap(), 0.5);
        assert!(settings.is_given("dtype") && !settings.is_given("scale"));

        let refused = settings.set("dtype", "f64").unwrap_err().to_string();
        assert_eq!(refused, "`dtype` takes one of f16, bf16, not `f64`");
        let refused = settings.set("head_dim", "-1").unwrap_err().to_string();
        assert_eq!(refused, "`head_dim` takes a natural number, not `-1`");
        let refused = settings.set("scale", "NaN").unwrap_err().to_string();
        assert_eq!(refused, "`scale` takes a finite number, not `NaN`");
    }

    #[test]
    fn an_unknown_parameter_is_met_with_the_closest_one() {
        let mut settings = Settings::defaults(PARAMETERS);
        let refused = settings.set("headdim", "64").unwrap_err().to_string();
        assert_eq!(
            refused,
            "there is no parameter `headdim`; did you mean `head_dim`?\n  \
             known: head_dim, causal, dtype, scale"
        );
        let refused = settings.set("xyz", "64").unwrap_err().to_string();
        assert!(!refused.contains("did you mean"), "{refused}");
    }

    #[test]
    fn what_the_inputs_say_never_overrides_the_user() {
        let mut settings = Settings::defaults(PARAMETERS);
        settings.infer("head_dim", Value::Usize(96)).unwrap();
        assert_eq!(settings.usize("head_dim").unwrap(), 96);
        settings.set("head_dim", "64").unwrap();
        settings.infer("head_dim", Value::Usize(64)).unwrap();
        assert!(settings.infer("head_dim", Value::Usize(96)).is_err());
    }
}

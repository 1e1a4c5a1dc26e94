//! Running a kernel on named tensors: the part of a [`KernelEntry`](crate::registry::KernelEntry)
//! that `lacewing run` uses.

pub mod ladder;
mod simple;

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use lacewing_core::ScalarType;

use crate::compare::Comparison;
use crate::device::Device;
use crate::error::Error;
use crate::host::{Random, Tensors};
use crate::registry::{Settings, unknown};

pub use ladder::{Ladder, Laddered, Tile, Variant, poison};
pub use simple::{SimpleRunner, Wanted};

/// How to run a kernel on tensors from a file or made at random, and how to check what it gave.
///
/// The command line calls, in this order: [`random`](Runner::random) unless there is a file,
/// [`prepare`](Runner::prepare), [`run`](Runner::run), and with `--check`
/// [`compare_from`](Runner::compare_from). Only after all of them are the outputs written.
pub trait Runner: Sync {
    /// What the kernel reads.
    fn inputs(&self) -> &'static [TensorSpec];

    /// What the kernel writes, and `--output` saves.
    fn outputs(&self) -> &'static [TensorSpec];

    /// The sizes that `--shape name=value,..` sets for random inputs.
    fn dimensions(&self) -> &'static [Dimension];

    /// Makes inputs of the given sizes.
    fn random(&self, settings: &Settings, sizes: &Sizes, random: &mut Random) -> Result<Tensors, Error>;

    /// Checks the inputs ([`Error::Input`] when they will not do), converts what may be converted
    /// (with a line in `notices` for each conversion), and takes from them the settings that they
    /// decide, by [`Settings::infer`].
    fn prepare(&self, settings: &mut Settings, inputs: &mut Tensors, notices: &mut Vec<String>) -> Result<(), Error>;

    /// Runs the kernel on prepared inputs and gives its outputs.
    fn run(&self, device: &Device, settings: &Settings, inputs: &Tensors) -> Result<Tensors, Error>;

    /// Compares outputs with the right ones: those among the inputs if the file carries them, else
    /// the host's reference.
    fn compare(&self, settings: &Settings, inputs: &Tensors, outputs: &Tensors) -> Result<Vec<Comparison>, Error>;

    /// [`compare`](Runner::compare) for what a GPU gave, whose units may cut off more than the emulator does.
    fn compare_from_gpu(
        &self,
        settings: &Settings,
        inputs: &Tensors,
        outputs: &Tensors,
    ) -> Result<Vec<Comparison>, Error> {
        self.compare(settings, inputs, outputs)
    }

    /// [`compare`](Runner::compare) or [`compare_from_gpu`](Runner::compare_from_gpu), as the device is.
    fn compare_from(
        &self,
        device: &Device,
        settings: &Settings,
        inputs: &Tensors,
        outputs: &Tensors,
    ) -> Result<Vec<Comparison>, Error> {
        match device.is_gpu() {
            true => self.compare_from_gpu(settings, inputs, outputs),
            false => self.compare(settings, inputs, outputs),
        }
    }

    /// How `lacewing check` tries the kernel.
    fn ladder(&self) -> &Ladder {
        &Ladder::DEFAULT
    }

    /// What the run amounts to, for rates of `lacewing bench`; from the shapes alone unless a runner knows better.
    fn work(&self, _settings: &Settings, inputs: &Tensors, outputs: &Tensors) -> Work {
        Work::of_shapes(self.inputs(), self.outputs(), inputs, outputs)
    }
}

/// A tensor that a kernel reads or writes, for help texts and for checking files.
#[derive(Debug, Clone, Copy)]
pub struct TensorSpec {
    /// Name in the file.
    pub name: &'static str,
    /// The names of its dimensions, outermost first.
    pub dimensions: &'static [&'static str],
    /// The types that it may have.
    pub types: &'static [ScalarType],
    /// Whether a file may leave it out.
    pub optional: bool,
    /// One line about it.
    pub about: &'static str,
}

/// Checks tensors against what a kernel reads: every one that it needs is there, with a type that it
/// takes, and dimensions of one name have one extent. Gives the extents by name.
///
/// # Errors
/// [`Error::Input`], with what was found and what is wanted.
pub fn check_tensors(specs: &[TensorSpec], tensors: &Tensors) -> Result<BTreeMap<&'static str, usize>, Error> {
    // The extent of each dimension and the tensor that it was first seen in.
    let mut extents: BTreeMap<&'static str, (usize, &'static str)> = BTreeMap::new();
    for spec in specs {
        let name = spec.name;
        let Some(tensor) = tensors.get(name) else {
            if spec.optional {
                continue;
            }
            let there: Vec<&str> = tensors.keys().map(String::as_str).collect();
            let there = if there.is_empty() { "none".to_owned() } else { there.join(", ") };
            return Err(Error::Input(format!("tensor `{name}` is missing: {spec}\n  tensors that are there: {there}")));
        };
        if !spec.types.contains(&tensor.scalar()) {
            return Err(Error::Input(format!(
                "tensor `{name}` holds {}, but it must be {spec}",
                tensor.scalar().name()
            )));
        }
        if tensor.shape().len() != spec.dimensions.len() {
            return Err(Error::Input(format!("tensor `{name}` has shape {:?}, but it must be {spec}", tensor.shape())));
        }
        for (dimension, extent) in spec.dimensions.iter().zip(tensor.shape()) {
            let (first, seen_in) = *extents.entry(dimension).or_insert((*extent, name));
            if first != *extent {
                return Err(Error::Input(format!(
                    "tensor `{name}` has shape {:?} with {dimension} = {extent}, but {dimension} = {first} in \
                     `{seen_in}`; it must be {spec}",
                    tensor.shape()
                )));
            }
        }
    }
    Ok(extents.into_iter().map(|(name, (extent, _))| (name, extent)).collect())
}

impl fmt::Display for TensorSpec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let types: Vec<&str> = self.types.iter().map(|scalar| scalar.name()).collect();
        write!(f, "[{}] of {} ({})", self.dimensions.join(", "), types.join(" or "), self.about)
    }
}

/// A size that random inputs are made from.
#[derive(Debug, Clone, Copy)]
pub struct Dimension {
    /// Name in `--shape name=value`.
    pub name: &'static str,
    /// Its value when it is left out.
    pub default: usize,
    /// One line about it.
    pub about: &'static str,
}

/// Values of a runner's dimensions.
#[derive(Debug, Clone)]
pub struct Sizes {
    dimensions: &'static [Dimension],
    values: BTreeMap<&'static str, usize>,
    given: BTreeSet<&'static str>,
}

impl Sizes {
    /// Every dimension at its default.
    pub fn defaults(dimensions: &'static [Dimension]) -> Self {
        Sizes { dimensions, values: dimensions.iter().map(|d| (d.name, d.default)).collect(), given: BTreeSet::new() }
    }

    /// Sets sizes from `name=value,name=value`.
    pub fn set(&mut self, text: &str) -> Result<(), Error> {
        for part in text.split(',').map(str::trim).filter(|part| !part.is_empty()) {
            let (name, value) = part
                .split_once('=')
                .ok_or_else(|| Error::Setting(format!("`--shape` takes name=value, not `{part}`")))?;
            let dimension = self.dimensions.iter().find(|d| d.name == name).ok_or_else(|| {
                let known = self.dimensions.iter().map(|d| d.name);
                Error::Setting(unknown("dimension", name, known))
            })?;
            let value = value
                .parse()
                .map_err(|_| Error::Setting(format!("dimension `{name}` takes a natural number, not `{value}`")))?;
            self.values.insert(dimension.name, value);
            if !self.given.insert(dimension.name) {
                return Err(Error::Setting(format!("dimension `{name}` is given twice")));
            }
        }
        Ok(())
    }

    /// Sets one size, in place of what was given for it; a name that the runner does not have is passed over.
    pub fn put(&mut self, name: &str, value: usize) {
        if let Some(dimension) = self.dimensions.iter().find(|d| d.name == name) {
            self.values.insert(dimension.name, value);
            self.given.insert(dimension.name);
        }
    }

    /// The sizes as `name=value,name=value`, in the order of the runner.
    pub fn text(&self) -> String {
        let sizes = self.dimensions.iter().filter_map(|d| Some((d.name, self.values.get(d.name)?)));
        sizes.map(|(name, value)| format!("{name}={value}")).collect::<Vec<_>>().join(",")
    }

    /// Whether the user set this dimension.
    pub fn is_given(&self, name: &str) -> bool {
        self.given.contains(name)
    }

    /// The value of a dimension.
    pub fn get(&self, name: &str) -> Result<usize, Error> {
        self.values
            .get(name)
            .copied()
            .ok_or_else(|| Error::Setting(unknown("dimension", name, self.dimensions.iter().map(|d| d.name))))
    }
}

/// What a run amounts to, however it is done.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Work {
    /// Floating-point operations of products and sums of products, a multiplication and an addition for two; `None` where
    /// moving the data is all that counts.
    pub flops: Option<f64>,
    /// Bytes that must be moved between memory and chip: every input once, every output once.
    pub bytes: f64,
}

impl Work {
    /// The bytes of inputs and outputs, and for kernels that contract (a dimension of inputs that no output has is summed
    /// over, as K of `a[M, K] b[K, N]`) two operations for each product of their elements.
    pub fn of_shapes(inputs: &[TensorSpec], outputs: &[TensorSpec], given: &Tensors, made: &Tensors) -> Self {
        let bytes = |specs: &[TensorSpec], tensors: &Tensors| -> usize {
            specs.iter().filter_map(|spec| Some(tensors.get(spec.name)?.bytes().len())).sum()
        };
        let mut extents: BTreeMap<&str, usize> = BTreeMap::new();
        for spec in inputs {
            let shape = given.get(spec.name).map(|tensor| tensor.shape()).unwrap_or_default();
            extents.extend(spec.dimensions.iter().copied().zip(shape.iter().copied()));
        }
        let kept = |name: &&str| outputs.iter().any(|spec| spec.dimensions.contains(name));
        let contracts = extents.keys().any(|name| !kept(name));
        let products: f64 = extents.values().map(|extent| *extent as f64).product();
        let bytes = (bytes(inputs, given) + bytes(outputs, made)) as f64;
        Work { flops: contracts.then_some(2.0 * products), bytes }
    }
}

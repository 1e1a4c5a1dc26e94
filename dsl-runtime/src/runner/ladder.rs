//! What the debugging ladder must know of a kernel beyond its runner: shapes, tiles, special inputs.

use std::collections::BTreeMap;

use lacewing_core::{ScalarType, Target};

use super::{Dimension, Runner, Sizes, TensorSpec, Work};
use crate::compare::Comparison;
use crate::device::Device;
use crate::error::Error;
use crate::host::{HostTensor, Random, Tensors};
use crate::registry::Settings;

/// How `lacewing check` tries a kernel. Every field has a default that asks nothing of the kernel's author
/// ([`Ladder::DEFAULT`]).
#[derive(Clone, Copy)]
pub struct Ladder {
    /// How much of a dimension the kernel works on at a time, on a target: shapes around multiples of it are tried,
    /// and a wrong row is told by its tile.
    pub tiles: fn(&Settings, Target) -> Vec<Tile>,
    /// The shape of the rungs that try one, as `name=value,..`, with the other dimensions at their defaults.
    pub default: &'static str,
    /// Shapes to try, each as `name=value,..`, with the other dimensions at their defaults. When there are none, they
    /// are made from the dimensions: tiny, prime and unequal, around tiles, large.
    pub shapes: &'static [&'static str],
    /// The smallest shape that means something, for the rung `single`: one block, one partition. Empty for 1 in every
    /// dimension.
    pub single: &'static str,
    /// Inputs to set to zero, one at a time. Empty for each float input in turn.
    pub zeros: &'static [&'static str],
    /// Inputs that this kernel is tried on besides.
    pub variants: &'static [Variant],
    /// Whether two runs must agree bit for bit. Not for kernels that add floats atomically.
    pub reproducible: bool,
    /// Values of compile-time parameters that are tried besides each choice of each: `head_dim=128,causal=true`.
    pub settings: &'static [&'static str],
}

impl Ladder {
    /// Asks nothing of the kernel's author.
    pub const DEFAULT: Ladder = Ladder {
        tiles: |_, _| Vec::new(),
        default: "",
        shapes: &[],
        single: "",
        zeros: &[],
        variants: &[],
        reproducible: true,
        settings: &[],
    };
}

/// How much of a dimension a kernel works on at a time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Tile {
    /// Name of the dimension.
    pub dimension: &'static str,
    /// Its extent.
    pub extent: usize,
}

impl Tile {
    /// `Tile { dimension, extent }`.
    pub const fn new(dimension: &'static str, extent: usize) -> Self {
        Tile { dimension, extent }
    }
}

/// Changes random inputs of a kernel into special ones.
pub type Change = fn(&Settings, &mut Tensors, &mut Random) -> Result<(), Error>;

/// A special input.
#[derive(Clone, Copy)]
pub struct Variant {
    /// Name of the rung.
    pub name: &'static str,
    /// What is special, in a few words.
    pub about: &'static str,
    /// The shape, as `name=value,..`; empty for the default.
    pub shape: &'static str,
    /// Whether the change puts poison ([`poison`]) where nothing may look.
    pub poisoned: bool,
    /// Changes the random inputs.
    pub change: Change,
}

/// Sets elements `[from, to)` of the flat tensor to poison: NaN with all bits set, which the ladder can tell from
/// every number.
///
/// # Errors
/// When the range is not inside the tensor.
pub fn poison(tensor: &mut HostTensor, from: usize, to: usize) -> Result<(), Error> {
    let size = tensor.scalar().bytes();
    let mut bytes = tensor.bytes().to_vec();
    let range = bytes.get_mut(from.saturating_mul(size)..to.saturating_mul(size));
    let range =
        range.ok_or_else(|| Error::Shape(format!("{from}..{to} is not inside a tensor of {}", tensor.len())))?;
    range.fill(crate::placement::POISON);
    *tensor = HostTensor::from_bytes(tensor.scalar(), tensor.shape(), bytes)?;
    Ok(())
}

/// A runner with a ladder of its own.
///
/// ```ignore
/// static LADDER: Laddered = Laddered {
///     runner: &RUNNER,
///     ladder: Ladder { tiles: |_, _| vec![Tile::new("C", 128)], ..Ladder::DEFAULT },
/// };
/// ```
pub struct Laddered {
    /// The runner.
    pub runner: &'static dyn Runner,
    /// Its ladder.
    pub ladder: Ladder,
}

impl Runner for Laddered {
    fn inputs(&self) -> &'static [TensorSpec] {
        self.runner.inputs()
    }

    fn outputs(&self) -> &'static [TensorSpec] {
        self.runner.outputs()
    }

    fn dimensions(&self) -> &'static [Dimension] {
        self.runner.dimensions()
    }

    fn random(&self, settings: &Settings, sizes: &Sizes, random: &mut Random) -> Result<Tensors, Error> {
        self.runner.random(settings, sizes, random)
    }

    fn prepare(&self, settings: &mut Settings, inputs: &mut Tensors, notices: &mut Vec<String>) -> Result<(), Error> {
        self.runner.prepare(settings, inputs, notices)
    }

    fn run(&self, device: &Device, settings: &Settings, inputs: &Tensors) -> Result<Tensors, Error> {
        self.runner.run(device, settings, inputs)
    }

    fn compare(&self, settings: &Settings, inputs: &Tensors, outputs: &Tensors) -> Result<Vec<Comparison>, Error> {
        self.runner.compare(settings, inputs, outputs)
    }

    fn compare_from_gpu(
        &self,
        settings: &Settings,
        inputs: &Tensors,
        outputs: &Tensors,
    ) -> Result<Vec<Comparison>, Error> {
        self.runner.compare_from_gpu(settings, inputs, outputs)
    }

    fn work(&self, settings: &Settings, inputs: &Tensors, outputs: &Tensors) -> Work {
        self.runner.work(settings, inputs, outputs)
    }

    fn ladder(&self) -> &Ladder {
        &self.ladder
    }
}

/// Whether a tensor holds floats that can be set from numbers.
pub(crate) fn is_float(tensor: &HostTensor) -> bool {
    use ScalarType as S;
    matches!(tensor.scalar(), S::F16 | S::Bf16 | S::F32 | S::F64)
}

/// The smallest prime from `n` on.
fn prime_from(n: usize) -> usize {
    let is_prime = |n: usize| n >= 2 && (2..).take_while(|d| d * d <= n).all(|d| !n.is_multiple_of(d));
    (n..).find(|n| is_prime(*n)).unwrap_or(n)
}

/// The shapes of the rung `shapes`, as `name=value,..`: those that the ladder names, or made from the dimensions.
pub(crate) fn shapes(runner: &dyn Runner, settings: &Settings, target: Target) -> Vec<String> {
    let ladder = runner.ladder();
    if !ladder.shapes.is_empty() {
        return ladder.shapes.iter().map(|shape| (*shape).to_owned()).collect();
    }
    let dimensions = runner.dimensions();
    let tiles: BTreeMap<&str, usize> =
        (ladder.tiles)(settings, target).into_iter().map(|tile| (tile.dimension, tile.extent)).collect();
    let tile = |dimension: &Dimension| tiles.get(dimension.name).copied().unwrap_or(dimension.default).max(1);
    let shape = |extent: &dyn Fn(usize, &Dimension) -> usize| {
        let sizes = dimensions.iter().enumerate().map(|(i, d)| format!("{}={}", d.name, extent(i, d)));
        sizes.collect::<Vec<_>>().join(",")
    };
    let mut shapes = vec![
        // Unequal primes: what holds only when two extents are equal does not hold here.
        shape(&|i, d| prime_from(d.default.clamp(2, 64) + 11 * i)),
        shape(&|i, d| prime_from(d.default.clamp(2, 64) + 11 * (dimensions.len() - i))),
        shape(&|i, _| [2, 3, 5, 7].get(i % 4).copied().unwrap_or(2)),
        // Around one tile, and around two.
        shape(&|_, d| tile(d).saturating_sub(1).max(1)),
        shape(&|_, d| tile(d) + 1),
        shape(&|i, d| if i % 2 == 0 { 2 * tile(d) } else { tile(d) + 1 }),
        shape(&|i, d| if i % 2 == 1 { 2 * tile(d) + 1 } else { tile(d) }),
    ];
    // Large: one dimension at a time, so that many tiles do not make the reference slow.
    for large in 0..dimensions.len() {
        shapes.push(shape(&|i, d| if i == large { 3 * tile(d).max(d.default) + 1 } else { tile(d).min(3) }));
    }
    let mut seen = std::collections::BTreeSet::new();
    shapes.retain(|shape| seen.insert(shape.clone()));
    shapes
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn primes() {
        assert_eq!([0, 2, 8, 24, 90].map(prime_from), [2, 2, 11, 29, 97]);
    }

    #[test]
    fn poison_is_all_bits() {
        let mut tensor = HostTensor::new(&[1.0f32, 2.0, 3.0], &[3]).unwrap();
        poison(&mut tensor, 1, 3).unwrap();
        assert_eq!(tensor.bytes()[4..], [0xff; 8]);
        assert_eq!(tensor.to_f64().unwrap()[0], 1.0);
        assert!(tensor.to_f64().unwrap()[1].is_nan());
        assert!(poison(&mut tensor, 2, 4).is_err());
    }
}

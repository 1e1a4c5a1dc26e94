//! A runner from a table: for kernels whose contract is plain shapes and one tolerance.

use lacewing_core::ScalarType;

use super::{Dimension, Runner, Sizes, TensorSpec, check_tensors};
use crate::compare::{Comparison, Unit};
use crate::device::Device;
use crate::error::Error;
use crate::host::{Random, Tensors};
use crate::registry::{Settings, Value};

/// Runs a kernel whose inputs are plain tensors: each is there, has the dimensions that its
/// [`TensorSpec`] names, and all that may have several types have the same one.
///
/// An optional input with the name of an output is no input of the kernel: a file may carry it as the right output,
/// of any type that it names, and the check then compares with it and not with the reference.
///
/// If the kernel has a parameter `dtype`, it is taken from the inputs. Random inputs are normal numbers
/// of the type `dtype` (or the first type of a specification).
///
/// ```ignore
/// static RUNNER: SimpleRunner = SimpleRunner {
///     inputs: &[TensorSpec { name: "x", dimensions: &["N"], types: FLOATS, optional: false, about: "..." }, ..],
///     outputs: &[..],
///     dimensions: &[Dimension { name: "N", default: 1000, about: "elements" }],
///     run: |device, settings, inputs| { .. },
///     reference: |settings, inputs| Ok(vec![Wanted { tensor: "y", numbers, tolerance: 1e-6 }]),
/// };
/// ```
pub struct SimpleRunner {
    /// What the kernel reads.
    pub inputs: &'static [TensorSpec],
    /// What it writes.
    pub outputs: &'static [TensorSpec],
    /// The sizes of random inputs: the names of the inputs' dimensions.
    pub dimensions: &'static [Dimension],
    /// Launches the kernel on checked inputs and gives its outputs.
    pub run: fn(&Device, &Settings, &Tensors) -> Result<Tensors, Error>,
    /// The right outputs.
    pub reference: fn(&Settings, &Tensors) -> Result<Vec<Wanted>, Error>,
}

/// A right output, in row-major order.
#[derive(Debug, Clone)]
pub struct Wanted {
    /// Name of the output.
    pub tensor: &'static str,
    /// The numbers.
    pub numbers: Vec<f64>,
    /// The largest `|got - wanted| / max(1, |wanted|)` that passes.
    pub tolerance: f64,
}

impl SimpleRunner {
    /// Whether an input is a right output to compare with.
    fn is_expected(&self, spec: &TensorSpec) -> bool {
        spec.optional && self.outputs.iter().any(|output| output.name == spec.name)
    }

    /// The names of the inputs that may have several types, with the type that they have here.
    fn flexible<'a>(&'a self, inputs: &'a Tensors) -> impl Iterator<Item = (&'static str, ScalarType)> + 'a {
        let flexible = self.inputs.iter().filter(|spec| spec.types.len() > 1 && !self.is_expected(spec));
        flexible.filter_map(|spec| Some((spec.name, inputs.get(spec.name)?.scalar())))
    }
}

impl Runner for SimpleRunner {
    fn inputs(&self) -> &'static [TensorSpec] {
        self.inputs
    }

    fn outputs(&self) -> &'static [TensorSpec] {
        self.outputs
    }

    fn dimensions(&self) -> &'static [Dimension] {
        self.dimensions
    }

    fn random(&self, settings: &Settings, sizes: &Sizes, random: &mut Random) -> Result<Tensors, Error> {
        let dtype = if settings.has("dtype") { ScalarType::from_name(settings.choice("dtype")?) } else { None };
        let mut tensors = Tensors::new();
        for spec in self.inputs.iter().filter(|spec| !spec.optional) {
            let shape: Vec<usize> = spec.dimensions.iter().map(|name| sizes.get(name)).collect::<Result<_, _>>()?;
            let scalar = dtype.filter(|dtype| spec.types.contains(dtype)).or(spec.types.first().copied());
            let scalar = scalar.unwrap_or(ScalarType::F32);
            tensors.insert(spec.name.to_owned(), random.tensor(scalar, &shape, 1.0)?);
        }
        Ok(tensors)
    }

    fn prepare(&self, settings: &mut Settings, inputs: &mut Tensors, _: &mut Vec<String>) -> Result<(), Error> {
        for (name, extent) in check_tensors(self.inputs, inputs)? {
            if i32::try_from(extent).is_err() {
                return Err(Error::Input(format!("{name} is {extent}, and extents must be below 2^31")));
            }
        }
        let mut flexible = self.flexible(inputs);
        let Some((first, scalar)) = flexible.next() else { return Ok(()) };
        if let Some((name, other)) = flexible.find(|(_, other)| *other != scalar) {
            return Err(Error::Input(format!(
                "`{first}` holds {scalar} and `{name}` {other}: they must be of one type"
            )));
        }
        if settings.has("dtype") {
            settings.infer("dtype", Value::Choice(scalar.name()))?;
        }
        Ok(())
    }

    fn run(&self, device: &Device, settings: &Settings, inputs: &Tensors) -> Result<Tensors, Error> {
        let outputs = (self.run)(device, settings, inputs)?;
        check_tensors(self.outputs, &outputs)?;
        Ok(outputs)
    }

    fn compare(&self, settings: &Settings, inputs: &Tensors, outputs: &Tensors) -> Result<Vec<Comparison>, Error> {
        let wanted = (self.reference)(settings, inputs)?;
        wanted
            .into_iter()
            .map(|Wanted { tensor, numbers, tolerance }| {
                let output = outputs
                    .get(tensor)
                    .ok_or_else(|| Error::Shape(format!("the kernel gave no `{tensor}` (a fault of its runner)")))?;
                let got = output.to_f64()?;
                let expected = self.inputs.iter().find(|spec| spec.name == tensor && self.is_expected(spec));
                let (numbers, against) = match expected.and_then(|spec| inputs.get(spec.name)) {
                    Some(expected) => (expected.to_f64()?, "the file"),
                    None => (numbers, "the reference on the host"),
                };
                let comparison = Comparison::new(tensor, output.shape(), &got, &numbers, Unit::Relative, tolerance);
                Ok(comparison.against(against))
            })
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::host::HostTensor;
    use crate::registry::Parameter;
    use lacewing_core::Target;

    const FLOATS: &[ScalarType] = &[ScalarType::F32, ScalarType::F16];

    const fn spec(name: &'static str, dimensions: &'static [&'static str]) -> TensorSpec {
        TensorSpec { name, dimensions, types: FLOATS, optional: false, about: "numbers" }
    }

    static DOUBLE: SimpleRunner = SimpleRunner {
        inputs: &[
            spec("x", &["N"]),
            spec("factor", &["One"]),
            TensorSpec { optional: true, types: &[ScalarType::F32, ScalarType::F64], ..spec("y", &["N"]) },
        ],
        outputs: &[spec("y", &["N"])],
        dimensions: &[
            Dimension { name: "N", default: 3, about: "elements" },
            Dimension { name: "One", default: 1, about: "one" },
        ],
        run: |_, _, inputs| {
            let x = &inputs["x"];
            let y: Vec<f64> = x.to_f64()?.iter().map(|x| x + x).collect();
            Ok(Tensors::from([("y".to_owned(), HostTensor::from_f64(x.scalar(), x.shape(), &y)?)]))
        },
        reference: |_, inputs| {
            let numbers = inputs["x"].to_f64()?.iter().map(|x| 2.0 * x).collect();
            Ok(vec![Wanted { tensor: "y", numbers, tolerance: 0.0 }])
        },
    };

    #[test]
    fn a_kernel_from_a_table_runs_and_is_checked() {
        static PARAMETERS: &[Parameter] = &[Parameter::choice("dtype", &["f32", "f16"], "f16", "")];
        let mut settings = Settings::defaults(PARAMETERS);
        let mut sizes = Sizes::defaults(DOUBLE.dimensions);
        sizes.set("N=5").unwrap();
        let mut inputs = DOUBLE.random(&settings, &sizes, &mut Random::new(1)).unwrap();
        assert_eq!((inputs["x"].scalar(), inputs["x"].shape()), (ScalarType::F16, &[5][..]));
        DOUBLE.prepare(&mut settings, &mut inputs, &mut Vec::new()).unwrap();
        let device = Device::emulator(Target::SM_80).unwrap();
        let outputs = DOUBLE.run(&device, &settings, &inputs).unwrap();
        assert!(DOUBLE.compare(&settings, &inputs, &outputs).unwrap()[0].holds());

        inputs.insert("x".to_owned(), HostTensor::new(&[1.0f32], &[1]).unwrap());
        let refused = DOUBLE.prepare(&mut settings, &mut inputs, &mut Vec::new()).unwrap_err().to_string();
        assert_eq!(refused, "`x` holds f32 and `factor` f16: they must be of one type");
        inputs.insert("factor".to_owned(), HostTensor::new(&[1.0f32], &[1]).unwrap());
        DOUBLE.prepare(&mut settings, &mut inputs, &mut Vec::new()).unwrap();
        assert_eq!(settings.choice("dtype").unwrap(), "f32");
    }

    #[test]
    fn a_right_output_in_the_file_is_what_the_check_compares_with() {
        let device = Device::emulator(Target::SM_80).unwrap();
        let mut settings = Settings::defaults(&[]);
        let tensor = |numbers: &[f32]| HostTensor::new(numbers, &[numbers.len()]).unwrap();
        let mut inputs = Tensors::from([("x".to_owned(), tensor(&[1.0, 2.0])), ("factor".to_owned(), tensor(&[0.0]))]);
        let mut check = |inputs: &mut Tensors| {
            DOUBLE.prepare(&mut settings, inputs, &mut Vec::new())?;
            let outputs = DOUBLE.run(&device, &settings, inputs)?;
            Ok::<_, Error>(DOUBLE.compare(&settings, inputs, &outputs)?.remove(0))
        };
        assert_eq!(check(&mut inputs).unwrap().against, "the reference on the host");
        inputs.insert("y".to_owned(), HostTensor::new(&[2.0f64, 4.0], &[2]).unwrap());
        let right = check(&mut inputs).unwrap();
        assert!(right.holds() && right.against == "the file", "{right:?}");
        inputs.insert("y".to_owned(), HostTensor::new(&[2.0f64, 4.5], &[2]).unwrap());
        let wrong = check(&mut inputs).unwrap();
        assert!(!wrong.holds() && wrong.worst.unwrap().index == [1]);
        inputs.insert("y".to_owned(), HostTensor::new(&[2.0f64], &[1]).unwrap());
        assert!(check(&mut inputs).unwrap_err().to_string().contains("tensor `y` has shape [1] with N = 1"));
    }

    #[test]
    fn extents_beyond_32_bits_are_refused_before_anything_runs() {
        let tensor = |shape: &[usize]| HostTensor::new::<f32>(&[], shape).unwrap();
        static EMPTY: SimpleRunner = SimpleRunner {
            inputs: &[spec("x", &["R", "C"])],
            outputs: &[],
            dimensions: &[],
            run: |_, _, _| Ok(Tensors::new()),
            reference: |_, _| Ok(Vec::new()),
        };
        let mut inputs = Tensors::from([("x".to_owned(), tensor(&[1 << 31, 0]))]);
        let refused = EMPTY.prepare(&mut Settings::defaults(&[]), &mut inputs, &mut Vec::new()).unwrap_err();
        assert_eq!(refused.to_string(), "R is 2147483648, and extents must be below 2^31");
    }
}

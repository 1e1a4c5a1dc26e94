//! Attention kernels on named tensors: what `lacewing run` reads, checks and writes for them.
//!
//! All attention kernels share one contract. Inputs: `q` `[B, Hq, Sq, D]`, `k` and `v` `[B, Hkv, Sk, D]` in
//! F16, BF16 or F32 (F32 is rounded to the kernel's type, with a notice), optionally `kv_len` `[B]` in I32,
//! and `o` and `lse` to compare with. Outputs: `o` and `lse` in F32.

use lacewing_core::ScalarType;
use lacewing_runtime::compare::Comparison;
use lacewing_runtime::host::Random;
use lacewing_runtime::registry::{Settings, Value};
use lacewing_runtime::runner::{Dimension, Runner, Sizes, TensorSpec, Work, check_tensors};
use lacewing_runtime::{Device, Error, HostTensor, Tensors};

use crate::reference::{
    self, Attention, AttentionShape, Output, Precision, attention_tolerance, compare_lse, compare_o, input_rounding,
};

/// Runs an attention kernel on named tensors.
///
/// The kernel's entry has a parameter `causal`, and may have `head_dim` and `dtype` (`f16`, `bf16`), which
/// are then taken from the inputs, and `scale` (0 stands for 1/sqrt(D)).
pub struct AttentionRunner {
    /// Launches the kernel on checked inputs.
    pub forward: fn(&Device, &Settings, &AttentionInputs) -> Result<AttentionOutputs, Error>,
}

/// Checked inputs of an attention kernel.
#[derive(Debug, Clone)]
pub struct AttentionInputs {
    /// The sizes.
    pub shape: AttentionShape,
    /// Queries, in the kernel's element type.
    pub q: HostTensor,
    /// Keys, in the kernel's element type.
    pub k: HostTensor,
    /// Values, in the kernel's element type.
    pub v: HostTensor,
    /// Valid keys of each sequence, 0 to Sk.
    pub kv_len: Option<Vec<i32>>,
    /// Whether query i sees key j only when j <= i + Sk - Sq.
    pub causal: bool,
    /// What scores are multiplied with.
    pub scale: f32,
}

/// What an attention kernel gives, in any floating-point type.
#[derive(Debug, Clone)]
pub struct AttentionOutputs {
    /// The output `[B, Hq, Sq, D]`.
    pub o: HostTensor,
    /// Natural logarithm of the sum of exponentials `[B, Hq, Sq]`.
    pub lse: HostTensor,
}

const FLOATS: &[ScalarType] = &[ScalarType::F16, ScalarType::Bf16, ScalarType::F32];

const fn spec(
    name: &'static str,
    dimensions: &'static [&'static str],
    types: &'static [ScalarType],
    optional: bool,
    about: &'static str,
) -> TensorSpec {
    TensorSpec { name, dimensions, types, optional, about }
}

static INPUTS: [TensorSpec; 6] = [
    spec("q", &["B", "Hq", "Sq", "D"], FLOATS, false, "queries"),
    spec("k", &["B", "Hkv", "Sk", "D"], FLOATS, false, "keys"),
    spec("v", &["B", "Hkv", "Sk", "D"], FLOATS, false, "values"),
    spec("kv_len", &["B"], &[ScalarType::I32], true, "valid keys of each sequence"),
    spec("o", &["B", "Hq", "Sq", "D"], FLOATS, true, "the right output, to compare with"),
    spec("lse", &["B", "Hq", "Sq"], &[ScalarType::F32], true, "the right log-sum-exp, to compare with"),
];

static OUTPUTS: [TensorSpec; 2] = [
    spec("o", &["B", "Hq", "Sq", "D"], &[ScalarType::F32], false, "the output"),
    spec("lse", &["B", "Hq", "Sq"], &[ScalarType::F32], false, "natural log of the sum of exponentials"),
];

const fn dimension(name: &'static str, default: usize, about: &'static str) -> Dimension {
    Dimension { name, default, about }
}

static DIMENSIONS: [Dimension; 6] = [
    dimension("B", 1, "sequences"),
    dimension("Hq", 4, "query heads"),
    dimension("Hkv", 2, "key and value heads"),
    dimension("Sq", 128, "queries of a sequence"),
    dimension("Sk", 128, "keys of a sequence"),
    dimension("D", 64, "head dimension"),
];

/// The element type that the kernel runs on: its `dtype` if it has one, else that of `q`.
fn kernel_type(settings: &Settings, inputs: &Tensors) -> Result<ScalarType, Error> {
    if settings.has("dtype") {
        let name = settings.choice("dtype")?;
        return ScalarType::from_name(name).ok_or_else(|| Error::Setting(format!("`{name}` is no element type")));
    }
    Ok(tensor(inputs, "q")?.scalar())
}

fn tensor<'a>(tensors: &'a Tensors, name: &str) -> Result<&'a HostTensor, Error> {
    tensors.get(name).ok_or_else(|| Error::Input(format!("tensor `{name}` is missing")))
}

fn shape_of(inputs: &Tensors) -> Result<AttentionShape, Error> {
    let shape = |name| tensor(inputs, name)?.shape_of();
    AttentionShape::from_tensors(shape("q")?, shape("k")?, shape("v")?)
}

/// The numbers of a float tensor after rounding to `scalar`. Every type in use is exact in f32.
fn rounded(tensor: &HostTensor, scalar: ScalarType) -> Result<Vec<f32>, Error> {
    Ok(tensor.to_float(scalar)?.to_f64()?.into_iter().map(|x| x as f32).collect())
}

/// Refuses numbers that the kernel's type has only infinities for: nothing could be compared with them.
fn refuse_overflow(name: &str, tensor: &HostTensor, scalar: ScalarType) -> Result<(), Error> {
    let (exact, rounded) = (tensor.to_f64()?, rounded(tensor, scalar)?);
    match exact.iter().zip(rounded).find(|(exact, rounded)| exact.is_finite() && !rounded.is_finite()) {
        Some((exact, _)) => Err(Error::Input(format!(
            "`{name}` holds {exact:e}, which is too large for {scalar}, the kernel's element type"
        ))),
        None => Ok(()),
    }
}

impl AttentionInputs {
    /// Inputs from named tensors that [`Runner::prepare`] has checked.
    fn new(settings: &Settings, inputs: &Tensors) -> Result<Self, Error> {
        let scalar = kernel_type(settings, inputs)?;
        let shape = shape_of(inputs)?;
        let scale = if settings.has("scale") { settings.f32("scale")? } else { 0.0 };
        Ok(AttentionInputs {
            shape,
            q: tensor(inputs, "q")?.to_float(scalar)?,
            k: tensor(inputs, "k")?.to_float(scalar)?,
            v: tensor(inputs, "v")?.to_float(scalar)?,
            kv_len: inputs.get("kv_len").map(HostTensor::to_vec).transpose()?,
            causal: settings.bool("causal")?,
            scale: if scale == 0.0 { (shape.head_dim as f32).sqrt().recip() } else { scale },
        })
    }
}

impl Runner for AttentionRunner {
    /// 4 B Hq Sq Sk D operations, of which a causal mask leaves half; each of Q, K, V and O once in the kernel's element
    /// type, and LSE.
    fn work(&self, settings: &Settings, inputs: &Tensors, _: &Tensors) -> Work {
        let Ok(AttentionShape { batch, heads_q, heads_kv, seqlen_q, seqlen_kv, head_dim }) = shape_of(inputs) else {
            return Work::default();
        };
        let product = |factors: &[usize]| factors.iter().map(|factor| *factor as f64).product::<f64>();
        let rows = product(&[batch, heads_q, seqlen_q]);
        let masked = if settings.bool("causal").unwrap_or(false) { 0.5 } else { 1.0 };
        let element = kernel_type(settings, inputs).map_or(4, ScalarType::bytes) as f64;
        let keys = product(&[batch, heads_kv, seqlen_kv, head_dim]);
        Work {
            flops: Some(4.0 * rows * product(&[seqlen_kv, head_dim]) * masked),
            bytes: element * (2.0 * rows * head_dim as f64 + 2.0 * keys) + 4.0 * rows,
        }
    }

    fn inputs(&self) -> &'static [TensorSpec] {
        &INPUTS
    }

    fn outputs(&self) -> &'static [TensorSpec] {
        &OUTPUTS
    }

    fn dimensions(&self) -> &'static [Dimension] {
        &DIMENSIONS
    }

    fn random(&self, settings: &Settings, sizes: &Sizes, random: &mut Random) -> Result<Tensors, Error> {
        let scalar = if settings.has("dtype") { kernel_type(settings, &Tensors::new())? } else { ScalarType::F16 };
        let head_dim = if settings.is_given("head_dim") && !sizes.is_given("D") {
            settings.usize("head_dim")?
        } else {
            sizes.get("D")?
        };
        let q = [sizes.get("B")?, sizes.get("Hq")?, sizes.get("Sq")?, head_dim];
        let kv = [sizes.get("B")?, sizes.get("Hkv")?, sizes.get("Sk")?, head_dim];
        let mut tensors = Tensors::new();
        for (name, shape) in [("q", q), ("k", kv), ("v", kv)] {
            tensors.insert(name.to_owned(), random.tensor(scalar, &shape, 1.0)?);
        }
        Ok(tensors)
    }

    fn prepare(&self, settings: &mut Settings, inputs: &mut Tensors, notices: &mut Vec<String>) -> Result<(), Error> {
        check_tensors(&INPUTS, inputs)?;
        let shape = shape_of(inputs)?;
        for (name, extent) in [
            ("B", shape.batch),
            ("Hq", shape.heads_q),
            ("Hkv", shape.heads_kv),
            ("Sq", shape.seqlen_q),
            ("Sk", shape.seqlen_kv),
        ] {
            if i32::try_from(extent).is_err() {
                return Err(Error::Input(format!("{name} is {extent}, and extents must be below 2^31")));
            }
        }
        let q = tensor(inputs, "q")?.scalar();
        for name in ["k", "v"] {
            let scalar = tensor(inputs, name)?.scalar();
            if scalar != q {
                let (scalar, q) = (scalar.name(), q.name());
                return Err(Error::Input(format!("`q` holds {q} and `{name}` {scalar}: they must be of one type")));
            }
        }
        if let Some(kv_len) = inputs.get("kv_len") {
            for (sequence, length) in kv_len.to_vec::<i32>()?.into_iter().enumerate() {
                if usize::try_from(length).is_err() || length as usize > shape.seqlen_kv {
                    return Err(Error::Input(format!(
                        "`kv_len` of sequence {sequence} is {length}, and must be between 0 and Sk = {}",
                        shape.seqlen_kv
                    )));
                }
            }
        }
        if settings.has("head_dim") {
            settings.infer("head_dim", Value::Usize(shape.head_dim))?;
        }
        if settings.has("dtype") {
            if q == ScalarType::F32 {
                let dtype = settings.choice("dtype")?;
                if dtype != "f32" {
                    let scalar = kernel_type(settings, inputs)?;
                    for name in ["q", "k", "v"] {
                        refuse_overflow(name, tensor(inputs, name)?, scalar)?;
                    }
                    notices.push(format!("q, k and v are f32 and were rounded to {dtype}, the kernel's element type"));
                }
            } else {
                settings.infer("dtype", Value::Choice(q.name()))?;
            }
        }
        Ok(())
    }

    fn run(&self, device: &Device, settings: &Settings, inputs: &Tensors) -> Result<Tensors, Error> {
        let AttentionOutputs { o, lse } = (self.forward)(device, settings, &AttentionInputs::new(settings, inputs)?)?;
        let mut outputs = Tensors::new();
        outputs.insert("o".to_owned(), o.to_float(ScalarType::F32)?);
        outputs.insert("lse".to_owned(), lse.to_float(ScalarType::F32)?);
        check_tensors(&OUTPUTS, &outputs)?;
        Ok(outputs)
    }

    fn compare(&self, settings: &Settings, inputs: &Tensors, outputs: &Tensors) -> Result<Vec<Comparison>, Error> {
        let shape = shape_of(inputs)?;
        let scalar = kernel_type(settings, inputs)?;
        let given = Problem::new(settings, inputs, tensor(inputs, "q")?.scalar())?;
        let exact = reference::attention(&given.attention())?;
        let rounded = Problem::new(settings, inputs, scalar)?;
        let precision = match scalar {
            ScalarType::F16 => Precision::F16,
            ScalarType::Bf16 => Precision::Bf16,
            _ => Precision::F32,
        };
        let low = reference::attention_low(&rounded.attention(), precision)?;
        // The tolerance comes from the host's own results, never from the file: a wrong `o` in the
        // file must not widen it.
        let tolerance = attention_tolerance(&low.o, &exact.o);
        let lse_slack = if scalar == given.scalar {
            0.0
        } else {
            input_rounding(&reference::attention(&rounded.attention())?.lse, &exact.lse)
        };
        let Output { o: exact_o, lse: exact_lse } = exact;
        let wanted = |name: &str, exact: Vec<f64>| -> Result<(Vec<f64>, &str), Error> {
            match inputs.get(name) {
                Some(tensor) => Ok((tensor.to_f64()?, "the file")),
                None => Ok((exact, "the f64 reference on the host")),
            }
        };
        let (o, o_from) = wanted("o", exact_o)?;
        let (lse, lse_from) = wanted("lse", exact_lse)?;
        Ok(vec![
            compare_o(&tensor(outputs, "o")?.to_f64()?, &o, &shape.q(), tolerance).against(o_from),
            compare_lse(&tensor(outputs, "lse")?.to_f64()?, &lse, &shape.lse(), lse_slack).against(lse_from),
        ])
    }
}

/// The numbers of an attention problem for the reference, rounded to `scalar`.
struct Problem {
    scalar: ScalarType,
    shape: AttentionShape,
    q: Vec<f32>,
    k: Vec<f32>,
    v: Vec<f32>,
    kv_len: Option<Vec<usize>>,
    causal: bool,
    scale: f64,
}

impl Problem {
    fn new(settings: &Settings, inputs: &Tensors, scalar: ScalarType) -> Result<Self, Error> {
        let shape = shape_of(inputs)?;
        let scale = if settings.has("scale") { f64::from(settings.f32("scale")?) } else { 0.0 };
        let kv_len = inputs.get("kv_len").map(HostTensor::to_vec::<i32>).transpose()?;
        Ok(Problem {
            scalar,
            shape,
            q: rounded(tensor(inputs, "q")?, scalar)?,
            k: rounded(tensor(inputs, "k")?, scalar)?,
            v: rounded(tensor(inputs, "v")?, scalar)?,
            // Checked not to be negative.
            kv_len: kv_len.map(|lengths| lengths.into_iter().map(|x| usize::try_from(x).unwrap_or(0)).collect()),
            causal: settings.bool("causal")?,
            scale: if scale == 0.0 { (shape.head_dim as f64).sqrt().recip() } else { scale },
        })
    }

    fn attention(&self) -> Attention<'_> {
        Attention {
            shape: self.shape,
            q: &self.q,
            k: &self.k,
            v: &self.v,
            kv_len: self.kv_len.as_deref(),
            causal: self.causal,
            scale: self.scale,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn prepared(v: f32, batch: usize) -> Result<(), Error> {
        let mut inputs = Tensors::new();
        for name in ["q", "k", "v"] {
            let shape = [batch, usize::from(batch == 1), 1, 8];
            let numbers = vec![if name == "v" { v } else { 1.0 }; shape.iter().product()];
            inputs.insert(name.to_owned(), HostTensor::new(&numbers, &shape)?);
        }
        let mut settings = Settings::defaults(crate::fmha::FMHA_FWD.parameters);
        AttentionRunner { forward: |_, _, _| Err(Error::Setting("not run".to_owned())) }.prepare(
            &mut settings,
            &mut inputs,
            &mut Vec::new(),
        )
    }

    #[test]
    fn numbers_that_become_infinite_are_refused() {
        prepared(65504.0, 1).unwrap();
        prepared(f32::INFINITY, 1).unwrap();
        let error = prepared(1e5, 1).unwrap_err().to_string();
        assert!(error.contains("`v` holds 1e5, which is too large for f16"), "{error}");
    }

    #[test]
    fn extents_beyond_32_bits_are_refused() {
        let error = prepared(1.0, 1 << 40).unwrap_err().to_string();
        assert!(error.contains("B is 1099511627776"), "{error}");
    }
}

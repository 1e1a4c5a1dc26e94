//! Numbers that are wrong on some inputs, and right on those that are tried first.

use lacewing_core::ScalarType;
use lacewing_core::prelude::*;
use lacewing_runtime::registry::KernelEntry;
use lacewing_runtime::runner::{Ladder, Laddered, SimpleRunner, TensorSpec, Tile, Variant, poison};
use lacewing_runtime::{Error, HostTensor, KernelExt, Tensors};

use super::{dimension, entry, output, tensor, upload, wanted};
use crate::reference;

/// Rows that a matrix instruction takes at once.
const GROUP: i32 = 4;

/// `o = p v`, with the rows of a full group of `v` in another order than the columns of `p`.
#[kernel(block = [32, 1, 1])]
pub fn weighted_rows(p: Tensor<F32, 2>, v: Tensor<F32, 2>, o: TensorMut<F32, 2>) {
    let (row, column) = (block_id(X), thread_id(X));
    if column < v.extent(1) {
        let keys = v.extent(0);
        let mut sum = F32::from(0.0);
        for key in range(keys) {
            let group = key / GROUP * GROUP;
            let is_full = group + GROUP <= keys;
            let other = is_full.select(group + (key - group) / 2 + (key - group) % 2 * 2, key);
            sum = p.at((row, key)).load().fma(v.at((other, column)).load(), sum);
        }
        o.at((row, column)).store(sum); // <- D7
    }
}

static WEIGHTED: SimpleRunner = SimpleRunner {
    inputs: &[tensor("p", &["M", "K"], "weights"), tensor("v", &["K", "D"], "values")],
    outputs: &[tensor("o", &["M", "D"], "p v")],
    dimensions: &[dimension("M", 6), dimension("K", 16), dimension("D", 24)],
    run: |device, _, inputs| {
        let (p, v) = (upload::<2>(device, inputs, "p")?, upload::<2>(device, inputs, "v")?);
        let ([rows, _], [_, width]) = (p.shape(), v.shape());
        if width > 32 {
            return Err(Error::Shape(format!("values have {width} elements, and a warp takes 32")));
        }
        let mut o = device.tensor_uninit([rows, width])?;
        weighted_rows::new().grid([rows, 1, 1]).launch(device, (&p, &v, &mut o))?;
        output("o", &o)
    },
    reference: |_, inputs| {
        let (p, v) = (&inputs["p"], &inputs["v"]);
        let ([rows, _], [_, width]) = (p.shape_of::<2>()?, v.shape_of::<2>()?);
        wanted("o", reference::matmul(&p.to_f64()?, &v.to_f64()?, rows, width))
    },
};

static WEIGHTED_LADDER: Laddered = Laddered {
    runner: &WEIGHTED,
    ladder: Ladder { tiles: |_, _| vec![Tile::new("K", GROUP as usize)], ..Ladder::DEFAULT },
};

/// D7.
pub(super) static D7: KernelEntry = entry(
    "planted_d7",
    "rows of V in another order than the columns of P",
    |_, _| Ok(Box::new(weighted_rows::new())),
    &WEIGHTED_LADDER,
);

/// Numbers from a quantised tensor: the scale is applied when they are read, and again when they are stored.
#[kernel(block = [64, 1, 1])]
pub fn dequantise(x: Tensor<F32, 1>, scale: Tensor<F32, 1>, y: TensorMut<F32, 1>) {
    let i = block_id(X) * 64 + thread_id(X);
    if i < y.extent(0) {
        let v_scale = scale.at(0).load();
        let value = x.at(i).load() * v_scale;
        y.at(i).store(value * v_scale); // <- D11
    }
}

static DEQUANTISED: SimpleRunner = SimpleRunner {
    inputs: &[tensor("x", &["N"], "numbers"), tensor("scale", &["One"], "what they are multiplied with")],
    outputs: &[tensor("y", &["N"], "x times the scale")],
    dimensions: &[dimension("N", 100), dimension("One", 1)],
    run: |device, _, inputs| {
        let (x, scale) = (upload::<1>(device, inputs, "x")?, upload::<1>(device, inputs, "scale")?);
        let [n] = x.shape();
        let mut y = device.tensor_uninit([n])?;
        dequantise::new().grid([n.div_ceil(64), 1, 1]).launch(device, (&x, &scale, &mut y))?;
        output("y", &y)
    },
    reference: |_, inputs| {
        let scale = inputs["scale"].to_f64()?.first().copied().unwrap_or(1.0);
        wanted("y", inputs["x"].to_f64()?.iter().map(|x| x * scale).collect())
    },
};

/// A scale as quantisation makes it: near 1, so that the error is a few per cent.
fn usual_scale(inputs: &mut Tensors) -> Result<(), Error> {
    inputs.insert("scale".to_owned(), HostTensor::new(&[1.02_f32], &[1])?);
    Ok(())
}

static DEQUANTISED_LADDER: Laddered = Laddered {
    runner: &DEQUANTISED,
    ladder: Ladder {
        // One scale, whatever the other extents are.
        single: "N=1,One=1",
        shapes: &["N=63,One=1", "N=65,One=1", "N=257,One=1"],
        variants: &[Variant {
            name: "scaled",
            about: "a scale near 1",
            shape: "",
            poisoned: false,
            change: |_, inputs, _| usual_scale(inputs),
        }],
        ..Ladder::DEFAULT
    },
};

/// D11.
pub(super) static D11: KernelEntry =
    entry("planted_d11", "a scale applied twice", |_, _| Ok(Box::new(dequantise::new())), &DEQUANTISED_LADDER);

/// C = A B for flat matrices, one thread an element, with the rows of B as far apart as they would be if N were K.
#[kernel(block = [32, 1, 1])]
pub fn flat_matmul(n: I32, k: I32, a: Tensor<F32, 1>, b: Tensor<F32, 1>, c: TensorMut<F32, 1>) {
    let at = block_id(X) * 32 + thread_id(X);
    if at < c.extent(0) {
        let (row, column) = (at / n, at % n);
        let mut sum = F32::from(0.0);
        for inner in range(k) {
            let left = a.at(row * k + inner).load();
            let right = b.at(inner * k + column).load(); // <- D25
            sum = left.fma(right, sum);
        }
        c.at(at).store(sum);
    }
}

static FLAT: SimpleRunner = SimpleRunner {
    inputs: &[tensor("a", &["M", "K"], "the left matrix"), tensor("b", &["K", "N"], "the right matrix")],
    outputs: &[tensor("c", &["M", "N"], "a b")],
    dimensions: &[dimension("M", 16), dimension("N", 16), dimension("K", 16)],
    run: |device, _, inputs| {
        let (a, b) = (upload::<2>(device, inputs, "a")?, upload::<2>(device, inputs, "b")?);
        let ([rows, inner], [_, columns]) = (a.shape(), b.shape());
        let (a, b) = (a.reshape([rows * inner])?, b.reshape([inner * columns])?);
        let sizes = [columns, inner].map(|extent| i32::try_from(extent).unwrap_or(i32::MAX));
        let mut c = device.tensor_uninit([rows * columns])?;
        let grid = [(rows * columns).div_ceil(32), 1, 1];
        flat_matmul::new().grid(grid).launch(device, (sizes[0], sizes[1], &a, &b, &mut c))?;
        output("c", &c.reshape([rows, columns])?)
    },
    reference: |_, inputs| {
        let (a, b) = (&inputs["a"], &inputs["b"]);
        let ([rows, _], [_, columns]) = (a.shape_of::<2>()?, b.shape_of::<2>()?);
        wanted("c", reference::matmul(&a.to_f64()?, &b.to_f64()?, rows, columns))
    },
};

/// D25.
pub(super) static D25: KernelEntry = entry(
    "planted_d25",
    "a stride that is right when K and N are equal",
    |_, _| Ok(Box::new(flat_matmul::new())),
    &FLAT,
);

const ATTENTION_INPUTS: &[TensorSpec] =
    &[tensor("q", &["Sq", "D"], "queries"), tensor("k", &["Sk", "D"], "keys"), tensor("v", &["Sk", "D"], "values")];

/// Softmax of the scores of each query, times the values; with the exponents relative to the largest score.
fn attention(inputs: &Tensors) -> Result<Vec<f64>, Error> {
    let [q, k, v] = ["q", "k", "v"].map(|name| inputs[name].to_f64());
    let ([_, width], v) = (inputs["q"].shape_of::<2>()?, v?);
    let (q, k) = (q?, k?);
    let width = width.max(1);
    let rows = q.chunks(width).flat_map(|q| {
        let scores: Vec<f64> = k.chunks(width).map(|k| q.iter().zip(k).map(|(q, k)| q * k).sum()).collect();
        let max = scores.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        let weights: Vec<f64> = scores.iter().map(|score| (score - max).exp()).collect();
        let total: f64 = weights.iter().sum();
        let column = |d: usize| v.iter().skip(d).step_by(width).zip(&weights).map(|(v, w)| v * w).sum::<f64>() / total;
        (0..width).map(column).collect::<Vec<f64>>()
    });
    Ok(rows.collect())
}

/// The product of a query and a key.
#[device]
fn score(q: Tensor<F32, 2>, k: Tensor<F32, 2>, query: I32, key: I32) -> F32 {
    let mut sum = F32::from(0.0);
    for d in range(q.extent(1)) {
        sum = q.at((query, d)).load().fma(k.at((key, d)).load(), sum);
    }
    sum
}

/// Attention in two passes, one thread an element of the output. Keys beyond the number of queries are masked.
#[kernel(block = [32, 1, 1])]
pub fn masked_attention(q: Tensor<F32, 2>, k: Tensor<F32, 2>, v: Tensor<F32, 2>, o: TensorMut<F32, 2>) {
    let (query, column) = (block_id(X), thread_id(X));
    if column < v.extent(1) {
        let mut max = F32::from(f32::NEG_INFINITY);
        for key in range(k.extent(0)) {
            let visible = key < q.extent(0);
            max = visible.select(max.max(score(q, k, query, key)), max);
        }
        let (mut sum, mut total) = (F32::from(0.0), F32::from(0.0));
        for key in range(k.extent(0)) {
            let visible = key < q.extent(0);
            let weight = visible.select((score(q, k, query, key) - max).exp(), F32::from(0.0));
            total += weight;
            sum = weight.fma(v.at((key, column)).load(), sum);
        }
        o.at((query, column)).store(sum / total); // <- D26
    }
}

static MASKED: SimpleRunner = SimpleRunner {
    inputs: ATTENTION_INPUTS,
    outputs: &[tensor("o", &["Sq", "D"], "the output")],
    dimensions: &[dimension("Sq", 12), dimension("Sk", 12), dimension("D", 8)],
    run: |device, _, inputs| {
        let (q, k, v) =
            (upload::<2>(device, inputs, "q")?, upload::<2>(device, inputs, "k")?, upload::<2>(device, inputs, "v")?);
        let [queries, width] = q.shape();
        if width > 32 {
            return Err(Error::Shape(format!("values have {width} elements, and a warp takes 32")));
        }
        let mut o = device.tensor_uninit([queries, width])?;
        masked_attention::new().grid([queries, 1, 1]).launch(device, (&q, &k, &v, &mut o))?;
        output("o", &o)
    },
    reference: |_, inputs| wanted("o", attention(inputs)?),
};

/// D26.
pub(super) static D26: KernelEntry = entry(
    "planted_d26",
    "a mask of keys made from the number of queries",
    |_, _| Ok(Box::new(masked_attention::new())),
    &MASKED,
);

/// The mean of the first `len[0]` rows of `v`: rows beyond are given the weight 0.
#[kernel(block = [32, 1, 1])]
pub fn mean_of_valid(len: Tensor<I32, 1>, v: Tensor<F32, 2>, y: TensorMut<F32, 1>) {
    let column = block_id(X) * 32 + thread_id(X);
    if column < v.extent(1) {
        let valid = len.at(0).load();
        let weight = F32::from(1.0) / valid.cast::<F32>();
        let mut sum = F32::from(0.0);
        for key in range(v.extent(0)) {
            let weight = (key < valid).select(weight, F32::from(0.0));
            sum = weight.fma(v.at((key, column)).load(), sum); // <- D27
        }
        y.at(column).store(sum);
    }
}

static MEAN: SimpleRunner = SimpleRunner {
    inputs: &[
        tensor("v", &["K", "D"], "values"),
        TensorSpec {
            name: "len",
            dimensions: &["One"],
            types: &[ScalarType::I32],
            optional: true,
            about: "valid rows; all without it",
        },
    ],
    outputs: &[tensor("y", &["D"], "the mean of the valid rows")],
    dimensions: &[dimension("K", 10), dimension("D", 40)],
    run: |device, _, inputs| {
        let v = upload::<2>(device, inputs, "v")?;
        let [_, width] = v.shape();
        let len = device.tensor_from_slice(&[valid_rows(inputs)? as i32], [1])?;
        let mut y = device.tensor_uninit([width])?;
        mean_of_valid::new().grid([width.div_ceil(32), 1, 1]).launch(device, (&len, &v, &mut y))?;
        output("y", &y)
    },
    reference: |_, inputs| {
        let v = &inputs["v"];
        let ([_, width], valid) = (v.shape_of::<2>()?, valid_rows(inputs)?);
        let numbers = v.to_f64()?;
        let column = |d: usize| numbers.iter().skip(d).step_by(width).take(valid).sum::<f64>() / valid as f64;
        wanted("y", (0..width).map(column).collect())
    },
};

fn valid_rows(inputs: &Tensors) -> Result<usize, Error> {
    let [rows, _] = inputs["v"].shape_of()?;
    let given = inputs.get("len").map(HostTensor::to_vec::<i32>).transpose()?;
    Ok(given.and_then(|len| len.first().copied()).and_then(|len| usize::try_from(len).ok()).unwrap_or(rows))
}

static MEAN_LADDER: Laddered = Laddered {
    runner: &MEAN,
    ladder: Ladder {
        variants: &[Variant {
            name: "padding",
            about: "rows beyond the valid ones are NaN",
            shape: "",
            poisoned: true,
            change: |_, inputs, _| {
                let [rows, width] = inputs["v"].shape_of()?;
                let valid = rows.div_ceil(2);
                if let Some(v) = inputs.get_mut("v") {
                    poison(v, valid * width, rows * width)?;
                }
                inputs.insert("len".to_owned(), HostTensor::new(&[valid as i32], &[1])?);
                Ok(())
            },
        }],
        ..Ladder::DEFAULT
    },
};

/// D27.
pub(super) static D27: KernelEntry = entry(
    "planted_d27",
    "a weight of 0 for values that may be NaN",
    |_, _| Ok(Box::new(mean_of_valid::new())),
    &MEAN_LADDER,
);

/// Keys of a tile.
const TILE: usize = 8;

/// Attention in one pass over tiles of keys, one thread an element of the output. The output is rescaled by the
/// inverse of the factor that the denominator is rescaled by.
#[kernel(block = [32, 1, 1])]
pub fn tiled_attention(q: Tensor<F32, 2>, k: Tensor<F32, 2>, v: Tensor<F32, 2>, o: TensorMut<F32, 2>) {
    let (query, column) = (block_id(X), thread_id(X));
    if column < v.extent(1) {
        let keys = k.extent(0);
        let mut max = score(q, k, query, I32::from(0));
        let (mut sum, mut total) = (F32::from(0.0), F32::from(0.0));
        for first in range(0, keys, TILE) {
            let end = keys.min(first + (TILE as i32));
            // The first tile has nothing to rescale.
            let mut tile_max = (first == 0).select(score(q, k, query, first), max);
            for key in range(first, end) {
                tile_max = tile_max.max(score(q, k, query, key));
            }
            let rescale = (max - tile_max).exp();
            total *= rescale;
            sum = sum * (tile_max - max).exp();
            for key in range(first, end) {
                let weight = (score(q, k, query, key) - tile_max).exp();
                total += weight;
                sum = weight.fma(v.at((key, column)).load(), sum);
            }
            max = tile_max;
        }
        o.at((query, column)).store(sum / total); // <- D28
    }
}

static TILED: SimpleRunner = SimpleRunner {
    inputs: ATTENTION_INPUTS,
    outputs: &[tensor("o", &["Sq", "D"], "the output")],
    dimensions: &[dimension("Sq", 12), dimension("Sk", 20), dimension("D", 8)],
    run: |device, _, inputs| {
        let (q, k, v) =
            (upload::<2>(device, inputs, "q")?, upload::<2>(device, inputs, "k")?, upload::<2>(device, inputs, "v")?);
        let [queries, width] = q.shape();
        if width > 32 {
            return Err(Error::Shape(format!("values have {width} elements, and a warp takes 32")));
        }
        let mut o = device.tensor_uninit([queries, width])?;
        tiled_attention::new().grid([queries, 1, 1]).launch(device, (&q, &k, &v, &mut o))?;
        output("o", &o)
    },
    reference: |_, inputs| wanted("o", attention(inputs)?),
};

static TILED_LADDER: Laddered =
    Laddered { runner: &TILED, ladder: Ladder { tiles: |_, _| vec![Tile::new("Sk", TILE)], ..Ladder::DEFAULT } };

/// D28.
pub(super) static D28: KernelEntry = entry(
    "planted_d28",
    "the output rescaled by the inverted factor, the denominator rightly",
    |_, _| Ok(Box::new(tiled_attention::new())),
    &TILED_LADDER,
);

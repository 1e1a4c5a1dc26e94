//! Attention, exact and as a plain low-precision implementation gives it.

use lacewing_runtime::Error;
use lacewing_runtime::host_math::{
    Precision, exponentials_f32, exponentials_f64, rows_dot_f32, rows_dot_f64, weighted_rows_f32, weighted_rows_f64,
};
use rayon::prelude::*;

/// Sizes of an attention problem.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AttentionShape {
    /// Sequences in the batch (B).
    pub batch: usize,
    /// Query heads (Hq), a multiple of `heads_kv`.
    pub heads_q: usize,
    /// Key and value heads (Hkv); query head `h` reads key head `h / (Hq / Hkv)`.
    pub heads_kv: usize,
    /// Queries in each sequence (Sq).
    pub seqlen_q: usize,
    /// Keys in each sequence (Sk), padding included.
    pub seqlen_kv: usize,
    /// Elements of a query, key or value (D).
    pub head_dim: usize,
}

impl AttentionShape {
    /// Shape of Q and O.
    pub fn q(&self) -> [usize; 4] {
        [self.batch, self.heads_q, self.seqlen_q, self.head_dim]
    }

    /// Shape of K and V.
    pub fn kv(&self) -> [usize; 4] {
        [self.batch, self.heads_kv, self.seqlen_kv, self.head_dim]
    }

    /// Shape of the log-sum-exp.
    pub fn lse(&self) -> [usize; 3] {
        [self.batch, self.heads_q, self.seqlen_q]
    }

    /// The shape of Q `[B, Hq, Sq, D]` with K and V `[B, Hkv, Sk, D]`.
    ///
    /// # Errors
    /// When they do not go together.
    pub fn from_tensors(q: [usize; 4], k: [usize; 4], v: [usize; 4]) -> Result<Self, Error> {
        let [batch, heads_q, seqlen_q, head_dim] = q;
        let [batch_kv, heads_kv, seqlen_kv, head_dim_k] = k;
        let refuse = |what: String| Err(Error::Input(what));
        if k != v {
            return refuse(format!("`k` has shape {k:?} and `v` {v:?}: they must be the same"));
        }
        if batch != batch_kv {
            return refuse(format!("`q` has {batch} sequences and `k` {batch_kv}"));
        }
        if head_dim != head_dim_k {
            return refuse(format!("`q` has head dimension {head_dim} and `k` {head_dim_k}"));
        }
        if head_dim == 0 {
            return refuse("the head dimension is 0".to_owned());
        }
        // Without a query head nothing is asked for, whatever the key heads are.
        if heads_q != 0 && (heads_kv == 0 || !heads_q.is_multiple_of(heads_kv)) {
            return refuse(format!("{heads_q} query heads cannot share {heads_kv} key heads: not a multiple"));
        }
        Ok(AttentionShape { batch, heads_q, heads_kv, seqlen_q, seqlen_kv, head_dim })
    }

    /// How many keys query `row` sees of a sequence with `kv_len` valid keys: keys are seen from
    /// the first one on.
    ///
    /// Causal is aligned bottom-right on the whole of K: query i sees key j when j <= i + Sk - Sq.
    pub fn visible_keys(&self, row: usize, kv_len: usize, causal: bool) -> usize {
        let valid = kv_len.min(self.seqlen_kv);
        if causal { valid.min((row + 1 + self.seqlen_kv).saturating_sub(self.seqlen_q)) } else { valid }
    }
}

/// An attention problem. Q, K and V are contiguous `[B, H, S, D]`, already rounded to the kernel's
/// element type (every one of its types is exact in f32).
#[derive(Debug, Clone, Copy)]
pub struct Attention<'a> {
    /// The sizes.
    pub shape: AttentionShape,
    /// Queries.
    pub q: &'a [f32],
    /// Keys.
    pub k: &'a [f32],
    /// Values.
    pub v: &'a [f32],
    /// Valid keys of each sequence; all of them when absent.
    pub kv_len: Option<&'a [usize]>,
    /// Whether a query sees only the keys up to its own.
    pub causal: bool,
    /// What scores are multiplied with; 1/sqrt(D) as a rule.
    pub scale: f64,
}

/// What attention gives.
#[derive(Debug, Clone, PartialEq)]
pub struct Output {
    /// `[B, Hq, Sq, D]`; zero in a row with no visible key.
    pub o: Vec<f64>,
    /// Natural logarithm of the sum of exponentials `[B, Hq, Sq]`; -inf in a row with no visible key.
    pub lse: Vec<f64>,
}

impl Attention<'_> {
    fn check(&self) -> Result<(), Error> {
        let sizes = [
            ("q", self.q.len(), self.shape.q()),
            ("k", self.k.len(), self.shape.kv()),
            ("v", self.v.len(), self.shape.kv()),
        ];
        for (name, len, shape) in sizes {
            if len != shape.iter().product::<usize>() {
                return Err(Error::Shape(format!("`{name}` has {len} elements, not {shape:?}")));
            }
        }
        if let Some(kv_len) = self.kv_len
            && kv_len.len() != self.shape.batch
        {
            return Err(Error::Shape(format!("{} lengths for {} sequences", kv_len.len(), self.shape.batch)));
        }
        AttentionShape::from_tensors(self.shape.q(), self.shape.kv(), self.shape.kv())?;
        Ok(())
    }

    fn kv_len(&self, batch: usize) -> usize {
        self.kv_len.and_then(|lengths| lengths.get(batch)).copied().unwrap_or(self.shape.seqlen_kv)
    }

    /// Calls `row` for every query row, heads in parallel, with (query, K of its head, V of its
    /// head, visible keys, row of O, LSE).
    fn for_each_row<In: Copy + Send + Sync, Out: Copy + Send>(
        &self,
        q: &[In],
        k: &[In],
        v: &[In],
        zero: Out,
        row: impl Fn(&[In], &[In], &[In], &mut [Out]) -> Out + Sync,
    ) -> (Vec<Out>, Vec<Out>) {
        let shape = &self.shape;
        let (rows, width) = (shape.seqlen_q, shape.head_dim);
        let mut o = vec![zero; q.len()];
        let mut lse = vec![zero; shape.lse().iter().product()];
        if o.is_empty() {
            return (o, lse);
        }
        let group = (shape.heads_q / shape.heads_kv.max(1)).max(1);
        let kv_size = shape.seqlen_kv * width;
        o.par_chunks_mut(rows * width)
            .zip(lse.par_chunks_mut(rows))
            .zip(q.par_chunks(rows * width))
            .enumerate()
            .for_each(|(head, ((o, lse), q))| {
                let (batch, head_q) = (head / shape.heads_q, head % shape.heads_q);
                let start = (batch * shape.heads_kv + head_q / group) * kv_size;
                let k = k.get(start..start + kv_size).unwrap_or_default();
                let v = v.get(start..start + kv_size).unwrap_or_default();
                let out_rows = o.chunks_mut(width).zip(lse).zip(q.chunks(width));
                for (i, ((o, lse), q)) in out_rows.enumerate() {
                    let seen = shape.visible_keys(i, self.kv_len(batch), self.causal) * width;
                    let k = k.get(..seen).unwrap_or_default();
                    let v = v.get(..seen).unwrap_or_default();
                    *lse = row(q, k, v, o);
                }
            });
        (o, lse)
    }
}

/// Attention in f64.
///
/// # Errors
/// When the slices do not have the sizes of the shape.
pub fn attention(problem: &Attention) -> Result<Output, Error> {
    problem.check()?;
    let wide = |x: &[f32]| -> Vec<f64> { x.iter().map(|x| f64::from(*x)).collect() };
    let (q, k, v) = (wide(problem.q), wide(problem.k), wide(problem.v));
    let scale = problem.scale;
    let (o, lse) = problem.for_each_row(&q, &k, &v, 0.0f64, |q, k, v, o| {
        let mut scores = vec![0.0; k.len() / q.len().max(1)];
        rows_dot_f64(k, q, &mut scores);
        scores.iter_mut().for_each(|score| *score *= scale);
        let (largest, sum) = exponentials_f64(&mut scores);
        if sum == 0.0 {
            return f64::NEG_INFINITY;
        }
        weighted_rows_f64(&scores, v, o);
        o.iter_mut().for_each(|x| *x /= sum);
        largest + sum.ln()
    });
    Ok(Output { o, lse })
}

/// Attention as a straightforward implementation in the kernel's precision gives it, rounding
/// where FlashAttention's tests do (`attention_ref` with `upcast=False`): the scaled queries, the
/// scores, the probabilities and the output are rounded to `precision`; sums and the softmax are f32.
///
/// A score that would overflow the format is left in f32, where the tests' own version would turn the
/// whole row to NaN and leave no tolerance to speak of.
///
/// # Errors
/// When the slices do not have the sizes of the shape.
pub fn attention_low(problem: &Attention, precision: Precision) -> Result<Output, Error> {
    problem.check()?;
    let scale = problem.scale as f32;
    let (o, lse) = problem.for_each_row(problem.q, problem.k, problem.v, 0.0f32, |q, k, v, o| {
        let mut scaled: Vec<f32> = q.iter().map(|x| x * scale).collect();
        precision.round_all_finite(&mut scaled);
        let mut scores = vec![0.0; k.len() / q.len().max(1)];
        rows_dot_f32(k, &scaled, &mut scores);
        precision.round_all_finite(&mut scores);
        let (largest, sum) = exponentials_f32(&mut scores);
        if sum == 0.0 {
            return f32::NEG_INFINITY;
        }
        scores.iter_mut().for_each(|p| *p /= sum);
        precision.round_all(&mut scores);
        weighted_rows_f32(&scores, v, o);
        precision.round_all(o);
        largest + sum.ln()
    });
    let wide = |x: Vec<f32>| x.into_iter().map(f64::from).collect();
    Ok(Output { o: wide(o), lse: wide(lse) })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shape(heads_q: usize, heads_kv: usize, sq: usize, sk: usize, d: usize) -> AttentionShape {
        AttentionShape { batch: 1, heads_q, heads_kv, seqlen_q: sq, seqlen_kv: sk, head_dim: d }
    }

    fn numbers(count: usize, seed: u64) -> Vec<f32> {
        let mut random = lacewing_runtime::host::Random::new(seed);
        (0..count).map(|_| Precision::F16.round(random.normal() as f32)).collect()
    }

    #[test]
    fn one_query_two_keys_by_hand() {
        // Scores ln 1 and ln 3: weights 1/4 and 3/4.
        let ln3 = 3f32.ln();
        let problem = Attention {
            shape: shape(1, 1, 1, 2, 1),
            q: &[1.0],
            k: &[0.0, ln3],
            v: &[10.0, 20.0],
            kv_len: None,
            causal: false,
            scale: 1.0,
        };
        let output = attention(&problem).unwrap();
        assert!((output.o[0] - 17.5).abs() < 1e-6);
        assert!((output.lse[0] - 4f64.ln()).abs() < 1e-6);
    }

    #[test]
    fn a_row_without_keys_is_zero_and_minus_infinity() {
        // Causal with more queries than keys: the first Sq - Sk rows see nothing.
        let (q, k) = (numbers(5 * 4, 1), numbers(2 * 4, 2));
        let problem =
            Attention { shape: shape(1, 1, 5, 2, 4), q: &q, k: &k, v: &k, kv_len: None, causal: true, scale: 0.5 };
        for output in [attention(&problem), attention_low(&problem, Precision::F16)] {
            let output = output.unwrap();
            assert!(output.o[..12].iter().all(|x| *x == 0.0));
            assert_eq!(output.lse[..3], [f64::NEG_INFINITY; 3]);
            assert!(output.lse[3..].iter().all(|x| x.is_finite()));
            // The first row with a key sees only key 0.
            assert!((output.o[12] - f64::from(k[0])).abs() < 1e-3);
        }
        let none = Attention { kv_len: Some(&[0]), causal: false, ..problem };
        let output = attention(&none).unwrap();
        assert!(output.o.iter().all(|x| *x == 0.0));
        assert!(output.lse.iter().all(|x| *x == f64::NEG_INFINITY));
    }

    #[test]
    fn no_keys_or_no_queries_at_all() {
        let q = numbers(8, 1);
        let empty =
            Attention { shape: shape(1, 1, 2, 0, 4), q: &q, k: &[], v: &[], kv_len: None, causal: true, scale: 0.5 };
        assert_eq!(attention(&empty).unwrap().lse, [f64::NEG_INFINITY; 2]);
        let nothing = Attention { shape: shape(1, 1, 0, 2, 4), q: &[], k: &q, v: &q, ..empty };
        assert!(attention(&nothing).unwrap().o.is_empty());
    }

    #[test]
    fn padding_is_never_read() {
        let q = numbers(3 * 4, 1);
        let mut k = numbers(6 * 4, 2);
        let mut v = numbers(6 * 4, 3);
        k[16..].fill(f32::NAN);
        v[16..].fill(f32::NAN);
        let problem = Attention {
            shape: shape(1, 1, 3, 6, 4),
            q: &q,
            k: &k,
            v: &v,
            kv_len: Some(&[4]),
            causal: false,
            scale: 0.5,
        };
        let exact = attention(&problem).unwrap();
        assert!(exact.o.iter().chain(&exact.lse).all(|x| x.is_finite()));
        let short = Attention { shape: shape(1, 1, 3, 4, 4), k: &k[..16], v: &v[..16], kv_len: None, ..problem };
        assert_eq!(exact, attention(&short).unwrap());
    }

    #[test]
    fn query_heads_share_key_heads_in_groups() {
        let q = numbers(4 * 3 * 4, 1);
        let (k, v) = (numbers(2 * 5 * 4, 2), numbers(2 * 5 * 4, 3));
        let grouped =
            Attention { shape: shape(4, 2, 3, 5, 4), q: &q, k: &k, v: &v, kv_len: None, causal: true, scale: 0.5 };
        let repeat = |x: &[f32]| [&x[..20], &x[..20], &x[20..], &x[20..]].concat();
        let (k, v) = (repeat(&k), repeat(&v));
        let full = Attention { shape: shape(4, 4, 3, 5, 4), k: &k, v: &v, ..grouped };
        assert_eq!(attention(&grouped).unwrap(), attention(&full).unwrap());
    }

    #[test]
    fn low_precision_stays_finite_where_scores_overflow_the_format() {
        let big = vec![6e4f32; 3 * 8];
        let problem = Attention {
            shape: shape(1, 1, 3, 3, 8),
            q: &big,
            k: &big,
            v: &big,
            kv_len: None,
            causal: false,
            scale: 8f64.sqrt().recip(),
        };
        let low = attention_low(&problem, Precision::F16).unwrap();
        assert!(low.o.iter().all(|x| x.is_finite()), "{low:?}");
        let exact = attention(&problem).unwrap();
        assert!(exact.o.iter().all(|x| (x - 6e4).abs() < 1e-6), "{:?}", exact.o);
    }

    #[test]
    fn shapes_that_do_not_go_together_are_refused() {
        let refused = |q, k, v| AttentionShape::from_tensors(q, k, v).unwrap_err().to_string();
        assert!(refused([1, 3, 4, 8], [1, 2, 4, 8], [1, 2, 4, 8]).contains("not a multiple"));
        assert!(refused([1, 2, 4, 8], [1, 2, 4, 16], [1, 2, 4, 16]).contains("head dimension"));
        assert!(refused([1, 2, 4, 8], [2, 2, 4, 8], [2, 2, 4, 8]).contains("sequences"));
        assert!(refused([1, 2, 4, 8], [1, 2, 4, 8], [1, 2, 5, 8]).contains("must be the same"));
    }
}

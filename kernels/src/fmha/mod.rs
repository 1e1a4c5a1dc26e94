//! Fused multi-head attention.
//!
//! | kernel | file | runs on |
//! |---|---|---|
//! | `fmha_fwd` | [`hopper`] and [`split`] on sm_90a, [`mma`] on other NVIDIA chips, [`mfma`] on AMD chips | tensor cores, f16 and bf16 |
//! | `fmha_ref` | [`reference`](mod@reference) | any chip; one thread a key, f32 |
//!
//! All take Q and O `[B, Hq, Sq, D]`, K and V `[B, Hkv, Sk, D]` with any strides, Hq a multiple of Hkv (query
//! head `h` reads key head `h / (Hq / Hkv)`), the number of valid keys of each sequence, and a scale. Causal is
//! aligned bottom-right: query `i` sees key `j` when `j <= i + Sk - Sq`. LSE is the natural logarithm of the
//! sum of exponentials; a row that sees no key has O = 0 and LSE = -inf.
//!
//! Keys and values beyond the valid ones may hold anything. Values that the causal mask alone hides must be
//! numbers: their weight is 0, and 0 times NaN or infinity is NaN in the tile that holds the diagonal.

pub mod hopper;
pub mod mfma;
pub mod mma;
pub mod reference;
pub mod split;

use lacewing_core::prelude::*;
use lacewing_core::types::{MmaElement, Scalar};
use lacewing_core::{ScalarType, Target};
use lacewing_runtime::registry::{AnyKernel, KernelEntry, Parameter, Settings};
use lacewing_runtime::runner::{Laddered, Tile};
use lacewing_runtime::{DevTensor, Device, Element, ElementOf, Error, KernelExt, LaunchStats};

use self::hopper::{HopperGeometry, Shares, mixed_heads};
use self::split::{Cut, Joining};
use crate::attention::{AttentionInputs, AttentionOutputs, AttentionRunner};
use crate::ladders;
use crate::reference::AttentionShape;
use crate::views::{rows_are_vectors, tensor_map_describes};

/// Natural logarithm of 2: base-2 logarithms to natural ones.
const LN_2: f32 = std::f32::consts::LN_2;

/// Largest reference `b` for which a weight is `2^(s c - b)` in one fused multiply-add. Of the largest score that is what
/// rounding took from `b`, at most 2^-13 here: the weight is still 1 in half precision.
const LARGEST_SHIFT: f32 = 4096.0;

/// Whether some lane of the warp has a reference beyond [`LARGEST_SHIFT`]. Then it is subtracted from the scores `s` before
/// they are scaled, `2^((s - r) c)`: near the largest, where weights are not tiny, that difference is exact.
#[device]
fn any_large(shifts: &[F32]) -> Bool {
    let mut large = Bool::from(false);
    for shift in constexpr(shifts) {
        large |= shift.abs() > LARGEST_SHIFT;
    }
    any(large)
}

/// Largest head dimension.
pub const MAX_HEAD_DIM: usize = 256;

/// What an attention kernel is compiled for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Geometry {
    /// Elements of a query, key or value: a multiple of 8, up to [`MAX_HEAD_DIM`].
    head_dim: usize,
    /// The head dimension rounded up to what one matrix product takes.
    width: usize,
    /// Whether a query sees only keys up to its own.
    causal: bool,
    /// Whether rows of Q, K, V and O are contiguous and aligned to 16 bytes.
    vectorized: bool,
}

impl Geometry {
    /// Checks the head dimension.
    ///
    /// # Errors
    /// [`Error::Setting`] when it is no multiple of 8 from 8 to [`MAX_HEAD_DIM`].
    pub fn new(head_dim: usize, causal: bool, vectorized: bool) -> Result<Self, Error> {
        if head_dim == 0 || head_dim > MAX_HEAD_DIM || !head_dim.is_multiple_of(8) {
            return Err(Error::Setting(format!(
                "`head_dim` is {head_dim}: it must be a multiple of 8 from 8 to {MAX_HEAD_DIM}"
            )));
        }
        Ok(Geometry { head_dim, width: head_dim.next_multiple_of(16), causal, vectorized })
    }

    /// Elements that are moved at a time: 16 bytes, or one.
    fn vector(&self) -> usize {
        if self.vectorized { 8 } else { 1 }
    }
}

/// How many keys `row` sees under the causal mask; not positive for a row that sees none.
#[device]
fn causal_limit(row: I32, seqlen_q: I32, seqlen_kv: I32) -> I32 {
    row + 1 + seqlen_kv - seqlen_q
}

/// Which of [`mma::Tiling`]'s a launch takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TilingChoice {
    /// By the shape: [`mma::Tiling::for_queries`].
    Auto,
    /// [`mma::Tiling::small`].
    Small,
    /// [`mma::Tiling::large`].
    Large,
    /// As [`TilingChoice::Auto`], but for sm_90a, where the keys of a row block are never cut into parts.
    Whole,
}

impl TilingChoice {
    const NAMES: &[&str] = &["auto", "small", "large"];

    fn from_settings(settings: &Settings) -> Result<Self, Error> {
        Ok(match settings.choice("tiling")? {
            "small" => TilingChoice::Small,
            "large" => TilingChoice::Large,
            _ => TilingChoice::Auto,
        })
    }
}

/// The arguments of attention on a device.
pub struct Forward<'a, H: Element> {
    /// Queries `[B, Hq, Sq, D]`.
    pub q: &'a DevTensor<H, 4>,
    /// Keys `[B, Hkv, Sk, D]`.
    pub k: &'a DevTensor<H, 4>,
    /// Values `[B, Hkv, Sk, D]`.
    pub v: &'a DevTensor<H, 4>,
    /// Valid keys of each sequence, `[B]`.
    pub kv_len: &'a DevTensor<i32, 1>,
    /// Whether query i sees key j only when j <= i + Sk - Sq.
    pub causal: bool,
    /// What scores are multiplied with; 1/sqrt(D) as a rule.
    pub scale: f32,
}

impl<H: Element> Forward<'_, H> {
    fn shape(&self) -> Result<AttentionShape, Error> {
        let shape = AttentionShape::from_tensors(self.q.shape(), self.k.shape(), self.v.shape())?;
        if self.kv_len.shape() != [shape.batch] {
            return Err(Error::Shape(format!(
                "`kv_len` has shape {:?} for {} sequences",
                self.kv_len.shape(),
                shape.batch
            )));
        }
        Ok(shape)
    }

    /// Checks outputs and geometry; `None` where there is nothing to compute.
    fn prepare<Out: Element>(
        &self,
        o: &DevTensor<Out, 4>,
        lse: &DevTensor<f32, 3>,
    ) -> Result<Option<(AttentionShape, Geometry)>, Error> {
        let shape = self.shape()?;
        if o.shape() != shape.q() || lse.shape() != shape.lse() {
            return Err(Error::Shape(format!(
                "`o` has shape {:?} and `lse` {:?}; {:?} and {:?} are needed",
                o.shape(),
                lse.shape(),
                shape.q(),
                shape.lse()
            )));
        }
        let vectorized =
            [self.q, self.k, self.v].into_iter().all(|tensor| rows_are_vectors(tensor, 16)) && rows_are_vectors(o, 16);
        let geometry = Geometry::new(shape.head_dim, self.causal, vectorized)?;
        if !self.scale.is_finite() {
            return Err(Error::Setting(format!("`scale` is {}: scores times that are no numbers", self.scale)));
        }
        let rows = blocks(&shape, 1);
        Ok((rows > 0).then_some((shape, geometry)))
    }

    /// Runs `fmha_fwd`, the version for the device's chip.
    ///
    /// # Errors
    /// [`Error::Shape`] and [`Error::Setting`] for sizes that do not go together, and all of a launch.
    pub fn fmha_fwd<T>(&self, o: &mut DevTensor<H, 4>, lse: &mut DevTensor<f32, 3>) -> Result<LaunchStats, Error>
    where
        T: MmaElement,
        H: ElementOf<T>,
    {
        self.fmha_fwd_tiled::<T>(TilingChoice::Auto, o, lse)
    }

    /// [`Forward::fmha_fwd`] with a choice of tiling. [`TilingChoice::Small`] and [`TilingChoice::Large`] are tilings of the version
    /// with `mma.sync`, and take that version on Hopper, too.
    ///
    /// # Errors
    /// As [`Forward::fmha_fwd`].
    pub fn fmha_fwd_tiled<T>(
        &self,
        tiling: TilingChoice,
        o: &mut DevTensor<H, 4>,
        lse: &mut DevTensor<f32, 3>,
    ) -> Result<LaunchStats, Error>
    where
        T: MmaElement,
        H: ElementOf<T>,
    {
        let Some((shape, geometry)) = self.prepare(o, lse)? else { return Ok(LaunchStats::default()) };
        let device = self.q.device().clone();
        let by_shape = matches!(tiling, TilingChoice::Auto | TilingChoice::Whole);
        if by_shape && self.fits_hopper(&shape, &geometry) {
            if tiling == TilingChoice::Auto
                && let Some(cut) = self.cut(&shape, None)
            {
                // Where one length is given for all sequences, parts of each row block are as even, and have less to find out.
                let even = self.even_parts(&shape).filter(|_| self.kv_len.strides() != [0]);
                return match even {
                    Some((tiles, blocks)) => self.fmha_fwd_by_even_parts::<T>(tiles, blocks, &shape, o, lse),
                    None => self.fmha_fwd_parts::<T>(&cut, &shape, o, lse),
                };
            }
            if let Some(tiles) = self.whole(&shape, o) {
                return self.fmha_fwd_hopper::<T>(tiles, &shape, o, lse);
            }
        }
        let arguments = (self.q, self.k, self.v, self.kv_len, o, lse, self.scale);
        if device.target().is_nvidia() {
            let tiling = match tiling {
                TilingChoice::Small => mma::Tiling::small(&geometry),
                TilingChoice::Large => mma::Tiling::large(&geometry),
                TilingChoice::Auto | TilingChoice::Whole => {
                    let heads = shape.heads_q.saturating_mul(shape.batch);
                    mma::Tiling::for_queries(&geometry, shape.seqlen_q, heads)
                }
            };
            let grid = [blocks(&shape, tiling.block_m()), 1, 1];
            mma::fmha_fwd_mma::<T>::new(geometry, tiling).grid(grid).launch(&device, arguments)
        } else {
            let grid = [blocks(&shape, mfma::BLOCK_M), 1, 1];
            mfma::fmha_fwd_mfma::<T>::new(geometry).grid(grid).launch(&device, arguments)
        }
    }

    /// [`Forward::fmha_fwd`] of sm_90a with the keys of each row block in so many parts, from 1 to 256; 0 stands for as many as
    /// a launch takes by itself where it cuts keys.
    ///
    /// # Errors
    /// [`Error::Setting`] where Hopper's kernels cannot run this: on other chips, for head dimensions other than 64, 96, 128,
    /// 192 and 256, without keys, on rows that are no vectors of 16 bytes, and for a scale that is not positive. All of
    /// [`Forward::fmha_fwd`].
    pub fn fmha_fwd_split<T>(
        &self,
        parts: usize,
        o: &mut DevTensor<H, 4>,
        lse: &mut DevTensor<f32, 3>,
    ) -> Result<LaunchStats, Error>
    where
        T: MmaElement,
        H: ElementOf<T>,
    {
        let Some((shape, geometry)) = self.prepare(o, lse)? else { return Ok(LaunchStats::default()) };
        split::check_count(parts)?;
        let cut = if self.fits_hopper(&shape, &geometry) { self.cut(&shape, Some(parts)) } else { None };
        let Some(cut) = cut else {
            return Err(Error::Setting(format!(
                "keys in parts are for sm_90a, with a head dimension of 64, 96, 128, 192 or 256, a key or more, rows of \
                 16-byte vectors and a positive scale; this is {} with head dimension {}, {} keys and scale {}",
                self.q.device().target().name(),
                shape.head_dim,
                shape.seqlen_kv,
                self.scale
            )));
        };
        self.fmha_fwd_parts::<T>(&cut, &shape, o, lse)
    }

    /// [`Forward::fmha_fwd`] of sm_90a with the keys of all sequences in parts of equal size, one for each block that runs at once: what
    /// a launch takes by itself where rows are few and `kv_len` has a length for each sequence.
    ///
    /// # Errors
    /// As [`Forward::fmha_fwd_split`], and [`Error::Setting`] for a single sequence.
    pub fn fmha_fwd_even<T>(&self, o: &mut DevTensor<H, 4>, lse: &mut DevTensor<f32, 3>) -> Result<LaunchStats, Error>
    where
        T: MmaElement,
        H: ElementOf<T>,
    {
        let Some((shape, geometry)) = self.prepare(o, lse)? else { return Ok(LaunchStats::default()) };
        let even = if self.fits_hopper(&shape, &geometry) { self.even_parts(&shape) } else { None };
        let Some((tiles, blocks)) = even else {
            return Err(Error::Setting(format!(
                "even parts of the keys are for sm_90a and more than one sequence, with a head dimension of 64, 96, 128, 192 or 256, \
                 a key or more, rows of 16-byte vectors and a positive scale; this is {} with batch {}, head \
                 dimension {}, {} keys and scale {}",
                self.q.device().target().name(),
                shape.batch,
                shape.head_dim,
                shape.seqlen_kv,
                self.scale
            )));
        };
        self.fmha_fwd_by_even_parts::<T>(tiles, blocks, &shape, o, lse)
    }

    /// Whether Hopper's kernels can run this: on their chip, on rows that tensor maps can describe. Their running maxima are
    /// those of unscaled scores, so that the scale must be positive.
    fn fits_hopper(&self, shape: &AttentionShape, geometry: &Geometry) -> bool {
        self.q.device().target() == Target::SM_90A
            && geometry.vectorized
            && shape.seqlen_kv > 0
            && self.scale > 0.0
            && [self.q, self.k, self.v].into_iter().all(tensor_map_describes)
            && i32::try_from(blocks(shape, 1)).is_ok()
    }

    /// The tiles of Hopper's kernel for whole rows; `None` for a head dimension that it does not have, and for an O that no
    /// tensor map describes.
    fn whole(&self, shape: &AttentionShape, o: &DevTensor<H, 4>) -> Option<HopperGeometry> {
        let tiles = HopperGeometry::new(shape.head_dim, self.causal, shape.seqlen_q, shape.seqlen_kv);
        tiles.filter(|_| tensor_map_describes(o))
    }

    /// How Hopper's kernel for parts of the keys cuts them: as asked for, or where that is faster.
    fn cut(&self, shape: &AttentionShape, parts: Option<usize>) -> Option<Cut> {
        let multiprocessors = self.q.device().multiprocessors() as usize;
        match parts {
            Some(0) => {
                Cut::choose(shape, self.causal, multiprocessors).or_else(|| Cut::into_parts(shape, self.causal, 1))
            }
            Some(parts) => Cut::into_parts(shape, self.causal, parts),
            None => Cut::choose(shape, self.causal, multiprocessors),
        }
    }

    fn fmha_fwd_parts<T>(
        &self,
        cut: &Cut,
        shape: &AttentionShape,
        o: &mut DevTensor<H, 4>,
        lse: &mut DevTensor<f32, 3>,
    ) -> Result<LaunchStats, Error>
    where
        T: MmaElement,
        H: ElementOf<T>,
    {
        let device = self.q.device().clone();
        let heads_per_kv = shape.heads_q / shape.heads_kv.max(1);
        let (heads, rows) = (shape.batch * shape.heads_kv, shape.seqlen_q * heads_per_kv);
        let grid = [split::row_blocks(shape, &cut.tiles).saturating_mul(cut.parts), 1, 1];
        let (q, k, v, per_kv, seqlen_kv) = (self.q, self.k, self.v, count(heads_per_kv)?, count(shape.seqlen_kv)?);
        if cut.parts == 1 {
            let arguments = (q, k, v, self.kv_len, o, lse, per_kv, seqlen_kv, self.scale);
            return split::fmha_fwd_hopper_packed::<T>::new(cut.tiles.clone()).grid(grid).launch(&device, arguments);
        }
        let mut partial_o = device.tensor_uninit::<f32, 4>([cut.parts, heads, rows, shape.head_dim])?;
        let mut partial_weights = device.tensor_uninit::<f32, 4>([cut.parts, heads, rows, 2])?;
        let arguments = (q, k, v, self.kv_len, &mut partial_o, &mut partial_weights, per_kv, seqlen_kv, self.scale);
        let parts = split::fmha_fwd_hopper_part::<T>::new(cut.tiles.clone()).grid(grid).launch(&device, arguments)?;
        let joining = Joining::new(shape.head_dim, cut.parts);
        let grid = [(heads * rows).div_ceil(joining.rows()), 1, 1];
        let arguments = (&partial_o, &partial_weights, o, lse, per_kv, self.scale);
        let join = split::fmha_fwd_hopper_join::<T>::new(joining).grid(grid).overlapping();
        Ok(split::together(parts, join.launch(&device, arguments)?))
    }

    /// The tiles of even parts, and how many blocks take one.
    fn even_parts(&self, shape: &AttentionShape) -> Option<(HopperGeometry, usize)> {
        split::even_parts(shape, self.causal, self.q.device().multiprocessors() as usize)
    }

    fn fmha_fwd_by_even_parts<T>(
        &self,
        tiles: HopperGeometry,
        blocks: usize,
        shape: &AttentionShape,
        o: &mut DevTensor<H, 4>,
        lse: &mut DevTensor<f32, 3>,
    ) -> Result<LaunchStats, Error>
    where
        T: MmaElement,
        H: ElementOf<T>,
    {
        let device = self.q.device().clone();
        let heads_per_kv = shape.heads_q / shape.heads_kv.max(1);
        let rows = shape.seqlen_q * heads_per_kv;
        let row_blocks = split::row_blocks(shape, &tiles);
        let (places, room) = (blocks + row_blocks, rows.min(tiles.block_m()));
        let mut partial_o = device.tensor_uninit::<f32, 4>([places, 1, room, shape.head_dim])?;
        let mut partial_weights = device.tensor_uninit::<f32, 4>([places, 1, room, 2])?;
        let mut edges = device.tensor_uninit::<i32, 2>([row_blocks, 2])?;
        let (q, k, v, per_kv, seqlen_kv) = (self.q, self.k, self.v, count(heads_per_kv)?, count(shape.seqlen_kv)?);
        let (weights, kv_len) = (&mut partial_weights, self.kv_len);
        let arguments = (q, k, v, kv_len, &mut partial_o, weights, &mut edges, per_kv, seqlen_kv, self.scale);
        let part = split::fmha_fwd_hopper_even::<T>::new(tiles.clone()).grid([blocks, 1, 1]);
        let parts = part.launch(&device, arguments)?;
        let joining = Joining::of_even(&tiles, places.div_ceil(row_blocks));
        let grid = [(shape.batch * shape.heads_kv * rows).div_ceil(joining.rows()), 1, 1];
        let arguments = (&partial_o, &partial_weights, &edges, o, lse, per_kv, self.scale);
        let join = split::fmha_fwd_hopper_join_even::<T>::new(joining).grid(grid).overlapping();
        Ok(split::together(parts, join.launch(&device, arguments)?))
    }

    fn fmha_fwd_hopper<T>(
        &self,
        tiles: HopperGeometry,
        shape: &AttentionShape,
        o: &mut DevTensor<H, 4>,
        lse: &mut DevTensor<f32, 3>,
    ) -> Result<LaunchStats, Error>
    where
        T: MmaElement,
        H: ElementOf<T>,
    {
        let device = self.q.device().clone();
        let heads = shape.heads_q * shape.batch;
        let multiprocessors = device.multiprocessors() as usize;
        let row_blocks = blocks(shape, tiles.block_m());
        let (heads_per_kv, seqlen_kv) = (count(shape.heads_q / shape.heads_kv.max(1))?, count(shape.seqlen_kv)?);
        if let Some(shares) = Shares::choose(&tiles, row_blocks, shape.seqlen_kv, multiprocessors) {
            let mut counter = device.work_counters("fmha_fwd_shared", shares.counters(&tiles))?;
            let mut partial = device.tensor_uninit::<f32, 2>(shares.partial(&tiles))?;
            let arguments = (
                self.q,
                self.k,
                self.v,
                self.kv_len,
                o,
                lse,
                &mut counter,
                &mut partial,
                heads_per_kv,
                seqlen_kv,
                count(shares.whole)?,
                count(shares.row_blocks)?,
                count(shares.tiles)?,
                self.scale,
            );
            let kernel = hopper::fmha_fwd_hopper_shared::<T>::new(tiles).grid([shares.blocks, 1, 1]);
            return kernel.overlapping().launch(&device, arguments);
        }
        let group = mixed_heads(heads, shape.seqlen_q.div_ceil(tiles.block_m()), multiprocessors);
        let grid = [row_blocks.min(multiprocessors), 1, 1];
        let mut counter = device.work_counters("fmha_fwd", 1)?;
        let arguments = (
            self.q,
            self.k,
            self.v,
            self.kv_len,
            o,
            lse,
            &mut counter,
            heads_per_kv,
            seqlen_kv,
            count(group)?,
            self.scale,
        );
        hopper::fmha_fwd_hopper::<T>::new(tiles).grid(grid).overlapping().launch(&device, arguments)
    }

    /// Runs `fmha_ref`, the scalar oracle.
    ///
    /// # Errors
    /// As [`Forward::fmha_fwd`].
    pub fn fmha_ref<T, U, Out>(
        &self,
        o: &mut DevTensor<Out, 4>,
        lse: &mut DevTensor<f32, 3>,
    ) -> Result<LaunchStats, Error>
    where
        T: Float,
        U: Float,
        H: ElementOf<T>,
        Out: ElementOf<U>,
    {
        let Some((shape, geometry)) = self.prepare(o, lse)? else { return Ok(LaunchStats::default()) };
        let device = self.q.device().clone();
        let grid = [blocks(&shape, 1), 1, 1];
        let arguments = (self.q, self.k, self.v, self.kv_len, o, lse, self.scale);
        reference::fmha_ref::<T, U>::new(geometry).grid(grid).launch(&device, arguments)
    }
}

/// Blocks of a launch in which each takes `rows` query rows of one head. A product that passes 64 bits (views
/// may repeat their elements) becomes the largest number, which no grid takes.
fn blocks(shape: &AttentionShape, rows: usize) -> usize {
    shape.seqlen_q.div_ceil(rows).saturating_mul(shape.heads_q).saturating_mul(shape.batch)
}

/// A number as kernels take it.
fn count(number: usize) -> Result<i32, Error> {
    i32::try_from(number).map_err(|_| Error::Shape(format!("{number} is more than a kernel can count")))
}

const DTYPES: &[&str] = &["f16", "bf16"];
const REF_DTYPES: &[&str] = &["f16", "bf16", "f32"];

const PARAMETERS: &[Parameter] = &[
    Parameter::usize("head_dim", 64, "elements of a query: a multiple of 8 up to 256"),
    Parameter::bool("causal", false, "query i sees key j only when j <= i + Sk - Sq"),
    Parameter::choice("dtype", DTYPES, "f16", "element type of Q, K, V and O"),
    Parameter::choice(
        "tiling",
        TilingChoice::NAMES,
        "auto",
        "query rows of a block of the mma.sync version: small is 64, large 128; auto goes by chip and shape",
    ),
    Parameter::usize(
        "parts",
        0,
        "sm_90a: parts that the keys of a row block are cut into, up to 256; 0 goes by the shape; compiles for `seqlen` rows of a key head",
    ),
    Parameter::usize("join", 0, "sm_90a: compiles the kernel that joins so many parts; a run does not look at it"),
    Parameter::bool(
        "even",
        false,
        "sm_90a: compiles the kernel for even parts of the keys of all sequences, or, with `join`, what joins them; a run does not look at it",
    ),
    Parameter::bool(
        "shared",
        false,
        "sm_90a: compiles the kernel that shares out the last row blocks, for launches without a mask; a run does not look at it",
    ),
    Parameter::f32("scale", 0.0, "what scores are multiplied with; 0 stands for 1/sqrt(head_dim)"),
    Parameter::usize(
        "seqlen",
        4096,
        "queries and keys that tiles are compiled for on sm_90a; a run goes by its inputs",
    ),
];

const REF_PARAMETERS: &[Parameter] = &[
    Parameter::usize("head_dim", 64, "elements of a query: a multiple of 8 up to 256"),
    Parameter::bool("causal", false, "query i sees key j only when j <= i + Sk - Sq"),
    Parameter::choice("dtype", REF_DTYPES, "f32", "element type of Q, K and V; O is f32"),
    Parameter::f32("scale", 0.0, "what scores are multiplied with; 0 stands for 1/sqrt(head_dim)"),
];

/// The tiles of `fmha_fwd`'s version for a target, with its smaller tiling where it has several.
fn fwd_tiles(settings: &Settings, target: Target) -> Result<Vec<Tile>, Error> {
    let geometry = geometry(settings)?;
    let by_shape = TilingChoice::from_settings(settings)? == TilingChoice::Auto;
    let hopper =
        HopperGeometry::new(geometry.head_dim, geometry.causal, 1, 1).filter(|_| target == Target::SM_90A && by_shape);
    let (rows, keys) = match hopper {
        Some(tiles) => (tiles.block_m(), tiles.block_n),
        None if target.is_nvidia() => {
            let tiling = mma::Tiling::small(&geometry);
            (tiling.block_m(), tiling.block_n())
        }
        None => (mfma::BLOCK_M, mfma::block_n(geometry.head_dim)),
    };
    Ok(vec![Tile::new("Sq", rows), Tile::new("Sk", keys)])
}

static FWD: Laddered = Laddered {
    runner: &AttentionRunner { forward: run_fwd },
    ladder: ladders::attention(|settings, target| fwd_tiles(settings, target).unwrap_or_default()),
};

// One block computes one query, and goes through the keys one for each thread at a time.
static REF: Laddered = Laddered {
    runner: &AttentionRunner { forward: run_ref },
    ladder: ladders::attention_by_row(|_, _| vec![Tile::new("Sk", reference::THREADS)]),
};

/// `fmha_fwd` by name.
pub static FMHA_FWD: KernelEntry = KernelEntry {
    name: "fmha_fwd",
    about: "attention forward: FlashAttention-3 on Hopper, FlashAttention-2 with mma.sync or MFMA elsewhere",
    targets: &Target::ALL,
    parameters: PARAMETERS,
    build: |settings, target| {
        let geometry = geometry(settings)?;
        let dtype = settings.choice("dtype")?;
        let choice = TilingChoice::from_settings(settings)?;
        if let Some(kernel) = part_by_name(settings, &geometry, target)? {
            return Ok(kernel);
        }
        if target == Target::SM_90A
            && choice == TilingChoice::Auto
            && let Some(tiles) = {
                let seqlen = settings.usize("seqlen")?;
                HopperGeometry::new(geometry.head_dim, geometry.causal, seqlen, seqlen)
            }
        {
            if settings.bool("shared")? && !geometry.causal {
                return Ok(match dtype {
                    "bf16" => Box::new(hopper::fmha_fwd_hopper_shared::<BF16>::new(tiles)) as Box<dyn AnyKernel>,
                    _ => Box::new(hopper::fmha_fwd_hopper_shared::<F16>::new(tiles)),
                });
            }
            return Ok(match dtype {
                "bf16" => Box::new(hopper::fmha_fwd_hopper::<BF16>::new(tiles)) as Box<dyn AnyKernel>,
                _ => Box::new(hopper::fmha_fwd_hopper::<F16>::new(tiles)),
            });
        }
        let tiling = match choice {
            TilingChoice::Large => mma::Tiling::large(&geometry),
            TilingChoice::Small | TilingChoice::Auto | TilingChoice::Whole => mma::Tiling::small(&geometry),
        };
        Ok(match (dtype, target.is_nvidia()) {
            ("bf16", true) => Box::new(mma::fmha_fwd_mma::<BF16>::new(geometry, tiling)) as Box<dyn AnyKernel>,
            ("bf16", false) => Box::new(mfma::fmha_fwd_mfma::<BF16>::new(geometry)),
            (_, true) => Box::new(mma::fmha_fwd_mma::<F16>::new(geometry, tiling)),
            (_, false) => Box::new(mfma::fmha_fwd_mfma::<F16>::new(geometry)),
        })
    },
    runner: Some(&FWD),
};

/// `fmha_ref` by name.
pub static FMHA_REF: KernelEntry = KernelEntry {
    name: "fmha_ref",
    about: "attention forward as its definition reads: the oracle on a device",
    targets: &Target::ALL,
    parameters: REF_PARAMETERS,
    build: |settings, _| {
        let geometry = geometry(settings)?;
        Ok(match settings.choice("dtype")? {
            "f16" => Box::new(reference::fmha_ref::<F16, F32>::new(geometry)) as Box<dyn AnyKernel>,
            "bf16" => Box::new(reference::fmha_ref::<BF16, F32>::new(geometry)),
            _ => Box::new(reference::fmha_ref::<F32, F32>::new(geometry)),
        })
    },
    runner: Some(&REF),
};

/// The kernels for parts of the keys by name; `None` where they are not asked for.
fn part_by_name(settings: &Settings, geometry: &Geometry, target: Target) -> Result<Option<Box<dyn AnyKernel>>, Error> {
    let (parts, join) = (settings.usize("parts")?, settings.usize("join")?);
    let tiles = HopperGeometry::for_parts(geometry.head_dim, geometry.causal, settings.usize("seqlen")?);
    let tiles = tiles.filter(|_| target == Target::SM_90A);
    let even = settings.bool("even")? && tiles.is_some();
    if parts == 0 && join == 0 && !even {
        return Ok(None);
    }
    if parts != 0 && even {
        return Err(Error::Setting("`parts` and `even` are two ways to cut keys: set one of them".to_owned()));
    }
    if parts != 0 && join != 0 {
        return Err(Error::Setting("`parts` and `join` are two kernels: set one of them".to_owned()));
    }
    split::check_count(parts.max(join))?;
    let Some(tiles) = tiles else {
        let message = "`parts` and `join` are for sm_90a, with `head_dim` 64, 96, 128, 192 or 256";
        return Err(Error::Setting(format!("{message}; this is {} with {}", target.name(), geometry.head_dim)));
    };
    let dtype = settings.choice("dtype")?;
    if even && join > 0 {
        let joining = Joining::of_even(&tiles, join);
        return Ok(Some(match dtype {
            "bf16" => Box::new(split::fmha_fwd_hopper_join_even::<BF16>::new(joining)) as Box<dyn AnyKernel>,
            _ => Box::new(split::fmha_fwd_hopper_join_even::<F16>::new(joining)),
        }));
    }
    let joining = Joining::new(geometry.head_dim, join);
    Ok(Some(match (join, parts, dtype) {
        (0, 0, "bf16") => Box::new(split::fmha_fwd_hopper_even::<BF16>::new(tiles)) as Box<dyn AnyKernel>,
        (0, 0, _) => Box::new(split::fmha_fwd_hopper_even::<F16>::new(tiles)),
        (0, 1, "bf16") => Box::new(split::fmha_fwd_hopper_packed::<BF16>::new(tiles)),
        (0, 1, _) => Box::new(split::fmha_fwd_hopper_packed::<F16>::new(tiles)),
        (0, _, "bf16") => Box::new(split::fmha_fwd_hopper_part::<BF16>::new(tiles)),
        (0, _, _) => Box::new(split::fmha_fwd_hopper_part::<F16>::new(tiles)),
        (_, _, "bf16") => Box::new(split::fmha_fwd_hopper_join::<BF16>::new(joining)),
        _ => Box::new(split::fmha_fwd_hopper_join::<F16>::new(joining)),
    }))
}

fn geometry(settings: &Settings) -> Result<Geometry, Error> {
    Geometry::new(settings.usize("head_dim")?, settings.bool("causal")?, true)
}

/// Device copies of an attention problem in one element type.
struct OnDevice<H: Element> {
    q: DevTensor<H, 4>,
    k: DevTensor<H, 4>,
    v: DevTensor<H, 4>,
    kv_len: DevTensor<i32, 1>,
    shape: AttentionShape,
}

impl<H: Element> OnDevice<H> {
    fn new(device: &Device, inputs: &AttentionInputs) -> Result<Self, Error> {
        let shape = inputs.shape;
        let kv_len = match &inputs.kv_len {
            Some(lengths) => device.tensor_from_slice(lengths, [shape.batch])?,
            None => {
                let all = i32::try_from(shape.seqlen_kv)
                    .map_err(|_| Error::Shape(format!("{} keys are more than a kernel can count", shape.seqlen_kv)))?;
                device.tensor_from_slice(&[all], [1])?.broadcast([shape.batch])?
            }
        };
        Ok(OnDevice {
            q: device.tensor_from(&inputs.q)?,
            k: device.tensor_from(&inputs.k)?,
            v: device.tensor_from(&inputs.v)?,
            kv_len,
            shape,
        })
    }

    fn forward(&self, inputs: &AttentionInputs) -> Forward<'_, H> {
        Forward { q: &self.q, k: &self.k, v: &self.v, kv_len: &self.kv_len, causal: inputs.causal, scale: inputs.scale }
    }
}

fn run_fwd(device: &Device, settings: &Settings, inputs: &AttentionInputs) -> Result<AttentionOutputs, Error> {
    fn typed<T>(device: &Device, settings: &Settings, inputs: &AttentionInputs) -> Result<AttentionOutputs, Error>
    where
        T: MmaElement + Scalar<Host: ElementOf<T>>,
    {
        let on_device = OnDevice::<T::Host>::new(device, inputs)?;
        let mut o = device.tensor_uninit(on_device.shape.q())?;
        let mut lse = device.tensor_uninit(on_device.shape.lse())?;
        let forward = on_device.forward(inputs);
        match settings.usize("parts")? {
            0 => forward.fmha_fwd_tiled::<T>(TilingChoice::from_settings(settings)?, &mut o, &mut lse)?,
            parts => forward.fmha_fwd_split::<T>(parts, &mut o, &mut lse)?,
        };
        Ok(AttentionOutputs { o: o.to_host()?, lse: lse.to_host()? })
    }
    match inputs.q.scalar() {
        ScalarType::Bf16 => typed::<BF16>(device, settings, inputs),
        _ => typed::<F16>(device, settings, inputs),
    }
}

fn run_ref(device: &Device, _settings: &Settings, inputs: &AttentionInputs) -> Result<AttentionOutputs, Error> {
    fn typed<T>(device: &Device, inputs: &AttentionInputs) -> Result<AttentionOutputs, Error>
    where
        T: Float + Scalar<Host: ElementOf<T>>,
    {
        let on_device = OnDevice::<T::Host>::new(device, inputs)?;
        let mut o = device.tensor_uninit::<f32, 4>(on_device.shape.q())?;
        let mut lse = device.tensor_uninit(on_device.shape.lse())?;
        on_device.forward(inputs).fmha_ref::<T, F32, f32>(&mut o, &mut lse)?;
        Ok(AttentionOutputs { o: o.to_host()?, lse: lse.to_host()? })
    }
    match inputs.q.scalar() {
        ScalarType::Bf16 => typed::<BF16>(device, inputs),
        ScalarType::F16 => typed::<F16>(device, inputs),
        _ => typed::<F32>(device, inputs),
    }
}

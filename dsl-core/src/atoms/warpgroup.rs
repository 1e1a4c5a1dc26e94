//! The instructions of a warpgroup, and the tensor copies that feed them, as layouts.
//!
//! A warpgroup's product takes its factors from shared memory, the left one from registers too, and leaves its sums in
//! registers. [`WgmmaSpec`] has the thread-value layouts of what is in registers, [`PanelLayout`] says where in shared memory
//! a factor's elements lie and what the matrix descriptor says of it, [`BoxSpec`] where a tensor copy puts a box.

use std::fmt;

use super::spec::{OperandSpec, Tv};
use crate::layout::{ComposedLayout, Layout, LayoutError, Swizzle};
use crate::{ScalarType, Target};

/// `wgmma.mma_async`: one step of k of a product of 64 x N x K by the 128 threads of a warpgroup. From sm_90a on, and on
/// sm_90a alone.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WgmmaSpec {
    /// The attribute `kind` of `lw.wgmma`: the element type of both factors.
    pub kind: &'static str,
    /// M, N and K of one instruction.
    pub shape: [usize; 3],
    /// The left factor where it is in registers; its layout counts `(m, k)`. The right one, and the left one elsewhere, are
    /// in shared memory: [`PanelLayout`].
    pub a: OperandSpec,
    /// The sums, whose layout counts `(m, n)`.
    pub d: OperandSpec,
    /// Whether factors in shared memory may have m or n as their contiguous dimension.
    pub transposes: bool,
    /// The section of the manual that the layouts are from.
    pub isa: &'static str,
}

/// Rows of a warpgroup's product.
pub const WGMMA_ROWS: usize = 64;

/// D of m64nN: warp `w`, lane `4 g + t` holds rows `16 w + g` and `16 w + g + 8` of columns `8 j + 2 t` and one more.
struct Sums<const N: usize>;

impl<const N: usize> Sums<N> {
    const VALUES: &'static [(i64, i64)] = &[(2, 64), (2, 8), (N as i64 / 8, 512)];
}

/// A of m64: warp `w`, lane `4 g + t` holds rows `16 w + g` and `16 w + g + 8`, and in each half of k `pack` neighbours from
/// `pack t` on.
const fn left(element: ScalarType, pack: usize) -> OperandSpec {
    let tv = match pack {
        2 => Tv { thread: &[(4, 128), (8, 1), (4, 16)], value: &[(2, 64), (2, 8), (2, 512)] },
        _ => Tv { thread: &[(4, 256), (8, 1), (4, 16)], value: &[(4, 64), (2, 8), (2, 1024)] },
    };
    OperandSpec { element, pack, tv }
}

const fn spec<const N: usize>(element: ScalarType, kind: &'static str) -> WgmmaSpec {
    let wide = element.bytes() == 2;
    let d = OperandSpec {
        element: ScalarType::F32,
        pack: 1,
        tv: Tv { thread: &[(4, 128), (8, 1), (4, 16)], value: Sums::<N>::VALUES },
    };
    WgmmaSpec {
        kind,
        shape: [WGMMA_ROWS, N, if wide { 16 } else { 32 }],
        a: left(element, if wide { 2 } else { 4 }),
        d,
        transposes: wide,
        isa: "PTX ISA, Register Fragments for wgmma.mma_async.m64nNk16 and m64nNk32",
    }
}

macro_rules! table {
    ($($n:literal)*) => {
        /// Every warpgroup product: all N of each element type.
        ///
        /// Left out: sums of f16, factors of TF32, of integers and of single bits, and sparse ones, which the language does
        /// not make.
        pub static WGMMA_TABLE: &[WgmmaSpec] = &[
            $(
                spec::<$n>(ScalarType::F16, "f16"),
                spec::<$n>(ScalarType::Bf16, "bf16"),
                spec::<$n>(ScalarType::F8E4M3, "e4m3"),
                spec::<$n>(ScalarType::F8E5M2, "e5m2"),
            )*
        ];
    };
}

table! {
    8 16 24 32 40 48 56 64 72 80 88 96 104 112 120 128
    136 144 152 160 168 176 184 192 200 208 216 224 232 240 248 256
}

impl WgmmaSpec {
    /// The instruction of a kind and N.
    pub fn find(kind: &str, n: usize) -> Option<&'static Self> {
        WGMMA_TABLE.iter().find(|spec| spec.kind == kind && spec.shape[1] == n)
    }

    /// Elements of k of one instruction for a kind; `None` where there is no such product.
    pub fn step(kind: &str) -> Option<usize> {
        Self::find(kind, 8).map(|spec| spec.shape[2])
    }

    /// Its name, as PTX has it: `m64n128k16.f32.bf16.bf16`.
    pub fn name(&self) -> String {
        let [m, n, k] = self.shape;
        format!("m{m}n{n}k{k}.f32.{kind}.{kind}", kind = self.kind)
    }

    /// Whether the chip has it.
    pub fn is_on(target: Target) -> bool {
        target == Target::SM_90A
    }
}

/// The swizzle of the bytes of shared memory in which 16-byte chunks of a row of `bytes` bytes are permuted: bits 4 and up
/// of an address are exclusive-ored with bits 7 and up, three of them for rows of 128 bytes, two for 64, one for 32 (PTX
/// ISA, *Swizzling modes*). 0 is none; `None` where there is no such mode.
///
/// ```
/// use lacewing_core::atoms::byte_swizzle;
///
/// assert_eq!(byte_swizzle(128).map(|swizzle| swizzle.to_string()), Some("Sw<3,4,3>".to_owned()));
/// // Row 5: chunk 3 goes to 3 ^ 5.
/// assert_eq!(byte_swizzle(128).map(|swizzle| swizzle.apply(5 * 128 + 3 * 16)), Some(5 * 128 + (3 ^ 5) * 16));
/// ```
pub fn byte_swizzle(bytes: usize) -> Option<Swizzle> {
    let bits = match bytes {
        128 => 3,
        64 => 2,
        32 => 1,
        0 => return Some(Swizzle::IDENTITY),
        _ => return None,
    };
    Swizzle::new(bits, 4, 3).ok()
}

/// Where [`byte_swizzle`] of rows of `row` bytes moves an address; rows of other lengths move nothing.
#[inline]
pub fn swizzled_byte(address: u32, row: u32) -> u32 {
    let mask = match row {
        128 => 0x70,
        64 => 0x30,
        32 => 0x10,
        _ => 0,
    };
    address ^ address >> 3 & mask
}

/// A byte swizzle for elements of so many bytes.
fn element_swizzle(bytes: usize, element: usize) -> Result<Swizzle, LayoutError> {
    let refused = || LayoutError::Argument {
        what: "a row of a swizzled tile",
        value: bytes as i64,
        why: "it has 128, 64 or 32 bytes, or 0 for no swizzle",
    };
    byte_swizzle(bytes).ok_or_else(refused)?.upcast(element as i64)
}

/// How a factor of a warpgroup's product lies in shared memory (PTX ISA, *Asynchronous Warpgroup Level Matrix Shared Memory
/// Layout*): in panels whose rows have as many bytes as the swizzle. Along k, a panel's rows are rows of A or columns of B;
/// otherwise they are k.
///
/// ```
/// use lacewing_core::atoms::PanelLayout;
///
/// // 64 rows of A with 128 elements of k: two panels of 64.
/// let panels = PanelLayout::parse("k:128:64").unwrap_or(PanelLayout { k_major: true, swizzle: 128, rows: 64 });
/// assert_eq!(panels.layout(64, 128, 2)?.to_string(), "Sw<3,3,3> o 0 o (64,(64,2)):(64,(1,4096))");
/// # Ok::<(), lacewing_core::layout::LayoutError>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PanelLayout {
    /// Whether k is the contiguous dimension.
    pub k_major: bool,
    /// Bytes of a row of a panel: 128, 64 or 32.
    pub swizzle: usize,
    /// Rows of a panel.
    pub rows: usize,
}

impl PanelLayout {
    /// Reads `k:SWIZZLE:ROWS` or `mn:SWIZZLE:ROWS`, as `lw.wgmma` has it; `None` where it is neither.
    pub fn parse(text: &str) -> Option<Self> {
        let mut parts = text.split(':');
        let k_major = match parts.next()? {
            "k" => true,
            "mn" => false,
            _ => return None,
        };
        let swizzle = parts.next()?.parse().ok().filter(|swizzle| matches!(swizzle, 32 | 64 | 128))?;
        let rows = parts.next()?.parse().ok().filter(|rows| (1..=4096).contains(rows))?;
        parts.next().is_none().then_some(Self { k_major, swizzle, rows })
    }

    /// The elements of `(mn, k)`: `mn` rows of A or columns of B, in elements of so many bytes.
    ///
    /// # Errors
    /// A panel's row of another length than the swizzles have, or elements that it is no multiple of; extents that do not
    /// fill panels.
    pub fn layout(&self, mn: usize, k: usize, element: usize) -> Result<ComposedLayout, LayoutError> {
        let (lines, along) = if self.k_major { (mn, k) } else { (k, mn) };
        let in_row = self.swizzle / element.max(1);
        let swizzle = element_swizzle(self.swizzle, element)?;
        // A factor that ends inside its only panel has no more of it.
        let inner = along.min(in_row);
        if along % inner.max(1) != 0 {
            let (value, why) = (along as i64, "it must be whole rows of panels");
            return Err(LayoutError::Argument { what: "the contiguous dimension", value, why });
        }
        let line = Layout::new(lines, in_row)?;
        let row = match along / inner.max(1) {
            1 => Layout::new(inner, 1)?,
            panels => Layout::new((inner, panels), (1, self.rows * in_row))?,
        };
        let both = if self.k_major { [&line, &row] } else { [&row, &line] };
        ComposedLayout::new(swizzle, Layout::concat(both)?)
    }

    /// Where byte `along` of line `line` lies, from where the factor begins on: `line` counts rows of A or columns of B
    /// where k is contiguous, and k where it is not.
    #[inline]
    pub fn byte(&self, line: usize, along: usize) -> usize {
        let swizzle = self.swizzle.max(1);
        let at = along / swizzle * self.rows * swizzle + line * swizzle + along % swizzle;
        swizzled_byte(at as u32, swizzle as u32) as usize
    }

    /// Bytes at multiples of which a factor starts, so that the swizzle begins anew.
    pub fn alignment(&self) -> usize {
        8 * self.swizzle
    }

    /// Upper word of the matrix descriptor: stride byte offset / 16, from one group of 8 rows to the next, and the swizzle
    /// mode in the last two bits (PTX ISA, *Matrix Descriptor Format*).
    pub fn descriptor_upper(&self) -> u32 {
        let mode = match self.swizzle {
            128 => 1,
            64 => 2,
            _ => 3,
        };
        (8 * self.swizzle / 16) as u32 | mode << 30
    }

    /// Leading byte offset / 16, for bit 16 of the descriptor's lower word: from one panel to the next where the contiguous
    /// dimension is not k; ignored, and 1 by custom, where it is.
    pub fn descriptor_leading(&self) -> u32 {
        if self.k_major { 1 } else { (self.rows * self.swizzle / 16) as u32 }
    }

    /// Bytes from where a factor begins to step `step` of k, 32 bytes of it along k or 16 rows of a panel across.
    pub fn step_bytes(&self, step: usize) -> usize {
        if self.k_major {
            let per_panel = (self.swizzle / 32).max(1);
            step / per_panel * self.rows * self.swizzle + step % per_panel * 32
        } else {
            step * 16 * self.swizzle
        }
    }
}

impl fmt::Display for PanelLayout {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let major = if self.k_major { "k" } else { "mn" };
        write!(f, "{major}:{}:{}", self.swizzle, self.rows)
    }
}

/// A tensor copy (TMA) as a copy atom: one thread names a box of a tensor in global memory and a place in shared memory,
/// and the copy engine moves it (PTX ISA, *cp.async.bulk.tensor*, *Tensors*).
///
/// ```
/// use lacewing_core::atoms::BoxSpec;
///
/// // 64 columns of bf16 and 16 rows.
/// let spec = BoxSpec { extents: vec![64, 16], element: 2, swizzle: 128 };
/// assert_eq!(spec.layout()?.to_string(), "Sw<3,3,3> o 0 o (64,16):(1,64)");
/// assert_eq!(spec.bytes(), 2048);
/// # Ok::<(), lacewing_core::layout::LayoutError>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BoxSpec {
    /// Elements of the box in each dimension, the innermost first.
    pub extents: Vec<usize>,
    /// Bytes of an element.
    pub element: usize,
    /// Bytes of a swizzled row: 128, 64, 32, or 0 for none.
    pub swizzle: usize,
}

impl BoxSpec {
    /// From the coordinates in the box, the innermost first, to the element of shared memory from the destination on: compact,
    /// then swizzled.
    ///
    /// # Errors
    /// A swizzle that does not exist, or a box that is empty.
    pub fn layout(&self) -> Result<ComposedLayout, LayoutError> {
        let extents: Vec<i64> = self.extents.iter().map(|&extent| extent as i64).collect();
        ComposedLayout::new(element_swizzle(self.swizzle, self.element)?, Layout::column_major(extents)?)
    }

    /// Bytes of the box.
    pub fn bytes(&self) -> usize {
        self.extents.iter().fold(self.element, |bytes, &extent| bytes.saturating_mul(extent))
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;
    use crate::layout::Coord;

    #[test]
    fn every_product_is_a_bijection_and_follows_the_manual() {
        assert_eq!(WGMMA_TABLE.len(), 4 * 32);
        for spec in WGMMA_TABLE {
            let [m, n, k] = spec.shape;
            for (operand, columns) in [(&spec.a, k), (&spec.d, n)] {
                assert_eq!((operand.threads(), operand.values()), (128, m * columns / 128), "{}", spec.name());
                let layout = operand.tv.layout().unwrap();
                let mut seen = BTreeSet::new();
                for t in 0..128 {
                    for v in 0..operand.values() {
                        let index = operand.tv.index(t, v);
                        assert_eq!(layout.crd2idx((t, v)).unwrap(), index as i64);
                        seen.insert(index);
                        let (warp, group, thread) = (t / 32, t % 32 / 4, t % 4);
                        // PTX ISA: row 16 w + g, and 8 more for the odd pairs; columns by pairs, or fours of 8 bits.
                        let run = operand.pack.max(2);
                        let (register, part) = (v / run, v % run);
                        let row = 16 * warp + group + 8 * (register % 2);
                        let column = 4 * run * (register / 2) + run * thread + part;
                        assert_eq!((index % m, index / m), (row, column), "{}: thread {t}, value {v}", spec.name());
                    }
                }
                assert_eq!(seen.len(), m * columns);
            }
            assert_eq!(WgmmaSpec::find(spec.kind, n), Some(spec));
            assert!(spec.isa.contains("PTX ISA"));
        }
        assert_eq!(WgmmaSpec::find("bf16", 12), None);
        assert_eq!((WgmmaSpec::step("e4m3"), WgmmaSpec::step("tf32")), (Some(32), None));
    }

    /// Chunks of 16 bytes, where the layout puts them, against the manual's drawing of each mode: the swizzle of a whole
    /// address, in panels one after the other.
    #[test]
    fn panels_lie_as_the_descriptor_says() {
        for swizzle in [32, 64, 128] {
            for (k_major, element) in [(true, 1), (true, 2), (false, 2)] {
                let (mn, k) = (64, 512 / element);
                let panel = PanelLayout { k_major, swizzle, rows: if k_major { mn } else { k } };
                assert_eq!(PanelLayout::parse(&panel.to_string()), Some(panel));
                let layout = panel.layout(mn, k, element).unwrap();
                assert_eq!(layout.cosize().unwrap(), (mn * k) as i64);
                for (row, at) in [(0, 0), (5, 17), (63, k - 1), (9, k / 2), (33, 100)] {
                    let (line, along) = if k_major { (row, at * element) } else { (at, row * element) };
                    assert_eq!(layout.crd2idx((row, at)).unwrap() as usize * element, panel.byte(line, along));
                    let byte = along / swizzle * panel.rows * swizzle + line * swizzle + along % swizzle;
                    let moved = byte ^ (byte >> 3 & [0x10, 0x30, 0x70][swizzle.ilog2() as usize - 5]);
                    assert_eq!(layout.crd2idx((row, at)).unwrap() * element as i64, moved as i64, "{panel} {row} {at}");
                }
                // Each step of k begins where its first element would, were it not swizzled.
                for step in 0..4 {
                    let first = layout.layout().crd2idx((0, step * 32 / 2 * if k_major { 2 / element } else { 1 }));
                    assert_eq!(first.unwrap() * element as i64, panel.step_bytes(step) as i64, "{panel} {step}");
                }
            }
        }
        for wrong in ["reg", "k:16:8", "k:128", "k:128:0", "k:128:64:1", "n:128:64"] {
            assert_eq!(PanelLayout::parse(wrong), None, "{wrong}");
        }
        assert_eq!(PanelLayout { k_major: false, swizzle: 128, rows: 48 }.descriptor_leading(), 48 * 8);
        assert_eq!(PanelLayout { k_major: true, swizzle: 64, rows: 48 }.descriptor_upper(), 32 | 2 << 30);
        assert!(PanelLayout { k_major: true, swizzle: 128, rows: 8 }.layout(8, 96, 2).is_err());
    }

    #[test]
    fn steps_of_k_follow_rows_panels_and_row_groups() {
        let panel = |k_major, swizzle, rows| PanelLayout { k_major, swizzle, rows };
        let steps = |panel: PanelLayout| (0..6).map(|step| panel.step_bytes(step)).collect::<Vec<_>>();
        assert_eq!(steps(panel(true, 128, 64)), [0, 32, 64, 96, 8192, 8224]);
        assert_eq!(steps(panel(true, 64, 176)), [0, 32, 11264, 11296, 22528, 22560]);
        assert_eq!(steps(panel(false, 128, 176)), [0, 2048, 4096, 6144, 8192, 10240]);
        assert_eq!(panel(true, 128, 64).descriptor_upper(), 0x4000_0040);
        assert_eq!(panel(true, 64, 64).descriptor_upper(), 0x8000_0020);
        assert_eq!(panel(false, 128, 176).descriptor_leading(), 176 * 128 / 16);
    }

    #[test]
    fn addresses_move_as_the_swizzle_says() {
        for row in [0, 32, 64, 128] {
            let swizzle = byte_swizzle(row).unwrap();
            assert!((0..4096).all(|byte| swizzle.apply(byte) == i64::from(swizzled_byte(byte as u32, row as u32))));
        }
        assert_eq!(byte_swizzle(16), None);
    }

    #[test]
    fn boxes_are_compact_under_their_swizzle() {
        let spec = BoxSpec { extents: vec![32, 6, 2], element: 4, swizzle: 128 };
        let layout = spec.layout().unwrap();
        let mut seen = BTreeSet::new();
        for number in 0..32 * 6 * 2 {
            let natural = layout.shape().idx2crd(number).unwrap();
            let coord: Coord = natural.map(&mut |dim| crate::layout::CoordLeaf::At(dim.known().unwrap()));
            let byte = 4 * number;
            assert_eq!(4 * layout.crd2idx(coord.clone()).unwrap(), byte ^ (byte >> 3 & 0x70));
            seen.insert(layout.crd2idx(coord).unwrap());
        }
        assert_eq!((seen.len(), spec.bytes()), (384, 4 * 384));
        assert!(BoxSpec { swizzle: 96, ..spec }.layout().is_err());
    }
}

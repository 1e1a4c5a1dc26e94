//! How `lacewing check` tries the bundled kernels: their tiles, shapes and special inputs.

use lacewing_core::Target;
use lacewing_runtime::host::Random;
use lacewing_runtime::registry::Settings;
use lacewing_runtime::runner::{Ladder, Tile, Variant, poison};
use lacewing_runtime::{Error, HostTensor, Tensors};

/// A ladder of a kernel that works on tiles of its dimensions, on every target alike.
pub(crate) const fn tiled(tiles: fn(&Settings, Target) -> Vec<Tile>) -> Ladder {
    Ladder { tiles, ..Ladder::DEFAULT }
}

/// The ladder of attention, with the tiles of one kernel.
pub(crate) const fn attention(tiles: fn(&Settings, Target) -> Vec<Tile>) -> Ladder {
    Ladder {
        tiles,
        default: "B=1,Hq=2,Hkv=1,Sq=130,Sk=200",
        shapes: &[
            "B=1,Hq=1,Hkv=1,Sq=1,Sk=1,D=40",
            // Unequal primes, three query heads on one key head.
            "B=2,Hq=3,Hkv=1,Sq=37,Sk=53,D=40",
            "B=1,Hq=1,Hkv=1,Sq=53,Sk=37,D=40",
            // Around a tile of 64 on both sides, and around one of 128.
            "B=1,Hq=2,Hkv=1,Sq=63,Sk=65",
            "B=1,Hq=2,Hkv=2,Sq=65,Sk=64",
            "B=1,Hq=1,Hkv=1,Sq=129,Sk=127",
            "B=1,Hq=2,Hkv=1,Sq=1,Sk=257",
            // More queries than keys: under the causal mask the first rows see nothing.
            "B=1,Hq=1,Hkv=1,Sq=150,Sk=33",
            "B=1,Hq=1,Hkv=1,Sq=3,Sk=0",
            "B=1,Hq=1,Hkv=1,Sq=40,Sk=113,D=128",
            "B=1,Hq=1,Hkv=1,Sq=33,Sk=65,D=256",
            "B=1,Hq=1,Hkv=1,Sq=211,Sk=391",
        ],
        single: "B=1,Hq=1,Hkv=1,Sq=1,Sk=2",
        // Q = 0 (or K = 0): every key weighs the same, so that O is the mean of V and LSE the logarithm of their number.
        zeros: &["q", "k", "v"],
        variants: &VARIANTS,
        ..Ladder::DEFAULT
    }
}

/// The ladder of a kernel that computes one query for each block: its shapes have fewer of them.
pub(crate) const fn attention_by_row(tiles: fn(&Settings, Target) -> Vec<Tile>) -> Ladder {
    Ladder {
        default: "B=1,Hq=2,Hkv=1,Sq=5,Sk=70,D=16",
        shapes: &[
            "B=1,Hq=1,Hkv=1,Sq=1,Sk=1,D=16",
            "B=2,Hq=3,Hkv=1,Sq=7,Sk=13,D=40",
            "B=1,Hq=1,Hkv=1,Sq=13,Sk=7,D=24",
            "B=1,Hq=2,Hkv=1,Sq=3,Sk=63,D=16",
            "B=1,Hq=2,Hkv=2,Sq=3,Sk=65,D=16",
            "B=1,Hq=1,Hkv=1,Sq=1,Sk=257,D=16",
            "B=1,Hq=1,Hkv=1,Sq=21,Sk=9,D=8",
            "B=1,Hq=1,Hkv=1,Sq=3,Sk=0",
            "B=1,Hq=1,Hkv=1,Sq=2,Sk=33,D=256",
        ],
        variants: &SMALL_VARIANTS,
        ..attention(tiles)
    }
}

/// Padding that holds NaN, and scores that are far apart.
const fn variants(padding: &'static str, steep: &'static str) -> [Variant; 2] {
    [
        Variant {
            name: "padding",
            about: "keys and values beyond each sequence's length are NaN",
            shape: padding,
            poisoned: true,
            change: pad_keys,
        },
        Variant {
            name: "steep",
            about: "scores up to some hundreds: most weights vanish",
            shape: steep,
            poisoned: false,
            change: steepen,
        },
    ]
}

static VARIANTS: [Variant; 2] = variants("B=3,Hq=2,Hkv=1,Sq=70,Sk=100", "B=1,Hq=2,Hkv=1,Sq=70,Sk=150");
static SMALL_VARIANTS: [Variant; 2] = variants("B=3,Hq=2,Hkv=1,Sq=3,Sk=70,D=16", "B=1,Hq=2,Hkv=1,Sq=3,Sk=70,D=16");

/// Sequences of different lengths, with NaN in the keys and values that are beyond them.
fn pad_keys(_: &Settings, inputs: &mut Tensors, _: &mut Random) -> Result<(), Error> {
    let Some([batch, heads, keys, width]) = inputs.get("k").map(HostTensor::shape_of).transpose()? else {
        return Ok(());
    };
    let lengths: Vec<usize> = (0..batch).map(|b| keys * (b + 1) / (batch + 1)).collect();
    for name in ["k", "v"] {
        let Some(tensor) = inputs.get_mut(name) else { continue };
        for (b, length) in lengths.iter().enumerate() {
            for head in 0..heads {
                let start = (b * heads + head) * keys * width;
                poison(tensor, start + length * width, start + keys * width)?;
            }
        }
    }
    // Extents are below 2^31: the runner checks them.
    let lengths: Vec<i32> = lengths.into_iter().map(|length| i32::try_from(length).unwrap_or(0)).collect();
    inputs.insert("kv_len".to_owned(), HostTensor::new(&lengths, &[batch])?);
    Ok(())
}

/// Makes the scores eight times as large.
fn steepen(_: &Settings, inputs: &mut Tensors, _: &mut Random) -> Result<(), Error> {
    if let Some(q) = inputs.get_mut("q") {
        let numbers: Vec<f64> = q.to_f64()?.into_iter().map(|x| 8.0 * x).collect();
        *q = HostTensor::from_f64(q.scalar(), q.shape(), &numbers)?;
    }
    Ok(())
}

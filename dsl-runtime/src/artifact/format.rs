//! The file format: what `docs/src/reference/artifacts.md` and `lacewing_artifact.h` describe.
//!
//! Little-endian, offsets from the start of the file. A header, one record for each kernel and target, then what the
//! records point at. Nothing is read that was not first found to lie inside the file.

use std::ops::Range;

use lacewing_core::{KernelAttributes, KernelMeta, ParamDesc, ParamKind, ScalarType, Target};

use crate::error::Error;

/// The first bytes of every artifact.
pub const MAGIC: &[u8; 8] = b"LACEWING";
/// The version that is written, and the only one that is read.
pub const VERSION: u32 = 1;

const HEADER_BYTES: usize = 64;
const DIGEST: Range<usize> = 32..64;
const RECORD_BYTES: usize = 160;
const PARAMETER_BYTES: usize = 48;
/// Alignment of the table of parameters.
const TABLE_ALIGN: usize = 8;
const TARGET_BYTES: usize = 16;

/// Machine code starts at a multiple of this, so that a driver may read it where it lies.
const IMAGE_ALIGN: usize = 64;

/// The kernel waits for the launch before it where it must, so that it may start early.
const WAITS_FOR_PREVIOUS: u64 = 1;

/// What a parameter record says of its kind.
const SCALAR: u8 = 0;
const TENSOR: u8 = 1;
const TENSOR_MUT: u8 = 2;
const TENSOR_MAP: u8 = 3;
const TENSOR_MAP_MUT: u8 = 4;
/// Where the record of a tensor map has the five extents of its box, and the swizzle behind them.
const BOX: usize = 16;

/// One kernel for one target, as it is written.
#[derive(Clone, Debug)]
pub struct NewVariant {
    /// What a launch must know.
    pub meta: KernelMeta,
    /// Name and value of each compile-time parameter, for people.
    pub settings: Vec<(String, String)>,
    /// PTX.
    pub ptx: Option<Vec<u8>>,
    /// Machine code: a cubin, or a code object for an AMD target.
    pub code: Option<Vec<u8>>,
}

/// One kernel for one target, as it was read. Images are ranges of the file.
#[derive(Clone, Debug)]
pub(super) struct Variant {
    pub(super) meta: KernelMeta,
    pub(super) settings: Vec<(String, String)>,
    pub(super) ptx: Option<Range<usize>>,
    pub(super) code: Option<Range<usize>>,
}

/// Writes an artifact. The same variants give the same bytes.
///
/// # Errors
/// [`Error::Artifact`] when there is no variant, one has neither PTX nor machine code, or two are of one kernel and
/// target.
pub fn encode(variants: &[NewVariant]) -> Result<Vec<u8>, Error> {
    let refuse = |reason: String| Err(Error::Artifact(reason));
    if variants.is_empty() {
        return refuse("an artifact without kernels is of no use".to_owned());
    }
    for (index, variant) in variants.iter().enumerate() {
        let KernelMeta { name, target, .. } = &variant.meta;
        if variant.ptx.is_none() && variant.code.is_none() {
            return refuse(format!("kernel `{name}` for {target} has neither PTX nor machine code"));
        }
        let same = |other: &NewVariant| other.meta.name == *name && other.meta.target == *target;
        if variants.iter().take(index).any(same) {
            return refuse(format!("kernel `{name}` is there twice for {target}"));
        }
    }
    let mut writer = Writer { bytes: vec![0; HEADER_BYTES + RECORD_BYTES * variants.len()] };
    let mut records = Vec::new();
    for variant in variants {
        records.extend(record(&mut writer, variant));
    }
    let mut bytes = writer.bytes;
    let mut header = Vec::with_capacity(HEADER_BYTES);
    header.extend(MAGIC);
    header.extend(VERSION.to_le_bytes());
    header.extend((variants.len() as u32).to_le_bytes());
    header.extend((bytes.len() as u64).to_le_bytes());
    header.resize(HEADER_BYTES, 0);
    bytes.splice(..HEADER_BYTES + records.len(), header.into_iter().chain(records));
    let digest = digest(&bytes);
    bytes.splice(DIGEST, digest);
    Ok(bytes)
}

/// The digest of everything but the digest.
fn digest(bytes: &[u8]) -> [u8; 32] {
    let mut hasher = blake3::Hasher::new();
    hasher.update(bytes.get(..DIGEST.start).unwrap_or_default());
    hasher.update(bytes.get(DIGEST.end..).unwrap_or_default());
    *hasher.finalize().as_bytes()
}

struct Writer {
    bytes: Vec<u8>,
}

impl Writer {
    /// Appends bytes at an alignment and a zero behind them, so that text is a string of C; gives their offset and length.
    fn append(&mut self, content: &[u8], align: usize) -> (u64, u64) {
        self.bytes.resize(self.bytes.len().next_multiple_of(align), 0);
        let offset = self.bytes.len();
        self.bytes.extend(content);
        self.bytes.push(0);
        (offset as u64, content.len() as u64)
    }
}

fn record(writer: &mut Writer, variant: &NewVariant) -> Vec<u8> {
    let KernelMeta { name, target, attributes, shared_bytes, params, alignments, waits_for_previous } = &variant.meta;
    let name = writer.append(name.as_bytes(), 1);
    let names: Vec<_> = params.iter().map(|parameter| writer.append(parameter.name.as_bytes(), 1)).collect();
    let settings: String = variant.settings.iter().map(|(name, value)| format!("{name}={value}\n")).collect();
    let settings = writer.append(settings.as_bytes(), 1);
    let mut table = Vec::new();
    let alignments = alignments.iter().copied().chain(std::iter::repeat(1));
    for ((parameter, name), align) in params.iter().zip(names).zip(alignments) {
        let (kind, element, rank) = match parameter.kind {
            ParamKind::Scalar(element) => (SCALAR, element, 0),
            ParamKind::Tensor { elem, rank, mutable } => (if mutable { TENSOR_MUT } else { TENSOR }, elem, rank),
            ParamKind::TensorMap { elem, rank, mutable, .. } => {
                (if mutable { TENSOR_MAP_MUT } else { TENSOR_MAP }, elem, rank)
            }
        };
        let start = table.len();
        table.extend((name.0 as u32).to_le_bytes());
        table.extend((name.1 as u32).to_le_bytes());
        table.extend([kind, element_code(element), rank as u8, 0]);
        table.extend(align.to_le_bytes());
        if let ParamKind::TensorMap { box_shape, swizzle, .. } = parameter.kind {
            table.resize(start + BOX, 0);
            for word in box_shape.into_iter().chain([swizzle]) {
                table.extend(word.to_le_bytes());
            }
        }
        table.resize(table.len().next_multiple_of(PARAMETER_BYTES), 0);
    }
    let parameters = writer.append(&table, TABLE_ALIGN);
    let mut image =
        |image: &Option<Vec<u8>>| image.as_ref().map_or((0, 0), |content| writer.append(content, IMAGE_ALIGN));
    let (ptx, code) = (image(&variant.ptx), image(&variant.code));

    let mut record = Vec::with_capacity(RECORD_BYTES);
    record.extend(target.name().as_bytes());
    record.resize(TARGET_BYTES, 0);
    for word in [name.0 as u32, name.1 as u32] {
        record.extend(word.to_le_bytes());
    }
    for word in attributes.block.into_iter().chain(attributes.cluster.unwrap_or_default()) {
        record.extend(word.to_le_bytes());
    }
    let counts = [
        *shared_bytes,
        variant.meta.dynamic_shared_bytes(),
        attributes.min_blocks.unwrap_or(0),
        attributes.max_regs.unwrap_or(0),
        attributes.waves_per_eu.unwrap_or(0),
        params.len() as u32,
    ];
    for word in counts {
        record.extend(word.to_le_bytes());
    }
    let flags = if *waits_for_previous { WAITS_FOR_PREVIOUS } else { 0 };
    for word in [parameters.0, ptx.0, ptx.1, code.0, code.1, settings.0, settings.1, flags] {
        record.extend(word.to_le_bytes());
    }
    record.resize(RECORD_BYTES, 0);
    record
}

/// The number of an element type in a parameter record. Never changed: see the test.
fn element_code(element: ScalarType) -> u8 {
    ScalarType::ALL.iter().position(|known| *known == element).unwrap_or_default() as u8
}

/// Reads an artifact. Kernels for targets that this version does not know are left out.
pub(super) fn decode(bytes: &[u8]) -> Result<Vec<Variant>, Error> {
    let refuse = |reason: String| Err(Error::Artifact(reason));
    let size = bytes.len();
    if !bytes.starts_with(MAGIC) {
        return refuse(format!("{}: an artifact starts with `LACEWING`", describe_foreign(bytes)));
    }
    let reader = Reader(bytes);
    let truncated = |wanted: u64| {
        format!("the artifact is truncated: {size} of {wanted} bytes are there; copy it again, or compile it again")
    };
    let Some(version) = reader.u32(8) else { return refuse(truncated(HEADER_BYTES as u64)) };
    if version != VERSION {
        return refuse(format!(
            "the artifact is of version {version}, and this program reads version {VERSION}: compile the kernels again \
             with the `lacewing` that this program is built with"
        ));
    }
    let (Some(count), Some(length), Some(stored)) = (reader.u32(12), reader.u64(16), bytes.get(DIGEST)) else {
        return refuse(truncated(HEADER_BYTES as u64));
    };
    if (size as u64) < length {
        return refuse(truncated(length));
    }
    if size as u64 > length {
        return refuse(format!("the artifact has {length} bytes, and {} more follow it", size as u64 - length));
    }
    if digest(bytes) != stored {
        return refuse("the artifact is damaged: its content is not what its digest was made from".to_owned());
    }
    let mut variants = Vec::new();
    for index in 0..count as usize {
        let at = HEADER_BYTES + index * RECORD_BYTES;
        match read_record(reader, at) {
            Some(Ok(variant)) => variants.push(variant),
            // A target or a kind of parameter of a later Lacewing: others may still be of use.
            Some(Err(Unknown)) => {}
            None => {
                let name = format!("record {index}");
                return refuse(format!("the artifact is malformed at {name} (a fault of the program that wrote it)"));
            }
        }
    }
    Ok(variants)
}

/// What bytes are that are no artifact.
fn describe_foreign(bytes: &[u8]) -> String {
    let size = bytes.len();
    let what = match bytes {
        [] => return "the file is empty".to_owned(),
        [0x7f, b'E', b'L', b'F', ..] => "an ELF file (a bare cubin or a code object?)",
        [b'B', b'C', 0xc0, 0xde, ..] => "LLVM bitcode",
        _ if bytes.windows(8).take(4096).any(|window| window == b".version") => "PTX text",
        _ => return format!("the {size} bytes are no Lacewing artifact"),
    };
    format!("the {size} bytes are {what} and no Lacewing artifact")
}

/// Something of a later version.
struct Unknown;

fn read_record(reader: Reader<'_>, at: usize) -> Option<Result<Variant, Unknown>> {
    let word = |offset: usize| reader.u32(at + offset);
    let range = |offset: usize| -> Option<Range<usize>> {
        reader.range(reader.u64(at + offset)?, reader.u64(at + offset + 8)?)
    };
    let image = |offset: usize| -> Option<Option<Range<usize>>> {
        let range = range(offset)?;
        // A zero follows, which the driver takes for the end of PTX.
        (range.is_empty() || reader.0.get(range.end) == Some(&0)).then(|| (!range.is_empty()).then_some(range))
    };
    let triple = |offset: usize| Some([word(offset)?, word(offset + 4)?, word(offset + 8)?]);
    let optional = |offset: usize| Some(word(offset)?).map(|count| (count > 0).then_some(count));

    let target = reader.0.get(at..at + TARGET_BYTES)?;
    let target = std::str::from_utf8(target).ok()?.trim_end_matches('\0');
    let name = reader.text(reader.range(word(16)?.into(), word(20)?.into())?)?;
    let (mut params, mut alignments) = (Vec::new(), Vec::new());
    let (count, table) = (word(68)? as usize, usize::try_from(reader.u64(at + 72)?).ok()?);
    for index in 0..count {
        let record = table.checked_add(index.checked_mul(PARAMETER_BYTES)?)?;
        let name =
            reader.text(reader.range(reader.u32(record)?.into(), reader.u32(record.checked_add(4)?)?.into())?)?;
        let [kind, element, rank, _] = reader.u32(record.checked_add(8)?)?.to_le_bytes();
        let Some(elem) = ScalarType::ALL.get(usize::from(element)).copied() else { return Some(Err(Unknown)) };
        let kind = match kind {
            SCALAR => ParamKind::Scalar(elem),
            TENSOR | TENSOR_MUT => ParamKind::Tensor { elem, rank: rank.into(), mutable: kind == TENSOR_MUT },
            TENSOR_MAP | TENSOR_MAP_MUT => {
                let (mut box_shape, mut at) = ([0; 5], record.checked_add(BOX)?);
                for extent in &mut box_shape {
                    *extent = reader.u32(at)?;
                    at = at.checked_add(4)?;
                }
                let (swizzle, mutable) = (reader.u32(at)?, kind == TENSOR_MAP_MUT);
                ParamKind::TensorMap { elem, rank: rank.into(), box_shape, swizzle, mutable }
            }
            _ => return Some(Err(Unknown)),
        };
        params.push(ParamDesc { name: name.to_owned(), kind });
        alignments.push(reader.u32(record.checked_add(12)?)?.max(1));
    }
    let settings = reader.text(range(112)?)?.lines();
    let settings = settings.filter_map(|line| line.split_once('=')).map(|(a, b)| (a.to_owned(), b.to_owned()));
    let attributes = KernelAttributes {
        block: triple(24)?,
        cluster: Some(triple(36)?).filter(|cluster| *cluster != [0; 3]),
        min_blocks: optional(56)?,
        max_regs: optional(60)?,
        waves_per_eu: optional(64)?,
    };
    let flags = reader.u64(at + 128)?;
    if flags & !WAITS_FOR_PREVIOUS != 0 {
        return Some(Err(Unknown));
    }
    let Ok(target) = Target::from_name(target) else { return Some(Err(Unknown)) };
    let meta = KernelMeta {
        name: name.to_owned(),
        target,
        attributes,
        shared_bytes: word(48)?,
        params,
        alignments,
        waits_for_previous: flags & WAITS_FOR_PREVIOUS != 0,
    };
    // Stored for other loaders; here it follows from the rest.
    if word(52)? != meta.dynamic_shared_bytes() {
        return None;
    }
    Some(Ok(Variant { meta, settings: settings.collect(), ptx: image(80)?, code: image(96)? }))
}

/// Reads inside the file, or not at all.
#[derive(Clone, Copy)]
struct Reader<'a>(&'a [u8]);

impl<'a> Reader<'a> {
    fn u32(self, at: usize) -> Option<u32> {
        Some(u32::from_le_bytes(self.0.get(at..at.checked_add(4)?)?.try_into().ok()?))
    }

    fn u64(self, at: usize) -> Option<u64> {
        Some(u64::from_le_bytes(self.0.get(at..at.checked_add(8)?)?.try_into().ok()?))
    }

    fn range(self, offset: u64, length: u64) -> Option<Range<usize>> {
        let start = usize::try_from(offset).ok()?;
        let end = start.checked_add(usize::try_from(length).ok()?)?;
        (end <= self.0.len()).then_some(start..end)
    }

    fn text(self, range: Range<usize>) -> Option<&'a str> {
        std::str::from_utf8(self.0.get(range)?).ok()
    }
}

#[cfg(test)]
mod tests;

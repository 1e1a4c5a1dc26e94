use super::*;

fn meta(name: &str, target: Target) -> KernelMeta {
    KernelMeta {
        name: name.to_owned(),
        target,
        attributes: KernelAttributes {
            block: [128, 2, 1],
            min_blocks: None,
            max_regs: target.is_nvidia().then_some(168),
            waves_per_eu: target.is_amd().then_some(2),
            cluster: (target == Target::SM_90A).then_some([2, 1, 1]),
        },
        shared_bytes: 60_000,
        params: vec![
            ParamDesc { name: "a".to_owned(), kind: ParamKind::Scalar(ScalarType::F32) },
            ParamDesc {
                name: "x".to_owned(),
                kind: ParamKind::Tensor { elem: ScalarType::Bf16, rank: 4, mutable: false },
            },
            ParamDesc {
                name: "y".to_owned(),
                kind: ParamKind::Tensor { elem: ScalarType::F8E5M2, rank: 0, mutable: true },
            },
        ],
        alignments: vec![1, 16, 1],
        waits_for_previous: false,
    }
}

fn variant(name: &str, target: Target) -> NewVariant {
    NewVariant {
        meta: meta(name, target),
        settings: vec![("dtype".to_owned(), "bf16".to_owned()), ("note".to_owned(), "a = b".to_owned())],
        ptx: target.is_nvidia().then(|| format!(".version 8.0 {target}").into_bytes()),
        code: (target != Target::SM_80).then(|| vec![7; 1000]),
    }
}

fn sample() -> Vec<NewVariant> {
    vec![variant("attend", Target::SM_80), variant("attend", Target::SM_90A), variant("attend", Target::GFX950)]
}

#[test]
fn flags_are_kept_and_unknown_ones_leave_a_kernel_out() {
    let mut new = sample();
    new[1].meta.waits_for_previous = true;
    let bytes = encode(&new).unwrap();
    let waits: Vec<bool> = decode(&bytes).unwrap().iter().map(|variant| variant.meta.waits_for_previous).collect();
    assert_eq!(waits, [false, true, false]);
    let mut later = bytes;
    later[HEADER_BYTES + 128] = 2;
    assert_eq!(decode(&sealed(later)).unwrap().len(), 2);
}

fn refused(bytes: &[u8]) -> String {
    decode(bytes).unwrap_err().to_string()
}

/// Gives the bytes the digest that fits them.
fn sealed(mut bytes: Vec<u8>) -> Vec<u8> {
    let digest = digest(&bytes);
    bytes.splice(DIGEST, digest);
    bytes
}

#[test]
fn what_is_written_is_read() {
    let (new, bytes) = (sample(), encode(&sample()).unwrap());
    let read = decode(&bytes).unwrap();
    assert_eq!(read.len(), new.len());
    for (new, read) in new.iter().zip(&read) {
        let image = |range: &Option<Range<usize>>| range.clone().map(|range| bytes[range].to_vec());
        assert_eq!(read.meta, new.meta);
        assert_eq!(read.settings, new.settings);
        assert_eq!((image(&read.ptx), image(&read.code)), (new.ptx.clone(), new.code.clone()));
        for range in read.ptx.iter().chain(&read.code) {
            assert_eq!((range.start % IMAGE_ALIGN, bytes[range.end]), (0, 0));
        }
    }
    assert_eq!(encode(&sample()).unwrap(), bytes);
}

#[test]
fn the_form_is_pinned() {
    // Files in the field and loaders in other languages depend on it: a change is a new VERSION.
    assert_eq!(
        blake3::hash(&encode(&sample()).unwrap()).to_string(),
        "6d80feaf694cb4592e54e5b23144dbc83dc6976936de053e0022c8ee18045f2d"
    );
    let codes: Vec<(u8, &str)> =
        ScalarType::ALL.iter().map(|element| (element_code(*element), element.name())).collect();
    let names = "bool i8 i16 i32 i64 u8 u16 u32 u64 f16 bf16 f32 f64 f8e4m3 f8e5m2";
    let wanted: Vec<(u8, &str)> = (0..).zip(names.split(' ')).collect();
    assert_eq!(codes, wanted);
}

#[test]
fn every_cut_and_every_flipped_byte_is_found() {
    let bytes = encode(&sample()).unwrap();
    for length in 0..bytes.len() {
        let text = refused(&bytes[..length]);
        let wanted = if length < MAGIC.len() { "no Lacewing artifact" } else { "the artifact is truncated" };
        assert!(length == 0 || text.contains(wanted), "{length}: {text}");
    }
    for index in 0..bytes.len() {
        let mut spoilt = bytes.clone();
        spoilt[index] ^= 0x10;
        assert!(matches!(decode(&spoilt), Err(Error::Artifact(_))), "{index}");
    }
}

#[test]
fn foreign_and_later_files_are_named() {
    let bytes = encode(&sample()).unwrap();
    assert_eq!(refused(b""), "the file is empty: an artifact starts with `LACEWING`");
    assert!(refused(b"\x7fELF\x02\x01").contains("an ELF file (a bare cubin"));
    assert!(refused(b"//\n.version 8.3\n.target sm_90a").contains("PTX text"));
    assert!(refused(&[0; 100]).contains("the 100 bytes are no Lacewing artifact"));
    let mut later = bytes.clone();
    later[8] = 2;
    assert!(refused(&later).contains("is of version 2, and this program reads version 1"), "{}", refused(&later));
    let mut longer = bytes.clone();
    longer.push(0);
    assert!(refused(&longer).contains("and 1 more follow it"));
    let mut spoilt = bytes.clone();
    *spoilt.last_mut().unwrap() ^= 1;
    assert!(refused(&spoilt).contains("the artifact is damaged"));

    // A target of a later Lacewing is left out; the others stay.
    let mut unknown = bytes;
    unknown[HEADER_BYTES..HEADER_BYTES + 6].copy_from_slice(b"sm_200");
    let left = decode(&sealed(unknown)).unwrap();
    assert_eq!(left.iter().map(|variant| variant.meta.target).collect::<Vec<_>>(), [Target::SM_90A, Target::GFX950]);
}

/// With a digest that fits, offsets may still be anything: they are refused, and nothing panics.
#[test]
fn no_offset_leads_outside_the_file() {
    let bytes = encode(&sample()).unwrap();
    let table = HEADER_BYTES + RECORD_BYTES * sample().len();
    for word in (HEADER_BYTES..table + 200).step_by(4) {
        for value in [u32::MAX, 1 << 31, bytes.len() as u32, bytes.len() as u32 - 1] {
            let mut spoilt = bytes.clone();
            spoilt[word..word + 4].copy_from_slice(&value.to_le_bytes());
            for variant in decode(&sealed(spoilt)).into_iter().flatten() {
                for range in variant.ptx.iter().chain(&variant.code) {
                    assert!(range.end <= bytes.len());
                }
            }
        }
    }
    // More records than the file has room for.
    let mut spoilt = bytes.clone();
    spoilt[12..16].copy_from_slice(&u32::MAX.to_le_bytes());
    assert!(refused(&sealed(spoilt)).contains("malformed at record"));
}

#[test]
fn what_is_of_no_use_is_not_written() {
    let refused = |variants: &[NewVariant]| encode(variants).unwrap_err().to_string();
    assert!(refused(&[]).contains("without kernels"));
    let empty = NewVariant { ptx: None, code: None, ..variant("attend", Target::SM_80) };
    assert!(refused(&[empty]).contains("`attend` for sm_80 has neither PTX nor machine code"));
    let twice = [variant("attend", Target::SM_80), variant("attend", Target::SM_80)];
    assert!(refused(&twice).contains("is there twice for sm_80"));
}

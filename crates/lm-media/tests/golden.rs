//! Decoding, resizing, patches and sizes against Pillow and transformers: `testdata/media`.

use std::path::Path;

use lm_media::families::{Gemma3, Gemma4, QwenVl};
use lm_media::{DecodeLimits, Filter, Normalization, Patches, Picture, PictureSize, picture_size};
use serde::Deserialize;
use sha2::{Digest, Sha256};

#[derive(Deserialize)]
struct Golden {
    decoded: Vec<Decoded>,
    resized: Vec<Resized>,
    families: Vec<FamilyCase>,
    /// A picture's size, and those of [`size_functions`] for it.
    sizes: Vec<[Option<[usize; 2]>; 5]>,
}

#[derive(Deserialize)]
struct Decoded {
    picture: String,
    size: [usize; 2],
    sha256: String,
    /// Some bytes of a JPEG file, whose decoders may differ a little.
    bytes: Option<Vec<u8>>,
}

#[derive(Deserialize)]
struct Resized {
    filter: String,
    size: [usize; 2],
    sha256: String,
}

#[derive(Deserialize)]
struct FamilyCase {
    family: String,
    picture: String,
    /// Patches, and numbers of each.
    shape: [usize; 2],
    at: Vec<usize>,
    values: Vec<f32>,
}

fn file(name: &str) -> Vec<u8> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../testdata/media");
    std::fs::read(folder.join(name)).expect(name)
}

fn golden() -> Golden {
    serde_json::from_slice(&file("golden.json")).expect("golden.json")
}

fn picture(name: &str) -> Picture {
    Picture::decode(&file(name), &DecodeLimits::default()).expect(name)
}

fn digest(picture: &Picture) -> String {
    Sha256::digest(picture.rgb()).iter().map(|byte| format!("{byte:02x}")).collect()
}

fn size([width, height]: [usize; 2]) -> PictureSize {
    PictureSize::new(width, height)
}

#[test]
fn files_are_decoded_to_the_bytes_of_pillow() {
    let decoded = golden().decoded;
    assert!(decoded.len() > 20);
    for case in decoded {
        let found = picture(&case.picture);
        assert_eq!(found.size(), size(case.size), "{}", case.picture);
        let header = picture_size(&file(&case.picture), &DecodeLimits::default());
        assert_eq!(header.expect("a header"), found.size(), "{}", case.picture);
        match case.bytes {
            None => assert_eq!(digest(&found), case.sha256, "{}", case.picture),
            Some(bytes) => {
                let width = found.size().width;
                let pixels = (0..found.size().height)
                    .step_by(7)
                    .flat_map(|y| (0..width).step_by(7).map(move |x| y * width + x));
                let own: Vec<u8> = pixels.flat_map(|pixel| found.rgb()[pixel * 3..][..3].to_vec()).collect();
                let largest = own.iter().zip(&bytes).map(|(own, other)| own.abs_diff(*other)).max();
                assert_eq!(own.len(), bytes.len());
                assert!(largest <= Some(2), "{}: {largest:?}", case.picture);
            }
        }
    }
}

#[test]
fn filters_give_the_bytes_of_pillow() {
    let picture = picture("rgb_37x53.png");
    for case in golden().resized {
        let filter = match &*case.filter {
            "bilinear" => Filter::Bilinear,
            "bicubic" => Filter::Bicubic,
            "lanczos" => Filter::Lanczos,
            other => panic!("{other}"),
        };
        let resized = picture.resized(size(case.size), filter);
        assert_eq!(digest(&resized), case.sha256, "{} {:?}", case.filter, case.size);
    }
}

fn qwen3() -> QwenVl {
    let (min_pixels, max_pixels) = (65_536, 16_777_216);
    QwenVl { patch: 16, min_pixels, max_pixels, normalization: Normalization::HALF, ..QwenVl::default() }
}

fn patches(family: &str, picture: &Picture) -> Patches {
    match family {
        "qwen2_vl" => QwenVl::default().patches(picture).expect("patches"),
        "qwen3_vl" => qwen3().patches(picture).expect("patches"),
        "gemma4_70" => Gemma4 { budget: 70, ..Gemma4::default() }.patches(picture).expect("patches"),
        "gemma3_224" => Gemma3 { side: 224, ..Gemma3::default() }.patches(picture),
        other => panic!("{other}"),
    }
}

#[test]
fn patches_are_those_of_transformers() {
    for case in golden().families {
        let found = patches(&case.family, &picture(&case.picture));
        let name = format!("{} {}", case.family, case.picture);
        assert_eq!(found.rows * found.columns, case.shape[0], "{name}");
        assert_eq!(found.values.len(), case.shape[0] * case.shape[1], "{name}");
        for (at, expected) in case.at.iter().zip(&case.values) {
            assert!(
                (found.values[*at] - expected).abs() <= 1e-6,
                "{name} at {at}: {} {expected}",
                found.values[*at]
            );
        }
    }
}

#[test]
fn sizes_and_refusals_are_those_of_transformers() {
    let sizes = golden().sizes;
    assert_eq!(sizes.len(), 2000);
    for [original, qwen2_size, qwen3_size, gemma_280, gemma_70] in sizes {
        let original = size(original.expect("a size"));
        let found = [QwenVl::default().resized_size(original), qwen3().resized_size(original)]
            .into_iter()
            .chain([280, 70].map(|budget| Gemma4 { budget, ..Gemma4::default() }.resized_size(original)));
        for (found, expected) in found.zip([qwen2_size, qwen3_size, gemma_280, gemma_70]) {
            assert_eq!(found.ok(), expected.map(size), "{original}");
        }
    }
}

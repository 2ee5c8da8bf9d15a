//! Sizes and files at the edges of formats against Pillow: `testdata/media/pillow`.

use std::path::Path;

use lm_media::{DecodeLimits, Filter, Image, ImageSize, image_size};
use serde::Deserialize;
use sha2::{Digest, Sha256};

#[derive(Deserialize)]
struct Golden {
    resized: Vec<Resized>,
    decoded: Vec<Decoded>,
}

#[derive(Deserialize)]
struct Decoded {
    name: String,
    /// Bytes in digits of base 16.
    file: String,
    /// `None` if Pillow rejects the file.
    size: Option<[usize; 2]>,
    rgb: Option<String>,
}

#[derive(Deserialize)]
struct Resized {
    source: [usize; 2],
    filter: String,
    size: [usize; 2],
    sha256: String,
}

fn file(name: &str) -> Vec<u8> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../testdata/media/pillow");
    std::fs::read(folder.join(name)).expect(name)
}

fn golden() -> Golden {
    serde_json::from_slice(&file("golden.json")).expect("golden.json")
}

fn from_digits(digits: &str) -> Vec<u8> {
    let byte = |at| u8::from_str_radix(&digits[at..at + 2], 16).expect("digits");
    (0..digits.len()).step_by(2).map(byte).collect()
}

fn digest(image: &Image) -> String {
    Sha256::digest(image.rgb()).iter().map(|byte| format!("{byte:02x}")).collect()
}

fn size([width, height]: [usize; 2]) -> ImageSize {
    ImageSize::new(width, height)
}

/// The pattern of the generator.
fn pattern(size: ImageSize) -> Image {
    let pixel = |x, y| [0, 1, 2].map(|c| (x * 37 + y * y * 11 + x * y * 7 + c * 59) as u8);
    let rgb = (0..size.height).flat_map(|y| (0..size.width).flat_map(move |x| pixel(x, y))).collect();
    Image::from_rgb(size, rgb).expect("pixels")
}

#[test]
fn tall_image_resize_equals_pillow() {
    let cases = golden().resized;
    assert!(cases.len() > 50);
    for case in cases {
        let filter = match &*case.filter {
            "bilinear" => Filter::Bilinear,
            "bicubic" => Filter::Bicubic,
            "lanczos" => Filter::Lanczos,
            other => panic!("{other}"),
        };
        let resized = pattern(size(case.source)).resized(size(case.size), filter);
        assert_eq!(digest(&resized), case.sha256, "{} {:?} {:?}", case.filter, case.source, case.size);
        println!("stage: {} | resized bytes | 1 | 0", case.filter);
    }
}

/// Differences from Pillow: the checksum of the pixels is checked, an orientation is a whole number, and
/// colours that a JPEG file calls R, G and B are these.
const DIFFERENT: [&str; 3] =
    ["PNG: checksum of the pixels", "PNG: a decimal", "JPEG: RGB of Adobe with JFIF"];

#[test]
fn edge_case_files_equal_pillow() {
    let cases = golden().decoded;
    assert!(cases.len() > 80);
    for case in cases {
        let (name, bytes) = (&case.name, from_digits(&case.file));
        let found = Image::decode(&bytes, &DecodeLimits::default());
        let header = image_size(&bytes, &DecodeLimits::default());
        if let (Ok(header), Ok(image)) = (header, &found) {
            assert_eq!(header, image.size(), "{name}");
        }
        let tolerance = if name.starts_with("JPEG") { 2 } else { 0 };
        let is_same = match (&found, case.size, case.rgb) {
            (Ok(found), Some(expected), Some(rgb)) => {
                let mut bytes = found.rgb().iter().zip(from_digits(&rgb));
                found.size() == size(expected) && bytes.all(|(own, other)| own.abs_diff(other) <= tolerance)
            }
            (found, ..) => found.is_err() == case.size.is_none(),
        };
        assert_eq!(is_same, !DIFFERENT.contains(&&**name), "{name}: {found:?}");
        if is_same && tolerance == 0 {
            println!("stage: files at the edges of formats | decoded bytes | 1 | 0");
        }
    }
}

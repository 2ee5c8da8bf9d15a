//! Files of strangers: errors that say what is wrong, before much memory is used.

use std::path::Path;

use lm_media::families::{Gemma4, QwenVl};
use lm_media::{DecodeLimits, Error, Picture, PictureSize, picture_size};
use proptest::prelude::*;

const FILES: [&str; 5] =
    ["rgb_37x53.png", "smooth_64x48.jpg", "lossless_23x19.webp", "animated_15x12.gif", "rgb_18x14.bmp"];

fn file(name: &str) -> Vec<u8> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../testdata/media");
    std::fs::read(folder.join(name)).expect(name)
}

fn decode(bytes: &[u8]) -> Result<Picture, Error> {
    Picture::decode(bytes, &DecodeLimits::default())
}

#[test]
fn unknown_formats_are_named_by_their_beginning() {
    let error = decode(b"%PDF-1.7 and more").expect_err("no picture").to_string();
    assert!(error.starts_with("the bytes are no picture: expected PNG, JPEG, WebP, GIF or BMP"), "{error}");
    assert!(matches!(decode(b""), Err(Error::UnknownFormat { start }) if start.is_empty()));
    // A format of the library that is not one of ours.
    assert!(matches!(decode(b"II*\0\x08\0\0\0\0\0"), Err(Error::UnknownFormat { .. })));
}

#[test]
fn truncated_files_are_errors() {
    for name in FILES {
        let bytes = file(name);
        let cut = |length: usize| decode(&bytes[..length]);
        assert!(
            matches!(cut(bytes.len() / 8), Err(Error::Invalid { .. })),
            "{name}: {:?}",
            cut(bytes.len() / 8)
        );
    }
}

#[test]
fn files_and_pictures_above_the_limits_are_refused() {
    let bytes = file("rgb_37x53.png");
    let limits = DecodeLimits { max_bytes: bytes.len() - 1, ..DecodeLimits::default() };
    assert!(matches!(Picture::decode(&bytes, &limits), Err(Error::TooManyBytes { .. })));
    let limits = DecodeLimits { max_pixels: 37 * 53 - 1, ..DecodeLimits::default() };
    let size = PictureSize::new(37, 53);
    assert!(
        matches!(picture_size(&bytes, &limits), Err(Error::TooManyPixels { size: found, limit: 1960 }) if found == size)
    );
    let limits = DecodeLimits { max_pixels: 37 * 53, max_bytes: bytes.len() };
    assert!(Picture::decode(&bytes, &limits).is_ok());
}

/// A BMP header of 30,000 × 30,000 pixels, without any.
#[test]
fn a_header_of_many_pixels_allocates_nothing() {
    let mut bytes = file("rgb_18x14.bmp");
    bytes[18..22].copy_from_slice(&30_000_u32.to_le_bytes());
    bytes[22..26].copy_from_slice(&30_000_u32.to_le_bytes());
    assert!(matches!(decode(&bytes), Err(Error::TooManyPixels { .. })), "{:?}", decode(&bytes));
}

#[test]
fn pixels_of_another_number_are_an_error() {
    for (size, bytes) in
        [(PictureSize::new(2, 2), 11), (PictureSize::new(0, 4), 0), (PictureSize::new(usize::MAX, 2), 6)]
    {
        assert!(matches!(Picture::from_rgb(size, vec![0; bytes]), Err(Error::WrongLength { .. })), "{size}");
    }
}

#[test]
fn sizes_without_pixels_are_refused() {
    for size in [(0, 0), (0, 5), (5, 0)].map(|(width, height)| PictureSize::new(width, height)) {
        let refused = [QwenVl::default().tokens(size), Gemma4::default().tokens(size)];
        assert!(refused.iter().all(|tokens| matches!(tokens, Err(Error::UnsuitableSize { .. }))), "{size}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, failure_persistence: None, ..ProptestConfig::default() })]

    /// Damaged files are a picture or an error.
    #[test]
    fn damaged_files_do_not_panic(name in 0..FILES.len(), edits in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..8), cut in any::<prop::sample::Index>()) {
        let mut bytes = file(FILES[name]);
        for (at, byte) in edits {
            let at = at.index(bytes.len());
            bytes[at] = byte;
        }
        bytes.truncate(bytes.len().min(cut.index(2 * bytes.len())));
        let limits = DecodeLimits { max_pixels: 1_000_000, ..DecodeLimits::default() };
        if let (Ok(size), Ok(picture)) = (picture_size(&bytes, &limits), Picture::decode(&bytes, &limits)) {
            prop_assert_eq!(size, picture.size());
        }
    }
}

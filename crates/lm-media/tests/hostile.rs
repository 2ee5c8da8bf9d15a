//! Hostile files: errors that name the problem, before much memory is used.

#[cfg(target_os = "linux")]
use crate::files::{IMAGES, media as file};
#[cfg(target_os = "linux")]
use crate::support::chunk;
use lm_media::families::{Gemma3, Gemma4, Lfm2Vl, QwenVl, SmolVlm};
use lm_media::{DecodeLimits, Error, Image, ImageSize, Normalization, image_size};

fn decode(bytes: &[u8]) -> Result<Image, Error> {
    Image::decode(bytes, &DecodeLimits::default())
}

#[test]
fn unknown_formats_are_named_by_signature() {
    let error = decode(b"%PDF-1.7 and more").expect_err("no image").to_string();
    assert_eq!(error, "the bytes are a PDF file; expected PNG, JPEG, WebP, GIF or BMP");
    let error = decode(b"no image").expect_err("no image").to_string();
    assert!(
        error.starts_with("the bytes are not image data: expected PNG, JPEG, WebP, GIF or BMP"),
        "{error}"
    );
    assert!(matches!(decode(b""), Err(Error::UnknownFormat { start }) if start.is_empty()));
    // A format of the library that this crate does not support.
    assert!(matches!(decode(b"II*\0\x08\0\0\0\0\0"), Err(Error::UnknownFormat { .. })));
}

#[test]
fn truncated_files_are_errors() {
    for name in IMAGES {
        let bytes = file(name);
        let cut = |length: usize| decode(&bytes[..length]);
        assert!(
            matches!(cut(bytes.len() / 8), Err(Error::Invalid { .. })),
            "{name}: {:?}",
            cut(bytes.len() / 8)
        );
    }
}

/// The decoder fills missing pixels of a JPEG file with grey.
#[test]
fn truncated_jpeg_is_an_error() {
    for name in ["smooth_64x48.jpg"] {
        let bytes = file(name);
        for length in (2..bytes.len() - 2).step_by(7) {
            assert!(decode(&bytes[..length]).is_err(), "{name}: {length} of {} bytes", bytes.len());
        }
        // Bytes after the end are not part of the image.
        let more = [&bytes[..], b"more"].concat();
        assert_eq!(decode(&more).expect("an image"), decode(&bytes).expect("an image"));
    }
}

/// A JPEG file with a segment after its start.
fn with_segment(marker: &[u8], contents: &[u8]) -> Vec<u8> {
    let (bytes, length) = (file("smooth_64x48.jpg"), contents.len() as u16 + 2);
    [&bytes[..2], marker, &length.to_be_bytes(), contents, &bytes[2..]].concat()
}

#[test]
fn jpeg_truncated_after_other_segments_is_an_error() {
    let thumbnail = file("smooth_64x48.jpg");
    let whole = decode(&thumbnail).expect("an image");
    for (marker, contents, name) in [
        (&[0xff, 0xef][..], &thumbnail[..], "an image in a segment has an end of its own"),
        (&[0xff, 0xff, 0xff, 0xfe], b"a comment after fill bytes", "fill bytes"),
    ] {
        let bytes = with_segment(marker, contents);
        assert_eq!(decode(&bytes).expect(name), whole, "{name}");
        let cut = decode(&bytes[..bytes.len() - 200]);
        assert!(matches!(cut, Err(Error::Invalid { .. })), "{name}: {cut:?}");
    }
}

#[test]
fn files_and_images_above_the_limits_are_rejected() {
    let bytes = file("rgb_37x53.png");
    let limits = DecodeLimits { max_bytes: bytes.len() - 1, ..DecodeLimits::default() };
    assert!(matches!(Image::decode(&bytes, &limits), Err(Error::TooManyBytes { .. })));
    let limits = DecodeLimits { max_pixels: 37 * 53 - 1, ..DecodeLimits::default() };
    let size = ImageSize::new(37, 53);
    assert!(
        matches!(image_size(&bytes, &limits), Err(Error::TooManyPixels { size: found, limit: 1960 }) if found == size)
    );
    let limits = DecodeLimits { max_pixels: 37 * 53, max_bytes: bytes.len(), max_side: 53 };
    assert!(Image::decode(&bytes, &limits).is_ok());
    let limits = DecodeLimits { max_side: 52, ..limits };
    assert!(matches!(Image::decode(&bytes, &limits), Err(Error::SideTooLong { limit: 52, .. })));
}

/// The screen of the GIF file is small, its first frame large.
#[test]
fn gif_frame_counts_toward_the_limits() {
    const PLACE: usize = 13 + 3 * 4 + 1; // Header, palette, separator.
    let bytes = file("frame_11x9.gif");
    let with = |at: usize, value: u16| {
        let mut bytes = bytes.clone();
        bytes[PLACE + at..PLACE + at + 2].copy_from_slice(&value.to_le_bytes());
        bytes
    };
    let limits = DecodeLimits { max_pixels: 12 * 9, ..DecodeLimits::default() };
    assert_eq!(image_size(&with(0, 7), &limits).expect("a size"), ImageSize::new(12, 9));
    let size = ImageSize::new(13, 9);
    for result in [image_size(&with(0, 8), &limits).err(), Image::decode(&with(0, 8), &limits).err()] {
        assert!(matches!(result, Some(Error::TooManyPixels { size: found, .. }) if found == size));
    }
    assert!(matches!(decode(&with(2, 65_534)), Err(Error::SideTooLong { .. })), "its top and its height");
    for side in [4, 6] {
        assert!(matches!(decode(&with(side, 0)), Err(Error::Invalid { .. })));
        let size = image_size(&with(side, 0), &DecodeLimits::default());
        assert!(matches!(size, Err(Error::Invalid { .. })), "no pixels");
    }
    let no_frame = [&bytes[..PLACE - 1], b";"].concat();
    assert!(matches!(decode(&no_frame), Err(Error::Invalid { .. })));
    for length in PLACE..bytes.len() - 2 {
        assert!(decode(&bytes[..length]).is_err(), "{length} of {} bytes", bytes.len());
    }
}

/// A BMP header of 30,000 × 30,000 pixels, without any.
#[test]
fn huge_header_allocates_nothing() {
    let mut bytes = file("rgb_18x14.bmp");
    bytes[18..22].copy_from_slice(&30_000_u32.to_le_bytes());
    bytes[22..26].copy_from_slice(&30_000_u32.to_le_bytes());
    assert!(matches!(decode(&bytes), Err(Error::TooManyPixels { .. })), "{:?}", decode(&bytes));
}

#[test]
fn wrong_pixel_count_is_an_error() {
    for (size, bytes) in
        [(ImageSize::new(2, 2), 11), (ImageSize::new(0, 4), 0), (ImageSize::new(usize::MAX, 2), 6)]
    {
        assert!(matches!(Image::from_rgb(size, vec![0; bytes]), Err(Error::WrongLength { .. })), "{size}");
    }
}

#[test]
fn sizes_without_pixels_are_rejected() {
    for size in [(0, 0), (0, 5), (5, 0)].map(|(width, height)| ImageSize::new(width, height)) {
        let rejected = [
            QwenVl::default().tokens(size),
            Gemma4::default().tokens(size),
            SmolVlm::default().tokens(size),
            Lfm2Vl::default().tokens(size),
        ];
        assert!(rejected.iter().all(|tokens| matches!(tokens, Err(Error::UnsuitableSize { .. }))), "{size}");
    }
}

#[test]
fn settings_out_of_range_are_reported() {
    let image = Image::from_rgb(ImageSize::new(3, 5), vec![7; 45]).expect("an image");
    let flat = Normalization { std: [1.0, 0.0, 1.0], ..Normalization::HALF };
    let (gemma3, gemma4, qwen) = (Gemma3::default(), Gemma4::default(), QwenVl::default());
    let (smol, lfm) = (SmolVlm::default(), Lfm2Vl::default());
    let rejected = [
        (Gemma3 { patch: 0, ..gemma3 }.patches(&image).err(), "`patch` is 0"),
        (Gemma3 { side: 0, ..gemma3 }.patches(&image).err(), "`side` is 0"),
        (Gemma3 { side: usize::MAX, ..gemma3 }.patches(&image).err(), "`side` is 18446744073709551615"),
        (Gemma3 { side: 897, ..gemma3 }.patches(&image).err(), "expected a multiple of 14"),
        (Gemma4 { patch: 0, ..gemma4 }.patches(&image).err(), "`patch` is 0"),
        (Gemma4 { pool: 0, ..gemma4 }.patches(&image).err(), "`pool` is 0"),
        (Gemma4 { budget: 0, ..gemma4 }.patches(&image).err(), "`budget` is 0"),
        (Gemma4 { budget: 1 << 20, ..gemma4 }.patches(&image).err(), "`budget` is 1048576"),
        (QwenVl { patch: 0, ..qwen }.patches(&image).err(), "`patch` is 0"),
        (QwenVl { merge: 0, ..qwen }.patches(&image).err(), "`merge` is 0"),
        (QwenVl { frames: 0, ..qwen }.patches(&image).err(), "`frames` is 0"),
        (QwenVl { max_pixels: usize::MAX, ..qwen }.patches(&image).err(), "`max_pixels` is"),
        (QwenVl { min_pixels: usize::MAX, ..qwen }.patches(&image).err(), "`min_pixels` is"),
        (QwenVl { normalization: flat, ..qwen }.patches(&image).err(), "deviations other than zero"),
        (SmolVlm { tile: 0, ..smol }.patches(&image).err(), "`side` is 0"),
        (SmolVlm { patch: 600, ..smol }.patches(&image).err(), "`patch` is 600"),
        (SmolVlm { scale: 0, ..smol }.patches(&image).err(), "`scale` is 0"),
        (SmolVlm { scale: 3, ..smol }.patches(&image).err(), "expected a multiple of 3"),
        (SmolVlm { longest_edge: 1 << 20, ..smol }.patches(&image).err(), "`longest_edge` is 1048576"),
        (SmolVlm { normalization: flat, ..smol }.patches(&image).err(), "deviations other than zero"),
        (Lfm2Vl { downsample: 0, ..lfm.clone() }.patches(&image).err(), "`downsample` is 0"),
        (Lfm2Vl { tile: 500, ..lfm.clone() }.patches(&image).err(), "expected a multiple of 32"),
        (Lfm2Vl { tiles: 0..=2, ..lfm.clone() }.patches(&image).err(), "`min_tiles` is 0"),
        (Lfm2Vl { tiles: 2..=usize::MAX, ..lfm.clone() }.patches(&image).err(), "`max_tiles` is"),
        (
            Lfm2Vl { image_tokens: 1..=usize::MAX, ..lfm.clone() }.patches(&image).err(),
            "`max_image_tokens` is",
        ),
        (Lfm2Vl { tolerance: f64::NAN, ..lfm }.patches(&image).err(), "`tolerance` is NaN"),
    ];
    for (error, problem) in rejected {
        let error = error.expect(problem);
        assert!(matches!(error, Error::InvalidSettings { .. }), "{error}");
        assert!(error.to_string().contains(problem), "{error}: {problem}");
    }
}

/// Metadata of 2 MiB are read, one byte more is skipped.
#[cfg(target_os = "linux")]
#[test]
fn compressed_text_above_the_limit_is_skipped() {
    use std::io::Write;
    let bytes = file("rgb_37x53.png");
    let sized = |length: usize| {
        let mut text = b"<tiff:Orientation>6</tiff:Orientation>".to_vec();
        text.resize(length, b' ');
        let mut zlib = flate2::write::ZlibEncoder::new(Vec::new(), flate2::Compression::default());
        zlib.write_all(&text).expect("memory");
        let data = [&b"XML:com.adobe.xmp\0\x01\0\0\0"[..], &zlib.finish().expect("memory")].concat();
        let with = [&bytes[..33], &chunk(b"iTXt", &data), &bytes[33..]].concat();
        image_size(&with, &DecodeLimits::default()).expect("a size")
    };
    assert_eq!(sized(2 << 20), ImageSize::new(53, 37));
    assert_eq!(sized((2 << 20) + 1), ImageSize::new(37, 53));
}

/// Its red and the next blue look like 16 bits a pixel of a longer header.
#[test]
fn bmp_core_header_keeps_colours() {
    let words = [2_u16, 1, 1, 24].map(u16::to_le_bytes).concat();
    let header = [34_u32, 0, 26, 12].map(u32::to_le_bytes).concat();
    let bytes = [&b"BM"[..], &header, &words, &[7, 8, 16, 0, 9, 11, 0, 0]].concat();
    assert_eq!(decode(&bytes).expect("an image").rgb(), [16, 8, 7, 11, 9, 0]);
}

/// The decoder indexes colours of three bytes; the last one is truncated.
#[cfg(target_os = "linux")]
#[test]
fn partial_palette_colour_is_an_error() {
    let size = 1_u32.to_be_bytes();
    let header = chunk(b"IHDR", &[&size[..], &size, &[8, 3, 0, 0, 0]].concat());
    let row = [0x78, 0x01, 0x01, 2, 0, 0xfd, 0xff, 0, 233, 0, 0xea, 0, 0xea];
    let parts = [header, chunk(b"PLTE", &[7; 700]), chunk(b"IDAT", &row), chunk(b"IEND", b"")];
    let bytes = [&b"\x89PNG\r\n\x1a\n"[..], &parts.concat()].concat();
    assert!(matches!(decode(&bytes), Err(Error::Invalid { format: "PNG", .. })), "{:?}", decode(&bytes));
}

#[cfg(target_os = "linux")]
#[test]
fn png_with_too_many_chunks_is_rejected() {
    let bytes = file("rgb_1x1.png");
    let texts = |count: usize| [&bytes[..33], &chunk(b"tEXt", b"k\0").repeat(count), &bytes[33..]].concat();
    assert!(decode(&texts(1000)).is_ok());
    let error = decode(&texts(1 << 16)).expect_err("too many").to_string();
    assert!(error.contains("more than 65,536 chunks"), "{error}");
}

//! Memory that decoding takes, in a process of its own.
#![cfg(target_os = "linux")]

mod support;

use lm_media::{DecodeLimits, Picture, PictureSize};
use support::{chunk, compressed_zeros, peak};

/// Sides of the picture.
const SIDE: usize = 3000;

/// A PNG file of 16-bit RGBA, black and rotated by its EXIF data.
fn rotated_png() -> Vec<u8> {
    let side = (SIDE as u32).to_be_bytes();
    let header = [&side[..], &side, &[16, 6, 0, 0, 0]].concat();
    let exif = b"MM\0*\0\0\0\x08\0\x01\x01\x12\0\x03\0\0\0\x01\0\x06\0\0\0\0\0\0";
    let rows = compressed_zeros(((1 + 8 * SIDE) * SIDE).div_ceil(258));
    let chunks = [chunk(b"IHDR", &header), chunk(b"eXIf", exif), chunk(b"IDAT", &rows), chunk(b"IEND", b"")];
    [&b"\x89PNG\r\n\x1a\n"[..], &chunks.concat()].concat()
}

/// The pixels are reduced to RGB in their buffer before they are rotated.
#[test]
fn a_rotated_picture_of_16_bits_takes_eight_bytes_a_pixel() {
    let bytes = rotated_png();
    let before = peak();
    let picture = Picture::decode(&bytes, &DecodeLimits::default()).expect("a picture");
    let taken = peak() - before;
    assert_eq!(picture.size(), PictureSize::new(SIDE, SIDE));
    let pixels = 8 * SIDE * SIDE;
    assert!(taken < pixels + (8 << 20), "{taken} bytes for {pixels}");
}

//! Memory that decoding takes, in a process of its own.
#![cfg(target_os = "linux")]

mod support;

use std::fs;
use std::sync::{Mutex, PoisonError};

use lm_media::{DecodeLimits, Image, ImageSize};
use support::chunk;

/// Sides of the image.
const SIDE: usize = 3000;

const ONE_PIXEL: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../testdata/media/rgb_1x1.png");

/// A zlib stream of zeros: a literal, and copies of 258 bytes in thirteen bits each.
fn compressed_zeros(copies: usize) -> Vec<u8> {
    // The last block, with the fixed code; codes are written from their highest bit on.
    let start = [true, true, false, false, false, true, true, false, false, false, false];
    let copy = [true, true, false, false, false, true, false, true, false, false, false, false, false];
    let bits: Vec<bool> =
        start.into_iter().chain(copy.into_iter().cycle().take(13 * copies)).chain([false; 7]).collect();
    let byte = |bits: &[bool]| bits.iter().rev().fold(0, |byte, &bit| byte << 1 | u8::from(bit));
    let adler = ((1 + 258 * copies as u32) % 65_521) << 16 | 1;
    [&[0x78, 0x9c][..], &bits.chunks(8).map(byte).collect::<Vec<_>>(), &adler.to_be_bytes()].concat()
}

/// A PNG file of 16-bit RGBA, black and rotated by its EXIF data.
fn rotated_png() -> Vec<u8> {
    let side = (SIDE as u32).to_be_bytes();
    let header = [&side[..], &side, &[16, 6, 0, 0, 0]].concat();
    let exif = b"MM\0*\0\0\0\x08\0\x01\x01\x12\0\x03\0\0\0\x01\0\x06\0\0\0\0\0\0";
    let rows = compressed_zeros(((1 + 8 * SIDE) * SIDE).div_ceil(258));
    let chunks = [chunk(b"IHDR", &header), chunk(b"eXIf", exif), chunk(b"IDAT", &rows), chunk(b"IEND", b"")];
    [&b"\x89PNG\r\n\x1a\n"[..], &chunks.concat()].concat()
}

/// Memory of the process in bytes: `VmRSS`, or its peak, `VmHWM`.
fn status(key: &str) -> usize {
    let status = fs::read_to_string("/proc/self/status").expect("the status of the process");
    let line = status.lines().find_map(|line| line.strip_prefix(key)).expect("the key");
    line.trim_matches(':').trim().trim_end_matches(" kB").parse::<usize>().expect("a number") << 10
}

/// Increase of peak memory by `work`, in bytes. One measurement runs at a time.
fn peak_of(work: impl FnOnce()) -> usize {
    static ALONE: Mutex<()> = Mutex::new(());
    let _alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
    fs::write("/proc/self/clear_refs", "5").expect("the peak can be reset");
    let before = status("VmRSS");
    work();
    status("VmHWM").saturating_sub(before)
}

/// The pixels are reduced to RGB in their buffer before they are rotated.
#[test]
fn rotated_16_bit_image_uses_8_bytes_per_pixel() {
    let bytes = rotated_png();
    let taken = peak_of(|| {
        let image = Image::decode(&bytes, &DecodeLimits::default()).expect("an image");
        assert_eq!(image.size(), ImageSize::new(SIDE, SIDE));
    });
    let pixels = 8 * SIDE * SIDE;
    assert!(taken < pixels + (8 << 20), "{taken} bytes for {pixels}");
}

/// A PNG file of one pixel with a colour profile of 200 MiB in 1.3 MiB.
#[test]
fn compressed_profile_of_a_small_image_uses_little_memory() {
    let (bytes, zeros) = (fs::read(ONE_PIXEL).expect("a file"), compressed_zeros((200 << 20) / 258));
    let profile = chunk(b"iCCP", &[b"profile\0\0", &zeros[..]].concat());
    let header = 8 + 25;
    let with = |chunk: &[u8]| [&bytes[..header], chunk, &bytes[header..]].concat();
    let small = with(&chunk(b"iCCP", &[b"profile\0\0", &compressed_zeros(9)[..]].concat()));
    let decode = |bytes: &[u8]| Image::decode(bytes, &DecodeLimits::default()).expect("an image");
    assert_eq!(decode(&small), decode(&bytes));
    let large = with(&profile);
    let taken = peak_of(|| drop(Image::decode(&large, &DecodeLimits::default())));
    assert!(taken < 64 << 20, "{taken} bytes");
}

/// A header of many pixels does not raise the memory of a profile above the limit.
#[test]
fn compressed_profile_of_a_large_image_uses_little_memory() {
    let (bytes, zeros) = (fs::read(ONE_PIXEL).expect("a file"), compressed_zeros((200 << 20) / 258));
    let side = 30_000_u32.to_be_bytes();
    let header = chunk(b"IHDR", &[&side[..], &side, &bytes[24..29]].concat());
    let profile = chunk(b"iCCP", &[b"profile\0\0", &zeros[..]].concat());
    let with = [&bytes[..8], &header, &profile, &bytes[33..]].concat();
    let limits = DecodeLimits { max_pixels: 1_000_000, ..DecodeLimits::default() };
    let taken = peak_of(|| assert!(Image::decode(&with, &limits).is_err()));
    assert!(taken < 64 << 20, "{taken} bytes");
}

//! An image file (PNG, JPEG, WebP, GIF, BMP): decoding within limits gives the pixels of the size in the
//! header, and the patches of each model family as many tokens as its size has, or an error.
#![no_main]

use libfuzzer_sys::fuzz_target;
use lm_media::families::{Gemma3, Gemma4, Lfm2Vl, QwenVl, SmolVlm};
use lm_media::{DecodeLimits, Error, Image, Patches, image_size};

/// Small images: the fuzzer looks for files, not for memory.
const LIMITS: DecodeLimits = DecodeLimits { max_bytes: 1 << 16, max_pixels: 1 << 14, max_side: 1 << 10 };

fuzz_target!(|bytes: &[u8]| {
    let size = image_size(bytes, &LIMITS);
    let image = match Image::decode(bytes, &LIMITS) {
        Ok(image) => image,
        // The header is read before the pixels.
        Err(Error::TooManyBytes { .. } | Error::TooManyPixels { .. } | Error::SideTooLong { .. }) => {
            assert!(size.is_err(), "{size:?}");
            return;
        }
        Err(_) => return,
    };
    assert_eq!(size.expect("a header"), image.size());
    check_size(&image);
    check_families(&image);
});

/// Checks the limits and the number of bytes.
fn check_size(image: &Image) {
    let size = image.size();
    assert!(size.width.max(size.height) <= LIMITS.max_side, "{size}");
    assert!(size.pixels() as u64 <= LIMITS.max_pixels, "{size}");
    assert_eq!(image.rgb().len(), 3 * size.pixels());
}

/// Checks the number of patches of each family, with settings that make few of them.
fn check_families(image: &Image) {
    let size = image.size();
    let gemma3 = Gemma3 { side: 28, ..Gemma3::default() };
    assert_eq!(gemma3.patches(image).expect("patches").values.len(), 28 * 28 * 3);
    let gemma4 = Gemma4 { budget: 9, ..Gemma4::default() };
    check(gemma4.tokens(size), gemma4.patches(image).map(|one| vec![one]), gemma4.pool);
    let qwen = QwenVl { min_pixels: 56, max_pixels: 1 << 14, ..QwenVl::default() };
    check(qwen.tokens(size), qwen.patches(image).map(|one| vec![one]), qwen.merge);
    let smol = SmolVlm { longest_edge: 64, tile: 32, patch: 8, scale: 2, ..SmolVlm::default() };
    check(smol.tokens(size), smol.patches(image), smol.scale);
    let lfm = Lfm2Vl { patch: 4, downsample: 2, image_tokens: 3..=16, tile: 32, ..Lfm2Vl::default() };
    check(lfm.tokens(size), lfm.patches(image), lfm.downsample);
}

/// Checks that a size is rejected if its image is, and that patches of a token's side `merge` match the
/// number of tokens.
fn check(tokens: Result<usize, Error>, views: Result<Vec<Patches>, Error>, merge: usize) {
    match (tokens, views) {
        (Ok(tokens), Ok(views)) => {
            let patches: usize = views.iter().map(|view| view.rows * view.columns).sum();
            assert_eq!(tokens * merge * merge, patches);
        }
        (Err(tokens), Err(views)) => assert_eq!(tokens.to_string(), views.to_string()),
        (tokens, views) => panic!("{tokens:?} tokens, {:?} views", views.map(|views| views.len())),
    }
}

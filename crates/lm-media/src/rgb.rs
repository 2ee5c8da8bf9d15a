//! Reduction of decoded pixels to 8-bit RGB, within their buffer: an image of 16 bits per colour is the
//! largest allocation of decoding.

use image::metadata::Orientation;
use image::{ColorType, DynamicImage, RgbImage};

use crate::size::ImageSize;

/// Converts pixels of type `color` to RGB bytes, dropping transparency but keeping the colours of transparent
/// pixels. `None` for an unused type.
pub(crate) fn into_rgb(color: ColorType, pixels: Vec<u8>) -> Option<Vec<u8>> {
    Some(match color {
        ColorType::L8 => reduced(pixels, |[grey]| [grey; 3]),
        ColorType::La8 => reduced(pixels, |[grey, _]| [grey; 3]),
        ColorType::Rgb8 => pixels,
        ColorType::Rgba8 => reduced(pixels, |[red, green, blue, _]| [red, green, blue]),
        ColorType::L16 => reduced(pixels, |grey| [u16::from_ne_bytes(grey).min(255) as u8; 3]),
        ColorType::La16 => reduced(pixels, |[a, b, _, _]| [upper([a, b]); 3]),
        ColorType::Rgb16 => reduced(pixels, |[a, b, c, d, e, f]| [[a, b], [c, d], [e, f]].map(upper)),
        ColorType::Rgba16 => reduced(pixels, |[a, b, c, d, e, f, _, _]| [[a, b], [c, d], [e, f]].map(upper)),
        _ => return None,
    })
}

/// Converts grey pixels of a PNG file to RGB bytes. With a transparent colour the decoder adds transparency;
/// 16 bits stay a grey value.
pub(crate) fn grey16(color: ColorType, pixels: Vec<u8>) -> Option<Vec<u8>> {
    match color {
        ColorType::La16 => {
            Some(reduced(pixels, |[a, b, _, _]| [u16::from_ne_bytes([a, b]).min(255) as u8; 3]))
        }
        _ => into_rgb(color, pixels),
    }
}

fn upper(value: [u8; 2]) -> u8 {
    (u16::from_ne_bytes(value) >> 8) as u8
}

/// Replaces each pixel of `N` bytes by three, in place. Larger pixels are read from the front, so that writes
/// stay behind reads; smaller ones are read from the end.
fn reduced<const N: usize>(mut pixels: Vec<u8>, rgb: impl Fn([u8; N]) -> [u8; 3]) -> Vec<u8> {
    let count = pixels.len() / N;
    pixels.resize(pixels.len().max(3 * count), 0);
    let mut replace = |index: usize| {
        let pixel = pixels[N * index..].first_chunk().expect("`count` pixels of `N` bytes");
        let pixel = rgb(*pixel);
        pixels[3 * index..][..3].copy_from_slice(&pixel);
    };
    match N >= 3 {
        true => (0..count).for_each(&mut replace),
        false => (0..count).rev().for_each(&mut replace),
    }
    pixels.truncate(3 * count);
    pixels.shrink_to_fit();
    pixels
}

/// Returns the size of an image after a rotation or mirroring.
pub(crate) fn oriented_size(size: ImageSize, orientation: Orientation) -> ImageSize {
    use Orientation::{Rotate90, Rotate90FlipH, Rotate270, Rotate270FlipH};
    match orientation {
        Rotate90 | Rotate270 | Rotate90FlipH | Rotate270FlipH => ImageSize::new(size.height, size.width),
        _ => size,
    }
}

/// Rotates or mirrors RGB bytes of an image of `width` by `height` pixels. `None` if there are fewer bytes.
pub(crate) fn oriented(
    (width, height): (u32, u32),
    rgb: Vec<u8>,
    orientation: Orientation,
) -> Option<Vec<u8>> {
    let mut image = DynamicImage::ImageRgb8(RgbImage::from_raw(width, height, rgb)?);
    image.apply_orientation(orientation);
    Some(image.into_rgb8().into_raw())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_pixel_type_converts_to_rgb() {
        let words = |values: &[u16]| values.iter().flat_map(|value| value.to_ne_bytes()).collect::<Vec<u8>>();
        for (color, pixels, expected) in [
            (ColorType::L8, vec![1, 2], [1, 1, 1, 2, 2, 2]),
            (ColorType::La8, vec![1, 9, 2, 9], [1, 1, 1, 2, 2, 2]),
            (ColorType::Rgb8, vec![1, 2, 3, 4, 5, 6], [1, 2, 3, 4, 5, 6]),
            (ColorType::Rgba8, vec![1, 2, 3, 9, 4, 5, 6, 9], [1, 2, 3, 4, 5, 6]),
            (ColorType::L16, words(&[7, 300]), [7, 7, 7, 255, 255, 255]),
            (ColorType::La16, words(&[0x1ff, 9, 0x200, 9]), [1, 1, 1, 2, 2, 2]),
            (ColorType::Rgb16, words(&[0x1ff, 0x200, 0x300, 0x400, 0x500, 0x600]), [1, 2, 3, 4, 5, 6]),
            (ColorType::Rgba16, words(&[0x1ff, 0x200, 0x300, 9, 0x400, 0x500, 0x600, 9]), [1, 2, 3, 4, 5, 6]),
        ] {
            assert_eq!(into_rgb(color, pixels).expect("a known type"), expected, "{color:?}");
        }
        assert!(into_rgb(ColorType::Rgb32F, vec![0; 12]).is_none());
    }
}

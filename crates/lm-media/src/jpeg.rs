//! Segments of JPEG files: their end, metadata and colours, as Pillow reads them.

use std::borrow::Cow;

use crate::contents::Contents;
use crate::orientation::{EXIF_PREFIX, Metadata};

const START_OF_SCAN: u8 = 0xda;
const APP0: u8 = 0xe0;
const APP1: u8 = 0xe1;
const APP14: u8 = 0xee;
/// Offset of the transform in Adobe's segment.
const ADOBE_TRANSFORM: usize = 11;
const XMP_PREFIX: &[u8] = b"http://ns.adobe.com/xap/1.0/\0";

/// Checks that the file does not end within its pixels, which the decoder would fill with grey: after the
/// first start of scan there must be an end of image.
pub(crate) fn contents(bytes: &[u8]) -> Result<Contents<'_>, &'static str> {
    const END_OF_IMAGE: [u8; 2] = [0xff, 0xd9];
    let mut found = Found::default();
    for (marker, data, rest) in segments(bytes) {
        match marker {
            START_OF_SCAN if !rest.windows(2).any(|pair| pair == END_OF_IMAGE) => {
                return Err("it is truncated");
            }
            START_OF_SCAN => break,
            _ => found.add(marker, data, bytes.len() - rest.len()),
        }
    }
    Ok(found.contents(bytes))
}

/// Metadata and colour marks of a file.
#[derive(Default)]
struct Found<'a> {
    exif: Vec<u8>,
    xmp: Option<&'a [u8]>,
    is_jfif: bool,
    components: u8,
    /// Offset of Adobe's mark for RGB colours.
    adobe_rgb: Option<usize>,
}

impl<'a> Found<'a> {
    fn add(&mut self, marker: u8, data: &'a [u8], at: usize) {
        match marker {
            // EXIF data may be longer than a segment.
            APP1 => match (data.strip_prefix(EXIF_PREFIX), data.strip_prefix(XMP_PREFIX)) {
                (Some(part), _) => self.exif.extend_from_slice(part),
                (_, Some(xmp)) => self.xmp = Some(xmp),
                _ => {}
            },
            APP0 => self.is_jfif |= data.starts_with(b"JFIF\0") && data.len() >= 14,
            APP14 if data.starts_with(b"Adobe") && data.get(ADOBE_TRANSFORM) == Some(&0) => {
                self.adobe_rgb = Some(at + 4 + ADOBE_TRANSFORM);
            }
            // Tables of codes and the like have markers among those of frames.
            0xc4 | 0xc8 | 0xcc => {}
            0xc0..=0xcf => self.components = data.get(5).copied().unwrap_or(0),
            _ => {}
        }
    }

    /// JFIF files have YCbCr regardless of Adobe's mark, as in libjpeg; the decoder prefers the mark.
    fn contents(self, bytes: &'a [u8]) -> Contents<'a> {
        let metadata = Metadata { exif: Some(self.exif.into()), xmp: self.xmp.map(Cow::from) };
        let mut contents = Contents { metadata, ..Contents::plain(bytes) };
        if let Some(at) = self.adobe_rgb.filter(|_| self.is_jfif && self.components == 3) {
            contents.bytes.to_mut()[at] = 1;
        }
        contents
    }
}

/// Marker and data of each segment, which may hold an image of its own, and the bytes from the marker on.
fn segments(bytes: &[u8]) -> impl Iterator<Item = (u8, &[u8], &[u8])> {
    let mut rest = bytes.get(2..).unwrap_or_default();
    std::iter::from_fn(move || {
        // Fill bytes may precede a marker.
        while let [0xff, 0xff, ..] = rest {
            rest = &rest[1..];
        }
        let &[0xff, marker, high, low, ref data @ ..] = rest else { return None };
        let segment = rest;
        let len = usize::from(u16::from_be_bytes([high, low])).saturating_sub(2).min(data.len());
        rest = &data[len..];
        Some((marker, &data[..len], segment))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn jfif_sets_colours_only_for_three_components() {
        let segment = |marker, data: &[u8]| {
            [&[0xff, marker][..], &(data.len() as u16 + 2).to_be_bytes(), data].concat()
        };
        for components in [1, 3, 4] {
            let bytes = [
                vec![0xff, 0xd8],
                segment(APP0, b"JFIF\0\x01\x01\0\0\x01\0\x01\0\0"),
                segment(APP14, b"Adobe\0\x64\0\0\0\0\0"),
                segment(0xc0, &[8, 0, 1, 0, 1, components]),
                segment(START_OF_SCAN, &[]),
                vec![0xff, 0xd9],
            ]
            .concat();
            let found = contents(&bytes).expect("a whole file");
            assert_eq!(found.bytes[..] != bytes[..], components == 3, "{components}");
        }
    }
}

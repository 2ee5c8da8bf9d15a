//! Segments of JPEG files: their end and their metadata, as Pillow reads them.

use crate::decode::Contents;
use crate::orientation::{EXIF_PREFIX, Metadata};

const START_OF_SCAN: u8 = 0xda;
const APP1: u8 = 0xe1;
const XMP_PREFIX: &[u8] = b"http://ns.adobe.com/xap/1.0/\0";

/// Checks that the file does not break off within its pixels, which the decoder takes as grey: after the first start of scan there is an end
/// of image.
pub(crate) fn contents(bytes: &[u8]) -> Result<Contents<'_>, &'static str> {
    const END_OF_IMAGE: [u8; 2] = [0xff, 0xd9];
    let (mut exif, mut metadata) = (Vec::new(), Metadata::default());
    for (marker, data, rest) in segments(bytes) {
        match marker {
            START_OF_SCAN if !rest.windows(2).any(|pair| pair == END_OF_IMAGE) => {
                return Err("it is truncated");
            }
            START_OF_SCAN => break,
            // EXIF data may be longer than a segment.
            APP1 => match (data.strip_prefix(EXIF_PREFIX), data.strip_prefix(XMP_PREFIX)) {
                (Some(part), _) => exif.extend_from_slice(part),
                (_, Some(xmp)) => metadata.xmp = Some(xmp.into()),
                _ => {}
            },
            _ => {}
        }
    }
    metadata.exif = Some(exif.into());
    Ok(Contents { metadata, ..Contents::plain(bytes) })
}

/// Marker and data of each segment, which may hold a picture of its own, and the bytes from the marker on.
fn segments(bytes: &[u8]) -> impl Iterator<Item = (u8, &[u8], &[u8])> {
    let mut rest = bytes.get(2..).unwrap_or_default();
    std::iter::from_fn(move || {
        // Fill bytes may come before a marker.
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

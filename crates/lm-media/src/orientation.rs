//! Orientation of an image as in `ImageOps.exif_transpose` of Pillow 12.3: from EXIF data, or from XMP data
//! if EXIF data has none.

use std::borrow::Cow;

use image::metadata::Orientation;

/// Data of a file beside its pixels.
#[derive(Default)]
pub(crate) struct Metadata<'a> {
    /// A TIFF file without pixels, with or without a prefix.
    pub exif: Option<Cow<'a, [u8]>>,
    /// XML.
    pub xmp: Option<Cow<'a, [u8]>>,
}

impl Metadata<'_> {
    /// Returns the rotation that makes the image upright; the identity if the data specify none or are
    /// damaged.
    pub(crate) fn orientation(&self) -> Orientation {
        let in_exif = self.exif.as_deref().and_then(in_exif);
        let value = in_exif.or_else(|| self.xmp.as_deref().and_then(in_xmp));
        let known = value.and_then(|value| Orientation::from_exif(u8::try_from(value).ok()?));
        known.unwrap_or(Orientation::NoTransforms)
    }
}

/// Prefix of EXIF data in JPEG and some other files.
pub(crate) const EXIF_PREFIX: &[u8] = b"Exif\0\0";

/// Value of the tag in EXIF data; 0 for one of a type that is not a whole number.
fn in_exif(mut bytes: &[u8]) -> Option<u64> {
    const ORIENTATION: u64 = 0x0112;
    while let Some(rest) = bytes.strip_prefix(EXIF_PREFIX) {
        bytes = rest;
    }
    let tiff = Tiff::open(bytes)?;
    let directory = tiff.number(4, 4)?;
    let entries = 0..tiff.number(directory, 2)?;
    // A directory that breaks off ends there. The last of several values counts.
    let entries = entries.map_while(|index| tiff.entry(directory + 2 + 12 * index)).flatten();
    entries.filter(|(tag, _)| *tag == ORIENTATION).map(|(_, value)| value).last()
}

/// Bytes of a value by type; 0 for an unknown type.
const UNITS: [u64; 17] = [0, 1, 1, 2, 4, 8, 1, 1, 2, 4, 8, 4, 8, 4, 0, 0, 8];
/// Types of whole numbers; bytes are text.
const WHOLE: [u64; 7] = [3, 4, 6, 8, 9, 13, 16];

struct Tiff<'a> {
    bytes: &'a [u8],
    is_little_endian: bool,
}

impl<'a> Tiff<'a> {
    fn open(bytes: &'a [u8]) -> Option<Self> {
        let (order, magic) = bytes.first_chunk::<4>()?.split_at(2);
        let is_tiff = matches!(order, b"II" | b"MM") && matches!(magic, [0, 42] | [42, 0]);
        is_tiff.then_some(Self { bytes, is_little_endian: order == b"II" })
    }

    fn at(&self, at: u64, len: u64) -> Option<&'a [u8]> {
        let (start, end) = (usize::try_from(at).ok()?, usize::try_from(at.checked_add(len)?).ok()?);
        self.bytes.get(start..end)
    }

    /// An unsigned number of up to eight bytes.
    fn number(&self, at: u64, len: u64) -> Option<u64> {
        let append = |number: u64, byte: &u8| number << 8 | u64::from(*byte);
        let bytes = self.at(at, len)?;
        Some(match self.is_little_endian {
            true => bytes.iter().rev().fold(0, append),
            false => bytes.iter().fold(0, append),
        })
    }

    /// Tag and first value of an entry; `Some(None)` for one without values.
    fn entry(&self, at: u64) -> Option<Option<(u64, u64)>> {
        self.at(at, 12)?;
        let [tag, kind] = [self.number(at, 2)?, self.number(at + 2, 2)?];
        let unit = UNITS.get(kind as usize).copied().unwrap_or(0);
        let size = unit * self.number(at + 4, 4)?;
        let place = if size > 4 { self.number(at + 8, 4)? } else { at + 8 };
        self.at(place, size)?;
        let value = if WHOLE.contains(&kind) { self.number(place, unit)? } else { 0 };
        Some((size > 0).then_some((tag, value)))
    }
}

/// First value of an attribute or an element in XMP data.
fn in_xmp(bytes: &[u8]) -> Option<u64> {
    let value = |at| {
        let rest = bytes[at..].strip_prefix(b"tiff:Orientation".as_slice())?;
        let rest = rest.strip_prefix(b"=\"".as_slice()).or_else(|| rest.strip_prefix(b">".as_slice()))?;
        rest.first().filter(|byte| byte.is_ascii_digit()).map(|digit| u64::from(digit - b'0'))
    };
    (0..bytes.len()).find_map(value)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn exif_prefixes_are_skipped() {
        let tiff = b"MM\0*\0\0\0\x08\0\x01\x01\x12\0\x03\0\0\0\x01\0\x06\0\0\0\0\0\0";
        for prefixes in 0..3 {
            let exif = [EXIF_PREFIX.repeat(prefixes), tiff.to_vec()].concat();
            assert_eq!(in_exif(&exif), Some(6), "{prefixes}");
        }
    }
}

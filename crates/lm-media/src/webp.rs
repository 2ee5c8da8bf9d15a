//! Metadata of WebP files, read as in libwebp.

use crate::contents::Contents;
use crate::orientation::Metadata;

/// The first chunks of EXIF and XMP data, if the header announces them.
pub(crate) fn contents(bytes: &[u8]) -> Result<Contents<'_>, &'static str> {
    const HAS_EXIF: u8 = 0x08;
    const HAS_XMP: u8 = 0x04;
    let chunk = |name| chunks(bytes).find(|(found, _)| found == name).map(|(_, data)| data);
    let flags = chunk(b"VP8X").and_then(|header| header.first()).copied().unwrap_or(0);
    let announced = |flag, name| chunk(name).filter(|_| flags & flag != 0).map(Into::into);
    let metadata = Metadata { exif: announced(HAS_EXIF, b"EXIF"), xmp: announced(HAS_XMP, b"XMP ") };
    Ok(Contents { metadata, ..Contents::plain(bytes) })
}

/// Name and data of each chunk.
fn chunks(bytes: &[u8]) -> impl Iterator<Item = ([u8; 4], &[u8])> {
    let mut rest = bytes.get(12..).unwrap_or_default();
    std::iter::from_fn(move || {
        let (name, after) = rest.split_first_chunk::<4>()?;
        let (len, after) = after.split_first_chunk::<4>()?;
        let len = u32::from_le_bytes(*len) as usize;
        let data = after.get(..len)?;
        rest = after.get(len.checked_next_multiple_of(2)?..).unwrap_or_default();
        Some((*name, data))
    })
}

//! Headers of WAV files for the decoder: unknown lengths, and lengths of RF64 files above 4 GiB.

use std::borrow::Cow;
use std::ops::RangeInclusive;

/// Lengths that programs write for streams of unknown length: the maximum of 31 and of 32 bits, less a header
/// or a block.
const UNKNOWN: [RangeInclusive<u32>; 2] = [0x7fff_f000..=0x8000_0000, 0xffff_f000..=u32::MAX];

/// Returns true for the start of a RIFF or RF64 file (EBU Tech 3306).
pub(crate) fn begins(bytes: &[u8]) -> bool {
    bytes.starts_with(b"RIFF") || bytes.starts_with(b"RF64")
}

/// Returns the file as RIFF with the length of its samples: from the first chunk of an RF64 file, or up to
/// the end of the file for a stream.
pub(crate) fn with_length(bytes: &[u8]) -> Cow<'_, [u8]> {
    let Some((at, declared)) = chunk(bytes, b"data") else { return bytes.into() };
    let rest = u32::try_from(bytes.len() - at).unwrap_or(u32::MAX);
    let long = chunk(bytes, b"ds64").filter(|_| bytes.starts_with(b"RF64"));
    // After the length of the file.
    let long = long.and_then(|(at, _)| Some(u64::from_le_bytes(*bytes.get(at + 8..)?.first_chunk()?)));
    let length = match long {
        // The decoder treats the maximum as unknown.
        Some(length) => u32::try_from(length).unwrap_or(u32::MAX).min(u32::MAX - 1),
        None if UNKNOWN.iter().any(|lengths| lengths.contains(&declared)) => rest,
        None => declared,
    };
    if length == declared && bytes.starts_with(b"RIFF") {
        return bytes.into();
    }
    let mut file = bytes.to_vec();
    file[..8].copy_from_slice(b"RIFF\xff\xff\xff\xff");
    file[at - 4..at].copy_from_slice(&length.to_le_bytes());
    file.into()
}

/// Offset and length of the first chunk with this name; the search ends at the samples.
fn chunk(bytes: &[u8], name: &[u8; 4]) -> Option<(usize, u32)> {
    let mut at = 12_usize;
    loop {
        let (found, after) = bytes.get(at..)?.split_first_chunk::<4>()?;
        let len = u32::from_le_bytes(*after.first_chunk()?);
        if found == name {
            return Some((at + 8, len));
        }
        if found == b"data" {
            return None;
        }
        let padded = usize::try_from(u64::from(len).next_multiple_of(2)).ok()?;
        at = at.checked_add(8)?.checked_add(padded)?;
    }
}

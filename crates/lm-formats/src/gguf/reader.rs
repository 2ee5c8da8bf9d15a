//! Bounds-checked cursor over a file's bytes.

use super::GgufProblem;

type Result<T> = std::result::Result<T, GgufProblem>;

/// Reads little-endian values in sequence; a read beyond the end is an error.
#[derive(Clone)]
pub(super) struct Reader<'a> {
    bytes: &'a [u8],
    position: usize,
}

impl<'a> Reader<'a> {
    /// Starts at the first byte.
    pub(super) fn new(bytes: &'a [u8]) -> Self {
        Self { bytes, position: 0 }
    }

    /// Starts at `position`, clamped to the end.
    pub(super) fn at(bytes: &'a [u8], position: usize) -> Self {
        Self { bytes, position: position.min(bytes.len()) }
    }

    /// Offset of the next value.
    pub(super) fn position(&self) -> usize {
        self.position
    }

    /// Remaining bytes.
    pub(super) fn left(&self) -> usize {
        self.bytes.len() - self.position
    }

    /// Reads the next `count` bytes; `what` names them in errors.
    pub(super) fn bytes(&mut self, what: &'static str, count: u64) -> Result<&'a [u8]> {
        let (at, left) = (self.position, self.left());
        let taken = usize::try_from(count).ok().filter(|&count| count <= left);
        let Some(taken) = taken else {
            return Err(GgufProblem::Truncated { what, at, needed: count, left });
        };
        self.position += taken;
        Ok(&self.bytes[at..at + taken])
    }

    pub(super) fn array<const N: usize>(&mut self, what: &'static str) -> Result<[u8; N]> {
        let bytes = self.bytes(what, N as u64)?;
        Ok(*bytes.first_chunk().expect("as many bytes as were asked for"))
    }

    pub(super) fn u32(&mut self, what: &'static str) -> Result<u32> {
        Ok(u32::from_le_bytes(self.array(what)?))
    }

    pub(super) fn u64(&mut self, what: &'static str) -> Result<u64> {
        Ok(u64::from_le_bytes(self.array(what)?))
    }

    /// Reads the bytes of a length-prefixed string.
    pub(super) fn text(&mut self, what: &'static str) -> Result<&'a [u8]> {
        let length = self.u64(what)?;
        self.bytes(what, length)
    }

    /// Reads a UTF-8 string.
    pub(super) fn str(&mut self, what: &'static str) -> Result<&'a str> {
        let text = self.text(what)?;
        let at = self.position - text.len();
        std::str::from_utf8(text).map_err(|_| GgufProblem::NotUtf8 { what, at })
    }
}

/// Checks a count before any allocation: each item takes at least `least` of the bytes `left`.
pub(super) fn check_count(
    what: &'static str,
    got: u64,
    least: usize,
    left: usize,
    most: u64,
) -> Result<usize> {
    let limit = most.min((left / least) as u64);
    if got > limit {
        return Err(GgufProblem::TooMany { what, got, limit });
    }
    Ok(got as usize)
}

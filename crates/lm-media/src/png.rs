//! Chunks of PNG files: checksums, end and metadata, read as in Pillow.

use std::borrow::Cow;
use std::io::Read;

use flate2::Crc;
use flate2::read::ZlibDecoder;

use crate::contents::Contents;
use crate::orientation::Metadata;
use crate::rgb::grey16;

const SIGNATURE: &[u8] = b"\x89PNG\r\n\x1a\n";

/// Maximum number of chunks of a file. The decoder keeps texts and counts only their bytes, so that millions
/// of empty texts would take hundreds of megabytes; pixels are in chunks of kilobytes.
const MOST_CHUNKS: usize = 1 << 16;

/// Checks that Pillow has and the decoder lacks: checksums before the pixels, and complete chunks after them.
/// A file may end without its last chunk.
pub(crate) fn contents(bytes: &[u8]) -> Result<Contents<'_>, &'static str> {
    let (mut found, mut has_pixels, mut end) = (Found::default(), false, SIGNATURE.len());
    for (index, chunk) in chunks(bytes).enumerate() {
        if index == MOST_CHUNKS {
            return Err("it has more than 65,536 chunks");
        }
        has_pixels |= chunk.name == b"IDAT";
        match (chunk.data, chunk.checksum) {
            _ if !is_name(chunk.name) && has_pixels => break,
            _ if !is_name(chunk.name) => return Err("a chunk has no name"),
            (None, _) if has_pixels => return Err("it is truncated"),
            (Some(data), Some(sum)) if !has_pixels && sum != checksum(chunk.name, data) => {
                return Err("a chunk has a wrong checksum");
            }
            (Some(_), _) if chunk.name == b"IEND" => return Ok(found.contents(bytes.into())),
            (Some(data), _) => found.add(chunk.name, data),
            (None, _) => break,
        }
        if chunk.checksum.is_some() {
            end = chunk.end;
        }
    }
    // The decoder requires a last chunk after the pixels.
    let file = if has_pixels { with_end(&bytes[..end]).into() } else { bytes.into() };
    Ok(found.contents(file))
}

fn is_name(bytes: &[u8]) -> bool {
    bytes.iter().all(|byte| byte.is_ascii_alphanumeric() || *byte == b'_')
}

fn with_end(bytes: &[u8]) -> Vec<u8> {
    [bytes, &0_u32.to_be_bytes(), b"IEND", &checksum(b"IEND", b"").to_be_bytes()].concat()
}

struct Chunk<'a> {
    name: &'a [u8],
    /// `None` where the file ends before.
    data: Option<&'a [u8]>,
    checksum: Option<u32>,
    /// Place of the next chunk.
    end: usize,
}

fn chunks(bytes: &[u8]) -> impl Iterator<Item = Chunk<'_>> {
    let mut at = SIGNATURE.len();
    std::iter::from_fn(move || {
        let word = |at: usize| Some(u32::from_be_bytes(*bytes.get(at..)?.first_chunk()?));
        let (len, name) = (word(at)? as usize, bytes.get(at + 4..at + 8)?);
        let data_end = (at + 8).saturating_add(len);
        let data = bytes.get(at + 8..data_end);
        at = data_end.saturating_add(4);
        Some(Chunk { name, data, checksum: word(data_end), end: at })
    })
}

/// Maximum size of metadata that are decompressed or read as digits.
const LONGEST_TEXT: usize = 2 << 20;

/// Metadata of a file; the last of several counts.
#[derive(Default)]
struct Found<'a> {
    exif: Option<&'a [u8]>,
    /// EXIF data in digits, as older programs write them.
    raw_exif: Option<Text<'a>>,
    xmp: Option<Text<'a>>,
    is_grey: bool,
}

impl<'a> Found<'a> {
    fn add(&mut self, name: &[u8], data: &'a [u8]) {
        const COLOR_TYPE: usize = 9;
        match (name, text(name, data)) {
            (b"IHDR", _) => self.is_grey = data.get(COLOR_TYPE) == Some(&0),
            (b"eXIf", _) => self.exif = Some(data),
            (_, Some((b"Raw profile type exif", text))) => self.raw_exif = Some(text),
            (_, Some((b"XML:com.adobe.xmp", text))) => self.xmp = Some(text),
            _ => {}
        }
    }

    fn contents(self, bytes: Cow<'a, [u8]>) -> Contents<'a> {
        let is_short = |text: &Cow<'_, [u8]>| text.len() <= LONGEST_TEXT;
        let raw =
            || self.raw_exif?.bytes().filter(is_short).and_then(|text| from_digits(&text)).map(Cow::from);
        let exif = self.exif.map(Cow::from).or_else(raw);
        let metadata = Metadata { exif, xmp: self.xmp.and_then(Text::bytes) };
        let plain = Contents { bytes, metadata, ..Contents::plain(&[]) };
        if self.is_grey { Contents { reduce: grey16, ..plain } } else { plain }
    }
}

#[derive(Clone, Copy)]
enum Text<'a> {
    Plain(&'a [u8]),
    Compressed(&'a [u8]),
}

impl<'a> Text<'a> {
    fn bytes(self) -> Option<Cow<'a, [u8]>> {
        match self {
            Self::Plain(bytes) => Some(bytes.into()),
            Self::Compressed(bytes) => decompressed(bytes).map(Cow::from),
        }
    }
}

/// Keyword and text of a chunk of text.
fn text<'a>(name: &[u8], data: &'a [u8]) -> Option<(&'a [u8], Text<'a>)> {
    if !name.ends_with(b"Xt") {
        return None;
    }
    let (keyword, rest) = split(data)?;
    let text = match (name, rest) {
        (b"tEXt", _) => Text::Plain(rest),
        (b"zTXt", [0, compressed @ ..]) => Text::Compressed(compressed),
        // After the language and a translated keyword.
        (b"iTXt", [0, _, rest @ ..]) => Text::Plain(split(split(rest)?.1)?.1),
        (b"iTXt", [_, 0, rest @ ..]) => Text::Compressed(split(split(rest)?.1)?.1),
        _ => return None,
    };
    Some((keyword, text))
}

/// Returns the bytes before and after the first zero.
fn split(bytes: &[u8]) -> Option<(&[u8], &[u8])> {
    let end = bytes.iter().position(|byte| *byte == 0)?;
    Some((&bytes[..end], &bytes[end + 1..]))
}

/// Decompresses a zlib stream; `None` for more than 2 MiB.
fn decompressed(bytes: &[u8]) -> Option<Vec<u8>> {
    let mut text = Vec::new();
    ZlibDecoder::new(bytes).take(LONGEST_TEXT as u64 + 1).read_to_end(&mut text).ok()?;
    (text.len() <= LONGEST_TEXT).then_some(text)
}

/// Decodes a text with lines for a name, the number of bytes, and the bytes in hexadecimal.
fn from_digits(text: &[u8]) -> Option<Vec<u8>> {
    let lines = text.split(|byte| *byte == b'\n').skip(3).flatten();
    let digits = lines.filter(|byte| !byte.is_ascii_whitespace());
    let digits: Vec<u32> = digits.map(|byte| char::from(*byte).to_digit(16)).collect::<Option<_>>()?;
    let pairs = digits.as_chunks::<2>();
    pairs.1.is_empty().then(|| pairs.0.iter().map(|[high, low]| (high << 4 | low) as u8).collect())
}

/// CRC-32 of the name and the data of a chunk.
fn checksum(name: &[u8], data: &[u8]) -> u32 {
    let mut sum = Crc::new();
    sum.update(name);
    sum.update(data);
    sum.sum()
}

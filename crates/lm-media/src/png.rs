//! Chunks of PNG files: their checksums, their end and their metadata, as Pillow reads them.

use std::borrow::Cow;
use std::io::Cursor;

use image::ImageDecoder;
use image::codecs::png::PngDecoder;

use crate::decode::Contents;
use crate::orientation::Metadata;
use crate::rgb::grey16;

const SIGNATURE: &[u8] = b"\x89PNG\r\n\x1a\n";

/// Checks what Pillow checks and the decoder does not: checksums before the pixels, and that no chunk after them breaks off. A file may end
/// without its last chunk.
pub(crate) fn contents(bytes: &[u8]) -> Result<Contents<'_>, &'static str> {
    let (mut found, mut has_pixels, mut end) = (Found::default(), false, SIGNATURE.len());
    for chunk in chunks(bytes) {
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
    // The decoder wants a last chunk after the pixels.
    let file = if has_pixels { with_end(&bytes[..end]).into() } else { bytes.into() };
    Ok(found.contents(file))
}

fn is_name(bytes: &[u8]) -> bool {
    bytes.iter().all(|byte| byte.is_ascii_alphanumeric() || *byte == b'_')
}

fn with_end(bytes: &[u8]) -> Vec<u8> {
    [bytes, &written(b"IEND", b"")].concat()
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

/// Longest EXIF data in digits, as long as a compressed one may be.
const LONGEST_TEXT: usize = 2 << 20;

/// Metadata that were found; the last of several counts.
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

/// The bytes before and after the first zero.
fn split(bytes: &[u8]) -> Option<(&[u8], &[u8])> {
    let end = bytes.iter().position(|byte| *byte == 0)?;
    Some((&bytes[..end], &bytes[end + 1..]))
}

/// The bytes of a zlib stream, at most 2 MiB. The decoder decompresses texts, but gives only those of some keywords: it is shown a picture of
/// one pixel with this text under one of them.
fn decompressed(bytes: &[u8]) -> Option<Vec<u8>> {
    let header = written(b"IHDR", &[0, 0, 0, 1, 0, 0, 0, 1, 8, 0, 0, 0, 0]);
    let text = written(b"zTXt", &[b"Raw profile type iptc\0\0", bytes].concat());
    let file = [SIGNATURE, &header, &text, &written(b"IDAT", b"")].concat();
    PngDecoder::new(Cursor::new(file)).ok()?.iptc_metadata().ok()?
}

/// Bytes of a text of a name, their number and digits of base 16, in lines.
fn from_digits(text: &[u8]) -> Option<Vec<u8>> {
    let lines = text.split(|byte| *byte == b'\n').skip(3).flatten();
    let digits = lines.filter(|byte| !byte.is_ascii_whitespace());
    let digits: Vec<u32> = digits.map(|byte| char::from(*byte).to_digit(16)).collect::<Option<_>>()?;
    let pairs = digits.as_chunks::<2>();
    pairs.1.is_empty().then(|| pairs.0.iter().map(|[high, low]| (high << 4 | low) as u8).collect())
}

/// A chunk as bytes.
fn written(name: &[u8; 4], data: &[u8]) -> Vec<u8> {
    let sum = checksum(name, data).to_be_bytes();
    [&(data.len() as u32).to_be_bytes(), &name[..], data, &sum].concat()
}

/// CRC-32 of the name and the data of a chunk.
fn checksum(name: &[u8], data: &[u8]) -> u32 {
    let step = |sum: u32, byte: &u8| CRC[usize::from(sum as u8 ^ byte)] ^ sum >> 8;
    !name.iter().chain(data).fold(u32::MAX, step)
}

/// Remainders of the bytes by CRC-32's polynomial.
const CRC: [u32; 256] = {
    let mut table = [0; 256];
    let mut byte = 0;
    while byte < 256 {
        let (mut sum, mut bit) = (byte as u32, 0);
        while bit < 8 {
            sum = if sum & 1 == 1 { sum >> 1 ^ 0xedb8_8320 } else { sum >> 1 };
            bit += 1;
        }
        table[byte] = sum;
        byte += 1;
    }
    table
};

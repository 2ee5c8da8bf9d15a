//! Text files of any encoding.

use chardetng::{EncodingDetector, Iso2022JpDetection, Utf8Detection};
use encoding_rs::{Encoding, UTF_8};

use crate::error::{Error, Result};

/// Decodes a text: by its byte order mark, as UTF-8, or in the encoding that its bytes suggest. Returns the
/// text with `\n` as line breaks, and the name of its encoding unless that is UTF-8.
pub(crate) fn decode(bytes: &[u8]) -> Result<(String, Option<&'static str>)> {
    let marked = Encoding::for_bom(bytes).map(|(encoding, _)| encoding);
    let encoding = match (marked, std::str::from_utf8(bytes)) {
        (Some(encoding), _) => encoding,
        (None, _) if bytes.contains(&0) => {
            return Err(Error::NotText("it has bytes of value 0".to_owned()));
        }
        (None, Ok(_)) => UTF_8,
        (None, Err(_)) => {
            let mut detector = EncodingDetector::new(Iso2022JpDetection::Deny);
            detector.feed(bytes, true);
            detector.guess(None, Utf8Detection::Deny)
        }
    };
    let (text, _) = encoding.decode_with_bom_removal(bytes);
    let text = text.replace("\r\n", "\n").replace('\r', "\n");
    let control = text.chars().filter(|c| c.is_control() && !c.is_whitespace() && *c != '\x1b').count();
    if control * 20 > text.len() {
        return Err(Error::NotText(format!("{control} of its characters are control characters")));
    }
    Ok((text, Some(encoding.name()).filter(|_| encoding != UTF_8)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_of_any_encoding_is_read() {
        for (bytes, text, encoding) in [
            (&b"a\r\nb\rc\r\r\n"[..], "a\nb\nc\n\n", None),
            (b"\xef\xbb\xbfname,caf\xc3\xa9", "name,café", None),
            (b"\xff\xfea\0\n\0", "a\n", Some("UTF-16LE")),
            (b"\xfe\xff\0a", "a", Some("UTF-16BE")),
            (b"Gr\xf6\xdfe in \x80", "Größe in €", Some("windows-1252")),
            (
                b"\xcf\xf0\xe8\xe2\xe5\xf2, \xea\xe0\xea \xe4\xe5\xeb\xe0?",
                "Привет, как дела?",
                Some("windows-1251"),
            ),
            (
                b"\x93\xfa\x96{\x8c\xea\x82\xcc\x83e\x83L\x83X\x83g\x82\xc5\x82\xb7\x81B",
                "日本語のテキストです。",
                Some("Shift_JIS"),
            ),
            (b"", "", None),
        ] {
            assert_eq!(decode(bytes).expect("a text"), (text.to_owned(), encoding), "{text}");
        }
    }

    #[test]
    fn other_files_are_refused() {
        for bytes in [&b"\x89PNG\r\n\x1a\n\0"[..], b"\x01\x02\x03\x04"] {
            assert!(matches!(decode(bytes), Err(Error::NotText(_))), "{bytes:?}");
        }
    }
}

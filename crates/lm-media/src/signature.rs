//! Signatures of file formats, by which error messages name the format of an unsupported file.

/// Number of leading bytes that identify a format.
const LENGTH: usize = 36;

/// Offset and bytes of a signature, and the format's name with its article. The first match counts.
const SIGNATURES: &[(usize, &[u8], &str)] = &[
    (0, b"II*\0", "a TIFF"),
    (0, b"MM\0*", "a TIFF"),
    (4, b"ftypavif", "an AVIF"),
    (4, b"ftypavis", "an AVIF"),
    (4, b"ftyphei", "a HEIC"),
    (4, b"ftyphev", "a HEIC"),
    (4, b"ftypmif1", "a HEIF"),
    (4, b"ftypmsf1", "a HEIF"),
    (4, b"ftypM4", "an M4A"),
    (4, b"ftyp", "an MP4"),
    (4, b"JXL ", "a JPEG XL"),
    (4, b"jP  ", "a JPEG 2000"),
    (0, b"\xff\x0a", "a JPEG XL"),
    (0, b"\0\0\x01\0", "an ICO"),
    (0, b"8BPS", "a PSD"),
    (0, b"<svg", "an SVG"),
    (0, b"<?xml", "an XML"),
    (0, b"\xef\xbb\xbf<?xml", "an XML"),
    (0, b"<!DOCTYPE", "an HTML"),
    (0, b"<!doctype", "an HTML"),
    (0, b"<html", "an HTML"),
    (0, b"%PDF", "a PDF"),
    (0, b"\x89PNG", "a PNG"),
    (0, b"\xff\xd8\xff", "a JPEG"),
    (0, b"GIF8", "a GIF"),
    (8, b"WEBP", "a WebP"),
    (8, b"WAVE", "a WAV"),
    (8, b"AVI ", "an AVI"),
    (8, b"AIFF", "an AIFF"),
    (8, b"AIFC", "an AIFF"),
    (0, b"fLaC", "a FLAC"),
    (28, b"OpusHead", "an Opus"),
    (28, b"Speex ", "a Speex"),
    (0, b"OggS", "an Ogg"),
    (0, b"ID3", "an MP3"),
    (0, b"\xff\xf1", "an AAC"),
    (0, b"\xff\xf9", "an AAC"),
    (0, b"ADIF", "an AAC"),
    (0, b"#!AMR", "an AMR"),
    (0, b"caff", "a CAF"),
    (0, b"wvpk", "a WavPack"),
    (0, b"\x1aE\xdf\xa3", "a WebM or Matroska"),
];

/// Leading bytes of a file, for [`described`].
pub(crate) fn start(bytes: &[u8]) -> Vec<u8> {
    bytes.iter().take(LENGTH).copied().collect()
}

/// Returns true for Opus in Ogg.
pub(crate) fn is_opus(bytes: &[u8]) -> bool {
    named(bytes) == Some("an Opus")
}

fn named(start: &[u8]) -> Option<&'static str> {
    let begins =
        |(at, bytes, _): &&(usize, &[u8], _)| start.get(*at..).is_some_and(|rest| rest.starts_with(bytes));
    SIGNATURES.iter().find(begins).map(|(.., name)| *name)
}

/// Returns the message for a file whose format is not `expected`.
pub(crate) fn described(start: &[u8], kind: &str, expected: &str) -> String {
    match named(start) {
        _ if start.is_empty() => "the file is empty".to_owned(),
        Some(name) => format!("the bytes are {name} file; expected {expected}"),
        None => {
            let start = start[..start.len().min(8)].escape_ascii();
            format!("the bytes are not {kind} data: expected {expected}, and they begin with \"{start}\"")
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A row has no effect after a row that matches all of its files.
    #[test]
    fn every_signature_is_recognized() {
        for (at, bytes, name) in SIGNATURES {
            let file = [&vec![b'.'; *at], *bytes].concat();
            assert!(file.len() <= LENGTH && start(&file) == file, "{name}");
            assert_eq!(named(&file), Some(*name));
        }
    }

    #[test]
    fn messages_name_the_found_and_the_expected_format() {
        let message = |bytes: &[u8]| described(&start(bytes), "image", "PNG");
        assert_eq!(message(b"II*\0\x08\0\0\0"), "the bytes are a TIFF file; expected PNG");
        assert_eq!(message(b"\0\0\0\x1cftypavif\0\0\0\0"), "the bytes are an AVIF file; expected PNG");
        assert_eq!(message(b""), "the file is empty");
        let expected =
            r#"the bytes are not image data: expected PNG, and they begin with "A \x07\xff\x07\x07\x07\x07""#;
        assert_eq!(message(b"A \x07\xff\x07\x07\x07\x07\x07"), expected);
    }
}

//! Text files of messages: their content, in any encoding, as a part of a prompt.

use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, anyhow, bail, ensure};
use chardetng::{EncodingDetector, Iso2022JpDetection, Utf8Detection};
use encoding_rs::{Encoding, UTF_8};

use crate::file_url;

/// Largest file, in bytes.
const MAX_BYTES: u64 = 8 << 20;

/// Content of a text file.
#[derive(Clone, Debug, PartialEq)]
pub struct TextFile {
    pub path: PathBuf,
    /// The text, with `\n` as line breaks.
    pub text: String,
    /// Name of its encoding, unless it is UTF-8.
    pub encoding: Option<&'static str>,
}

impl TextFile {
    /// Reads a file. The path may be a `file:` URL.
    ///
    /// # Errors
    /// When it cannot be read, is too large, or is no text; the error names the file.
    pub fn read(path: &Path) -> Result<Self> {
        let read = || -> Result<Self> {
            let path = file_url::local(path)?;
            let mut bytes = Vec::new();
            let read = File::open(&path).and_then(|file| file.take(MAX_BYTES + 1).read_to_end(&mut bytes));
            read.map_err(|error| anyhow!("{error}"))?;
            ensure!(bytes.len() as u64 <= MAX_BYTES, "it has more than {MAX_BYTES} bytes");
            let (text, encoding) = decoded(&bytes)?;
            Ok(Self { path, text, encoding })
        };
        read().with_context(|| path.display().to_string())
    }

    /// The file as a part of a prompt: its name, and its content between fences that the content does not
    /// have.
    pub fn prompt(&self) -> String {
        let mut fence = "```".to_owned();
        while self.text.contains(&fence) {
            fence.push('`');
        }
        let name = self.path.file_name().map(|name| name.to_string_lossy()).unwrap_or_default();
        let end = if self.text.ends_with('\n') { "" } else { "\n" };
        format!("File {name:?}:\n{fence}\n{}{end}{fence}", self.text)
    }
}

/// Decodes a text: by its byte order mark, as UTF-8, or in the encoding that its bytes suggest.
fn decoded(bytes: &[u8]) -> Result<(String, Option<&'static str>)> {
    if bytes.starts_with(b"%PDF-") {
        bail!("it is a PDF file, whose text is not read: convert it, for example with pdftotext");
    }
    let marked = Encoding::for_bom(bytes).map(|(encoding, _)| encoding);
    let encoding = match (marked, std::str::from_utf8(bytes)) {
        (Some(encoding), _) => encoding,
        (None, _) if bytes.contains(&0) => bail!("it is not a text file: it has bytes of value 0"),
        (None, Ok(_)) => UTF_8,
        (None, Err(_)) => {
            let mut detector = EncodingDetector::new(Iso2022JpDetection::Deny);
            detector.feed(bytes, true);
            detector.guess(None, Utf8Detection::Deny)
        }
    };
    let (text, _) = encoding.decode_with_bom_removal(bytes);
    let text = text.replace("\r\n", "\n");
    let control = text.chars().filter(|c| c.is_control() && !c.is_whitespace() && *c != '\x1b').count();
    ensure!(
        control * 20 <= text.len(),
        "it is not a text file: {control} of its characters are control characters"
    );
    Ok((text, Some(encoding.name()).filter(|_| encoding != UTF_8)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_of_any_encoding_is_read() {
        for (bytes, text, encoding) in [
            (&b"a\r\nb"[..], "a\nb", None),
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
            assert_eq!(decoded(bytes).expect("a text"), (text.to_owned(), encoding), "{text}");
        }
    }

    #[test]
    fn other_files_are_refused() {
        for (bytes, expected) in [
            (&b"%PDF-1.7\n"[..], "it is a PDF file"),
            (b"\x89PNG\r\n\x1a\n\0", "it is not a text file"),
            (b"\x01\x02\x03\x04", "it is not a text file"),
        ] {
            let error = decoded(bytes).expect_err("no text").to_string();
            assert!(error.starts_with(expected), "{error}");
        }
        let error = format!("{:#}", TextFile::read(Path::new("/nowhere.txt")).expect_err("is not there"));
        assert!(error.starts_with("/nowhere.txt: "), "{error}");
    }

    #[test]
    fn fence_is_longer_than_those_of_the_content() {
        let file =
            |text: &str| TextFile { path: "/tmp/a \"b\".md".into(), text: text.to_owned(), encoding: None };
        assert_eq!(file("x\n").prompt(), "File \"a \\\"b\\\".md\":\n```\nx\n```");
        assert_eq!(file("```\ny\n```").prompt(), "File \"a \\\"b\\\".md\":\n````\n```\ny\n```\n````");
    }
}

//! Text files and PDF files of messages, as parts of a prompt.

use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, anyhow};
use lm_documents::{Document, Reader};

use crate::counted::counted;
use crate::file_url;

/// Command of this program that reads one PDF file for it.
pub const READ_DOCUMENT: &str = "read-document";

/// A file and its text.
#[derive(Clone, Debug, PartialEq)]
pub struct TextFile {
    pub path: PathBuf,
    document: Document,
}

impl TextFile {
    /// Reads a file. The path may be a `file:` URL.
    ///
    /// # Errors
    /// When it cannot be read, is too large, or has no text; the error names the file.
    pub fn read(path: &Path) -> Result<Self> {
        let read = || -> Result<Self> {
            let path = file_url::local(path)?;
            let (mut bytes, most) = (Vec::new(), Document::MAX_BYTES as u64 + 1);
            let read = File::open(&path).and_then(|file| file.take(most).read_to_end(&mut bytes));
            read.map_err(|error| anyhow!("{error}"))?;
            Ok(Self { path, document: reader().read(bytes)? })
        };
        read().with_context(|| path.display().to_string())
    }

    /// The file as a part of a prompt.
    pub fn prompt(&self) -> String {
        self.document.prompt(&self.name())
    }

    /// The text.
    pub fn text(&self) -> &str {
        &self.document.text
    }

    /// Name of the file without its folder.
    pub fn name(&self) -> String {
        self.path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default()
    }

    /// Number of pages, or the encoding unless it is UTF-8.
    pub fn about(&self) -> Option<String> {
        let pages = self.document.pages.map(|pages| counted(pages, "page"));
        pages.or_else(|| self.document.encoding.clone())
    }
}

/// Reader of files from strangers: each PDF file is read by another process of this program.
pub fn reader() -> Reader {
    match std::env::current_exe() {
        Ok(program) => Reader::isolated(program, [READ_DOCUMENT.into()]),
        Err(_) => Reader::in_process(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn missing_file_is_named() {
        let error = format!("{:#}", TextFile::read(Path::new("/nowhere.txt")).expect_err("is not there"));
        assert!(error.starts_with("/nowhere.txt: "), "{error}");
    }

    #[test]
    fn file_is_described_by_what_it_is() {
        let about = |text: &[u8]| {
            TextFile { path: "a".into(), document: Document::read(text).expect("a text") }.about()
        };
        assert_eq!(about(b"caf\xe9 noir").as_deref(), Some("windows-1252"));
        assert_eq!(about(b"plain"), None);
    }
}

//! Text files and PDF files of messages, as parts of a prompt.

use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, anyhow, bail};
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

/// Most files of a pattern.
const MAX_MATCHES: usize = 100;

/// Files that a path names: itself, or those that a pattern with `*`, `?` or `[…]` matches, sorted.
///
/// # Errors
/// When the path is a folder, or a pattern is invalid or matches no file or too many.
pub fn matching(path: &Path) -> Result<Vec<PathBuf>> {
    let text = path.to_string_lossy();
    if path.is_dir() {
        bail!("{text} is a folder; {} adds its files", path.join("*").display());
    }
    if path.exists() || !text.contains(['*', '?', '[']) {
        return Ok(vec![path.to_owned()]);
    }
    let found = glob::glob(&text).with_context(|| text.to_string())?;
    let files: Vec<PathBuf> = found.flatten().filter(|path| path.is_file()).take(MAX_MATCHES + 1).collect();
    match files.len() {
        0 => bail!("{text} matches no file"),
        count if count > MAX_MATCHES => bail!("{text} matches more than {MAX_MATCHES} files"),
        _ => Ok(files),
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
    fn pattern_names_its_files() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = |name: &str| folder.path().join(name);
        for name in ["b.md", "a.md", "c.txt", "[1].md"] {
            std::fs::write(path(name), "x").expect("is written");
        }
        assert_eq!(matching(&path("*.txt")).expect("files"), [path("c.txt")]);
        assert_eq!(matching(&path("?.md")).expect("files"), [path("a.md"), path("b.md")]);
        assert_eq!(matching(&path("[1].md")).expect("a file"), [path("[1].md")], "a file of that name");
        assert_eq!(matching(&path("none")).expect("a path"), [path("none")]);
        for (name, expected) in [("*.rs", "matches no file"), ("", "is a folder; "), ("***", "wildcards are")]
        {
            let error = format!("{:#}", matching(&path(name)).expect_err("no files"));
            assert!(error.contains(expected), "{error}");
        }
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

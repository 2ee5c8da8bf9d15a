//! Sources of a model's files.

use std::fmt;
use std::io;
use std::ops::{Deref, Range};
use std::path::{Component, Path, PathBuf};
use std::sync::Arc;

use lm_kernels::MappedFile;
use serde::de::DeserializeOwned;

use crate::{Error, Result};

/// Maximum size of a tokenizer or tensor index that is parsed; the largest real tokenizers have about 40 MB.
pub(crate) const MAX_TABLE_BYTES: usize = 256 << 20;
/// Maximum size of a settings file that is parsed; the largest real ones, of tokenizers, have about 2 MB.
const MAX_SETTINGS_BYTES: usize = 16 << 20;
/// Maximum number of files listed in a subfolder of the model.
const MAX_LISTED: usize = 1024;

/// Files of a model, by name.
pub trait ModelFiles: fmt::Debug + Send + Sync {
    /// Returns the bytes of a file; `None` if there is no file of that name.
    ///
    /// # Errors
    /// When the file exists and cannot be read.
    fn read(&self, name: &str) -> Result<Option<FileBytes>>;

    /// Returns the names of the files in a subfolder of the model, sorted; empty if there is no such folder.
    ///
    /// # Errors
    /// When the folder exists and cannot be read.
    fn list(&self, folder: &str) -> Result<Vec<String>>;

    /// Location of the files, for messages.
    fn location(&self) -> String;

    /// Folder on disk that holds the files, if there is one: data derived from them can then be cached.
    fn folder(&self) -> Option<&Path> {
        None
    }
}

/// Bytes of a file.
#[derive(Clone, Debug)]
pub enum FileBytes {
    /// Mapped from disk; shared by clones.
    Mapped(Arc<MappedFile>),
    /// Embedded in the program.
    Embedded(&'static [u8]),
    /// In memory; shared by clones.
    Owned(Arc<[u8]>),
}

impl FileBytes {
    /// Maps a file, which must be a regular one: opening a pipe or a device would block.
    pub(crate) fn map(path: &Path) -> Result<Self> {
        let failed = |source| Error::Io { file: path.display().to_string(), source };
        if !path.metadata().map_err(failed)?.is_file() {
            return Err(failed(io::Error::new(io::ErrorKind::InvalidInput, "it is not a regular file")));
        }
        Ok(Self::Mapped(Arc::new(MappedFile::open(path)?)))
    }

    /// Checks that a mapped file still has its length: reading a part that no longer exists ends the process.
    pub(crate) fn check_len(&self) -> Result<(), lm_kernels::Error> {
        match self {
            Self::Mapped(file) => file.check_len(),
            Self::Embedded(_) | Self::Owned(_) => Ok(()),
        }
    }

    /// Lets the operating system drop the memory of a range that is not read again soon.
    pub(crate) fn release(&self, range: Range<usize>) {
        match self {
            Self::Mapped(file) => file.release(range),
            Self::Embedded(_) | Self::Owned(_) => {}
        }
    }
}

impl Deref for FileBytes {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        match self {
            Self::Mapped(file) => file,
            Self::Embedded(bytes) => bytes,
            Self::Owned(bytes) => bytes,
        }
    }
}

/// A folder on disk.
#[derive(Debug)]
pub(crate) struct Directory {
    path: PathBuf,
}

impl Directory {
    pub(crate) fn open(path: &Path) -> Result<Self> {
        let failed = |source| Error::Io { file: path.display().to_string(), source };
        if !path.metadata().map_err(failed)?.is_dir() {
            return Err(failed(io::ErrorKind::NotADirectory.into()));
        }
        Ok(Self { path: path.to_owned() })
    }

    /// Last component of the path, with symbolic links and dots resolved.
    pub(crate) fn name(&self) -> String {
        let resolved = self.path.canonicalize().unwrap_or_else(|_| self.path.clone());
        resolved.file_name().unwrap_or(resolved.as_os_str()).to_string_lossy().into_owned()
    }
}

impl ModelFiles for Directory {
    fn read(&self, name: &str) -> Result<Option<FileBytes>> {
        match FileBytes::map(&self.path.join(name)) {
            Err(Error::Io { source, .. }) if source.kind() == io::ErrorKind::NotFound => Ok(None),
            bytes => bytes.map(Some),
        }
    }

    fn list(&self, folder: &str) -> Result<Vec<String>> {
        let path = self.path.join(folder);
        let failed = |source| Error::Io { file: path.display().to_string(), source };
        let entries = match path.read_dir() {
            Ok(entries) => entries,
            Err(error) if matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory) => {
                return Ok(Vec::new());
            }
            Err(error) => return Err(failed(error)),
        };
        let mut names = Vec::new();
        for entry in entries.take(MAX_LISTED) {
            names.extend(entry.map_err(failed)?.file_name().into_string());
        }
        names.sort_unstable();
        Ok(names)
    }

    fn location(&self) -> String {
        self.path.display().to_string()
    }

    fn folder(&self) -> Option<&Path> {
        Some(&self.path)
    }
}

/// Files in memory.
#[derive(Debug)]
pub(super) struct InMemory {
    pub(super) name: String,
    pub(super) files: Vec<(String, FileBytes)>,
}

impl ModelFiles for InMemory {
    fn read(&self, name: &str) -> Result<Option<FileBytes>> {
        Ok(self.files.iter().find(|(file, _)| file == name).map(|(_, bytes)| bytes.clone()))
    }

    fn list(&self, folder: &str) -> Result<Vec<String>> {
        let inside = |(file, _): &(String, FileBytes)| match folder {
            "" => Some(file.clone()),
            _ => Some(file.strip_prefix(folder)?.strip_prefix('/')?.to_owned()),
        };
        let mut names: Vec<String> = self.files.iter().filter_map(inside).collect();
        names.retain(|name| !name.contains('/'));
        names.sort_unstable();
        Ok(names)
    }

    fn location(&self) -> String {
        format!("model {}", self.name)
    }
}

/// Returns true if a name from a file denotes a file directly inside the folder, on any system.
pub(crate) fn is_plain_name(name: &str) -> bool {
    let mut components = Path::new(name).components();
    let one_normal = matches!((components.next(), components.next()), (Some(Component::Normal(_)), None));
    one_normal && !name.contains(['/', '\\', ':', '\0'])
}

/// Reads a required file.
pub(crate) fn read_required(files: &dyn ModelFiles, name: &str) -> Result<FileBytes> {
    let missing = || Error::MissingFile { location: files.location(), file: name.into() };
    files.read(name)?.ok_or_else(missing)
}

/// Parses a JSON settings file.
pub(crate) fn parse_json<T: DeserializeOwned>(name: &str, bytes: &[u8]) -> Result<T> {
    parse_json_up_to(MAX_SETTINGS_BYTES, name, bytes)
}

/// Parses a JSON file of at most `limit` bytes.
pub(crate) fn parse_json_up_to<T: DeserializeOwned>(limit: usize, name: &str, bytes: &[u8]) -> Result<T> {
    check_size(limit, name, bytes)?;
    serde_json::from_slice(bytes).map_err(|source| Error::Json { file: name.into(), source })
}

/// Parses an optional JSON file.
pub(super) fn parse_optional<T: DeserializeOwned>(files: &dyn ModelFiles, name: &str) -> Result<Option<T>> {
    files.read(name)?.map(|bytes| parse_json(name, &bytes)).transpose()
}

/// Checks that a file has at most `limit` bytes.
pub(crate) fn check_size(limit: usize, name: &str, bytes: &[u8]) -> Result<()> {
    match bytes.len() {
        len if len > limit => Err(Error::FileTooLarge { file: name.into(), bytes: len, limit }),
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_that_leave_the_folder_are_not_plain() {
        for name in ["model.safetensors", "model-00001-of-00002.safetensors", "..model"] {
            assert!(is_plain_name(name), "{name}");
        }
        for name in ["", ".", "..", "../x", "/x", "a/b", "a/../b", "a\\b", "C:x", "x/", "a\0b"] {
            assert!(!is_plain_name(name), "{name}");
        }
    }
}

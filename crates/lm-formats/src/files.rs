//! Files of a model by name, and checked reading of small ones.

use std::fmt;
use std::path::{Component, Path};

use serde::de::DeserializeOwned;

use crate::python_floats::tagged_floats;
use crate::{Error, FileBytes, Result};

/// Maximum size of a tokenizer or tensor index that is parsed; the largest real tokenizers have about 40 MB.
pub const MAX_TABLE_BYTES: usize = 256 << 20;
/// Maximum size of a settings file that is parsed; the largest real ones, of tokenizers, have about 2 MB.
const MAX_SETTINGS_BYTES: usize = 16 << 20;

/// Files of a model, by name.
pub trait ModelFiles: fmt::Debug + Send + Sync {
    /// Returns the bytes of a file; `None` if it does not exist.
    ///
    /// # Errors
    /// When the file exists but cannot be read.
    fn read(&self, name: &str) -> Result<Option<FileBytes>>;

    /// Returns the names of the files in a subfolder of the model, sorted; empty if the folder does not
    /// exist.
    ///
    /// # Errors
    /// When the folder exists but cannot be read.
    fn list(&self, folder: &str) -> Result<Vec<String>>;

    /// Location of the files, for messages.
    fn location(&self) -> String;

    /// Folder on disk that holds the files, if there is one: data derived from them can then be cached.
    fn folder(&self) -> Option<&Path> {
        None
    }
}

/// Returns true if a name from a file denotes a file directly inside the folder, on any system.
pub fn is_plain_name(name: &str) -> bool {
    let mut components = Path::new(name).components();
    let one_normal = matches!((components.next(), components.next()), (Some(Component::Normal(_)), None));
    one_normal && !name.contains(['/', '\\', ':', '\0'])
}

/// Reads a required file.
pub fn read_required(files: &dyn ModelFiles, name: &str) -> Result<FileBytes> {
    let missing = || Error::MissingFile { location: files.location(), file: name.into() };
    files.read(name)?.ok_or_else(missing)
}

/// Parses a JSON settings file. The numbers that Python writes and JSON lacks, `Infinity`, `-Infinity` and
/// `NaN`, are read as `{"__float__": "Infinity"}`, which newer versions of transformers write in their place.
pub fn parse_json<T: DeserializeOwned>(name: &str, bytes: &[u8]) -> Result<T> {
    check_size(MAX_SETTINGS_BYTES, name, bytes)?;
    match tagged_floats(bytes) {
        Some(tagged) => parse_json_up_to(usize::MAX, name, &tagged),
        None => parse_json_up_to(MAX_SETTINGS_BYTES, name, bytes),
    }
}

/// Parses a JSON file of at most `limit` bytes.
pub fn parse_json_up_to<T: DeserializeOwned>(limit: usize, name: &str, bytes: &[u8]) -> Result<T> {
    check_size(limit, name, bytes)?;
    serde_json::from_slice(bytes).map_err(|source| Error::Json { file: name.into(), source })
}

/// Parses an optional JSON file.
pub fn parse_optional<T: DeserializeOwned>(files: &dyn ModelFiles, name: &str) -> Result<Option<T>> {
    files.read(name)?.map(|bytes| parse_json(name, &bytes)).transpose()
}

/// Checks that a file has at most `limit` bytes.
pub fn check_size(limit: usize, name: &str, bytes: &[u8]) -> Result<()> {
    match bytes.len() {
        len if len > limit => Err(Error::FileTooLarge { file: name.into(), bytes: len, limit }),
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn plain_names_exclude_paths() {
        for name in ["model.safetensors", "model-00001-of-00002.safetensors", "..model"] {
            assert!(is_plain_name(name), "{name}");
        }
        for name in ["", ".", "..", "../x", "/x", "a/b", "a/../b", "a\\b", "C:x", "x/", "a\0b"] {
            assert!(!is_plain_name(name), "{name}");
        }
    }
}

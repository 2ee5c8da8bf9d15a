//! Errors of saved files.

use std::error::Error;
use std::io;

use super::SavedFile;
use super::file::MAX_JSON_BYTES;

/// Error of a [`SavedFile`].
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SavedError {
    /// The file cannot be read or written.
    #[error(transparent)]
    Io(#[from] io::Error),
    /// The file exceeds the maximum size.
    #[error(
        "the file has more than {MAX_JSON_BYTES} bytes, or more than {} of KV pages",
        SavedFile::MAX_CACHE_BYTES
    )]
    TooLarge,
    /// The file is not JSON: another kind of file, or truncated.
    #[error("the file is not JSON: {0}")]
    NotJson(#[source] serde_json::Error),
    /// The file was written by a later version.
    #[error("the file has version {found}, this program reads up to {supported}")]
    Version {
        /// Version of the file.
        found: u64,
        /// Latest version that can be read.
        supported: u64,
    },
    /// The contents were changed after they were written.
    #[error(
        "the checksum does not fit the contents: the file is damaged, or was edited; without the key `checksum` it is read unchecked"
    )]
    Checksum,
    /// The KV pages do not have the length in the file: it was truncated or extended. The contents before
    /// them can be read: [`SavedFile::read_without_cache`].
    #[error("the file has {found} bytes of KV pages, expected {expected}")]
    CacheLength {
        /// Bytes according to the file.
        expected: u64,
        /// Bytes found; at most one more than expected.
        found: u64,
    },
    /// The KV pages were changed after they were written. The contents before them can be read:
    /// [`SavedFile::read_without_cache`].
    #[error("the KV pages are damaged: their checksum is another")]
    CacheChecksum,
    /// A key is missing or has the wrong type.
    #[error("`{key}` is missing or not {expected}")]
    Invalid {
        /// The key.
        key: &'static str,
        /// Its expected value.
        expected: &'static str,
    },
    /// An element of an array is invalid.
    #[error("`{key}[{index}]`: {source}")]
    Item {
        /// Key of the array.
        key: &'static str,
        /// Index in it, from 0.
        index: usize,
        /// The defect.
        source: Box<dyn Error + Send + Sync>,
    },
}

impl SavedError {
    /// Returns true if the KV pages alone are damaged: [`SavedFile::read_without_cache`] reads the rest.
    pub fn is_of_cache(&self) -> bool {
        matches!(self, Self::CacheLength { .. } | Self::CacheChecksum | Self::Invalid { key: "cache", .. })
    }
}

//! Bytes of a file: mapped, embedded or owned.

use std::io;
use std::ops::{Deref, Range};
use std::path::Path;
use std::sync::Arc;

use lm_kernels::MappedFile;

use crate::{Error, Result};

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
    pub fn map(path: &Path) -> Result<Self> {
        let failed = |source| Error::Io { file: path.display().to_string(), source };
        if !path.metadata().map_err(failed)?.is_file() {
            return Err(failed(io::Error::new(io::ErrorKind::InvalidInput, "it is not a regular file")));
        }
        Ok(Self::Mapped(Arc::new(MappedFile::open(path)?)))
    }

    /// Checks that a mapped file still has its length: reading a part that no longer exists ends the process.
    pub fn check_len(&self) -> Result<(), lm_kernels::Error> {
        match self {
            Self::Mapped(file) => file.check_len(),
            Self::Embedded(_) | Self::Owned(_) => Ok(()),
        }
    }

    /// Lets the operating system drop the memory of a range that is not read again soon.
    pub fn release(&self, range: Range<usize>) {
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

//! Output under a temporary name, renamed when complete.

use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};

use crate::error::{Result, io_error};

/// Temporary file or folder beside the output: renamed when complete, otherwise removed on drop.
pub(super) struct TempOutput {
    pub(super) path: PathBuf,
}

impl TempOutput {
    /// Creates a temporary folder.
    pub(super) fn folder(output: &Path) -> Result<Self> {
        let path = path_beside(output)?;
        fs::create_dir(&path).map_err(|source| io_error(&path, source))?;
        Ok(Self { path })
    }

    /// Creates a temporary file.
    pub(super) fn file(output: &Path) -> Result<(Self, File)> {
        let path = path_beside(output)?;
        let file = File::create_new(&path).map_err(|source| io_error(&path, source))?;
        Ok((Self { path }, file))
    }

    /// Renames it to its final name.
    pub(super) fn finish(self, output: &Path) -> Result<()> {
        fs::rename(&self.path, output).map_err(|source| io_error(output, source))
    }
}

impl Drop for TempOutput {
    fn drop(&mut self) {
        // After `finish` it no longer exists.
        let _ = if self.path.is_dir() { fs::remove_dir_all(&self.path) } else { fs::remove_file(&self.path) };
    }
}

/// Returns the temporary path; fails if `output` exists.
fn path_beside(output: &Path) -> Result<PathBuf> {
    let exists = || io_error(output, io::ErrorKind::AlreadyExists.into());
    let no_name =
        || io_error(output, io::Error::new(io::ErrorKind::InvalidInput, "it names nothing to write"));
    let name = output.file_name().ok_or_else(no_name)?.to_string_lossy();
    if output.symlink_metadata().is_ok() {
        return Err(exists());
    }
    Ok(output.with_file_name(format!(".{name}.unfinished-{}", std::process::id())))
}

//! Output under a temporary name, renamed when complete.

use std::fs::{self, File, OpenOptions, TryLockError};
use std::io;
use std::path::{Path, PathBuf};

use crate::error::{Result, io_error};

/// Temporary file or folder beside the output: renamed when complete, otherwise removed on drop.
///
/// The only writer of this output holds its lock. The files of a killed writer are unlocked, and removed by
/// the next one.
pub(super) struct TempOutput {
    pub(super) path: PathBuf,
    lock_path: PathBuf,
    _lock: File,
}

impl TempOutput {
    /// Creates a temporary folder.
    pub(super) fn folder(output: &Path) -> Result<Self> {
        let temp = Self::locked(output)?;
        fs::create_dir(&temp.path).map_err(|source| io_error(output, source))?;
        Ok(temp)
    }

    /// Creates a temporary file.
    pub(super) fn file(output: &Path) -> Result<(Self, File)> {
        let temp = Self::locked(output)?;
        let file = File::create_new(&temp.path).map_err(|source| io_error(output, source))?;
        Ok((temp, file))
    }

    /// Becomes the only writer of `output`, and removes the files of earlier ones.
    fn locked(output: &Path) -> Result<Self> {
        let failed = |source| io_error(output, source);
        let name = output.file_name().ok_or_else(|| {
            failed(io::Error::new(io::ErrorKind::InvalidInput, "it names nothing to write"))
        })?;
        let name = name.to_string_lossy();
        check_free(output)?;
        let lock_path = output.with_file_name(format!(".{name}.lock"));
        let lock =
            OpenOptions::new().create(true).write(true).truncate(false).open(&lock_path).map_err(failed)?;
        lock.try_lock().map_err(|error| match error {
            TryLockError::WouldBlock => {
                failed(io::Error::new(io::ErrorKind::WouldBlock, "another process is writing it"))
            }
            TryLockError::Error(source) => failed(source),
        })?;
        // The writer that held the lock before may have completed the output.
        check_free(output)?;
        sweep(output, &name).map_err(failed)?;
        Ok(Self { path: output.with_file_name(unfinished(&name)), lock_path, _lock: lock })
    }

    /// Renames it to its final name.
    pub(super) fn finish(self, output: &Path) -> Result<()> {
        fs::rename(&self.path, output).map_err(|source| io_error(output, source))
    }
}

impl Drop for TempOutput {
    fn drop(&mut self) {
        // After `finish` it no longer exists.
        let _ = remove(&self.path);
        let _ = fs::remove_file(&self.lock_path);
    }
}

/// Name of the temporary output; earlier versions added the process id.
fn unfinished(name: &str) -> String {
    format!(".{name}.unfinished")
}

fn check_free(output: &Path) -> Result<()> {
    match output.symlink_metadata() {
        Ok(_) => Err(io_error(output, io::Error::new(io::ErrorKind::AlreadyExists, "it exists already"))),
        Err(_) => Ok(()),
    }
}

/// Removes the temporary outputs of writers that no longer run.
fn sweep(output: &Path, name: &str) -> io::Result<()> {
    let folder = output.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let unfinished = unfinished(name);
    for entry in folder.read_dir()? {
        let entry = entry?;
        let rest = entry.file_name().to_string_lossy().strip_prefix(&unfinished).map(str::to_owned);
        let is_left = rest.is_some_and(|rest| {
            rest.is_empty() || rest.strip_prefix('-').is_some_and(|id| id.bytes().all(|b| b.is_ascii_digit()))
        });
        if is_left {
            remove(&entry.path())?;
        }
    }
    Ok(())
}

fn remove(path: &Path) -> io::Result<()> {
    if path.is_dir() { fs::remove_dir_all(path) } else { fs::remove_file(path) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(folder: &Path) -> Vec<String> {
        let mut names: Vec<_> = folder
            .read_dir()
            .expect("a folder")
            .map(|entry| entry.expect("an entry").file_name().to_string_lossy().into_owned())
            .collect();
        names.sort();
        names
    }

    #[test]
    fn second_writer_is_rejected_and_leftovers_are_removed() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let output = folder.path().join("m");
        fs::create_dir_all(folder.path().join(".m.unfinished-123/part")).expect("can be made");
        fs::write(folder.path().join(".m.unfinished"), "part").expect("can be written");
        fs::write(folder.path().join(".m.unfinished-notes"), "mine").expect("can be written");
        let first = TempOutput::folder(&output).expect("the only writer");
        assert_eq!(names(folder.path()), [".m.lock", ".m.unfinished", ".m.unfinished-notes"]);
        let rejected = TempOutput::file(&output).map(drop).expect_err("is being written");
        let cause = std::error::Error::source(&rejected).map(ToString::to_string);
        assert_eq!(cause.as_deref(), Some("another process is writing it"));
        first.finish(&output).expect("can be renamed");
        assert_eq!(names(folder.path()), [".m.unfinished-notes", "m"]);
        let rejected = TempOutput::folder(&output).map(drop).expect_err("exists");
        let cause = std::error::Error::source(&rejected).map(ToString::to_string);
        assert_eq!(cause.as_deref(), Some("it exists already"));
    }
}

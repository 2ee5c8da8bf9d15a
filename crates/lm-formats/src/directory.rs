//! Model files in a folder on disk, or in memory.

use std::io;
use std::path::{Path, PathBuf};

use crate::{Error, FileBytes, ModelFiles, Result};

/// Maximum number of files listed in a subfolder of the model.
const MAX_LISTED: usize = 1024;

/// Model files in a folder on disk; files are memory-mapped.
#[derive(Debug)]
pub struct Directory {
    path: PathBuf,
}

impl Directory {
    /// Opens a folder.
    ///
    /// # Errors
    /// [`Error::Io`] when the folder does not exist.
    pub fn open(path: &Path) -> Result<Self> {
        let failed = |source| Error::Io { file: path.display().to_string(), source };
        if !path.metadata().map_err(failed)?.is_dir() {
            return Err(failed(io::ErrorKind::NotADirectory.into()));
        }
        Ok(Self { path: path.to_owned() })
    }

    /// Last component of the path, with symbolic links and dots resolved.
    pub fn name(&self) -> String {
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

/// Model files in memory.
#[derive(Debug)]
pub struct InMemory {
    /// Name of the model in messages.
    pub name: String,
    /// Names and bytes of the files.
    pub files: Vec<(String, FileBytes)>,
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

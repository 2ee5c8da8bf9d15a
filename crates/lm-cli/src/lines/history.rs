//! History file of typed lines.

use std::fs;
use std::path::PathBuf;

use anyhow::{Context, Result, ensure};
use rustyline::history::{DefaultHistory, History as _};

use crate::user_folders;

/// Maximum number of kept lines.
pub const MAX_ENTRIES: usize = 1000;
/// Maximum size of a kept line: longer ones can be recalled in the same chat only.
const MAX_ENTRY_BYTES: usize = 8 << 10;
/// Maximum size of a file that is read.
const MAX_FILE_BYTES: u64 = 2 * (MAX_ENTRIES * MAX_ENTRY_BYTES) as u64;

/// History file of chats. It is bounded by [`MAX_ENTRIES`], and only its user may read it.
#[derive(Debug)]
pub struct History {
    /// `None` if the history is not kept.
    file: Option<PathBuf>,
}

impl History {
    /// Keeps no history.
    pub fn none() -> Self {
        Self { file: None }
    }

    /// Keeps the history in the user's state folder, if any.
    pub fn of_user() -> Self {
        Self { file: user_folders::state().map(|folder| folder.join("lm").join("history")) }
    }

    /// Reads the file.
    ///
    /// # Errors
    /// When the file is damaged or too large; nothing is kept then.
    pub fn load(&mut self, history: &mut DefaultHistory) -> Result<()> {
        let Some(file) = self.file.clone().filter(|file| file.exists()) else { return Ok(()) };
        let mut read = || -> Result<()> {
            let bytes = fs::metadata(&file)?.len();
            ensure!(bytes <= MAX_FILE_BYTES, "it has {bytes} bytes, expected at most {MAX_FILE_BYTES}");
            Ok(history.load(&file)?)
        };
        read().with_context(|| format!("`{}`", file.display())).inspect_err(|_| self.file = None)
    }

    /// Appends the new lines of `history` to the file.
    ///
    /// # Errors
    /// When the file cannot be written; nothing more is kept then.
    pub fn append(&mut self, history: &mut DefaultHistory, line: &str) -> Result<()> {
        let Some(file) = self.file.clone().filter(|_| line.len() <= MAX_ENTRY_BYTES) else { return Ok(()) };
        let mut write = || -> Result<()> {
            file.parent().map_or(Ok(()), fs::create_dir_all)?;
            Ok(history.append(&file)?)
        };
        write().with_context(|| format!("`{}`", file.display())).inspect_err(|_| self.file = None)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entries(history: &DefaultHistory) -> Vec<String> {
        history.iter().cloned().collect()
    }

    #[test]
    fn history_persists() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let file = folder.path().join("state/lm/history");
        let mut written = DefaultHistory::new();
        let mut kept = History { file: Some(file.clone()) };
        kept.load(&mut written).expect("there is none yet");
        for line in ["one", "two\nlines"] {
            written.add(line).expect("is kept");
            kept.append(&mut written, line).expect("can be written");
        }
        let mut read = DefaultHistory::new();
        History { file: Some(file) }.load(&mut read).expect("can be read");
        assert_eq!(entries(&read), ["one", "two\nlines"]);
    }

    #[test]
    fn damaged_file_is_not_overwritten() {
        let file = tempfile::NamedTempFile::new().expect("a temporary file");
        fs::write(file.path(), b"#V2\n\xff\xfe\n").expect("can be written");
        let mut history = DefaultHistory::new();
        let mut kept = History { file: Some(file.path().into()) };
        assert!(kept.load(&mut history).is_err());
        history.add("new").expect("is kept");
        kept.append(&mut history, "new").expect("does nothing");
        assert_eq!(fs::read(file.path()).expect("is there"), b"#V2\n\xff\xfe\n");
    }
}

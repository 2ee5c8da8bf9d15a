//! File of a saved conversation.

use std::io::ErrorKind;
use std::path::Path;

use anyhow::{Result, anyhow};
use lm_conversation::{Conversation, SaveOptions, SavedConversation, SavedError, SavedTokens};

use crate::counted::counted;
use crate::size::format_bytes;

/// Treatment of an existing file.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Existing {
    Keep,
    Replace,
}

/// Writes a conversation to a file. Returns the outcome for its KV pages.
///
/// # Errors
/// When the file cannot be written, or exists and is kept. The causes are text.
pub fn write(
    path: &Path,
    conversation: &Conversation,
    options: SaveOptions,
    existing: Existing,
) -> Result<SavedTokens> {
    let (saved, outcome) = conversation.save(options)?;
    let written = match existing {
        Existing::Keep => saved.write_new(path),
        Existing::Replace => saved.write(path),
    };
    written.map_err(|error| match error {
        SavedError::Io(error) if error.kind() == ErrorKind::AlreadyExists => {
            anyhow!("`{}` exists already; give another name: /save FILE", path.display())
        }
        error => anyhow!("`{}` cannot be written: {error}", path.display()),
    })?;
    Ok(outcome)
}

/// Describes the outcome for the KV pages; empty if they were not asked for.
pub fn describe(outcome: SavedTokens) -> String {
    let size = |bytes: usize| format_bytes(bytes as u64);
    match outcome {
        SavedTokens::NotAsked => String::new(),
        SavedTokens::Saved { tokens, bytes } => {
            format!(" with the KV cache of {}, {}", counted(tokens, "token"), size(bytes))
        }
        SavedTokens::TooLarge { bytes } => {
            format!("; its KV cache has {}, more than --save-cache", size(bytes))
        }
        SavedTokens::NothingCached => "; nothing of it is in the KV cache".to_owned(),
        SavedTokens::NotInHostMemory => "; its KV cache is not in host memory".to_owned(),
    }
}

/// A conversation that was read from a file.
pub struct Loaded {
    pub saved: SavedConversation,
    /// Damage of its KV pages, which were then ignored.
    pub damaged: Option<SavedError>,
}

/// Reads a conversation from a file; a bare array of messages is accepted. Damaged KV pages are omitted.
///
/// # Errors
/// When the file cannot be read or is not a conversation. The causes are text.
pub fn read(path: &Path) -> Result<Loaded> {
    let loaded = match SavedConversation::read(path) {
        Err(damage) if damage.is_of_cache() => {
            SavedConversation::read_without_cache(path).map(|saved| Loaded { saved, damaged: Some(damage) })
        }
        read => read.map(|saved| Loaded { saved, damaged: None }),
    };
    loaded.map_err(|error| anyhow!("`{}` cannot be loaded: {error}", path.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn invalid_conversation_error_names_file_and_place() {
        let file = tempfile::NamedTempFile::new().expect("a temporary file");
        for (text, expected) in [
            ("{", "is not JSON"),
            ("{\"messages\": 3}", "`messages` is missing or not an array"),
            ("[{\"role\": \"user\", \"content\": \"a\"}, {}]", "`messages[1]`: "),
        ] {
            std::fs::write(file.path(), text).expect("can be written");
            let error = read(file.path()).err().expect("is refused").to_string();
            assert!(error.contains(expected) && error.contains(&*file.path().to_string_lossy()), "{error}");
        }
        assert!(read(Path::new("/nowhere/a")).is_err_and(|error| !error.is::<std::io::Error>()));
    }
}

//! Conversations in a folder.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use lm_session::SavedError;

use super::{ConversationId, ConversationStore};
use crate::saved::SavedConversation;

/// Prefix of file names: an id alone may be a reserved name on Windows, such as `con`.
const PREFIX: &str = "chat-";
const SUFFIX: &str = ".json";

/// Store of conversations in a folder: one file of [`SavedConversation`] each, which is replaced as a whole,
/// so that after a crash it is the old one or the new one. Several processes may use the folder. Other files
/// in it are ignored; created files are readable by the user only.
///
/// The file of `user-17` is `chat-user-17.json`. An upper-case letter has `=` before it and is written in
/// lower case, since some file systems are case-insensitive.
#[derive(Debug, Clone)]
pub struct FolderStore {
    folder: PathBuf,
}

impl FolderStore {
    /// Opens the store in a folder, creating it if needed.
    ///
    /// # Errors
    /// When the path cannot be created or is not a folder.
    pub fn open(folder: impl AsRef<Path>) -> Result<Self, SavedError> {
        // The working directory may change later.
        let folder = std::path::absolute(folder)?;
        fs::create_dir_all(&folder)?;
        Ok(Self { folder })
    }

    /// Path of a conversation's file; an error for a link, which would lead out of the folder.
    fn path(&self, id: &ConversationId) -> Result<PathBuf, SavedError> {
        let path = self.folder.join(file_name(id));
        if path.symlink_metadata().is_ok_and(|entry| !entry.is_file()) {
            let message = format!("`{}` is not a file", path.display());
            return Err(io::Error::new(io::ErrorKind::InvalidInput, message).into());
        }
        Ok(path)
    }
}

impl ConversationStore for FolderStore {
    fn save(&self, id: &ConversationId, conversation: &SavedConversation) -> Result<(), SavedError> {
        conversation.write(self.path(id)?)
    }

    fn load(&self, id: &ConversationId) -> Result<Option<SavedConversation>, SavedError> {
        match SavedConversation::read(self.path(id)?) {
            Ok(saved) => Ok(Some(saved)),
            Err(SavedError::Io(error)) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(error),
        }
    }

    fn list(&self) -> Result<Vec<ConversationId>, SavedError> {
        let mut ids = Vec::new();
        for entry in fs::read_dir(&self.folder)? {
            let entry = entry?;
            // A file deleted meanwhile no longer has a type.
            if entry.file_type().is_ok_and(|kind| kind.is_file()) {
                ids.extend(entry.file_name().to_str().and_then(id_of));
            }
        }
        ids.sort();
        Ok(ids)
    }

    fn delete(&self, id: &ConversationId) -> Result<bool, SavedError> {
        match fs::remove_file(self.path(id)?) {
            Ok(()) => Ok(true),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
            Err(error) => Err(error.into()),
        }
    }
}

fn file_name(id: &ConversationId) -> String {
    let mut name = PREFIX.to_owned();
    for c in id.as_str().chars() {
        if c.is_ascii_uppercase() {
            name.push('=');
        }
        name.push(c.to_ascii_lowercase());
    }
    name + SUFFIX
}

/// Id of the file with this name; `None` for other files.
fn id_of(name: &str) -> Option<ConversationId> {
    let text = name.strip_prefix(PREFIX)?.strip_suffix(SUFFIX)?;
    let mut id = String::new();
    let mut chars = text.chars();
    while let Some(c) = chars.next() {
        id.push(if c == '=' { chars.next()?.to_ascii_uppercase() } else { c });
    }
    let id = id.parse().ok()?;
    (file_name(&id) == name).then_some(id)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn store_ignores_later_working_directory_changes() {
        let store = FolderStore::open(".").expect("it is there");
        assert_eq!(store.folder, std::env::current_dir().expect("a folder"));
        let path = store.path(&"a".parse().expect("an id")).expect("a path");
        assert!(path.is_absolute(), "{}", path.display());
    }
}

//! KV caches of kept conversations, in a folder beside the store.

use std::fs::{self, Metadata};
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use anyhow::{Context, Result};
use lm_conversation::{Conversation, SaveOptions, SavedConversation, SavedTokens};
use lm_store::{Owner, Store};

/// Extension of the files; their names are the ids of the conversations.
const EXTENSION: &str = "kv";

/// The caches of the conversations of a store.
pub struct KeptCaches(PathBuf);

impl KeptCaches {
    /// The caches of the store in this file.
    pub fn of(store: &Path) -> Self {
        Self(store.with_extension("cache"))
    }

    /// Writes the cache of a conversation, and removes the oldest ones above `limit` bytes. One that is
    /// larger alone is not written.
    ///
    /// # Errors
    /// When the file cannot be written.
    pub fn write(&self, id: &str, conversation: &Conversation, limit: u64) -> Result<SavedTokens> {
        let cache = Some(usize::try_from(limit).unwrap_or(usize::MAX));
        let (mut saved, outcome) = conversation.save(SaveOptions { cache })?;
        // The store has the messages.
        (saved.preface, saved.history, saved.tools) = (Vec::new(), Vec::new(), Vec::new());
        if saved.cache.is_some() {
            fs::create_dir_all(&self.0).with_context(|| self.0.display().to_string())?;
            let path = self.path(id);
            saved.write(&path).with_context(|| path.display().to_string())?;
            self.shrink(limit);
        }
        Ok(outcome)
    }

    /// Reads the cache of a conversation. `None` if there is none, or it is damaged.
    pub fn read(&self, id: &str) -> Option<SavedConversation> {
        SavedConversation::read(self.path(id)).ok()
    }

    /// Removes the cache of a conversation.
    pub fn remove(&self, id: &str) {
        // An error: there is none.
        let _ = fs::remove_file(self.path(id));
    }

    /// Removes the caches of conversations that the store does not have any more: the page deletes, too.
    pub fn remove_deleted(&self, store: &Store) {
        for (path, _) in self.files() {
            let id = path.file_stem().and_then(|stem| stem.to_str()).unwrap_or_default();
            if let Ok(None) = store.get(&Owner::local(), id) {
                let _ = fs::remove_file(path);
            }
        }
    }

    /// Removes the oldest files until all have at most `limit` bytes.
    fn shrink(&self, limit: u64) {
        let mut files = self.files();
        let written = |metadata: &Metadata| metadata.modified().unwrap_or(SystemTime::UNIX_EPOCH);
        files.sort_by_key(|(_, metadata)| std::cmp::Reverse(written(metadata)));
        let mut sum = 0;
        for (path, metadata) in files {
            sum += metadata.len();
            if sum > limit {
                let _ = fs::remove_file(path);
            }
        }
    }

    fn files(&self) -> Vec<(PathBuf, Metadata)> {
        let entries = fs::read_dir(&self.0).into_iter().flatten().flatten();
        let files = entries.filter(|entry| entry.path().extension().is_some_and(|end| end == EXTENSION));
        files.filter_map(|entry| Some((entry.path(), entry.metadata().ok()?))).collect()
    }

    fn path(&self, id: &str) -> PathBuf {
        self.0.join(id).with_extension(EXTENSION)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use lm_conversation::{ConversationConfig, PromptTemplate};
    use lm_session::testing::scripted_engine;

    fn conversation() -> Conversation {
        let template = PromptTemplate::new("{% for m in messages %}{{ m.content }}\n{% endfor %}");
        let template = Some(template.expect("it compiles"));
        let config = ConversationConfig { template, ..ConversationConfig::default() };
        let engine = scripted_engine(["Hello!", "Fine."]);
        Conversation::new(&engine, config).expect("a conversation")
    }

    #[test]
    fn caches_are_bounded_and_follow_their_conversations() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("conversations.db");
        let store = Store::open(&path).expect("a store");
        let caches = KeptCaches::of(&path);
        let mut conversation = conversation();
        assert!(matches!(caches.write("c1", &conversation, 1 << 20), Ok(SavedTokens::NothingCached)));
        conversation.send("Hi. ".repeat(200)).expect("a reply");
        assert!(matches!(caches.write("c1", &conversation, 1 << 20), Ok(SavedTokens::Saved { .. })));
        let read = caches.read("c1").expect("it was written");
        assert!(read.cache.is_some() && read.history.is_empty() && caches.read("c2").is_none());

        let size = caches.files()[0].1.len();
        for id in ["c2", "c3"] {
            std::thread::sleep(std::time::Duration::from_millis(20));
            caches.write(id, &conversation, size * 5 / 2).expect("is written");
        }
        let names = || ["c1", "c2", "c3"].map(|id| caches.read(id).is_some());
        assert_eq!(names(), [false, true, true], "the oldest one is removed");
        fs::write(caches.path("c3"), "damaged").expect("is written");
        assert_eq!(names(), [false, true, false]);
        caches.remove_deleted(&store);
        assert_eq!(caches.files().len(), 0, "the store has none of them");
        caches.write("c1", &conversation, 1 << 20).expect("is written");
        caches.remove("c1");
        assert_eq!(caches.files().len(), 0);
    }
}

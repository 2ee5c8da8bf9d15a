//! Conversations in memory.

use std::collections::BTreeMap;
use std::sync::{PoisonError, RwLock};

use lm_session::SavedError;

use super::{ConversationId, ConversationStore};
use crate::saved::SavedConversation;

/// Store of conversations in memory, until it is dropped.
///
/// ```
/// use lm_conversation::{ConversationStore, Message, MemoryStore, SavedConversation};
///
/// let store = MemoryStore::new();
/// let chat = SavedConversation { history: vec![Message::user("Hi.")], ..SavedConversation::default() };
/// store.save(&"a".parse()?, &chat)?;
/// assert_eq!(store.load(&"a".parse()?)?, Some(chat));
/// assert!(store.delete(&"a".parse()?)?);
/// assert_eq!(store.list()?, []);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Default)]
pub struct MemoryStore {
    conversations: RwLock<BTreeMap<ConversationId, SavedConversation>>,
}

impl MemoryStore {
    /// Creates an empty store.
    pub fn new() -> Self {
        Self::default()
    }
}

// Each lock is held for one call of the map: after a panic the map is whole.
impl ConversationStore for MemoryStore {
    fn save(&self, id: &ConversationId, conversation: &SavedConversation) -> Result<(), SavedError> {
        let mut all = self.conversations.write().unwrap_or_else(PoisonError::into_inner);
        all.insert(id.clone(), conversation.clone());
        Ok(())
    }

    fn load(&self, id: &ConversationId) -> Result<Option<SavedConversation>, SavedError> {
        let all = self.conversations.read().unwrap_or_else(PoisonError::into_inner);
        Ok(all.get(id).cloned())
    }

    fn list(&self) -> Result<Vec<ConversationId>, SavedError> {
        let all = self.conversations.read().unwrap_or_else(PoisonError::into_inner);
        Ok(all.keys().cloned().collect())
    }

    fn delete(&self, id: &ConversationId) -> Result<bool, SavedError> {
        let mut all = self.conversations.write().unwrap_or_else(PoisonError::into_inner);
        Ok(all.remove(id).is_some())
    }
}

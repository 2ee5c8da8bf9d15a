//! Conversations by id.

mod folder;
mod id;
mod memory;

pub use folder::FolderStore;
pub use id::{ConversationId, InvalidId};
pub use memory::MemoryStore;

use lm_session::SavedError;

use crate::saved::SavedConversation;

/// Store of conversations by id: [`MemoryStore`] and [`FolderStore`]. It may be used from any number of
/// threads; with two writers of one id, the last one wins, and a reader gets the conversation of one of them
/// as a whole.
///
/// ```
/// use lm_conversation::{Conversation, ConversationConfig, ConversationId, ConversationStore, FolderStore, PromptTemplate};
///
/// # let folder = tempfile::tempdir()?;
/// # let path = folder.path().join("chats");
/// # let engine = lm_session::testing::scripted_engine(["Hello!", "Fine."]);
/// # let template = PromptTemplate::new("{% for m in messages %}{{ m.content }}\n{% endfor %}")?;
/// # let config = ConversationConfig { template: Some(template), ..ConversationConfig::default() };
/// /// Answers a message in the conversation of this id, which is created with its first message.
/// fn answer(store: &dyn ConversationStore, id: &ConversationId, mut chat: Conversation, message: &str)
/// -> Result<String, Box<dyn std::error::Error>> {
///     if let Some(saved) = store.load(id)? {
///         chat.restore(saved)?;
///     }
///     let reply = chat.send(message)?;
///     store.save(id, &chat.saved())?;
///     Ok(reply.text())
/// }
///
/// let store = FolderStore::open(&path)?;
/// let id: ConversationId = "user-17".parse()?;
/// answer(&store, &id, Conversation::new(&engine, config.clone())?, "Hi.")?;
/// answer(&store, &id, Conversation::new(&engine, config)?, "How are you?")?;
/// assert_eq!(store.load(&id)?.expect("it was saved").history.len(), 4);
/// assert_eq!(store.list()?, [id]);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub trait ConversationStore: Send + Sync {
    /// Saves a conversation, in place of an earlier one of this id.
    ///
    /// # Errors
    /// When it cannot be written; the earlier one is then unchanged.
    fn save(&self, id: &ConversationId, conversation: &SavedConversation) -> Result<(), SavedError>;

    /// Loads a conversation; `None` for an unknown id.
    ///
    /// # Errors
    /// When it cannot be read or is damaged.
    fn load(&self, id: &ConversationId) -> Result<Option<SavedConversation>, SavedError>;

    /// Ids of all conversations, in ascending order.
    ///
    /// # Errors
    /// When they cannot be listed.
    fn list(&self) -> Result<Vec<ConversationId>, SavedError>;

    /// Deletes a conversation; returns false for an unknown id.
    ///
    /// # Errors
    /// When it cannot be deleted.
    fn delete(&self, id: &ConversationId) -> Result<bool, SavedError>;
}

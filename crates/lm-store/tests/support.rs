//! Conversations for tests.

use std::path::Path;

use lm_store::{Change, Conversation, Message, Owner, Role, Store};

/// A store in a temporary folder.
pub fn store() -> (tempfile::TempDir, Store) {
    let folder = tempfile::tempdir().expect("a folder");
    let store = open(folder.path());
    (folder, store)
}

/// The store in this folder.
pub fn open(folder: &Path) -> Store {
    Store::open(folder.join("conversations.db")).expect("it opens")
}

/// A conversation of these texts, the user's and the assistant's by turns.
pub fn conversation(title: &str, texts: &[&str]) -> Conversation {
    let mut conversation = Conversation::new(title);
    for (index, text) in texts.iter().enumerate() {
        let role = if index % 2 == 0 { Role::User } else { Role::Assistant };
        let message = Message::new(conversation.messages.last(), role, *text);
        conversation.messages.push(message);
    }
    conversation
}

/// Adds a conversation to the store.
pub fn add(store: &Store, conversation: &Conversation) {
    store.apply(&Owner::local(), &conversation.id, &Change::creating(conversation)).expect("is added");
}

/// The kept conversation.
pub fn get(store: &Store, id: &str) -> Conversation {
    store.get(&Owner::local(), id).expect("can be read").expect("is there")
}

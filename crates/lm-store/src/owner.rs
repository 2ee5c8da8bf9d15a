//! Owners of conversations.

use std::fmt::Write as _;

/// Owner of conversations: the user of this machine, or the holder of a server's key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Owner(String);

impl Owner {
    /// The user of this machine: `lm chat`, and the page of a server without keys.
    pub fn local() -> Self {
        Self(String::new())
    }

    /// The holder of a key, by the key's digest; the key itself is not kept.
    pub fn of_key(digest: &[u8; 32]) -> Self {
        Self(digest.iter().fold("key-".to_owned(), |mut text, byte| {
            let _ = write!(text, "{byte:02x}");
            text
        }))
    }

    /// Name in the database.
    pub(crate) fn name(&self) -> &str {
        &self.0
    }
}

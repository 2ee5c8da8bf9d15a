//! Ids of stored conversations.

use std::fmt;
use std::str::FromStr;

/// Id of a conversation in a [`ConversationStore`](crate::ConversationStore): 1 to 64 ASCII letters, digits,
/// `-` and `_`. An id from outside, such as a part of a URL, is converted by [`FromStr`]; it cannot name
/// another file.
///
/// ```
/// use lm_conversation::ConversationId;
///
/// let id: ConversationId = "user-17_Chat".parse()?;
/// assert_eq!(id.as_str(), "user-17_Chat");
/// let error = "../etc/passwd".parse::<ConversationId>().expect_err("no id");
/// assert_eq!(error.to_string(), "`.` at byte 0 of a conversation's id, expected ASCII letters, digits, `-` and `_`");
/// # Ok::<(), lm_conversation::InvalidId>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ConversationId(String);

/// Error of a text that is not a [`ConversationId`].
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum InvalidId {
    /// Empty or too long.
    #[error("a conversation's id of {bytes} bytes, expected 1 to {}", ConversationId::MAX_BYTES)]
    Length {
        /// Its length.
        bytes: usize,
    },
    /// An invalid character.
    #[error("`{}` at byte {at} of a conversation's id, expected ASCII letters, digits, `-` and `_`", character.escape_debug())]
    Character {
        /// The character.
        character: char,
        /// Position of its first byte.
        at: usize,
    },
}

impl ConversationId {
    /// Maximum length.
    pub const MAX_BYTES: usize = 64;

    /// The id as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl FromStr for ConversationId {
    type Err = InvalidId;

    fn from_str(text: &str) -> Result<Self, InvalidId> {
        if text.is_empty() || text.len() > Self::MAX_BYTES {
            return Err(InvalidId::Length { bytes: text.len() });
        }
        let allowed = |c: char| c.is_ascii_alphanumeric() || c == '-' || c == '_';
        match text.char_indices().find(|&(_, c)| !allowed(c)) {
            Some((at, character)) => Err(InvalidId::Character { character, at }),
            None => Ok(Self(text.to_owned())),
        }
    }
}

impl fmt::Display for ConversationId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

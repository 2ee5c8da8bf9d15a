//! Conversion to messages.

use lm_template::{Message, Value, messages_from_json};

use crate::error::Result;

/// Conversion to messages from text (a message of the user), a message, several, or any of these as JSON.
pub trait IntoMessages {
    /// Converts to messages.
    ///
    /// # Errors
    /// When a JSON value is not a message.
    fn into_messages(self) -> Result<Vec<Message>>;
}

impl IntoMessages for &str {
    fn into_messages(self) -> Result<Vec<Message>> {
        Ok(vec![Message::user(self)])
    }
}

impl IntoMessages for String {
    fn into_messages(self) -> Result<Vec<Message>> {
        Ok(vec![Message::user(self)])
    }
}

impl IntoMessages for Message {
    fn into_messages(self) -> Result<Vec<Message>> {
        Ok(vec![self])
    }
}

impl IntoMessages for Vec<Message> {
    fn into_messages(self) -> Result<Vec<Message>> {
        Ok(self)
    }
}

impl IntoMessages for &[Message] {
    fn into_messages(self) -> Result<Vec<Message>> {
        Ok(self.to_vec())
    }
}

impl IntoMessages for Value {
    fn into_messages(self) -> Result<Vec<Message>> {
        Ok(messages_from_json(self)?)
    }
}

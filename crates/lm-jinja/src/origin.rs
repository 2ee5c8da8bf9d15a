//! Origin of text.

/// Origin of a piece of text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Origin {
    /// The template itself, or a variable that counts as part of it.
    Template,
    /// A variable with content, such as a message.
    Content,
}

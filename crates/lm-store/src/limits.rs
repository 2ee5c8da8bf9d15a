//! Limits of conversations.

use std::time::Duration;

/// Longest wait for another program that writes.
pub(crate) const BUSY: Duration = Duration::from_secs(5);

/// Limits of kept conversations. All sizes are in bytes.
#[derive(Debug)]
pub struct Limits;

impl Limits {
    /// Length of an id of a conversation or message.
    pub const ID: usize = 64;
    /// Characters of a title; longer ones are cut.
    pub const TITLE: usize = 200;
    /// Text of a message.
    pub const CONTENT: usize = 8 << 20;
    /// Further fields of a message, as JSON. Larger `parts` of a tool's result are dropped.
    pub const FIELDS: usize = 8 << 20;
    /// Settings of a conversation, as JSON.
    pub const SETTINGS: usize = 1 << 20;
    /// Messages of a conversation, all branches counted.
    pub const MESSAGES: usize = 20_000;
    /// Images and audio of a message.
    pub const MEDIA: usize = 64;
    /// An image or audio clip as a data URL; larger ones are dropped.
    pub const MEDIUM: usize = 12 << 20;
    /// All images and audio of the store; the oldest are dropped.
    pub const ALL_MEDIA: usize = 512 << 20;
    /// A line of an import.
    pub const LINE: usize = 256 << 20;
}

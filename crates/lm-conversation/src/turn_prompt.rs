//! Prompt of a turn as tokens, and the change of the history when the turn is complete.

use std::sync::Arc;

use lm_session::{ImageOptions, Media, TokenId};
use lm_template::{Message, Polyfill};

use crate::overflow::{DroppedHistory, DroppedTurns};

/// Prompt of a turn, and the change of the history when it is complete.
#[derive(Debug, Clone, Default)]
pub(crate) struct TurnPrompt {
    /// The prompt, with the start of the reply, if any.
    pub(crate) ids: Vec<TokenId>,
    /// Media of the prompt.
    pub(crate) media: Vec<Arc<Media>>,
    /// Number of trailing ids that belong to the reply.
    pub(crate) written: usize,
    /// The template's own text before the reply.
    pub(crate) tail: String,
    pub(crate) polyfills: Vec<Polyfill>,
    pub(crate) change: HistoryChange,
    /// Turns dropped from this prompt that were in the previous one.
    pub(crate) dropped: Option<DroppedTurns>,
    /// Text and reasoning of the reply before `written`.
    pub(crate) before: (String, String),
    /// Prompt of the running turn alone, if the reply may continue in a sliding window.
    pub(crate) sinks: Option<SinkPrompt>,
}

/// Prompt without earlier turns, which stays when the reply exceeds the context.
#[derive(Debug, Clone)]
pub(crate) struct SinkPrompt {
    pub(crate) ids: Vec<TokenId>,
    /// Number of history messages that it omits.
    pub(crate) dropped: usize,
    /// Number of turns that it omits and the first prompt includes.
    pub(crate) turns: usize,
}

/// HistoryChange of the history by a complete turn, besides the reply.
#[derive(Debug, Clone, Default)]
pub(crate) struct HistoryChange {
    /// Messages sent.
    pub(crate) messages: Vec<Message>,
    /// Options of their images, if the turn has its own.
    pub(crate) image_options: Option<ImageOptions>,
    /// The last message of the history, if the reply takes its place.
    pub(crate) continues: Option<Message>,
    /// Number of history messages omitted from prompts, and their place.
    pub(crate) dropped: usize,
    pub(crate) place: DroppedHistory,
}

/// Tokens of a reply that was cut off: its prompt, and what it continues.
#[derive(Debug, Clone)]
pub(crate) struct CutReply {
    pub(crate) ids: Vec<TokenId>,
    pub(crate) media: Vec<Arc<Media>>,
    pub(crate) written: usize,
    pub(crate) tail: String,
    pub(crate) polyfills: Vec<Polyfill>,
    pub(crate) before: (String, String),
}

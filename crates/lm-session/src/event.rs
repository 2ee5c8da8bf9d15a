//! What a generation yields.

use std::ops::Range;

use crate::{Timing, TokenId, Usage};

/// One item of a [`crate::Generation`].
#[derive(Clone, Debug, PartialEq)]
pub enum SessionEvent {
    /// One sampled token, which is now part of [`crate::Session::tokens`].
    Token {
        /// The token; an end token and the last token of a stop string are events too.
        id: TokenId,
        /// Text that became certain with it. Empty for an end token, for a part of a character and for what may be
        /// the start of a stop string; such text comes with a later token or not at all.
        text: String,
        /// The texts of added tokens in `text`, in order, each as a whole. All other text is spelled by ordinary tokens,
        /// also where it reads as an added one does.
        added: Vec<Range<usize>>,
    },
    /// The last event.
    Finished(Finished),
}

/// How a generation ended and what it cost.
#[derive(Clone, Debug, PartialEq)]
pub struct Finished {
    /// Why it ended.
    pub reason: FinishReason,
    /// Token counts.
    pub usage: Usage,
    /// Durations.
    pub timing: Timing,
    /// Whether a constrained text was brought to its end because its tokens ran out; `None` when the model ended it itself, or
    /// nobody did.
    pub steered: Option<Steered>,
}

/// How a constrained text was brought to its end within its tokens.
///
/// A sampled token after which no end is known that fits is not taken: in its place stands the next token of the end that was known
/// before it, or another sampled one where the text may end anyway.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Steered {
    /// Output tokens before the first one that stands in the place of a sampled one.
    pub from: usize,
    /// How many stand in the place of sampled ones.
    pub tokens: usize,
    /// How often a sampled token was not taken because no end at all was found after it, within the bounds of the search: there may
    /// be one, that even fits. Zero for grammars, within wide bounds.
    pub unfound: usize,
}

/// Why a generation ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FinishReason {
    /// The model sampled one of its end tokens or a token of [`crate::SessionConfig::stop_ids`]; or its constraint allowed nothing
    /// more.
    EndToken,
    /// The text came to hold this stop string. It and what follows it are not emitted.
    StopString(String),
    /// As many tokens were generated as were allowed.
    MaxOutputTokens,
    /// The session holds [`crate::Engine::context_tokens`] tokens.
    ContextFull,
    /// The request's [`crate::CancelHandle`] was set. Text still held back is dropped.
    Cancelled,
}

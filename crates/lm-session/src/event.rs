//! Events of a generation.

use std::ops::Range;

use serde::{Deserialize, Serialize};

use crate::metrics::{Timing, Usage};
use crate::sampling::{Masked, TokenLogprobs};
use lm_tokenizer::TokenId;

/// One item of a [`crate::Generation`].
#[derive(Clone, Debug, PartialEq)]
pub enum SessionEvent {
    /// A step of the prompt's prefill has run. Omitted if the session has stored the logits of the whole
    /// prompt.
    Prefill(PrefillProgress),
    /// Log probabilities of the prompt's tokens except the first, if
    /// [`crate::GenerateParams::prompt_logprobs`] is set. Sent once, before the first token.
    PromptLogprobs(Vec<TokenLogprobs>),
    /// A generated token, which is now part of [`crate::Session::tokens`].
    Token {
        /// The token; an end token and the last token of a stop string have events too.
        id: TokenId,
        /// Text that became final with it. Empty for an end token, for an incomplete character and for a
        /// possible start of a stop string; held-back text follows with a later token or is dropped.
        text: String,
        /// Byte ranges of added tokens in `text`, in order, each a whole token. All other text belongs to
        /// ordinary tokens, even if it looks like an added one.
        added: Vec<Range<usize>>,
        /// Its log probabilities, if [`crate::GenerateParams::logprobs`] is set.
        logprobs: Option<TokenLogprobs>,
        /// True from the first token on that steering replaced ([`Steered::from`]): the text is no longer the
        /// model's.
        steered: bool,
    },
    /// The last event.
    Finished(Finished),
}

/// Progress of a prefill.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PrefillProgress {
    /// Tokens of the prompt that were found in the KV cache.
    pub cached_tokens: usize,
    /// Tokens run so far.
    pub prefilled_tokens: usize,
    /// Tokens of the prompt; the prefill is complete when the two others sum to it.
    pub prompt_tokens: usize,
}

/// Outcome and statistics of a generation.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Finished {
    /// Reason for the end.
    pub reason: FinishReason,
    /// Token counts.
    pub usage: Usage,
    /// Durations.
    pub timing: Timing,
    /// Seed of the sampler, given or drawn; it reproduces the generation. `None` when greedy.
    pub seed: Option<u64>,
    /// Steering of a constrained text whose tokens ran out; `None` when the text was not steered.
    pub steered: Option<Steered>,
    /// Effect of the constraint's masks; `None` without a constraint.
    #[serde(default)]
    pub masked: Option<Masked>,
}

impl Finished {
    /// Returns true if a limit truncated the output: the tokens ran out, or a constrained text was steered to
    /// its end before.
    pub fn is_cut_off(&self) -> bool {
        matches!(self.reason, FinishReason::MaxOutputTokens | FinishReason::ContextFull)
            || self.steered.is_some()
    }
}

/// Steering of a constrained text to its end within the token limit.
///
/// A sampled token is rejected if no fitting completion is known after it. It is replaced by the next token
/// of the completion known before it, or by another sampled token if the text may end anyway.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Steered {
    /// Number of output tokens before the first replaced one.
    pub from: usize,
    /// Number of replaced tokens.
    pub tokens: usize,
    /// Number of rejected tokens without any completion within the bounds of the search: one may exist, and
    /// even fit. Zero for grammars, within wide bounds.
    pub unfound: usize,
}

/// Reason for the end of a generation.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FinishReason {
    /// The model sampled one of its end tokens or a token of [`crate::SessionConfig::stop_ids`], or its
    /// constraint allows no further token.
    EndToken,
    /// The text contains this stop string. The stop string and the text after it are not emitted.
    StopString(String),
    /// The maximum number of output tokens was generated.
    MaxOutputTokens,
    /// The session holds [`crate::Engine::context_tokens`] tokens.
    ContextFull,
    /// The request was cancelled with its [`crate::CancelHandle`], by dropping its session, or by a later
    /// call on the session. Text still held back is dropped.
    Cancelled,
    /// [`crate::GenerateParams::deadline`] has passed. Text still held back is dropped.
    DeadlineExceeded,
}

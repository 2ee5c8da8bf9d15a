//! Events and reply of a turn.

use lm_processors::{UnenforcedKeyword, random_id};
use lm_session::{Finished, PrefillProgress, TokenId, TokenLogprobs, Tokenizer};
use lm_template::{Content, Message, Polyfill, ToolCall, Value};
use serde::Serialize;
use serde_json::json;

use crate::call_filter::CutCall;
use crate::overflow::{ContextShift, DroppedTurns};

/// The model's complete reply to a turn.
///
/// It serialises to an object with these fields; the message is in the form of chat templates.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Reply {
    /// Id of the turn: `run-` and random digits, unique over conversations and restarts.
    pub id: String,
    /// Name of the model ([`Engine::name`](lm_session::Engine::name)).
    pub model: String,
    /// The text as the model wrote it, with the markers of channels and calls and without the end token. The
    /// reply of [`continue_reply`](crate::Conversation::continue_reply) has the text before it if its tokens
    /// were known.
    pub raw: String,
    /// The assistant's message, as stored in the history. Its calls have ids.
    pub message: Message,
    /// Finish reason, usage and timing.
    pub finish: Finished,
    /// Keywords of the tools' and the answer's schemas that were not enforced during generation. Complete
    /// calls and answers are validated against them, and resampled when they violate them.
    pub unenforced: Vec<UnenforcedKeyword>,
    /// Number of times that it was resampled, from a rejected call or answer on. Discarded tokens are not in
    /// [`Finished::usage`].
    pub resampled: usize,
    /// Changes made to the conversation for features that the template lacks.
    pub polyfills: Vec<Polyfill>,
    /// The call that the token limit cut off; it is not among the message's calls.
    pub cut_call: Option<CutCall>,
    /// Number of output tokens of reasoning, with the marker before it and without the one after it.
    pub reasoning_tokens: usize,
}

impl Reply {
    /// Creates a reply with an id, and with defaults in all other fields: nothing left out, changed or
    /// repeated, and no raw text.
    pub fn new(message: Message, finish: Finished) -> Self {
        Self {
            id: random_id("run-"),
            model: String::new(),
            raw: String::new(),
            message,
            finish,
            unenforced: Vec::new(),
            resampled: 0,
            polyfills: Vec::new(),
            cut_call: None,
            reasoning_tokens: 0,
        }
    }

    /// Text of the answer; empty if the reply consists of tool calls only.
    pub fn text(&self) -> String {
        self.message.content.text()
    }

    /// Tool calls, in order.
    pub fn tool_calls(&self) -> &[ToolCall] {
        &self.message.tool_calls
    }

    /// Converts the message to JSON with its content as a list of parts, as LiteRT-LM does.
    pub fn to_json(&self) -> Value {
        let mut message = self.message.to_json();
        if let (Some(message), Content::Text(text)) = (message.as_object_mut(), &self.message.content) {
            message.insert("content".to_owned(), json!([{"type": "text", "text": text}]));
        }
        message
    }
}

/// An event of a turn.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
#[expect(clippy::large_enum_variant, reason = "the large one comes once a turn")]
pub enum ConversationEvent {
    /// The prompt exceeded the context, and the oldest turns are not part of it; the first event of such a
    /// turn.
    Dropped(DroppedTurns),
    /// The reply reached the end of the context and continues in a sliding window
    /// ([`Overflow::SlidingWindow`](crate::Overflow::SlidingWindow)).
    ContextShift(ContextShift),
    /// A step of the prompt's prefill has run.
    Prefill(PrefillProgress),
    /// Log probabilities of the prompt's tokens but the first, requested by
    /// [`TurnOptions::prompt_logprobs`](crate::TurnOptions::prompt_logprobs). Once, before the first token of
    /// the reply.
    PromptLogprobs(Vec<ScoredToken>),
    /// Further text of the answer, never empty.
    Text(String),
    /// Further text of the reasoning, never empty.
    Reasoning(String),
    /// Further text of another channel, one of
    /// [`ConversationConfig::channels`](crate::ConversationConfig::channels), never empty.
    Channel {
        /// Name of the channel.
        name: String,
        /// The text.
        text: String,
    },
    /// The model has started a tool call.
    ToolCallStarted {
        /// Index of the call in the reply, from 0.
        index: usize,
        /// The tool, if the model names it before the arguments.
        name: Option<String>,
        /// Id of the call, if the model writes one before the arguments. Calls of other models get theirs
        /// with [`ToolCall`](Self::ToolCall).
        id: Option<String>,
    },
    /// Further text of a call's arguments as JSON: the fragments of a call concatenate to the text of its
    /// arguments.
    ToolCallArguments {
        /// Index of the call in the reply.
        index: usize,
        /// The text.
        fragment: String,
    },
    /// A call is complete.
    ToolCall(ToolCall),
    /// Log probabilities of the next token of the reply, requested by
    /// [`TurnOptions::logprobs`](crate::TurnOptions::logprobs). There is one for each token but the end
    /// token, markup and reasoning included, before the events that the token causes.
    Logprobs(ScoredToken),
    /// The turn is over and is in the history.
    Finished(Reply),
}

impl ConversationEvent {
    /// Converts the event to a message chunk of LiteRT-LM's stream: a message with the new part, and an empty
    /// one at the end. `None` for the steps of a call, which are not streamed there.
    pub fn to_json(&self) -> Option<Value> {
        match self {
            Self::Text(text) => {
                Some(json!({"role": "assistant", "content": [{"type": "text", "text": text}]}))
            }
            Self::Reasoning(text) => Some(json!({"role": "assistant", "channels": {"reasoning": text}})),
            Self::Channel { name, text } => Some(json!({"role": "assistant", "channels": {name: text}})),
            Self::ToolCall(call) => Some(json!({"role": "assistant", "tool_calls": [call]})),
            Self::Finished(_) => Some(json!({})),
            Self::Dropped(_)
            | Self::ContextShift(_)
            | Self::Prefill(_)
            | Self::PromptLogprobs(_)
            | Self::ToolCallStarted { .. }
            | Self::ToolCallArguments { .. }
            | Self::Logprobs(_) => None,
        }
    }
}

/// A token of a reply or a prompt with its log probability, and the most probable tokens in its place.
///
/// The distribution is that of [`lm_session::TokenLogprobs`].
#[derive(Debug, Clone, PartialEq)]
pub struct ScoredToken {
    /// The token.
    pub token: TokenLogprob,
    /// The most probable tokens, in descending order.
    pub top: Vec<TokenLogprob>,
}

/// Text and log probability of a token.
#[derive(Debug, Clone, PartialEq)]
pub struct TokenLogprob {
    /// Id of the token.
    pub id: TokenId,
    /// Bytes of its text, which may be a part of a character.
    pub bytes: Vec<u8>,
    /// Natural logarithm of its probability.
    pub logprob: f32,
}

impl ScoredToken {
    /// Adds the tokens' texts to log probabilities.
    pub fn new(id: TokenId, logprobs: &TokenLogprobs, tokenizer: &Tokenizer) -> Self {
        let token = |id, logprob| TokenLogprob { id, bytes: tokenizer.token_bytes(id).to_vec(), logprob };
        let top = logprobs.top.iter().map(|&(id, logprob)| token(id, logprob)).collect();
        Self { token: token(id, logprobs.logprob), top }
    }
}

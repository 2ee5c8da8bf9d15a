#![doc = include_str!("../README.md")]
#![forbid(unsafe_code)]

mod config;
mod conversation;
mod error;
mod event;
mod into_messages;
mod marker_tokens;
mod rendered;
mod reply_checks;
mod reply_reader;
mod reply_rules;
mod resampling;
mod stream;
mod thinking;
mod turn;

pub use config::{ConstrainCalls, ConversationConfig, TurnOptions};
pub use conversation::Conversation;
pub use error::{Error, Result};
pub use event::{ConversationEvent, Reply, ScoredToken, TokenLogprob};
pub use into_messages::IntoMessages;
pub use lm_processors::{Calls, ModelDataProcessor, OnMalformed, Relaxed, ResponseFormat, ToolChoice};
pub use lm_session::{
    CancelHandle, Constraint, Device, Engine, EngineSettings, FinishReason, Finished, LoadOptions,
    LoadProgress, ModelFolder, SamplerParams, SessionConfig, Timing, TokenId, Usage, WeightFormat,
};
pub use lm_template::{
    Content, GenerationPrompt, Map, Message, Part, Polyfill, Polyfills, Preface, PromptTemplate, Role,
    ToolCall, ToolSpec, Value,
};
pub use rendered::{ContentTokens, RenderedPrompt};
pub use stream::Stream;
pub use thinking::{ThinkingConfig, ThinkingMode};

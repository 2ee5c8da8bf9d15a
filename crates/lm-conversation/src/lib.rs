#![doc = include_str!("../README.md")]
#![forbid(unsafe_code)]

mod call_ids;
mod config;
mod conversation;
mod error;
mod event;
mod into_messages;
mod rendered;
mod stream;
mod turn;

pub use config::{ConversationConfig, TurnOptions};
pub use conversation::Conversation;
pub use error::{Error, Result};
pub use event::{ConversationEvent, Reply};
pub use into_messages::IntoMessages;
pub use lm_processors::{ModelDataProcessor, OnMalformed};
pub use lm_session::{
    CancelHandle, Device, Engine, EngineSettings, FinishReason, Finished, LoadOptions, LoadProgress,
    ModelFolder, SamplerParams, SessionConfig, Timing, TokenId, Usage, WeightFormat,
};
pub use lm_template::{
    Content, GenerationPrompt, Map, Message, Part, Preface, PromptTemplate, Role, ToolCall, ToolSpec, Value,
};
pub use rendered::{ContentTokens, RenderedPrompt};
pub use stream::Stream;

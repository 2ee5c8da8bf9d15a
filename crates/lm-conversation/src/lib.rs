#![doc = include_str!("../README.md")]
#![forbid(unsafe_code)]

mod call_filter;
mod config;
mod conversation;
mod detached;
mod error;
mod event;
mod history_cut;
mod into_messages;
mod marker_tokens;
mod media;
mod media_part;
mod model_template;
mod overflow;
mod prompt;
mod rendered;
mod reply_checks;
mod reply_reader;
mod reply_rules;
mod resampling;
mod saved;
mod saving;
mod score;
mod send;
mod shared_state;
mod store;
mod thinking;
mod tools_note;
mod turn;
mod turn_progress;
mod turn_prompt;
mod turn_settings;
mod typed_answer;
mod window;

pub use call_filter::CutCall;
pub use config::{ConstrainCalls, ConversationConfig, CutCalls, OnCancel, OnTokenLimit, TurnOptions};
pub use conversation::Conversation;
pub use detached::DetachedTurn;
pub use error::{Error, Result};
pub use event::{ConversationEvent, Reply, ScoredToken, TokenLogprob};
pub use history_cut::HistoryCut;
pub use into_messages::IntoMessages;
pub use lm_processors::{
    CallIdForm, Calls, Channel, ModelDataProcessor, OnMalformed, Processor, ResponseFormat, ToolChoice,
    UnenforcedKeyword, UnmarkedCalls,
};
pub use lm_session::{
    CancelHandle, Constraint, Device, DraftModel, EmbedParams, Engine, EngineSettings, FinishReason,
    Finished, ImageOptions, LoadOptions, LoadProgress, ModelFolder, Pooling, PrefillProgress, PrefillStats,
    SamplerParams, SaveOptions, SavedCache, SavedError, SavedTokens, SessionConfig, Timing, TokenId, Usage,
    WeightFormat,
};
pub use lm_template::{
    Content, GenerationPrompt, Map, Message, Part, Polyfill, Polyfills, Preface, PromptTemplate, Role,
    ToolCall, ToolSpec, Value,
};
pub use media::{MediaFiles, MediaSettings};
pub use overflow::{ContextShift, DroppedHistory, DroppedTurns, Overflow};
pub use rendered::{ContentTokens, RenderedPrompt};
pub use saved::SavedConversation;
pub use score::ReplyScore;
pub use send::TurnBuilder;
pub use store::{ConversationId, ConversationStore, FolderStore, InvalidId, MemoryStore};
pub use thinking::{ThinkingConfig, ThinkingMode};
pub use tools_note::ToolsNote;
pub use turn::{Turn, TurnStream};
pub use typed_answer::answer_format;

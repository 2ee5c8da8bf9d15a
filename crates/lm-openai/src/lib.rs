#![doc = include_str!("../README.md")]
#![forbid(unsafe_code)]

mod batch;
mod chunks;
mod completions;
mod embeddings;
mod error;
mod error_map;
mod fields;
mod head;
mod limits;
mod logprobs;
mod messages;
mod request;
mod response;
mod response_format;
mod running;
mod sampling;
mod tools;

pub use batch::{BatchAnswer, BatchLine, BatchReader, BatchRequest};
pub use chunks::ChunkWriter;
pub use completions::ChatCompletions;
pub use embeddings::{EmbeddingEncoding, EmbeddingInput, EmbeddingRequest, Embeddings};
pub use error::{ApiError, Result};
pub use head::{CompletionHead, random_id};
pub use limits::Limits;
pub use lm_conversation::{
    CancelHandle, ConversationConfig, ConversationEvent, Engine, Message, Preface, Reply, ResponseFormat,
    SamplerParams, ScoredToken, ToolChoice, ToolSpec, TurnOptions, Value,
};
pub use lm_session::{AdapterId, Pooling};
pub use request::{ChatRequest, StreamOptions};
pub use response::{Choice, completion};
pub use response_format::response_format;
pub use running::{ChunkStream, Chunks, RunningCompletion};
pub use sampling::SamplingFields;
pub use tools::{tool_choice, tool_choice_word};

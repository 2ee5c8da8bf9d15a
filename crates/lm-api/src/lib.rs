#![doc = include_str!("../README.md")]
#![forbid(unsafe_code)]

mod anthropic;
mod batch;
mod builtin_tools;
mod call_deltas;
mod chat;
mod chat_completions;
mod client_tools;
mod completions;
mod continuation;
mod embeddings;
mod error;
mod error_map;
mod fields;
mod ids;
mod limits;
mod media;
mod messages;
mod min_tokens;
mod model_names;
mod ollama;
mod reasoning;
mod request;
mod request_body;
mod rerank;
mod response_writer;
mod responses;
mod running;
mod sampling;
mod text_inputs;
mod timings;
mod tools;
mod truncation;
mod unsupported_fields;

pub use anthropic::{AnthropicRequest, MessageWriter, anthropic_error};
pub use batch::{BatchAnswer, BatchLine, BatchReader, BatchRequest};
pub use chat::{ChatCompletions, ChatEngine, RunningCompletion};
pub use chat_completions::{
    ChunkWriter, CompletionHead, completion, response_format, tool_choice, tool_choice_word,
};
pub use completions::{CompletionRequest, InfillWriter, TextWriter};
pub use embeddings::{EmbeddingEncoding, EmbeddingPrompt, EmbeddingRequest, Embeddings};
pub use error::{ApiError, PromptLength, Result};
pub use fields::Fields;
pub use ids::random_id;
pub use limits::Limits;
pub use lm_conversation::{
    CancelHandle, ConversationConfig, ConversationEvent, Engine, Message, Preface, RenderedPrompt, Reply,
    ResponseFormat, SamplerParams, ScoredToken, ToolChoice, ToolSpec, TurnOptions, Value,
};
pub use lm_session::{AdapterId, Pooling};
pub use lm_template::json_from_slice;
pub use media::media_parts;
pub use model_names::find_model;
pub use ollama::{
    KeepAlive, OllamaLoad, OllamaRequest, OllamaWriter, ollama_embed, ollama_embeddings, ollama_error,
    ollama_time,
};
pub use request::{ChatRequest, StreamOptions};
pub use request_body::RequestBody;
pub use rerank::{Ranked, RerankRequest, Reranker};
pub use response_writer::{Choice, Frame, Framing, ResponseWriter};
pub use responses::{
    CompactionRequest, CompactionWriter, Conversations, ResponseStore, ResponsesRequest, ResponsesWriter,
    StoredResponse, item_page,
};
pub use running::{FrameStream, Frames, Running, StreamError};
pub use sampling::SamplingFields;
pub use text_inputs::{TextInput, TextInputs};

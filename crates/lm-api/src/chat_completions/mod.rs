//! OpenAI's chat completions.

mod fields;
mod head;
mod logprobs;
mod request;
mod response;
mod response_format;
mod tools;
mod writer;

use lm_conversation::{ConversationConfig, Engine};
use serde_json::Value;

use crate::chat::ChatEngine;
use crate::error::Result;
use crate::request::ChatRequest;
use crate::running::{Frames, Running};

pub(crate) use fields::{FORMATS, MESSAGES, STREAM, TOOL_CHOICE};
pub use head::CompletionHead;
pub(crate) use logprobs::finite;
pub(crate) use request::{NAMES, choices, min_tokens, stream};
pub use response::completion;
pub(crate) use response::{finish_reason, usage};
pub use response_format::response_format;
pub(crate) use response_format::{answer_format, response_format_at};
pub(crate) use tools::choice_among;
pub use tools::{tool_choice, tool_choice_word};
pub use writer::ChunkWriter;

/// Chat completions on an engine. Requests may run on any number of threads; the engine batches them.
///
/// ```
/// use lm_api::{ChatCompletions, ChatRequest, ConversationConfig};
/// use serde_json::json;
///
/// # let engine = lm_session::testing::scripted_engine(["Hello!"]);
/// # let template = lm_conversation::PromptTemplate::new("{% for m in messages %}{{ m.content }}\n{% endfor %}").expect("compiles");
/// # let config = ConversationConfig { template: Some(template), ..ConversationConfig::from_engine(&engine) };
/// // In a program: `Engine::load(..)`, and `ConversationConfig::from_engine(&engine)`.
/// let completions = ChatCompletions::new(engine, config);
/// let request = ChatRequest::from_json(json!({"messages": [{"role": "user", "content": "Hi."}]}))?;
/// let object = completions.complete(request)?;
/// assert_eq!(object["choices"][0]["message"]["content"], "Hello!");
/// # Ok::<(), lm_api::ApiError>(())
/// ```
#[derive(Debug, Clone)]
pub struct ChatCompletions(ChatEngine);

/// A chat completion that runs.
pub type RunningCompletion = Running<ChunkWriter>;

impl ChatCompletions {
    /// Creates completions on an engine. `config` has the values of absent fields; its preface is not used.
    pub fn new(engine: Engine, config: ConversationConfig) -> Self {
        Self(ChatEngine::new(engine, config))
    }

    /// Answers a request with a completion object; it blocks. Its choices run concurrently.
    ///
    /// # Errors
    /// When the request is invalid for the model, or its execution fails.
    pub fn complete(&self, request: ChatRequest) -> Result<Value> {
        self.start(request)?.wait()
    }

    /// Answers a request with an iterator over the frames of the response, whose data are chunks.
    ///
    /// # Errors
    /// When the request is invalid for the model.
    pub fn stream(&self, request: ChatRequest) -> Result<Frames<ChunkWriter>> {
        Ok(self.start(request)?.frames())
    }

    /// Starts a request, as [`ChatEngine::start`].
    ///
    /// # Errors
    /// As [`ChatEngine::start`].
    pub fn start(&self, request: ChatRequest) -> Result<RunningCompletion> {
        self.0.start(request, ChunkWriter::for_request)
    }
}

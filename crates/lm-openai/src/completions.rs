//! Execution of requests on an engine.

use lm_conversation::{Conversation, ConversationConfig, Engine, TurnOptions};
use serde_json::Value;

use crate::error::Result;
use crate::head::CompletionHead;
use crate::request::ChatRequest;
use crate::running::{Chunks, RunningCompletion};

/// Chat completions on an engine. Requests may run on any number of threads; the engine batches them.
///
/// ```
/// use lm_openai::{ChatCompletions, ChatRequest, ConversationConfig};
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
/// # Ok::<(), lm_openai::ApiError>(())
/// ```
#[derive(Debug, Clone)]
pub struct ChatCompletions {
    engine: Engine,
    config: ConversationConfig,
}

impl ChatCompletions {
    /// Creates completions on an engine. `config` has the values of absent fields; its preface is not used.
    pub fn new(engine: Engine, config: ConversationConfig) -> Self {
        Self { engine, config }
    }

    /// Answers a request with a completion object; it blocks. Its choices run concurrently.
    ///
    /// # Errors
    /// When the request is invalid for the model, or its execution fails.
    pub fn complete(&self, request: ChatRequest) -> Result<Value> {
        self.start(request)?.wait()
    }

    /// Answers a request with an iterator over the chunks of the response.
    ///
    /// # Errors
    /// When the request is invalid for the model.
    pub fn stream(&self, request: ChatRequest) -> Result<Chunks> {
        Ok(self.start(request)?.chunks())
    }

    /// Starts a request: renders its prompt, compiles its grammar and submits its choices. Async code calls it on a thread that may block, and
    /// then awaits what it returns.
    ///
    /// # Errors
    /// When the request is invalid for the model, or the engine has no place for it.
    pub fn start(&self, request: ChatRequest) -> Result<RunningCompletion> {
        let cancel = request.turn.cancel.child();
        let turn = |choice| {
            let options = TurnOptions { cancel: cancel.clone(), ..request.turn.clone() };
            Conversation::new(&self.engine, request.config(&self.config, choice))?
                .stream(request.last.clone(), options)
        };
        let turns = (0..request.choices).map(turn).collect::<Result<Vec<_>, _>>();
        let turns = turns.map_err(|error| request.api_error(&error))?;
        let model = request.model.clone().unwrap_or_else(|| self.engine.name().to_owned());
        Ok(RunningCompletion::new(request, CompletionHead::new(model), turns, cancel))
    }
}

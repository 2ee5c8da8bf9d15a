//! Execution of requests on an engine.

use std::collections::VecDeque;

use lm_conversation::{
    CancelHandle, Conversation, ConversationConfig, ConversationEvent, Engine, Turn, TurnOptions,
};
use serde_json::Value;

use crate::chunks::ChunkWriter;
use crate::error::{ApiError, Result};
use crate::head::CompletionHead;
use crate::request::ChatRequest;
use crate::response::{Choice, completion};

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
/// let object = completions.complete(&request)?;
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

    /// Answers a request with a completion object. Its choices run concurrently.
    ///
    /// # Errors
    /// When the request is invalid for the model, or its execution fails.
    pub fn complete(&self, request: &ChatRequest) -> Result<Value> {
        let mut turns = self.turns(request)?;
        let mut replies: Vec<_> = (0..request.choices).map(|_| None).collect();
        let mut scored = vec![Vec::new(); request.choices];
        while let Some(event) = turns.next(request) {
            match event? {
                (choice, ConversationEvent::Finished(reply)) => replies[choice] = Some(reply),
                (choice, ConversationEvent::Logprobs(token)) => scored[choice].push(token),
                _ => {}
            }
        }
        let wants = request.turn.logprobs.is_some();
        let choice = |(reply, scored): (Option<_>, _)| {
            let reply = reply.ok_or_else(|| ApiError::server("a turn ended without a reply"))?;
            Ok(Choice { reply, logprobs: wants.then_some(scored) })
        };
        let choices: Vec<Choice> = replies.into_iter().zip(scored).map(choice).collect::<Result<_>>()?;
        Ok(completion(&self.head(request), &choices))
    }

    /// Answers a request with a stream of chunks. Nothing runs before the first chunk is taken.
    ///
    /// # Errors
    /// When the conversation cannot be created, for example if the model has no chat template.
    pub fn stream(&self, request: ChatRequest) -> Result<ChunkStream> {
        let turns = self.turns(&request)?;
        let writer = ChunkWriter::new(self.head(&request), &request);
        Ok(ChunkStream { request, turns, writer, ready: VecDeque::new(), failed: false })
    }

    fn head(&self, request: &ChatRequest) -> CompletionHead {
        CompletionHead::new(request.model.clone().unwrap_or_else(|| self.engine.name().to_owned()))
    }

    fn turns(&self, request: &ChatRequest) -> Result<Turns> {
        let conversation = |choice| Conversation::new(&self.engine, request.config(&self.config, choice));
        let conversations = (0..request.choices).map(conversation).collect::<Result<Vec<_>, _>>();
        let conversations = conversations.map_err(|error| request.api_error(&error))?;
        let cancel = request.turn.cancel.child();
        Ok(Turns { conversations, running: VecDeque::new(), cancel })
    }
}

/// Concurrent turns of a request's choices.
#[derive(Debug)]
struct Turns {
    /// Choices that have not begun.
    conversations: Vec<Conversation>,
    /// Unfinished choices, the next one to be read first.
    running: VecDeque<(usize, Conversation, Turn)>,
    /// Cancels all choices.
    cancel: CancelHandle,
}

impl Turns {
    /// Waits for the next event of the next choice; the choices take turns. Ends the others at the first error.
    fn next(&mut self, request: &ChatRequest) -> Option<Result<(usize, ConversationEvent)>> {
        if let Err(error) = self.begin(request) {
            return Some(Err(error));
        }
        let (choice, conversation, mut turn) = self.running.pop_front()?;
        let event = turn.next()?;
        match &event {
            Ok(ConversationEvent::Finished(_)) => {}
            Ok(_) => self.running.push_back((choice, conversation, turn)),
            Err(_) => self.running.clear(),
        }
        Some(event.map(|event| (choice, event)).map_err(|error| request.api_error(&error)))
    }

    /// Begins the choices on the first call.
    fn begin(&mut self, request: &ChatRequest) -> Result<()> {
        for (choice, mut conversation) in std::mem::take(&mut self.conversations).into_iter().enumerate() {
            let options = TurnOptions { cancel: self.cancel.clone(), ..request.turn.clone() };
            match conversation.stream(request.last.clone(), options) {
                Ok(turn) => self.running.push_back((choice, conversation, turn)),
                Err(error) => {
                    self.running.clear();
                    return Err(request.api_error(&error));
                }
            }
        }
        Ok(())
    }
}

/// Iterator over the `chat.completion.chunk` objects of one response.
///
/// An error is the last item; a server that has sent a chunk before sends [`ApiError::to_json`] as an event. Dropping the stream
/// cancels the request.
#[derive(Debug)]
#[must_use = "a stream that is dropped is cancelled"]
pub struct ChunkStream {
    request: ChatRequest,
    turns: Turns,
    writer: ChunkWriter,
    ready: VecDeque<Value>,
    failed: bool,
}

impl ChunkStream {
    /// Returns the handle that cancels the request from another thread, also while its prompt is run.
    pub fn canceller(&self) -> CancelHandle {
        self.turns.cancel.clone()
    }
}

impl Iterator for ChunkStream {
    type Item = Result<Value>;

    /// Waits for the next chunk.
    fn next(&mut self) -> Option<Self::Item> {
        loop {
            if let Some(chunk) = self.ready.pop_front() {
                return Some(Ok(chunk));
            }
            if self.failed {
                return None;
            }
            match self.turns.next(&self.request)? {
                Ok((choice, event)) => self.ready.extend(self.writer.chunks(choice, &event)),
                Err(error) => {
                    self.failed = true;
                    return Some(Err(error));
                }
            }
        }
    }
}

//! Chunks of a streamed response.

use lm_conversation::{ConversationEvent, Reply, ScoredToken};
use serde_json::{Value, json};

use super::head::CompletionHead;
use super::logprobs;
use super::response::{call_object, completion_of, finish_reason, usage};
use crate::call_deltas::{CallDelta, CallDeltas};
use crate::client_tools::ClientTools;
use crate::error::ApiError;
use crate::request::ChatRequest;
use crate::response_writer::{Choice, Frame, Framing, ResponseWriter};
use crate::timings::{PromptProgress, timings};

/// Writer of `chat.completion.chunk` objects: the events of each choice's turn in, chunks out.
///
/// A choice opens with its role, and ends with a chunk of its finish reason and durations (`timings`); the
/// usage, if it is requested, comes last. With `return_progress` each step of the prefill has a chunk
/// (`prompt_progress`). A server frames each chunk as `data: …`, and `data: [DONE]` after
/// them.
///
/// ```
/// use lm_api::{ChatRequest, ChunkWriter, CompletionHead, ConversationEvent};
/// use serde_json::json;
///
/// let body = json!({"messages": [{"role": "user", "content": "Hi."}], "stream": true});
/// let request = ChatRequest::from_json(body)?;
/// let mut writer = ChunkWriter::new(CompletionHead::new("my-model"), &request);
/// let chunks = writer.chunks(0, &ConversationEvent::Text("Hello!".to_owned()));
/// let deltas: Vec<_> = chunks.iter().map(|chunk| chunk["choices"][0]["delta"].clone()).collect();
/// assert_eq!(deltas, [json!({"role": "assistant", "content": null}), json!({"content": "Hello!"})]);
/// # Ok::<(), lm_api::ApiError>(())
/// ```
#[derive(Debug)]
pub struct ChunkWriter {
    head: CompletionHead,
    include_usage: bool,
    with_logprobs: bool,
    progress: PromptProgress,
    tools: ClientTools,
    choices: Vec<ChoiceState>,
}

/// State of one choice.
#[derive(Debug)]
struct ChoiceState {
    /// True after the chunk with the role.
    opened: bool,
    deltas: CallDeltas,
    /// Number of calls with a first chunk.
    calls: usize,
    /// True if the last call is of a custom tool.
    is_custom: bool,
    /// Log probabilities for the next chunk.
    logprobs: Vec<ScoredToken>,
    reply: Option<Reply>,
}

impl ChunkWriter {
    /// Creates a writer for the response to a request.
    pub fn new(head: CompletionHead, request: &ChatRequest) -> Self {
        let deltas = CallDeltas::new(request);
        let choice = || ChoiceState {
            opened: false,
            deltas: deltas.clone(),
            calls: 0,
            is_custom: false,
            logprobs: Vec::new(),
            reply: None,
        };
        Self {
            head,
            include_usage: request.stream.is_some_and(|stream| stream.include_usage),
            with_logprobs: request.turn.logprobs.is_some(),
            progress: PromptProgress::new(request),
            tools: request.client_tools.clone(),
            choices: (0..request.choices).map(|_| choice()).collect(),
        }
    }

    /// Creates a writer for the response of a model to a request.
    pub fn for_request(request: &ChatRequest, model: &str) -> Self {
        Self::new(CompletionHead::new(model), request)
    }

    /// Writes the chunks of the next event of a choice.
    ///
    /// # Panics
    /// When the request has no such choice.
    pub fn chunks(&mut self, choice: usize, event: &ConversationEvent) -> Vec<Value> {
        let state = &mut self.choices[choice];
        let mut deltas = Vec::new();
        if !state.opened {
            state.opened = true;
            deltas.push(json!({"role": "assistant", "content": null}));
        }
        deltas.extend(state.delta(event, &self.tools));
        let mut chunks: Vec<Value> =
            deltas.into_iter().map(|delta| self.chunk(choice, delta, None)).collect();
        if let Some(progress) = self.progress.of(event) {
            let mut chunk = self.chunk(choice, json!({}), None);
            chunk["prompt_progress"] = progress;
            chunks.push(chunk);
        }
        if let ConversationEvent::Finished(reply) = event {
            let mut last = self.chunk(choice, json!({}), Some(finish_reason(reply)));
            last["timings"] = timings(reply);
            chunks.push(last);
            self.choices[choice].reply = Some(reply.clone());
            chunks.extend(self.usage());
        }
        chunks
    }

    fn chunk(&mut self, choice: usize, delta: Value, finish_reason: Option<&str>) -> Value {
        let opens = delta.get("role").is_some();
        let scored = if opens { Vec::new() } else { std::mem::take(&mut self.choices[choice].logprobs) };
        let logprobs = (self.with_logprobs && !scored.is_empty()).then(|| logprobs::logprobs(&scored));
        let choice =
            json!({"index": choice, "delta": delta, "logprobs": logprobs, "finish_reason": finish_reason});
        self.chunk_object(vec![choice])
    }

    fn chunk_object(&self, choices: Vec<Value>) -> Value {
        self.head.chunk("chat.completion.chunk", choices, self.include_usage)
    }

    /// Chunk of the usage, when all choices are finished.
    fn usage(&self) -> Option<Value> {
        let replies: Option<Vec<&Reply>> = self.choices.iter().map(|choice| choice.reply.as_ref()).collect();
        let replies = replies.filter(|_| self.include_usage)?;
        let mut chunk = self.chunk_object(Vec::new());
        chunk["usage"] = usage(replies.into_iter(), self.choices.len());
        Some(chunk)
    }
}

impl ResponseWriter for ChunkWriter {
    const FRAMING: Framing = Framing::EventsUntilDone;

    fn object(&mut self, choices: &[Choice]) -> Value {
        completion_of(&self.head, choices, &self.tools)
    }

    fn frames(&mut self, choice: usize, event: &ConversationEvent) -> Vec<Frame> {
        self.chunks(choice, event).into_iter().map(Frame::new).collect()
    }

    fn error(&mut self, error: &ApiError) -> Frame {
        Frame::new(error.to_json())
    }
}

impl ChoiceState {
    /// Writes the delta of an event, if it has one.
    fn delta(&mut self, event: &ConversationEvent, tools: &ClientTools) -> Option<Value> {
        match event {
            ConversationEvent::Text(text) => Some(json!({"content": text})),
            ConversationEvent::Reasoning(text) => Some(json!({"reasoning_content": text})),
            ConversationEvent::Logprobs(scored) => {
                self.logprobs.push(scored.clone());
                None
            }
            event => self.deltas.delta(event).map(|delta| self.call(delta, tools)),
        }
    }

    /// Writes the delta of a call: its id, type and name are in the first one only.
    fn call(&mut self, delta: CallDelta, tools: &ClientTools) -> Value {
        let mut call = match delta {
            CallDelta::Started { id, name, arguments } => {
                self.calls += 1;
                self.is_custom = tools.is_custom(&name);
                call_object(Some(&id), &name, &arguments, tools)
            }
            CallDelta::Arguments(text) if self.is_custom => json!({"custom": {"input": text}}),
            CallDelta::Arguments(text) => json!({"function": {"arguments": text}}),
        };
        call["index"] = (self.calls - 1).into();
        json!({"tool_calls": [call]})
    }
}

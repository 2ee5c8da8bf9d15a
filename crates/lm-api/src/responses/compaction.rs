//! Compaction: a conversation as its user's messages and a summary of the rest.

use lm_conversation::{ConversationEvent, Reply};
use lm_template::{Map, Message};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};

use super::listing::listed;
use super::request::ResponsesRequest;
use super::store::{ResponseStore, identify};
use super::summary;
use super::writer::usage;
use crate::error::{ApiError, Result};
use crate::fields::Fields;
use crate::ids::{random_id, seconds_since_1970};
use crate::limits::Limits;
use crate::request::ChatRequest;
use crate::request_body::RequestBody;
use crate::response_writer::{Choice, Frame, Framing, ResponseWriter};

/// Body of a compaction.
const BODY: RequestBody = RequestBody {
    name: "CompactionRequest",
    groups: &[Body::json_schema],
    unsupported: &[],
    example: r#"{"input": [{"role": "user", "content": "Hello!"}, {"role": "assistant", "content": "Good morning."}]}"#,
};

/// Maximum number of tokens of a summary; at most a quarter of the context as any reply's.
const MAX_TOKENS: usize = 1_024;
/// Request of the summary.
const PROMPT: &str = "Summarise this conversation for the assistant that will continue it: what the user wants, \
what was done and decided, results of tools that are needed further on, and what is left to do. \
Write the summary alone.";

#[derive(Deserialize, JsonSchema)]
struct Body {
    /// Name or alias of a model; the server's first model if absent.
    model: Option<String>,
    /// Text of the user, or items: messages, calls, their results, reasoning.
    #[schemars(extend("type" = ["string", "array", "null"], "items" = {"type": "object"}))]
    input: Option<Value>,
    /// Message of the system before all others; the output does not have it.
    instructions: Option<String>,
    /// Id of the stored response whose items are before the input.
    previous_response_id: Option<String>,
}

/// Request to compact a conversation: the model writes a summary of it.
///
/// ```
/// use lm_api::{CompactionRequest, Limits, ResponseStore};
/// use serde_json::json;
///
/// let body = json!({"input": [{"role": "user", "content": "Hello!"}, {"role": "assistant", "content": "Hi."}]});
/// let request = CompactionRequest::from_json_within(body, &ResponseStore::default(), &Limits::default())?;
/// assert_eq!(request.chat.preface.messages.len(), 2);
/// # Ok::<(), lm_api::ApiError>(())
/// ```
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct CompactionRequest {
    /// The conversation, and the request of a summary as its last message.
    pub chat: ChatRequest,
    /// The user's messages.
    users: Vec<Value>,
}

impl CompactionRequest {
    /// Fields of the request body: their schemas, the required ones, and an example.
    pub const BODY: &RequestBody = &BODY;

    /// Parses a request body within `limits`. `previous_response_id` is looked up in `store`. Unknown fields
    /// are ignored.
    ///
    /// # Errors
    /// When a field is invalid; [`ApiError::param`] names it.
    pub fn from_json_within(body: Value, store: &ResponseStore, limits: &Limits) -> Result<Self> {
        let Body { model, input, instructions, previous_response_id } =
            Fields::open(body, &BODY)?.into_group()?;
        let body = json!({
            "model": model, "input": input, "instructions": instructions,
            "previous_response_id": previous_response_id, "max_output_tokens": MAX_TOKENS,
            // A conversation that does not fit the context is compacted as far as it does.
            "truncation": "auto",
        });
        let ResponsesRequest { mut chat, items, .. } =
            ResponsesRequest::from_json_within(body, store, limits)?;
        let last = std::mem::replace(&mut chat.last, Message::user(PROMPT));
        chat.preface.messages.push(last);
        let is_user =
            |item: &Value| item["role"] == "user" && item.get("type").is_none_or(|kind| kind == "message");
        let users = items.into_iter().filter(is_user).map(listed).collect();
        Ok(Self { chat, users })
    }
}

/// Writer of a compaction: the user's messages and an item of type `compaction`, whose content is the summary
/// in base64 and not encrypted.
#[derive(Debug)]
pub struct CompactionWriter {
    users: Vec<Value>,
}

impl CompactionWriter {
    /// Creates the writer of a request's response.
    pub fn new(request: CompactionRequest) -> Self {
        Self { users: request.users }
    }
}

impl ResponseWriter for CompactionWriter {
    const FRAMING: Framing = Framing::Events;

    fn object(&mut self, choices: &[Choice]) -> Value {
        let reply = choices.first().map(|choice| &choice.reply);
        let mut output = std::mem::take(&mut self.users);
        let content = summary::content(&reply.map(Reply::text).unwrap_or_default());
        output.push(json!({"id": random_id("cmp_"), "type": "compaction", "encrypted_content": content}));
        identify(&mut output, 0);
        let object: [(&str, Value); 5] = [
            ("id", random_id("resp_").into()),
            ("object", "response.compaction".into()),
            ("created_at", seconds_since_1970().into()),
            ("output", output.into()),
            ("usage", reply.map(usage).unwrap_or_default()),
        ];
        object.into_iter().map(|(key, value)| (key.to_owned(), value)).collect::<Map<_, _>>().into()
    }

    /// None: compactions are not streamed.
    fn frames(&mut self, _: usize, _: &ConversationEvent) -> Vec<Frame> {
        Vec::new()
    }

    fn error(&mut self, error: &ApiError) -> Frame {
        Frame::named("error", json!({"message": error.message}))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_conversations_are_cut_after_the_instructions() {
        let body = json!({"instructions": "Be kind.", "input": "Hello!"});
        let request =
            CompactionRequest::from_json_within(body, &ResponseStore::default(), &Limits::default());
        let chat = request.expect("a request").chat;
        assert_eq!(chat.preface.messages, [Message::system("Be kind."), Message::user("Hello!")]);
        assert_eq!(chat.last, Message::user(PROMPT));
        assert!(chat.truncates);
        assert_eq!(chat.max_output_tokens.map(|(_, most)| most), Some(MAX_TOKENS));
    }
}

//! Blocks of users and of the assistant as messages.

use lm_conversation::{Content, Message, Part, Role, ToolCall};
use serde_json::{Map, Value};

use super::content::{Block, CONTENT, content, parts};
use super::documents::{data, is_opaque};
use crate::error::{ApiError, Result};
use crate::fields::json_type;

/// Types of blocks of the assistant without the content that users have, too.
const ASSISTANT: &[&str] = &[
    "thinking",
    "redacted_thinking",
    "tool_use",
    "server_tool_use",
    "mcp_tool_use",
    "*_tool_result",
    "compaction",
    "fallback",
    "mcp_tool_listing",
];

/// Types of blocks that Anthropic's servers write for themselves.
const OPAQUE: &[&str] = &["redacted_thinking", "fallback", "mcp_tool_listing"];

/// Messages that were read.
#[derive(Default)]
pub(super) struct Turns {
    pub messages: Vec<Message>,
    /// Types of blocks that only Anthropic's servers can read.
    pub left_out: Vec<String>,
}

impl Turns {
    fn leave_out(&mut self, kind: &str) {
        if !self.left_out.iter().any(|known| known == kind) {
            self.left_out.push(kind.to_owned());
        }
    }

    /// Adds the blocks of a user's message, in their order; results are messages of their own.
    pub fn user(&mut self, blocks: Vec<Block>) -> Result<()> {
        if blocks.is_empty() {
            self.messages.push(Message::user(""));
        }
        let mut own = Vec::new();
        for mut block in blocks {
            self.note(&block);
            if let Some(parts) = block.parts()? {
                own.extend(parts);
            } else if is_result(&block) {
                if !own.is_empty() {
                    self.messages.push(Message::user(content(std::mem::take(&mut own))));
                }
                self.messages.push(tool_result(block)?);
            } else {
                return Err(block.unexpected(&[CONTENT, &["tool_result"]].concat()));
            }
        }
        if !own.is_empty() {
            self.messages.push(Message::user(content(own)));
        }
        Ok(())
    }

    /// Adds the blocks of an assistant's message. Results of tools that ran on the servers of the API end a
    /// message.
    pub fn assistant(&mut self, blocks: Vec<Block>) -> Result<()> {
        let (mut reply, mut is_begun) = (Reply::default(), false);
        for block in blocks {
            self.note(&block);
            if is_result(&block) {
                self.messages.extend(reply.take());
                self.messages.push(tool_result(block)?);
                is_begun = true;
            } else if !OPAQUE.contains(&block.kind.as_str()) {
                reply.add(block)?;
            }
        }
        // A message without blocks is an empty one.
        self.messages.extend(reply.take().or_else(|| (!is_begun).then(|| Message::assistant(""))));
        Ok(())
    }

    fn note(&mut self, block: &Block) {
        let is_file = block.kind == "container_upload";
        let is_hidden = || block.fields.get("content").is_some_and(is_opaque);
        let is_unread =
            block.kind == "compaction" && !block.fields.get("content").is_some_and(Value::is_string);
        if is_file || is_unread || OPAQUE.contains(&block.kind.as_str()) || (is_result(block) && is_hidden())
        {
            self.leave_out(&block.kind);
        }
    }
}

/// Parts of an assistant's message.
#[derive(Default)]
struct Reply {
    parts: Vec<Part>,
    reasoning: String,
    calls: Vec<ToolCall>,
}

impl Reply {
    fn add(&mut self, mut block: Block) -> Result<()> {
        match block.kind.as_str() {
            "thinking" => self.reasoning += &block.text("thinking")?,
            "reasoning" => self.reasoning += &block.text("text")?,
            "tool_use" | "server_tool_use" | "mcp_tool_use" => self.calls.push(tool_use(block)?),
            "compaction" => {
                let summary = block.fields.remove("content").unwrap_or_default();
                self.parts.extend(summary.as_str().map(|summary| Part::Text(summary.to_owned())));
            }
            // Images are the users' alone.
            "image" => return Err(block.unexpected(&[&["text"], ASSISTANT].concat())),
            _ => {
                let parts = block.parts()?;
                self.parts.extend(parts.ok_or_else(|| block.unexpected(&[CONTENT, ASSISTANT].concat()))?);
            }
        }
        Ok(())
    }

    /// The message of the parts, if there are any.
    fn take(&mut self) -> Option<Message> {
        let Self { parts, reasoning, calls } = std::mem::take(self);
        if parts.is_empty() && reasoning.is_empty() && calls.is_empty() {
            return None;
        }
        let mut message = Message::assistant(content(parts));
        message.tool_calls = calls;
        message.reasoning_content = Some(reasoning).filter(|reasoning| !reasoning.is_empty());
        Some(message)
    }
}

/// Returns true if the block is the result of a tool: the client's, or one that ran on the API's servers.
fn is_result(block: &Block) -> bool {
    block.kind == "tool_result" || block.kind.ends_with("_tool_result")
}

fn tool_result(mut block: Block) -> Result<Message> {
    let id = block.text("tool_use_id")?;
    let is_error = block.fields.get("is_error") == Some(&Value::Bool(true));
    let mut result = match block.fields.remove("content") {
        None | Some(Value::Null) => Vec::new(),
        Some(content) if is_data(&content) => return Ok(data_result(id, data(content), is_error)),
        Some(content) => parts(content, &format!("{}.content", block.at))?,
    };
    if is_error {
        // Templates have no field for it, and the model is to know.
        match result.first_mut() {
            Some(Part::Text(text)) => text.insert_str(0, "error: "),
            _ => result.insert(0, Part::Text("error: ".to_owned())),
        }
    }
    let result = if result.is_empty() { Content::Text(String::new()) } else { content(result) };
    let mut message = Message::new(Role::Tool, result);
    message.tool_call_id = Some(id);
    Ok(message)
}

/// Returns true if the content of a result is an object or a list without blocks of content.
fn is_data(content: &Value) -> bool {
    const MEDIA: [&str; 3] = ["audio", "input_audio", "file"];
    let is_block = |item: &Value| {
        item["type"].as_str().is_some_and(|kind| CONTENT.contains(&kind) || MEDIA.contains(&kind))
    };
    match content {
        Value::Array(items) => !items.iter().all(is_block),
        Value::String(_) => false,
        _ => true,
    }
}

fn data_result(id: String, content: Value, is_error: bool) -> Message {
    let content = if is_error { Content::Text(format!("error: {content}")) } else { Content::Json(content) };
    let mut message = Message::new(Role::Tool, content);
    message.tool_call_id = Some(id);
    message
}

fn tool_use(mut block: Block) -> Result<ToolCall> {
    let (id, name) = (block.text("id")?, block.text("name")?);
    let input = match block.fields.remove("input") {
        None | Some(Value::Null) => Map::new(),
        Some(Value::Object(input)) => input,
        // A call that was cut off.
        Some(Value::String(text)) => return Ok(ToolCall::with_arguments_text(name, text).with_id(id)),
        Some(other) => {
            let at = format!("{}.input", block.at);
            return Err(ApiError::unexpected(at, json_type(&other), "an object"));
        }
    };
    Ok(ToolCall::new(name, input).with_id(id))
}

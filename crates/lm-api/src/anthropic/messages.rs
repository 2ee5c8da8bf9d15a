//! `system` and `messages` of a request.

use lm_conversation::{Content, Message, Part, Role, ToolCall};
use serde_json::{Map, Value};

use super::content::{Block, blocks, content, parts, texts};
use crate::error::{ApiError, Result};
use crate::fields::{json_type, shown};
use crate::limits::{Limits, at_most};
use crate::messages::check_media;

/// Start of a block that clients of Anthropic put before their instructions for its bills. It is another one
/// in each turn: with it, no prompt would begin like the one before it.
const BILLING: &str = "x-anthropic-billing-header:";

/// Reads `system`: text or text blocks. `None` if there is no instruction in it.
pub(super) fn system(system: Value) -> Result<Option<Message>> {
    let parts = texts(system, "system")?.into_iter().filter_map(without_billing).collect::<Vec<_>>();
    Ok((!parts.is_empty()).then(|| Message::system(content(parts))))
}

/// The text without a first line that is for bills; `None` if that is all.
fn without_billing(part: Part) -> Option<Part> {
    match part {
        Part::Text(text) if text.trim_start().starts_with(BILLING) => {
            let (_, rest) = text.trim_start().split_once('\n')?;
            (!rest.trim().is_empty()).then(|| Part::Text(rest.trim_start().to_owned()))
        }
        part => Some(part),
    }
}

/// Reads `messages`: at least one. A last one of the assistant is the beginning of the reply.
pub(super) fn messages(messages: Vec<Value>, limits: &Limits) -> Result<Vec<Message>> {
    at_most("messages", messages.len(), limits.messages, "messages")?;
    let mut read = Vec::with_capacity(messages.len());
    for (index, message) in messages.into_iter().enumerate() {
        one(message, &format!("messages[{index}]"), &mut read)?;
    }
    if read.is_empty() {
        return Err(ApiError::unexpected("messages", "empty", "at least one message"));
    }
    check_media(&read, limits)?;
    Ok(read)
}

/// Reads a message; tool results become separate messages.
fn one(message: Value, at: &str, read: &mut Vec<Message>) -> Result<()> {
    let Value::Object(mut fields) = message else {
        return Err(ApiError::unexpected(at, json_type(&message), "an object"));
    };
    let (role, content) =
        (fields.remove("role").unwrap_or_default(), fields.remove("content").unwrap_or_default());
    let path = format!("{at}.content");
    match role.as_str() {
        Some("user") => user(blocks(content, &path)?, read),
        Some("assistant") => {
            let content = if content.is_null() { Value::Array(Vec::new()) } else { content };
            read.push(assistant(blocks(content, &path)?)?);
            Ok(())
        }
        Some(role @ ("system" | "developer")) => {
            read.push(Message::new(Role::from(role), super::content::content(texts(content, &path)?)));
            Ok(())
        }
        _ => {
            let expected = "user, assistant or system";
            Err(ApiError::unexpected(format!("{at}.role"), shown(&role), expected))
        }
    }
}

/// Reads the blocks of a user's message, in their order.
fn user(blocks: Vec<Block>, read: &mut Vec<Message>) -> Result<()> {
    if blocks.is_empty() {
        read.push(Message::user(""));
    }
    let mut own = Vec::new();
    for mut block in blocks {
        if let Some(part) = block.part()? {
            own.push(part);
        } else if block.kind == "tool_result" {
            if !own.is_empty() {
                read.push(Message::user(content(std::mem::take(&mut own))));
            }
            read.push(tool_result(block)?);
        } else {
            return Err(block.unexpected(&["text", "image", "tool_result"]));
        }
    }
    if !own.is_empty() {
        read.push(Message::user(content(own)));
    }
    Ok(())
}

fn tool_result(mut block: Block) -> Result<Message> {
    let id = block.text("tool_use_id")?;
    let is_error = block.fields.get("is_error") == Some(&Value::Bool(true));
    let mut result = match block.fields.remove("content") {
        None | Some(Value::Null) => Vec::new(),
        Some(content) if is_data(&content) => return Ok(data_result(id, content, is_error)),
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

/// Returns true if the content of a result is an object or a list without blocks.
fn is_data(content: &Value) -> bool {
    match content {
        Value::Array(items) => items.iter().any(|item| !item["type"].is_string()),
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

fn assistant(blocks: Vec<Block>) -> Result<Message> {
    let (mut texts, mut reasoning, mut calls) = (Vec::new(), String::new(), Vec::new());
    for mut block in blocks {
        match block.kind.as_str() {
            "text" => texts.push(Part::Text(block.text("text")?)),
            "thinking" => reasoning += &block.text("thinking")?,
            "reasoning" => reasoning += &block.text("text")?,
            "redacted_thinking" => {}
            "tool_use" => calls.push(tool_use(block)?),
            _ => return Err(block.unexpected(&["text", "thinking", "tool_use"])),
        }
    }
    let mut message = Message::assistant(content(texts));
    message.tool_calls = calls;
    message.reasoning_content = Some(reasoning).filter(|reasoning| !reasoning.is_empty());
    Ok(message)
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

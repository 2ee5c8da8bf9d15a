//! `system` and `messages` of a request.

use lm_conversation::{Content, Message, Part, Role, ToolCall};
use serde_json::{Map, Value};

use super::content::{Block, blocks, content, parts, texts};
use crate::error::{ApiError, Result};
use crate::fields::{json_type, shown};
use crate::limits::{Limits, at_most};
use crate::messages::check_media;

/// Reads `system`: text or text blocks.
pub(super) fn system(system: Value) -> Result<Message> {
    Ok(Message::system(content(texts(system, "system")?)))
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
            read.push(assistant(blocks(content, &path)?)?);
            Ok(())
        }
        Some("system") => {
            read.push(Message::system(super::content::content(texts(content, &path)?)));
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
    let mut result = match block.fields.remove("content") {
        None | Some(Value::Null) => Vec::new(),
        Some(content) => parts(content, &format!("{}.content", block.at))?,
    };
    if block.fields.get("is_error") == Some(&Value::Bool(true)) {
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

fn assistant(blocks: Vec<Block>) -> Result<Message> {
    let (mut texts, mut reasoning, mut calls) = (Vec::new(), String::new(), Vec::new());
    for mut block in blocks {
        match block.kind.as_str() {
            "text" => texts.push(Part::Text(block.text("text")?)),
            "thinking" => reasoning += &block.text("thinking")?,
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
        Some(other) => {
            let at = format!("{}.input", block.at);
            return Err(ApiError::unexpected(at, json_type(&other), "an object"));
        }
    };
    Ok(ToolCall::new(name, input).with_id(id))
}

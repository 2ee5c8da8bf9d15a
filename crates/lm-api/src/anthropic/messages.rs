//! `system` and `messages` of a request.

use lm_conversation::{Message, Part, Role};
use serde_json::Value;

use super::content::{blocks, content, texts};
use super::turns::Turns;
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

/// Reads `messages`: at least one. A last one of the assistant is the beginning of the reply. The second part
/// of the result has the types of the blocks that only Anthropic's servers can read.
pub(super) fn messages(messages: Vec<Value>, limits: &Limits) -> Result<(Vec<Message>, Vec<String>)> {
    at_most("messages", messages.len(), limits.messages, "messages")?;
    let mut read = Turns::default();
    for (index, message) in messages.into_iter().enumerate() {
        one(message, &format!("messages[{index}]"), &mut read)?;
    }
    if read.messages.is_empty() {
        return Err(ApiError::unexpected("messages", "empty", "at least one message"));
    }
    check_media(&read.messages, limits)?;
    Ok((read.messages, read.left_out))
}

/// Reads a message; tool results become separate messages.
fn one(message: Value, at: &str, read: &mut Turns) -> Result<()> {
    let Value::Object(mut fields) = message else {
        return Err(ApiError::unexpected(at, json_type(&message), "an object"));
    };
    let (role, blocks_or_text) =
        (fields.remove("role").unwrap_or_default(), fields.remove("content").unwrap_or_default());
    let path = format!("{at}.content");
    match role.as_str() {
        Some("user") => read.user(blocks(blocks_or_text, &path)?),
        Some("assistant") => {
            let blocks_or_text =
                if blocks_or_text.is_null() { Value::Array(Vec::new()) } else { blocks_or_text };
            read.assistant(blocks(blocks_or_text, &path)?)
        }
        Some(role @ ("system" | "developer")) => {
            read.messages.push(Message::new(Role::from(role), content(texts(blocks_or_text, &path)?)));
            Ok(())
        }
        _ => {
            let expected = "user, assistant or system";
            Err(ApiError::unexpected(format!("{at}.role"), shown(&role), expected))
        }
    }
}

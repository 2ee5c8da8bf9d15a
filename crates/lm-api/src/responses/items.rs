//! Items of the output.

use lm_conversation::{Reply, ScoredToken};
use serde_json::{Value, json};

use crate::builtin_tools::BuiltinTool;
use crate::chat_completions::scores;
use crate::client_tools::ClientTools;
use crate::ids::random_id;

/// Kind of an item.
#[derive(Debug, Clone, Copy)]
pub(super) enum Kind {
    Reasoning,
    Message,
    Call,
    /// Call of a custom tool.
    Custom,
    /// Call of a built-in tool.
    Builtin(&'static BuiltinTool),
}

impl Kind {
    /// Returns true if both are items of the same kind.
    pub fn is(self, other: Self) -> bool {
        std::mem::discriminant(&self) == std::mem::discriminant(&other)
    }

    /// Field of the text of a call; `None` for items with content.
    pub fn call_field(self) -> Option<&'static str> {
        match self {
            Self::Call => Some("arguments"),
            Self::Custom => Some("input"),
            Self::Builtin(tool) => Some(tool.field),
            Self::Reasoning | Self::Message => None,
        }
    }
}

impl Kind {
    /// Value of the field of a call with this text.
    pub fn call_value(self, text: &str) -> Value {
        match self {
            Self::Builtin(tool) => tool.value(&serde_json::from_str(text).unwrap_or_default()),
            _ => text.into(),
        }
    }
}

/// Creates the item of a call without text, which is in progress.
pub(super) fn call(id: Option<&str>, name: &str, tools: &ClientTools) -> (Kind, Value) {
    let kind = match tools.builtin(name) {
        Some(tool) => Kind::Builtin(tool),
        None if tools.is_custom(name) => Kind::Custom,
        None => Kind::Call,
    };
    let (name, namespace) = tools.client_name(name);
    let mut item = in_progress(kind);
    item["call_id"] = json!(id);
    if let Kind::Builtin(_) = kind {
        return (kind, item);
    }
    item["name"] = name.into();
    if let Some(namespace) = namespace {
        item["namespace"] = namespace.into();
    }
    (kind, item)
}

/// Creates an item without content, which is in progress.
pub(super) fn in_progress(kind: Kind) -> Value {
    match kind {
        Kind::Reasoning => json!({"id": random_id("rs_"), "type": "reasoning", "summary": [], "content": []}),
        Kind::Message => json!({
            "id": random_id("msg_"), "type": "message", "status": "in_progress", "role": "assistant", "content": [],
        }),
        Kind::Call => json!({
            "id": random_id("fc_"), "type": "function_call", "status": "in_progress", "call_id": null, "name": null, "arguments": "",
        }),
        Kind::Custom => json!({
            "id": random_id("ctc_"), "type": "custom_tool_call", "status": "in_progress", "call_id": null, "name": null, "input": "",
        }),
        Kind::Builtin(tool) => json!({
            "id": random_id(tool.id_prefix), "type": tool.item, "status": "in_progress", "call_id": null, tool.field: null,
        }),
    }
}

/// Creates the only part of the content of a message or of reasoning. `scored` has the log probabilities of
/// the tokens of a message, if they are wanted.
pub(super) fn part(kind: Kind, text: &str, scored: &[ScoredToken]) -> Value {
    match kind {
        Kind::Reasoning => json!({"type": "reasoning_text", "text": text}),
        Kind::Message | Kind::Call | Kind::Custom | Kind::Builtin(_) => {
            json!({"type": "output_text", "text": text, "annotations": [], "logprobs": scores(scored)})
        }
    }
}

/// Creates the finished items of a reply: reasoning, text, calls. The last one of a reply that was cut off is
/// incomplete. `scored` has the tokens of the whole reply; those after its reasoning belong to the message.
pub(super) fn of_reply(reply: &Reply, scored: &[ScoredToken], tools: &ClientTools) -> Vec<Value> {
    let scored = scored.get(reply.reasoning_tokens..).unwrap_or_default();
    let with_text = |kind, text: &str| {
        let mut item = in_progress(kind);
        item["content"] = json!([part(kind, text, scored)]);
        (!text.is_empty()).then_some(item)
    };
    let reasoning = reply.message.reasoning_content.as_deref().unwrap_or_default();
    let texts = [with_text(Kind::Reasoning, reasoning), with_text(Kind::Message, &reply.text())];
    let calls = reply.tool_calls().iter().map(|it| {
        let (kind, mut item) = call(it.id.as_deref(), &it.name, tools);
        if let Some(field) = kind.call_field() {
            item[field] = kind.call_value(&tools.text(it));
        }
        item
    });
    let mut items: Vec<Value> = texts.into_iter().flatten().chain(calls).collect();
    items.iter_mut().for_each(|item| finish(item, "completed"));
    // Calls are whole.
    let cut = items.last_mut().filter(|_| reply.finish.is_cut_off() && reply.tool_calls().is_empty());
    if let Some(item) = cut {
        finish(item, "incomplete");
    }
    items
}

/// Sets the status of an item that has one.
pub(super) fn finish(item: &mut Value, status: &str) {
    if let Some(place) = item.get_mut("status") {
        *place = status.into();
    }
}

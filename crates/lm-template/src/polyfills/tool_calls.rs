//! Forms of tool calls.

use std::collections::{HashMap, VecDeque};

use serde_json::{Map, Value, json};

use super::template_input::{TemplateInput, append, role};
use super::{json_text, tagged_json};
use crate::capabilities::{CallIds, Capabilities};
use crate::json_text::json_from_slice;

/// Arguments of a call, in `function` or next to the name.
fn arguments_of(call: &mut Value) -> Option<&mut Value> {
    let function = if call.get("function").is_some() { call.get_mut("function")? } else { call };
    function.get_mut("arguments")
}

pub(super) fn arguments_as_object(input: &mut TemplateInput, capabilities: &Capabilities) -> bool {
    capabilities.object_arguments
        && !capabilities.text_arguments
        && input.each_call(|call| {
            let Some(arguments) = arguments_of(call) else { return false };
            let Value::String(text) = arguments else { return false };
            *arguments = match json_from_slice(text.as_bytes()) {
                Ok(Value::Object(object)) => object.into(),
                // Arguments that were cut off.
                _ => json!({"arguments": text}),
            };
            true
        })
}

pub(super) fn arguments_as_text(input: &mut TemplateInput, capabilities: &Capabilities) -> bool {
    capabilities.text_arguments
        && !capabilities.object_arguments
        && input.each_call(|call| {
            let Some(arguments) = arguments_of(call).filter(|arguments| arguments.is_object()) else {
                return false;
            };
            *arguments = json_text(arguments).into();
            true
        })
}

pub(super) fn argument_values_as_text(input: &mut TemplateInput, capabilities: &Capabilities) -> bool {
    capabilities.object_arguments
        && !capabilities.argument_values
        && input.each_call(|call| {
            let Some(Value::Object(arguments)) = arguments_of(call) else { return false };
            let values = arguments.values_mut().filter(|value| !value.is_string());
            let written = values.map(|value| *value = json_text(value).into());
            written.count() > 0
        })
}

/// Replaces each id by a short one, consistently, or sets only those that are missing; a result without an id
/// answers the first open call.
pub(super) fn shorten_ids(input: &mut TemplateInput, capabilities: &Capabilities) -> bool {
    let shortens = capabilities.call_ids == CallIds::NineCharacters;
    if !shortens && capabilities.orders.missing_ids {
        return false;
    }
    let mut ids = Ids { shortens, ..Ids::default() };
    input.each(|message| {
        let mut changed = false;
        for call in message.get_mut("tool_calls").and_then(Value::as_array_mut).into_iter().flatten() {
            if let Some(call) = call.as_object_mut() {
                changed |= ids.set(call, "id", None);
                ids.open.extend(call["id"].as_str().map(str::to_owned));
            }
        }
        if role(message) == "tool" {
            let open = ids.open.pop_front();
            changed |= ids.set(message, "tool_call_id", open);
        }
        changed
    })
}

#[derive(Default)]
struct Ids {
    /// False if only missing ids are set.
    shortens: bool,
    /// Short ids by original id.
    short: HashMap<String, String>,
    /// Short ids of calls without a result so far.
    open: VecDeque<String>,
    made: usize,
}

impl Ids {
    fn set(&mut self, object: &mut Map<String, Value>, key: &str, default: Option<String>) -> bool {
        let old = object.get(key).and_then(Value::as_str).map(str::to_owned);
        let is_short = |id: &str| id.len() == 9 && id.bytes().all(|byte| byte.is_ascii_alphanumeric());
        if old.as_deref().is_some_and(|id| !self.shortens || is_short(id)) {
            return false;
        }
        let id = match old {
            Some(old) => match self.short.get(&old) {
                Some(id) => id.clone(),
                None => {
                    let id = self.make();
                    self.short.insert(old, id.clone());
                    id
                }
            },
            None => default.unwrap_or_else(|| self.make()),
        };
        object.insert(key.to_owned(), id.into());
        true
    }

    fn make(&mut self) -> String {
        self.made += 1;
        format!("call{:05}", self.made % 100_000)
    }
}

/// Rewrites `[a, b] → result of a → result of b` to `a → result of a → b → result of b`.
pub(super) fn split_calls(input: &mut TemplateInput, capabilities: &Capabilities) -> bool {
    if !capabilities.tool_calls || capabilities.parallel_tool_calls {
        return false;
    }
    let mut changed = false;
    let mut left: VecDeque<Value> = input.messages.drain(..).collect();
    while let Some(mut message) = left.pop_front() {
        let calls = message.get_mut("tool_calls").and_then(Value::as_array_mut);
        let Some(calls) = calls.filter(|calls| calls.len() > 1).map(std::mem::take) else {
            input.messages.push(message);
            continue;
        };
        changed = true;
        let mut results = Vec::new();
        while left.front().is_some_and(|next| next["role"] == "tool") {
            results.extend(left.pop_front());
        }
        let last = calls.len() - 1;
        for (number, call) in calls.into_iter().enumerate() {
            let answers = |result: &Value| match (result["tool_call_id"].as_str(), call["id"].as_str()) {
                (Some(answered), Some(id)) => answered == id,
                _ => true,
            };
            let place = results.iter().position(answers);
            message["tool_calls"] = json!([call]);
            input.messages.push(message.clone());
            input.messages.extend(place.map(|place| results.remove(place)));
            if number == last {
                input.messages.append(&mut results);
            }
            message["content"] = "".into();
        }
    }
    changed
}

pub(super) fn calls_as_text(input: &mut TemplateInput, capabilities: &Capabilities) -> bool {
    !capabilities.tool_calls
        && input.each(|message| {
            let Some(Value::Array(calls)) = message.shift_remove("tool_calls") else { return false };
            let written = |call: &Value| {
                let function = call.get("function").unwrap_or(call);
                let arguments = match &function["arguments"] {
                    Value::String(text) => {
                        serde_json::from_str(text).unwrap_or_else(|_| text.as_str().into())
                    }
                    Value::Null => json!({}),
                    arguments => arguments.clone(),
                };
                let call = json!({"name": function["name"], "arguments": arguments});
                format!("<tool_call>\n{}\n</tool_call>", tagged_json(&call))
            };
            let text: Vec<String> = calls.iter().map(written).collect();
            append(message, text.join("\n"), "\n");
            true
        })
}

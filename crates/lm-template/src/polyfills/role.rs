//! Polyfills for the roles of messages: `assistant`, `system` and `tool`.

use serde_json::{Map, Value, json};

use super::content::{has_part, is_text_parts};
use super::tagged_json;
use super::template_input::{TemplateInput, has_calls, role, text};
use crate::capabilities::Capabilities;

pub(super) fn assistant_as_model(input: &mut TemplateInput, capabilities: &Capabilities) -> bool {
    capabilities.model_role == "model"
        && input.each(|message| {
            let found = role(message) == "assistant";
            if found {
                message.insert("role".to_owned(), "model".into());
            }
            found
        })
}

pub(super) fn add_system(input: &mut TemplateInput, capabilities: &Capabilities) -> bool {
    let has_system = input.messages.first().is_some_and(|first| first["role"] == "system");
    let add = capabilities.tools_need_system && input.has_tools() && !has_system;
    if add {
        input.messages.insert(0, json!({"role": "system", "content": ""}));
    }
    add
}

pub(super) fn add_answer(input: &mut TemplateInput, capabilities: &Capabilities) -> bool {
    if capabilities.user_after_results || !capabilities.tool_results {
        return false;
    }
    let before = input.messages.len();
    let mut messages: Vec<Value> = Vec::with_capacity(before);
    for message in input.messages.drain(..) {
        let is_after_result = messages.last().is_some_and(|last| last["role"] == "tool");
        if is_after_result && message["role"] == "user" {
            messages.push(json!({"role": capabilities.model_role, "content": ""}));
        }
        messages.push(message);
    }
    input.messages = messages;
    input.messages.len() > before
}

/// Instructions that the template does not show: all of them, or those after other messages.
pub(super) fn system_in_user_text(input: &mut TemplateInput, capabilities: &Capabilities) -> bool {
    let (orders, mut leading) = (capabilities.orders, true);
    input.fold_into_user(|message| {
        let read = match role(message) {
            "system" => capabilities.system,
            "developer" => orders.developer,
            _ => {
                leading = false;
                return None;
            }
        };
        let is_shown = read && (leading || orders.late_instructions);
        (!is_shown).then(|| text(message))
    })
}

/// Results that the template does not show: all of them, or those that follow no call.
pub(super) fn results_as_user_text(input: &mut TemplateInput, capabilities: &Capabilities) -> bool {
    let mut shown_results = ShownResults::new(capabilities);
    (!capabilities.tool_results || !capabilities.orders.results_without_call)
        && input.fold_into_user(|message| {
            let is_shown = shown_results.next(message)?;
            let result = message.get("content").filter(|_| !is_shown)?;
            let mut shown = Map::new();
            shown.extend(message.get("name").map(|name| ("name".to_owned(), name.clone())));
            shown.insert(
                "content".to_owned(),
                if is_text_parts(result) && has_part(result) { text(message).into() } else { result.clone() },
            );
            Some(format!("<tool_response>\n{}\n</tool_response>", tagged_json(&Value::Object(shown))))
        })
}

/// The results that a template shows, message by message.
pub(super) struct ShownResults {
    results: bool,
    orphans: bool,
    after_call: bool,
}

impl ShownResults {
    pub fn new(capabilities: &Capabilities) -> Self {
        let orphans = capabilities.orders.results_without_call;
        Self { results: capabilities.tool_results, orphans, after_call: false }
    }

    /// Returns true if the next message is a result that the template shows; `None` for another message.
    pub fn next(&mut self, message: &Map<String, Value>) -> Option<bool> {
        let is_result = role(message) == "tool";
        self.after_call = has_calls(message) || (self.after_call && is_result);
        is_result.then_some(self.results && (self.orphans || self.after_call))
    }
}

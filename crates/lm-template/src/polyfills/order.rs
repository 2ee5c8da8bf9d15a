//! Polyfills for orders and gaps of messages that a template refuses or drops.

use std::collections::VecDeque;

use serde_json::{Map, Value, json};

use super::template_input::{TemplateInput, has_calls, is_instruction, join_contents, role, text};
use crate::capabilities::Capabilities;

/// Names of the reasoning of a message.
const REASONING: [&str; 3] = ["reasoning_content", "reasoning", "thinking"];

pub(super) fn rename_roles(input: &mut TemplateInput, capabilities: &Capabilities) -> bool {
    let unread = std::mem::take(&mut input.unread_roles);
    input.each(|message| {
        let nearest = match role(message) {
            "developer" if !capabilities.orders.developer => "system",
            other if !unread.iter().any(|role| role == other) => return false,
            "model" => "assistant",
            "function" => "tool",
            _ => "user",
        };
        message.insert("role".to_owned(), nearest.into());
        true
    })
}

pub(super) fn add_content(input: &mut TemplateInput, capabilities: &Capabilities) -> bool {
    let accepted = capabilities.orders.missing_content;
    input.each(|message| {
        let missing = message.get("content").is_none_or(Value::is_null);
        let accepted = match role(message) {
            "system" | "developer" => accepted.system,
            "user" => accepted.user,
            "tool" => accepted.results,
            _ if has_calls(message) => accepted.calls,
            _ => accepted.assistant,
        };
        if missing && !accepted {
            message.insert("content".to_owned(), "".into());
        }
        missing && !accepted
    })
}

/// Text beside reasoning and calls becomes part of the reasoning.
pub(super) fn text_as_reasoning(input: &mut TemplateInput, capabilities: &Capabilities) -> bool {
    !capabilities.orders.reasoning_beside_text
        && input.each(|message| {
            let said = text(message);
            let key = REASONING.into_iter().find(|key| message.get(*key).is_some_and(Value::is_string));
            let Some(key) = key.filter(|_| has_calls(message) && !said.is_empty()) else { return false };
            let joined = join_contents(message[key].take(), said.into());
            for key in REASONING {
                message.shift_remove(key);
            }
            message.insert("reasoning_content".to_owned(), joined);
            message.insert("content".to_owned(), "".into());
            true
        })
}

/// Text beside calls becomes a message before them, with the reasoning.
pub(super) fn split_text(input: &mut TemplateInput, capabilities: &Capabilities) -> bool {
    let splits = |message: &Value| {
        message.as_object().is_some_and(|message| has_calls(message) && !text(message).is_empty())
    };
    if !capabilities.split_text || !input.messages.iter().any(splits) {
        return false;
    }
    for message in std::mem::take(&mut input.messages) {
        if splits(&message) {
            let (mut said, mut calls) = (message.clone(), message);
            said.as_object_mut().map(|said| said.shift_remove("tool_calls"));
            calls["content"] = "".into();
            for key in REASONING {
                calls.as_object_mut().map(|calls| calls.shift_remove(key));
            }
            input.messages.extend([said, calls]);
        } else {
            input.messages.push(message);
        }
    }
    true
}

/// Moves each result to the results that follow its call, and results with ids into the order of their calls:
/// most templates show no ids.
pub(super) fn move_results(input: &mut TemplateInput, capabilities: &Capabilities) -> bool {
    let moved = !capabilities.orders.results_apart && move_results_to_calls(input);
    sort_results(&mut input.messages) || moved
}

/// Sorts the results after each message with calls by the places of their ids among the calls.
fn sort_results(messages: &mut [Value]) -> bool {
    let mut sorted = false;
    for at in 0..messages.len() {
        let (before, after) = messages.split_at_mut(at + 1);
        let Some(calls) = before[at]["tool_calls"].as_array().filter(|calls| calls.len() > 1) else {
            continue;
        };
        let results = results_at(after);
        let place = |result: &Value| {
            let id = result["tool_call_id"].as_str()?;
            calls.iter().position(|call| call["id"] == id)
        };
        let run = &mut after[..results];
        if run.iter().all(|result| place(result).is_some()) && !run.is_sorted_by_key(place) {
            run.sort_by_key(place);
            sorted = true;
        }
    }
    sorted
}

fn move_results_to_calls(input: &mut TemplateInput) -> bool {
    let mut moved = false;
    let mut placed: Vec<Value> = Vec::with_capacity(input.messages.len());
    for message in input.messages.drain(..) {
        let place = (message["role"] == "tool").then(|| place_of_result(&placed, &message)).flatten();
        let place = place.unwrap_or(placed.len());
        moved |= place < placed.len();
        placed.insert(place, message);
    }
    input.messages = placed;
    moved
}

/// The place after the call that `result` answers and the results that it has.
fn place_of_result(messages: &[Value], result: &Value) -> Option<usize> {
    let calls = |message: &Value| message["tool_calls"].as_array().map_or(0, Vec::len);
    let end = |call: usize| call + 1 + results_at(&messages[call + 1..]);
    let with_id = result["tool_call_id"].as_str().and_then(|id| {
        let is_called = |call: &Value| call["id"] == id;
        messages
            .iter()
            .rposition(|message| message["tool_calls"].as_array().into_iter().flatten().any(is_called))
    });
    let open = || (0..messages.len()).rev().find(|&index| calls(&messages[index]) > end(index) - index - 1);
    with_id.or_else(open).map(end)
}

/// Number of results at the start of the messages.
fn results_at(messages: &[Value]) -> usize {
    messages.iter().take_while(|message| message["role"] == "tool").count()
}

/// Adds an empty result for each call without one, if other messages follow.
pub(super) fn add_results(input: &mut TemplateInput, capabilities: &Capabilities) -> bool {
    if capabilities.orders.calls_without_result {
        return false;
    }
    let before = input.messages.len();
    let mut left: VecDeque<Value> = input.messages.drain(..).collect();
    while let Some(message) = left.pop_front() {
        let calls = message["tool_calls"].as_array().cloned().unwrap_or_default();
        input.messages.push(message);
        if calls.is_empty() {
            continue;
        }
        let results = results_at(left.make_contiguous());
        let results: Vec<Value> = left.drain(..results).collect();
        let added = if left.is_empty() { Vec::new() } else { missing_results(&calls, &results) };
        input.messages.extend(results);
        input.messages.extend(added);
    }
    input.messages.len() > before
}

fn missing_results(calls: &[Value], results: &[Value]) -> Vec<Value> {
    let mut open: Vec<&Value> = calls.iter().collect();
    for result in results {
        let answers = |call: &&Value| call["id"].is_string() && call["id"] == result["tool_call_id"];
        let place = open.iter().position(answers).unwrap_or(0);
        if place < open.len() {
            open.remove(place);
        }
    }
    let result = |call: &Value| {
        let name = &call.get("function").unwrap_or(call)["name"];
        let mut result = json!({"role": "tool", "name": name, "content": ""});
        if call["id"].is_string() {
            result["tool_call_id"] = call["id"].clone();
        }
        result
    };
    open.into_iter().map(result).collect()
}

/// Joins instructions at the start to one message.
pub(super) fn merge_instructions(input: &mut TemplateInput, capabilities: &Capabilities) -> bool {
    if capabilities.orders.repeated_instructions {
        return false;
    }
    let leading = leading_instructions(&input.messages);
    merge(input, |index, _, _| index < leading)
}

fn leading_instructions(messages: &[Value]) -> usize {
    let is_leading = |message: &&Value| message.as_object().is_some_and(is_instruction);
    messages.iter().take_while(is_leading).count()
}

/// Adds an empty message of the user after the instructions.
pub(super) fn add_user(input: &mut TemplateInput, capabilities: &Capabilities) -> bool {
    let orders = capabilities.orders;
    let is_user = |message: &Value| message["role"] == "user";
    let at = leading_instructions(&input.messages);
    let first_is_accepted = input.messages.get(at).is_none_or(is_user) || orders.assistant_first;
    let add = !first_is_accepted || (!orders.no_user && !input.messages.iter().any(is_user));
    if add {
        input.messages.insert(at, json!({"role": "user", "content": ""}));
    }
    add
}

/// Moves instructions to the last message of the user, if it is not the last of all.
pub(super) fn system_in_last_user_text(input: &mut TemplateInput, capabilities: &Capabilities) -> bool {
    let is_user = |message: &Value| message["role"] == "user";
    let leading = leading_instructions(&input.messages);
    let last = input.messages.iter().rposition(is_user).filter(|last| last + 1 < input.messages.len());
    let Some(last) = last.filter(|_| leading > 0 && !capabilities.orders.instructions_before_reply) else {
        return false;
    };
    for index in (0..leading).rev() {
        let instruction = input.messages[index]["content"].take();
        let question = input.messages[last]["content"].take();
        input.messages[last]["content"] = join_contents(instruction, question);
    }
    input.messages.drain(..leading);
    true
}

pub(super) fn merge_users(input: &mut TemplateInput, capabilities: &Capabilities) -> bool {
    let is_user = |message: &Map<String, Value>| role(message) == "user";
    !capabilities.orders.repeated_user && merge(input, |_, one, next| is_user(one) && is_user(next))
}

/// Joins messages of the assistant; calls end a message.
pub(super) fn merge_answers(input: &mut TemplateInput, capabilities: &Capabilities) -> bool {
    let is_answer = |message: &Map<String, Value>| role(message) == capabilities.model_role;
    !capabilities.orders.repeated_assistant
        && merge(input, |_, one, next| is_answer(one) && is_answer(next) && !has_calls(one))
}

/// Joins neighbours: the message at an index with the one before, where `joins` is true. Other keys are those
/// of the later message, or else of the earlier one.
fn merge(
    input: &mut TemplateInput,
    joins: impl Fn(usize, &Map<String, Value>, &Map<String, Value>) -> bool,
) -> bool {
    let before = input.messages.len();
    let mut merged: Vec<Value> = Vec::with_capacity(before);
    for (index, mut message) in input.messages.drain(..).enumerate() {
        let last = merged.pop_if(|last| {
            last.as_object().zip(message.as_object()).is_some_and(|(last, next)| joins(index, last, next))
        });
        if let (Some(Value::Object(last)), Some(next)) = (last, message.as_object_mut()) {
            join_messages(last, next);
        }
        merged.push(message);
    }
    input.messages = merged;
    input.messages.len() < before
}

fn join_messages(first: Map<String, Value>, second: &mut Map<String, Value>) {
    for (key, value) in first {
        let joined = match second.get_mut(&key).map(Value::take) {
            Some(Value::Null) | None => value,
            Some(other) if key == "content" || REASONING.contains(&key.as_str()) => {
                join_contents(value, other)
            }
            Some(other) => other,
        };
        second.insert(key, joined);
    }
}

/// A space in messages whose text is empty.
pub(super) fn fill_empty(input: &mut TemplateInput, capabilities: &Capabilities) -> bool {
    let orders = capabilities.orders;
    input.each(|message| {
        let accepted = match role(message) {
            "system" | "developer" => orders.empty_system,
            "tool" => true,
            role if role == capabilities.model_role => orders.empty_assistant || has_calls(message),
            _ => orders.empty_user,
        };
        let is_empty = message.get("content").is_some_and(|content| content == "" || *content == json!([]));
        if is_empty && !accepted {
            message.insert("content".to_owned(), " ".into());
        }
        is_empty && !accepted
    })
}

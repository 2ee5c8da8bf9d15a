//! Types of items that `input` may have, and the message that each is.

use serde_json::{Map, Value, json};

use super::content::{content, reasoning};
use super::summary;
use crate::builtin_tools::BUILTIN_TOOLS;
use crate::client_tools::{custom_arguments, flat_name};

/// Type of an item.
pub(super) struct ItemKind {
    pub name: &'static str,
    pub read: Read,
}

/// Reading of an item.
#[derive(Clone, Copy)]
pub(super) enum Read {
    /// Message of a role.
    Message,
    /// Reasoning of the assistant.
    Reasoning,
    /// Call, whose result is another item.
    Call(Name, Arguments),
    /// Call of a tool that ran on the API's servers, with the fields of which the first is its result.
    Answered(Name, Arguments, &'static [&'static str]),
    /// Result of a call, in these fields.
    Output(&'static [&'static str]),
    /// Tools that are declared from here on.
    Tools,
    /// Settings of the responses from here on.
    Settings,
    /// Summary of a conversation; that of another server only its own can read.
    Compaction,
}

/// Name of a call's tool.
#[derive(Clone, Copy)]
pub(super) enum Name {
    /// The field `name`, in its `namespace`.
    Given,
    /// The item has none.
    Fixed(&'static str),
}

/// Arguments of a call.
#[derive(Clone, Copy)]
pub(super) enum Arguments {
    /// The value of a field: an object, or its JSON text.
    Field(&'static str),
    /// An object of the fields that are present.
    Fields(&'static [&'static str]),
    /// The text `input` of a custom tool.
    Input,
}

use Arguments::{Field, Fields, Input};
use Name::{Fixed, Given};
use Read::{Answered, Call, Compaction, Message, Output, Reasoning, Settings, Tools};

const fn row(name: &'static str, read: Read) -> ItemKind {
    ItemKind { name, read }
}

/// All types, except `item_reference`, which names an item of one of them.
pub(super) const ITEMS: &[ItemKind] = &[
    row("additional_tools", Tools),
    row("apply_patch_call", Call(Fixed("apply_patch"), Field("operation"))),
    row("apply_patch_call_output", Output(&["status", "output"])),
    row("code_interpreter_call", Answered(Fixed("code_interpreter"), Fields(&["code"]), &["outputs"])),
    row("compaction", Compaction),
    row("computer_call", Call(Fixed("computer"), Fields(&["action", "actions"]))),
    row("computer_call_output", Output(&["output"])),
    row("configuration_update", Settings),
    row("custom_tool_call", Call(Given, Input)),
    row("custom_tool_call_output", Output(&["output"])),
    row("file_search_call", Answered(Fixed("file_search"), Fields(&["queries"]), &["results"])),
    row("function_call", Call(Given, Field("arguments"))),
    row("function_call_output", Output(&["output"])),
    row(
        "image_generation_call",
        Answered(Fixed("image_generation"), Fields(&["revised_prompt"]), &["error"]),
    ),
    row("local_shell_call", Call(Fixed("local_shell"), Field("action"))),
    row("local_shell_call_output", Output(&["output"])),
    row("mcp_approval_request", Call(Given, Field("arguments"))),
    row("mcp_approval_response", Output(&["approve", "reason"])),
    row("mcp_call", Answered(Given, Field("arguments"), &["output", "error"])),
    row("mcp_list_tools", Answered(Fixed("mcp_list_tools"), Fields(&["server_label"]), &["tools", "error"])),
    row("message", Message),
    row("program", Call(Fixed("program"), Fields(&["code"]))),
    row("program_output", Output(&["result"])),
    row("reasoning", Reasoning),
    row("shell_call", Call(Fixed("shell"), Field("action"))),
    row("shell_call_output", Output(&["output"])),
    row("tool_search_call", Call(Fixed("tool_search"), Field("arguments"))),
    row("tool_search_output", Output(&["tools"])),
    row("web_search_call", Answered(Fixed("web_search"), Field("action"), &["results"])),
];

impl Read {
    /// Returns true if something in the item can be read by OpenAI's servers alone.
    pub fn is_opaque(self, item: &Value) -> bool {
        let is_set = |key: &str| item[key].as_str().is_some_and(|text| !text.is_empty());
        match self {
            Compaction => summary::message(item).is_none(),
            Reasoning => is_set("encrypted_content") && reasoning(item).is_empty(),
            Answered(..) => item["type"] == "image_generation_call" && is_set("result"),
            _ => false,
        }
    }

    /// Messages of an item, in the form of chat completions.
    pub fn messages(self, item: &Value) -> Vec<Value> {
        match self {
            Message => vec![json!({"role": item["role"], "content": content(&item["content"])})],
            Reasoning => {
                vec![json!({"role": "assistant", "content": null, "reasoning_content": reasoning(item)})]
            }
            Call(name, arguments) => vec![call(item, name, arguments)],
            Answered(name, arguments, fields) => {
                vec![call(item, name, arguments), result(item, &outcome(item, fields))]
            }
            Output(fields) => vec![result(item, &output(item, fields))],
            Compaction => summary::message(item).into_iter().collect(),
            Tools | Settings => Vec::new(),
        }
    }
}

fn call(item: &Value, name: Name, arguments: Arguments) -> Value {
    let name = match name {
        Fixed(name) => name.into(),
        Given => called(item),
    };
    let arguments = match arguments {
        Field(field) => declared_arguments(item, field),
        Fields(fields) => Value::Object(present(item, fields)),
        Input => custom_arguments(&item["input"]),
    };
    let function = json!({"name": name, "arguments": arguments});
    let call = json!({"id": id(item), "type": "function", "function": function});
    json!({"role": "assistant", "content": null, "tool_calls": [call]})
}

/// Arguments in a field, as the model wrote them where it is a built-in tool's.
fn declared_arguments(item: &Value, field: &str) -> Value {
    let builtin = BUILTIN_TOOLS.iter().find(|tool| item["type"] == tool.item);
    builtin.map_or_else(|| item[field].clone(), |tool| tool.arguments(&item[field]))
}

/// Name of the function that an item calls, with its namespace.
fn called(item: &Value) -> Value {
    match item["name"].as_str() {
        Some(name) => flat_name(item["namespace"].as_str(), name).into(),
        None => item["name"].clone(),
    }
}

fn result(item: &Value, output: &Value) -> Value {
    json!({"role": "tool", "tool_call_id": id(item), "content": content(output)})
}

/// Id of the call that an item is or answers.
fn id(item: &Value) -> &Value {
    let ids = ["call_id", "approval_request_id", "id"].map(|key| &item[key]);
    ids.into_iter().find(|id| id.is_string()).unwrap_or(&item["call_id"])
}

/// Result of a call that has it itself, or else its state.
fn outcome(item: &Value, fields: &[&str]) -> Value {
    let is_empty = |value: &Value| value.is_null() || value.as_array().is_some_and(Vec::is_empty);
    let known = fields.iter().map(|field| &item[*field]).find(|value| !is_empty(value));
    let state = || json!({"status": item["status"].as_str().unwrap_or("completed")});
    known.cloned().unwrap_or_else(state)
}

/// Value of the only field, or an object of the present ones.
fn output(item: &Value, fields: &[&str]) -> Value {
    match fields {
        [field] => item[*field].clone(),
        fields => Value::Object(present(item, fields)),
    }
}

fn present(item: &Value, fields: &[&str]) -> Map<String, Value> {
    let fields = fields.iter().filter(|field| !item[**field].is_null());
    fields.map(|field| ((*field).to_owned(), item[*field].clone())).collect()
}

//! Parts that clients of chat completions have in common.

use serde_json::{Value, json};

use super::{Tool, Usage};

/// Declarations of chat completions.
pub fn functions(tools: &[Tool]) -> Vec<Value> {
    let function = |tool: &Tool| json!({"name": tool.name, "description": tool.description, "parameters": tool.parameters});
    tools.iter().map(|tool| json!({"type": "function", "function": function(tool)})).collect()
}

/// A client's own message for one of the server: with `content`, and with calls whose arguments are parsed
/// and written by `write`.
pub fn message(message: &Value, content: Value, write: impl Fn(&Value) -> String) -> Value {
    let call = |call: &Value| {
        let arguments: Value =
            serde_json::from_str(call["function"]["arguments"].as_str().expect("text")).expect("JSON");
        let function = json!({"name": call["function"]["name"], "arguments": write(&arguments)});
        json!({"id": call["id"], "type": "function", "function": function})
    };
    let mut own = json!({"role": "assistant", "content": content});
    if let Some(calls) = message["tool_calls"].as_array().filter(|calls| !calls.is_empty()) {
        own["tool_calls"] = calls.iter().map(call).collect();
    }
    own
}

/// Calls of a message, and the message of the tool for each.
pub fn results(message: &Value, result: &dyn Fn(&str) -> String) -> (Vec<String>, Vec<Value>) {
    let calls = message["tool_calls"].as_array().cloned().unwrap_or_default();
    let run = |call: &Value| {
        let arguments = call["function"]["arguments"].as_str().expect("text");
        let arguments: Value = serde_json::from_str(arguments).expect("JSON");
        let content = result(arguments["path"].as_str().expect("a path"));
        let name = call["function"]["name"].as_str().expect("a name").to_owned();
        (name, json!({"role": "tool", "tool_call_id": call["id"], "content": content}))
    };
    calls.iter().map(run).unzip()
}

/// Counts of a response.
pub fn usage(response: &Value) -> Usage {
    let paths =
        ["/usage/prompt_tokens", "/usage/prompt_tokens_details/cached_tokens", "/usage/completion_tokens"];
    Usage::read(response, paths)
}

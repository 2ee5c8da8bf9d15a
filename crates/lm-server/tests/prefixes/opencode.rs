//! opencode: chat completions of the AI SDK. Text is empty beside calls, and thoughts are
//! `reasoning_content`.

use serde_json::{Value, json};

use super::{Client, Tool, Usage};

pub struct OpenCode {
    tools: Vec<Value>,
    messages: Vec<Value>,
}

/// Declarations of chat completions.
pub fn functions(tools: &[Tool]) -> Vec<Value> {
    let function = |tool: &Tool| json!({"name": tool.name, "description": tool.description, "parameters": tool.parameters});
    tools.iter().map(|tool| json!({"type": "function", "function": function(tool)})).collect()
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

pub fn usage(response: &Value) -> Usage {
    let paths =
        ["/usage/prompt_tokens", "/usage/prompt_tokens_details/cached_tokens", "/usage/completion_tokens"];
    Usage::read(response, paths)
}

impl Client for OpenCode {
    const NAME: &'static str = "opencode";
    const PATH: &'static str = "/v1/chat/completions";

    fn new(tools: &[Tool], _: bool) -> Self {
        let instructions = format!("You are opencode. {}", "Keep the change small. ".repeat(40));
        let messages = vec![json!({"role": "system", "content": instructions})];
        Self { tools: functions(tools), messages }
    }

    fn body(&self, _: usize) -> Value {
        json!({
            "model": "fake", "max_tokens": 32_000, "temperature": 0, "top_p": 1, "messages": self.messages,
            "tools": self.tools, "tool_choice": "auto",
        })
    }

    fn answer(&mut self, response: &Value, result: &dyn Fn(&str) -> String) -> Vec<String> {
        let message = &response["choices"][0]["message"];
        // The SDK writes its own message: text, thoughts, and calls with compact arguments.
        let call = |call: &Value| {
            let arguments: Value =
                serde_json::from_str(call["function"]["arguments"].as_str().expect("text")).expect("JSON");
            let function = json!({"name": call["function"]["name"], "arguments": arguments.to_string()});
            json!({"id": call["id"], "type": "function", "function": function})
        };
        let mut own =
            json!({"role": "assistant", "content": message["content"].as_str().unwrap_or_default()});
        if message["reasoning_content"].is_string() {
            own["reasoning_content"] = message["reasoning_content"].clone();
        }
        if let Some(calls) = message["tool_calls"].as_array().filter(|calls| !calls.is_empty()) {
            own["tool_calls"] = calls.iter().map(call).collect();
        }
        self.messages.push(own);
        let (names, results) = results(message, result);
        self.messages.extend(results);
        names
    }

    fn ask(&mut self, text: &str) {
        self.messages.push(json!({"role": "user", "content": text}));
    }

    fn usage(response: &Value) -> Usage {
        usage(response)
    }
}

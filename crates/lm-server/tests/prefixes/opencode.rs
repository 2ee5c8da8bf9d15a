//! opencode: chat completions of the AI SDK. Text is empty beside calls, and thoughts are
//! `reasoning_content`.

use serde_json::{Value, json};

use super::chat_completions::{self, functions, results, usage};
use super::{Client, Tool, Usage};

pub struct OpenCode {
    tools: Vec<Value>,
    messages: Vec<Value>,
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
        let content = message["content"].as_str().unwrap_or_default().into();
        let mut own = chat_completions::message(message, content, Value::to_string);
        if message["reasoning_content"].is_string() {
            own["reasoning_content"] = message["reasoning_content"].clone();
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

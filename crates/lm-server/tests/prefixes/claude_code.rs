//! Claude Code: Messages with a block for bills in front of its instructions, cache marks that move, thinking
//! blocks, and reminders beside the results of tools.

use serde_json::{Value, json};

use super::{Client, Tool, Usage};

pub struct ClaudeCode {
    reasons: bool,
    tools: Vec<Value>,
    messages: Vec<Value>,
}

/// A message whose last block has the mark: text is a list of blocks then.
fn marked(message: &Value) -> Value {
    let mut message = message.clone();
    if let Some(text) = message["content"].as_str() {
        message["content"] = json!([{"type": "text", "text": text}]);
    }
    let blocks = message["content"].as_array_mut().expect("blocks");
    blocks.last_mut().expect("a block")["cache_control"] = json!({"type": "ephemeral"});
    message
}

impl Client for ClaudeCode {
    const NAME: &'static str = "Claude Code";
    const PATH: &'static str = "/v1/messages";

    fn new(tools: &[Tool], reasons: bool) -> Self {
        let tool = |tool: &Tool| json!({"name": tool.name, "description": tool.description, "input_schema": tool.parameters});
        Self { reasons, tools: tools.iter().map(tool).collect(), messages: Vec::new() }
    }

    fn body(&self, turn: usize) -> Value {
        let mut messages = self.messages.clone();
        // The last two messages are marked.
        for message in messages.iter_mut().rev().take(2) {
            *message = marked(message);
        }
        let billing = format!(
            "x-anthropic-billing-header: cc_version=2.1.{turn}; cc_entrypoint=cli; cch={:05x};",
            turn * 7919
        );
        json!({
            "model": "fake", "max_tokens": 32_000, "temperature": 1, "messages": messages, "tools": self.tools,
            "thinking": {"type": if self.reasons { "adaptive" } else { "disabled" }},
            "metadata": {"user_id": format!("user_1_account__session_{turn}")},
            "system": [
                {"type": "text", "text": billing},
                {"type": "text", "text": "You are a coding agent.", "cache_control": {"type": "ephemeral"}},
                {"type": "text", "text": format!("# Rules\n{}", "Keep the change small. ".repeat(40)), "cache_control": {"type": "ephemeral"}},
            ],
        })
    }

    fn answer(&mut self, response: &Value, result: &dyn Fn(&str) -> String) -> Vec<String> {
        let content = response["content"].as_array().expect("blocks").clone();
        let calls: Vec<Value> = content.iter().filter(|block| block["type"] == "tool_use").cloned().collect();
        self.messages.push(json!({"role": "assistant", "content": content}));
        if !calls.is_empty() {
            let result = |call: &Value| {
                let text = result(call["input"]["path"].as_str().expect("a path"));
                json!({"type": "tool_result", "tool_use_id": call["id"], "content": [{"type": "text", "text": text}]})
            };
            let mut content: Vec<Value> = calls.iter().map(result).collect();
            content.push(
                json!({"type": "text", "text": "<system-reminder>\nThe plan is empty.\n</system-reminder>"}),
            );
            self.messages.push(json!({"role": "user", "content": content}));
        }
        calls.iter().map(|call| call["name"].as_str().expect("a name").to_owned()).collect()
    }

    fn ask(&mut self, text: &str) {
        self.messages.push(json!({"role": "user", "content": text}));
    }

    fn usage(response: &Value) -> Usage {
        let paths = ["/usage/input_tokens", "/usage/cache_read_input_tokens", "/usage/output_tokens"];
        let usage = Usage::read(response, paths);
        Usage { prompt: usage.prompt + usage.cached, ..usage }
    }
}

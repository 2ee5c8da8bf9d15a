//! Codex: Responses that are not stored, with tools of other kinds. Thoughts are sent back without their
//! text.

use serde_json::{Value, json};

use super::{Client, Tool, Usage};

pub struct Codex {
    tools: Vec<Value>,
    input: Vec<Value>,
}

fn message(role: &str, text: &str) -> Value {
    json!({"type": "message", "role": role, "content": [{"type": "input_text", "text": text}]})
}

impl Client for Codex {
    const NAME: &'static str = "Codex";
    const PATH: &'static str = "/v1/responses";

    fn new(tools: &[Tool], _: bool) -> Self {
        let tool = |tool: &Tool| json!({"type": "function", "name": tool.name, "description": tool.description, "strict": false, "parameters": tool.parameters});
        let mut tools: Vec<Value> = tools.iter().map(tool).collect();
        let patch =
            "start: begin hunk+ end\nbegin: \"*** Begin Patch\\n\"\nhunk: /[^*]+\\n/\nend: \"*** End Patch\"";
        tools.push(json!({
            "type": "custom", "name": "apply_patch", "description": "Edits files.",
            "format": {"type": "grammar", "syntax": "lark", "definition": patch},
        }));
        tools.push(json!({"type": "web_search", "external_web_access": false}));
        let context =
            "<environment_context>\n  <cwd>/src</cwd>\n  <shell>bash</shell>\n</environment_context>";
        let input = vec![
            message(
                "developer",
                &format!("<permissions instructions>{}</permissions instructions>", "Ask first. ".repeat(20)),
            ),
            message("user", context),
        ];
        Self { tools, input }
    }

    fn body(&self, turn: usize) -> Value {
        json!({
            "model": "fake", "instructions": format!("You are Codex. {}", "Keep the change small. ".repeat(40)),
            "input": self.input, "tools": self.tools, "tool_choice": "auto", "parallel_tool_calls": true,
            "reasoning": {"effort": "medium", "summary": "auto"}, "store": false, "stream": false,
            "include": ["reasoning.encrypted_content"], "prompt_cache_key": "0199",
            "client_metadata": {"turn": turn.to_string()},
        })
    }

    fn answer(&mut self, response: &Value, result: &dyn Fn(&str) -> String) -> Vec<String> {
        let mut names = Vec::new();
        for item in response["output"].as_array().expect("items") {
            let mut item = item.clone();
            if item["type"] == "reasoning" {
                item.as_object_mut().expect("an item").remove("content");
            }
            item.as_object_mut().expect("an item").remove("id");
            self.input.push(item);
        }
        let calls: Vec<Value> =
            self.input.iter().rev().take_while(|item| item["type"] == "function_call").cloned().collect();
        for call in calls.iter().rev() {
            let arguments: Value =
                call["arguments"].as_str().and_then(|text| serde_json::from_str(text).ok()).expect("JSON");
            let output = result(arguments["path"].as_str().expect("a path"));
            self.input
                .push(json!({"type": "function_call_output", "call_id": call["call_id"], "output": output}));
            names.push(call["name"].as_str().expect("a name").to_owned());
        }
        names
    }

    fn ask(&mut self, text: &str) {
        self.input.push(message("user", text));
    }

    fn usage(response: &Value) -> Usage {
        let paths =
            ["/usage/input_tokens", "/usage/input_tokens_details/cached_tokens", "/usage/output_tokens"];
        Usage::read(response, paths)
    }
}

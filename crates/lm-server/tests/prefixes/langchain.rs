//! An agent of LangChain: chat completions. Its messages have no thoughts, and null as the text beside calls.

use serde_json::{Value, json};

use super::opencode::{functions, results, usage};
use super::{Client, Tool, Usage};

pub struct LangChain {
    tools: Vec<Value>,
    messages: Vec<Value>,
}

impl Client for LangChain {
    const NAME: &'static str = "LangChain agent";
    const PATH: &'static str = "/v1/chat/completions";

    fn new(tools: &[Tool], _: bool) -> Self {
        let instructions = format!("You are an agent. {}", "Keep the change small. ".repeat(40));
        let messages = vec![json!({"role": "system", "content": instructions})];
        Self { tools: functions(tools), messages }
    }

    fn body(&self, _: usize) -> Value {
        json!({"model": "fake", "messages": self.messages, "tools": self.tools})
    }

    fn answer(&mut self, response: &Value, result: &dyn Fn(&str) -> String) -> Vec<String> {
        let message = &response["choices"][0]["message"];
        // `json.dumps` writes the parsed arguments again, with blanks after its separators.
        let call = |call: &Value| {
            let arguments: Value =
                serde_json::from_str(call["function"]["arguments"].as_str().expect("text")).expect("JSON");
            let members = arguments.as_object().expect("an object");
            let members: Vec<String> =
                members.iter().map(|(key, value)| format!("\"{key}\": {value}")).collect();
            let function =
                json!({"name": call["function"]["name"], "arguments": format!("{{{}}}", members.join(", "))});
            json!({"id": call["id"], "type": "function", "function": function})
        };
        let mut own = json!({"role": "assistant", "content": message["content"]});
        if let Some(calls) = message["tool_calls"].as_array().filter(|calls| !calls.is_empty()) {
            own["tool_calls"] = calls.iter().map(call).collect();
        }
        self.messages.push(own);
        let (names, mut results) = results(message, result);
        for (name, result) in names.iter().zip(&mut results) {
            result["name"] = json!(name);
        }
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

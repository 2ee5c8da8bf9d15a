//! An agent of LangChain: chat completions. Its messages have no thoughts, and null as the text beside calls.

use serde_json::{Value, json};

use super::chat_completions::{self, functions, results, usage};
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
        let write = |arguments: &Value| {
            let members = arguments.as_object().expect("an object");
            let members: Vec<String> =
                members.iter().map(|(key, value)| format!("\"{key}\": {value}")).collect();
            format!("{{{}}}", members.join(", "))
        };
        let own = chat_completions::message(message, message["content"].clone(), write);
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

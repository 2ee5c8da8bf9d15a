//! Instruction in prompts with tools, after those of the application.

use std::convert::Infallible;
use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

use lm_processors::ModelDataProcessor;
use serde_json::{Value, json};

/// Instruction after the system message of prompts with tools. Without a system message it becomes one.
///
/// ```
/// use lm_conversation::ToolsNote;
///
/// assert_eq!("dialect".parse(), Ok(ToolsNote::Dialect));
/// assert_eq!("OFF".parse(), Ok(ToolsNote::Off));
/// assert_eq!("Call at most one tool.".parse(), Ok(ToolsNote::Text("Call at most one tool.".into())));
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum ToolsNote {
    /// None: the prompt is the template's alone.
    #[default]
    Off,
    /// The dialect's own, which repeats the syntax of calls
    /// ([`Dialect::calls_note`](lm_processors::Dialect::calls_note)); some dialects have none.
    Dialect,
    /// This text.
    Text(Arc<str>),
}

impl ToolsNote {
    /// Adds the note to messages as the template gets them.
    pub(crate) fn add_to(&self, messages: &mut Vec<Value>, processor: &dyn ModelDataProcessor) {
        let note = match self {
            Self::Off => "",
            Self::Dialect => processor.dialect().map_or("", |dialect| dialect.calls_note),
            Self::Text(text) => text,
        };
        if !note.is_empty() {
            add(messages, note);
        }
    }
}

/// Reads `off`, `dialect`, or a text.
impl FromStr for ToolsNote {
    type Err = Infallible;

    fn from_str(text: &str) -> Result<Self, Infallible> {
        Ok(match text.to_ascii_lowercase().as_str() {
            "off" => Self::Off,
            "dialect" => Self::Dialect,
            _ => Self::Text(text.into()),
        })
    }
}

/// Writes what [`FromStr`] reads.
impl fmt::Display for ToolsNote {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Off => "off",
            Self::Dialect => "dialect",
            Self::Text(text) => text,
        })
    }
}

/// Appends `note` to the first message if that is an instruction, else inserts it before all messages.
fn add(messages: &mut Vec<Value>, note: &str) {
    let is_instruction = |message: &&mut Value| message["role"] == "system" || message["role"] == "developer";
    let content = messages.first_mut().filter(is_instruction).map(|message| &mut message["content"]);
    match content {
        Some(Value::String(text)) if !text.is_empty() => text.push_str(&format!("\n\n{note}")),
        Some(Value::Array(parts)) => parts.push(json!({"type": "text", "text": format!("\n\n{note}")})),
        Some(empty) => *empty = note.into(),
        None => messages.insert(0, json!({"role": "system", "content": note})),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn note_follows_the_instructions() {
        let user = json!({"role": "user", "content": "U"});
        for (system, expected) in [
            (Some(json!("S")), json!("S\n\nN")),
            (Some(json!("")), json!("N")),
            (Some(Value::Null), json!("N")),
            (
                Some(json!([{"type": "text", "text": "S"}])),
                json!([{"type": "text", "text": "S"}, {"type": "text", "text": "\n\nN"}]),
            ),
            (None, json!("N")),
        ] {
            let system = system.map(|content| json!({"role": "system", "content": content}));
            let mut messages: Vec<Value> = system.into_iter().chain([user.clone()]).collect();
            add(&mut messages, "N");
            assert_eq!(messages, [json!({"role": "system", "content": expected}), user.clone()]);
        }
    }

    #[test]
    fn note_follows_a_developers_instruction() {
        let mut messages = vec![json!({"role": "developer", "content": "S"})];
        add(&mut messages, "N");
        assert_eq!(messages, [json!({"role": "developer", "content": "S\n\nN"})]);
    }
}

//! Helpers of the parser tests.

use std::sync::Arc;

use lm_processors::{ModelDataProcessor, OnMalformed, ParserOptions, ProcessorEvent, ToolSpec, Value};
use serde_json::json;

/// A processor by its family's name.
pub fn family(name: &str) -> &'static dyn ModelDataProcessor {
    let found = lm_processors::ALL.iter().find(|family| family.processor.name() == name);
    found.unwrap_or_else(|| panic!("no family {name}")).processor
}

/// Options with one tool declared.
pub fn with_a_tool(on_malformed: OnMalformed, prompt_tail: &str) -> ParserOptions {
    let tool = ToolSpec::new("get_weather", "The weather.", json!({"type": "object"}));
    ParserOptions {
        tools: Arc::new([tool]),
        prompt_tail: Some(prompt_tail.into()),
        on_malformed,
        on_unfinished: on_malformed,
        ..ParserOptions::default()
    }
}

/// All events of a reply read in these pieces.
pub fn parse<'a>(
    processor: &dyn ModelDataProcessor,
    options: &ParserOptions,
    pieces: impl IntoIterator<Item = &'a str>,
) -> Vec<ProcessorEvent> {
    let mut parser = processor.parser(options);
    let mut events: Vec<_> = pieces.into_iter().flat_map(|piece| parser.push(piece)).collect();
    events.extend(parser.finish());
    coalesce(events)
}

/// Merges neighbouring events that differ only in their boundaries.
pub fn coalesce(events: Vec<ProcessorEvent>) -> Vec<ProcessorEvent> {
    let mut joined: Vec<ProcessorEvent> = Vec::new();
    for event in events {
        let rest = match joined.last_mut() {
            Some(last) => last.absorb(event),
            None => Some(event),
        };
        joined.extend(rest);
    }
    joined
}

/// Text, reasoning and calls of an answer. A call has name, id, and arguments, or the text of arguments that
/// are not complete JSON.
#[derive(Debug, Default, PartialEq)]
pub struct Sum {
    pub text: String,
    pub reasoning: String,
    pub calls: Vec<Value>,
    pub malformed: Vec<String>,
}

/// Handling of a call that started and broke.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Broken {
    /// An error.
    Error,
    /// Text of the answer.
    Text,
    /// Listed with the text of its arguments if that is incomplete JSON; otherwise text of the answer.
    Listed,
}

/// Sums up events.
pub fn sum(events: Vec<ProcessorEvent>, broken: Broken) -> Sum {
    let mut sum = Sum::default();
    let (mut call_parts, mut arguments) = (json!({}), String::new());
    for event in events {
        match event {
            ProcessorEvent::Text(text) => sum.text += &text,
            ProcessorEvent::Channel { text, .. } => sum.reasoning += &text,
            ProcessorEvent::ToolCallStarted { name, id, .. } => {
                (call_parts, arguments) = (json!({"name": name, "id": id}), String::new());
            }
            ProcessorEvent::ToolCallArguments { fragment, .. } => arguments += &fragment,
            ProcessorEvent::ToolCall { call, .. } => {
                let mut complete = json!({"name": call.name, "arguments": call.arguments});
                if let Some(id) = call.id {
                    complete["id"] = id.into();
                }
                sum.calls.push(complete);
            }
            ProcessorEvent::Malformed { index, reason, text, .. } => {
                sum.malformed.push(reason);
                let whole = serde_json::from_str::<Value>(&arguments).is_ok();
                if broken == Broken::Listed && index.is_some() && !whole {
                    call_parts["arguments_text"] = std::mem::take(&mut arguments).into();
                    sum.calls.push(call_parts.take());
                } else if broken != Broken::Error {
                    sum.text += &text;
                }
            }
            other => panic!("unknown event {other:?}"),
        }
    }
    sum
}

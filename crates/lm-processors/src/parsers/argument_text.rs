//! The JSON text of a call's arguments that are not written as JSON.

use lm_template::{Map, ToolCall, ToolSpec, Value};

use super::body::{CallSink, Fault, declared_name};
use super::guard::plain;
use crate::values::Schema;

/// How much of the arguments' text has been passed on. What is passed on is what the final arguments are read from.
#[derive(Debug, Default)]
pub(crate) struct ArgumentText {
    passed_on: usize,
}

impl ArgumentText {
    /// Passes on what is new in `certain`, the text that can no longer change.
    pub(crate) fn pass_on(&mut self, certain: &str, calls: &mut CallSink<'_>) {
        if let Some(fragment) = certain.get(self.passed_on..) {
            calls.arguments(fragment);
            self.passed_on = certain.len();
        }
    }

    /// Completes a call whose arguments are this text.
    pub(crate) fn complete(mut self, name: &str, text: &str, calls: &mut CallSink<'_>) -> Result<(), Fault> {
        let arguments: Map<String, Value> =
            serde_json::from_str(&plain(text)).map_err(|error| Fault::malformed(error.to_string()))?;
        self.pass_on(text, calls);
        calls.complete(ToolCall::new(name, arguments))
    }
}

/// The schema of the arguments of the tool with this name.
pub(crate) fn schema<'a>(tools: &'a [ToolSpec], name: &str) -> Option<Schema<'a>> {
    let name = declared_name(tools, name);
    tools.iter().find(|tool| tool.name() == name).map(|tool| Schema::new(tool.parameters()))
}

/// The names of these tools.
pub(crate) fn names(tools: &[ToolSpec]) -> impl Iterator<Item = &str> {
    tools.iter().map(ToolSpec::name)
}

/// Whether a text can be a tool's name: not empty, and without whitespace, quotes and brackets.
pub(crate) fn is_name(text: &str) -> bool {
    !text.is_empty() && !text.contains(|c: char| c.is_whitespace() || "\"'<>{}()[]".contains(c))
}

/// How long the beginning of a block of code is that `text` begins with: a fence and a word. None when more text must tell.
pub(crate) fn fence(text: &str) -> Option<usize> {
    let Some(rest) = text.strip_prefix(FENCE) else {
        return (text.is_empty() || !FENCE.starts_with(text)).then_some(0);
    };
    match rest.find(|c: char| !c.is_ascii_alphanumeric() && c != '_') {
        Some(word) => Some(if word > MAX_WORD_BYTES { 0 } else { FENCE.len() + word }),
        None => (rest.len() > MAX_WORD_BYTES).then_some(0),
    }
}

/// The longest word after a fence; text that goes on for longer is none.
const MAX_WORD_BYTES: usize = 32;

/// What a block of code ends with, and begins with.
pub(crate) const FENCE: &str = "```";

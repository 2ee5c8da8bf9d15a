//! JSON text of call arguments that are not written as JSON.

use lm_template::{Map, ToolCall, ToolSpec, Value};

use super::call_sink::{CallSink, declared_name};
use super::fault::Fault;
use crate::marker_guard::unguarded;
use crate::values::{Schema, SchemaCache};

/// Number of bytes of the arguments' text emitted so far. The final arguments are parsed from the same text.
#[derive(Debug, Default)]
pub(crate) struct ArgumentText {
    emitted: usize,
}

impl ArgumentText {
    /// Emits the new part of `certain`, the text that can no longer change.
    pub(crate) fn emit(&mut self, certain: &str, calls: &mut CallSink<'_>) {
        if let Some(fragment) = certain.get(self.emitted..) {
            calls.arguments(fragment);
            self.emitted = certain.len();
        }
    }

    /// Completes a call with this text as its arguments.
    pub(crate) fn complete(mut self, name: &str, text: &str, calls: &mut CallSink<'_>) -> Result<(), Fault> {
        let arguments: Map<String, Value> =
            serde_json::from_str(&unguarded(text)).map_err(|error| Fault::malformed(error.to_string()))?;
        self.emit(text, calls);
        calls.complete(ToolCall::new(name, arguments))
    }
}

/// Schema of the arguments of the tool with this name; `schemas` belongs to these tools.
pub(crate) fn schema<'a>(tools: &'a [ToolSpec], schemas: &'a SchemaCache, name: &str) -> Option<Schema<'a>> {
    let name = declared_name(tools, name);
    tools.iter().find(|tool| tool.name() == name).map(|tool| Schema::new(tool.parameters(), schemas))
}

/// Names of these tools.
pub(crate) fn names(tools: &[ToolSpec]) -> impl Iterator<Item = &str> {
    tools.iter().map(ToolSpec::name)
}

/// Returns true if a text can be a tool's name: not empty, without whitespace, quotes and brackets.
pub(crate) fn is_name(text: &str) -> bool {
    !text.is_empty() && !text.contains(|c: char| c.is_whitespace() || "\"'<>{}()[]".contains(c))
}

/// Length of the code fence (backticks and a word) at the start of `text`; 0 if there is none, `None` if more
/// text is needed to decide.
pub(crate) fn fence(text: &str) -> Option<usize> {
    let Some(rest) = text.strip_prefix(FENCE) else {
        return (text.is_empty() || !FENCE.starts_with(text)).then_some(0);
    };
    match rest.find(|c: char| !c.is_ascii_alphanumeric() && c != '_') {
        Some(word) => Some(if word > MAX_WORD_BYTES { 0 } else { FENCE.len() + word }),
        None => (rest.len() > MAX_WORD_BYTES).then_some(0),
    }
}

/// Maximum length of the word after a fence; longer text is not a fence.
const MAX_WORD_BYTES: usize = 32;

/// Start and end marker of a code block.
pub(crate) const FENCE: &str = "```";

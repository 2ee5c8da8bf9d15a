//! JSON text of call arguments that are not written as JSON.

use lm_template::ToolCall;

use super::call_sink::CallSink;
use super::fault::Fault;
use super::json_mend::read_json;
use super::recovery::Tolerance;

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
        let call = ToolCall::new(name, read_json(text, Tolerance::NONE)?);
        self.emit(text, calls);
        calls.complete(call)
    }
}

//! JSON object of one call, while it is read.

use std::ops::Range;

use lm_template::{ToolCall, Value};

use super::keys::CallKeys;
use crate::dialect::{JsonKey, JsonObject};
use crate::marker_guard::guarded;
use crate::parsers::call_sink::CallSink;
use crate::parsers::fault::Fault;
use crate::parsers::json_mend::{JsonMend, read_json};
use crate::parsers::recovery::{Departure, Tolerance};

/// Key of a name in other families, which objects may have whose key should be the name.
const NAME: &str = "name";

/// JSON object of one call. Its methods take the text of the block up to the current position.
#[derive(Debug, Default)]
pub(super) struct Element {
    tolerance: Tolerance,
    start: usize,
    /// The object's current key, without quotes.
    key: Range<usize>,
    pub(super) after_colon: bool,
    pub(super) string_start: usize,
    name: Option<String>,
    id: Option<String>,
    /// True if the start of the call was reported.
    pub(super) started: bool,
    arguments: Arguments,
    /// End of the name or the arguments, whichever came last.
    certain: usize,
}

/// State of the arguments.
#[derive(Debug, Default)]
enum Arguments {
    /// Not started, or not an object.
    #[default]
    None,
    /// Started at `start`, emitted up to `emitted`.
    Open { start: usize, emitted: usize, mend: JsonMend },
    /// Complete, in this range.
    Ended(Range<usize>),
}

impl Element {
    /// Creates an element whose brace is at `start`.
    pub(super) fn new(start: usize, tolerance: Tolerance) -> Self {
        Self { start, tolerance, ..Self::default() }
    }

    /// Begins the next member of the object.
    pub(super) fn next_member(&mut self) {
        (self.after_colon, self.key) = (false, 0..0);
    }

    /// Handles the end of a string, which is a key of the object or the value of one.
    pub(super) fn string_ended(
        &mut self,
        keys: &mut CallKeys,
        text: &str,
        calls: &mut CallSink<'_>,
    ) -> Result<(), Fault> {
        let string = self.string_start..text.len() - 1;
        if !self.after_colon {
            self.key = string.clone();
        }
        let may_be_named = keys.name_is_key() && self.tolerance.accepts(Departure::NamedObject);
        if may_be_named && text[self.key.clone()] == *NAME {
            if !self.after_colon {
                return Ok(()); // The value decides whether this is a tool's name.
            }
            keys.object = JsonObject::NAMED;
        }
        let is_name =
            if keys.name_is_key() { !self.after_colon } else { self.is_value_of(JsonKey::Name, keys, text) };
        if is_name && self.name.is_none() {
            self.name = unquoted(text, &string, self.tolerance);
            self.certain = text.len();
            return self.begin(calls);
        }
        if self.is_value_of(JsonKey::Id, keys, text) {
            self.id = unquoted(text, &string, self.tolerance);
        }
        Ok(())
    }

    /// Handles the brace of a member's value, which is the arguments if its key is theirs.
    pub(super) fn object_opened(
        &mut self,
        keys: &CallKeys,
        text: &str,
        calls: &mut CallSink<'_>,
    ) -> Result<(), Fault> {
        if !self.is_value_of(JsonKey::Arguments, keys, text) {
            return Ok(());
        }
        if !matches!(self.arguments, Arguments::None) {
            return Err(Fault::malformed("it has arguments twice"));
        }
        if keys.name_is_key() && self.name.is_none() {
            self.name = Some(NAME.to_owned());
        }
        let start = text.len() - 1;
        self.arguments = Arguments::Open { start, emitted: start, mend: JsonMend::new(self.tolerance) };
        self.begin(calls)
    }

    /// Handles the end of a member's value, which is a list or an object.
    pub(super) fn value_closed(&mut self, text: &str, calls: &mut CallSink<'_>) {
        self.emit(text, calls);
        if let Arguments::Open { start, .. } = self.arguments {
            self.arguments = Arguments::Ended(start..text.len());
            self.certain = text.len();
        }
    }

    /// Emits the new part of the arguments.
    pub(super) fn emit(&mut self, text: &str, calls: &mut CallSink<'_>) {
        if let Arguments::Open { emitted, mend, .. } = &mut self.arguments {
            calls.arguments(&mend.push(&text[*emitted..]));
            *emitted = text.len();
        }
    }

    /// Completes the call at the end of the object.
    pub(super) fn complete(
        &mut self,
        keys: &CallKeys,
        text: &str,
        calls: &mut CallSink<'_>,
    ) -> Result<(), Fault> {
        let object = read_json(&text[self.start..], self.tolerance)?;
        let Self { tolerance, name, started, arguments, .. } = std::mem::take(self);
        let mut call = keys.call(object)?;
        if name.as_ref().is_some_and(|name| *name != call.name) {
            return Err(Fault::malformed("it has two names"));
        }
        match arguments {
            Arguments::Ended(range) => call.arguments = read_json(&text[range], tolerance)?,
            _ if call.arguments.is_empty() => {}
            _ => {
                if !started {
                    calls.begin(Some(&call.name), call.id.as_deref())?;
                }
                calls.arguments(&guarded(&Value::Object(call.arguments.clone()).to_string()));
            }
        }
        calls.complete(call)
    }

    /// The call of an object that lacks only its last bracket; `None` if more is missing, or other text
    /// follows its parts.
    pub(super) fn unclosed_call(&mut self, text: &str) -> Result<Option<ToolCall>, Fault> {
        let is_last = text[self.certain..].trim().is_empty();
        if is_last { self.named_call(text) } else { Ok(None) }
    }

    /// The call of an object whose name and arguments are complete. The name is taken.
    pub(super) fn named_call(&mut self, text: &str) -> Result<Option<ToolCall>, Fault> {
        let Arguments::Ended(range) = &self.arguments else { return Ok(None) };
        let Some(name) = self.name.take() else { return Ok(None) };
        let mut call = ToolCall::new(name, read_json(&text[range.clone()], self.tolerance)?);
        call.id = self.id.take();
        Ok(Some(call))
    }

    /// Reports the start of the call, with the parts known so far.
    fn begin(&mut self, calls: &mut CallSink<'_>) -> Result<(), Fault> {
        if std::mem::replace(&mut self.started, true) {
            return Ok(());
        }
        calls.begin(self.name.as_deref(), self.id.as_deref())
    }

    fn is_value_of(&self, part: JsonKey, keys: &CallKeys, text: &str) -> bool {
        self.after_colon && keys.part(&text[self.key.clone()]) == Some(part)
    }
}

/// The string in this range, whose quotes are around it.
fn unquoted(text: &str, string: &Range<usize>, tolerance: Tolerance) -> Option<String> {
    let list = format!("[{}]", &text[string.start - 1..string.end + 1]);
    read_json(&list, tolerance).ok().map(|[string]: [String; 1]| string)
}

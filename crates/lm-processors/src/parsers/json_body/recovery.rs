//! Recovery from defects of JSON calls: Python literals, missing brackets.

use lm_template::{ToolCall, Value};

use super::element::parsed;
use super::{Arguments, Element, JsonBody};
use crate::marker_guard::{guarded, unguarded};
use crate::parsers::body_reader::{MAX_BLOCK_BYTES, Progress};
use crate::parsers::call_sink::CallSink;
use crate::parsers::fault::Fault;
use crate::parsers::json_scan::UNTERMINATED;
use crate::values::PythonArguments;

impl JsonBody {
    /// Switches to Python literals at a single quote in place of the first key.
    pub(super) fn starts_python(&mut self, text: &str) -> bool {
        let quoted = text.as_bytes().get(self.at) == Some(&b'\'') && self.scan.is_outside();
        let fresh = self.complete == 0 && !self.element.started && self.fault.is_none();
        if quoted && fresh && self.scan.depth() > 0 && self.recovers {
            let bracket = if self.in_list { '[' } else { '{' };
            self.python = Some((self.start + 1, PythonArguments::literal(bracket)));
        }
        self.python.is_some()
    }

    /// Continues a value written as a Python literal.
    pub(super) fn read_python(&mut self, text: &str, calls: &mut CallSink<'_>) -> Result<Progress, Fault> {
        let Some((start, literal)) = &mut self.python else { return Ok(Progress::Open) };
        let start = *start;
        if text.len() > MAX_BLOCK_BYTES {
            return Err(Fault::malformed("it is too long"));
        }
        let ended = literal.follow(&text[start..]).map_err(Fault::malformed)?;
        let Some(end) = ended else { return Ok(Progress::Open) };
        let value: Value = serde_json::from_str(&unguarded(literal.certain()))
            .map_err(|error| Fault::malformed(error.to_string()))?;
        let objects = if let Value::Array(items) = value { items } else { vec![value] };
        for object in objects {
            let Value::Object(object) = object else {
                return Err(Fault::malformed("expected an object, got another value"));
            };
            let call = self.call(object)?;
            calls.begin(Some(&call.name), call.id.as_deref())?;
            calls.arguments(&guarded(&Value::Object(call.arguments.clone()).to_string()));
            calls.complete(call)?;
            self.complete += 1;
        }
        (self.at, self.ended) = (start + end, Some(start + end));
        Ok(self.after_value(text, start + end))
    }

    /// Completes a call that lacks only its last brackets.
    pub(super) fn close_brackets(&mut self, text: &str, calls: &mut CallSink<'_>) -> Result<bool, Fault> {
        if self.fault.is_some() || !self.scan.is_outside() {
            return Ok(false);
        }
        let between = self.complete > 0 && self.scan.depth() < self.inside();
        if between || self.scan.depth() != self.inside() {
            return Ok(between);
        }
        let blank = text[self.element.certain..self.at].trim().is_empty();
        match (&self.element.arguments, self.element.name.take()) {
            (Arguments::Ended(range), Some(name)) if blank => {
                let mut call = ToolCall::new(name, parsed(&text[range.clone()], self.recovers)?);
                call.id = self.element.id.take();
                self.element = Element::default();
                self.complete += 1;
                calls.complete(call)?;
                Ok(true)
            }
            (_, name) => {
                self.element.name = name;
                Ok(false)
            }
        }
    }

    /// Fails if the rest of the text starts with the closing marker inside a string that is not valid JSON,
    /// or a comment: its end is missing. Returns true if more text is needed to decide.
    pub(super) fn is_unterminated(&self, text: &str) -> Result<bool, Fault> {
        let rest = &text.as_bytes()[self.at..];
        if !self.scan.may_be_unterminated() || rest.first() != self.close.as_bytes().first() {
            return Ok(false);
        }
        match rest.starts_with(self.close.as_bytes()) {
            true => Err(Fault::malformed(UNTERMINATED)),
            false => Ok(self.close.as_bytes().starts_with(rest)),
        }
    }

    /// Returns true if the rest of the text starts with the closing marker; `None` if more text is needed to
    /// decide.
    pub(super) fn is_at_close(&self, text: &str) -> Option<bool> {
        let (rest, close) = (&text.as_bytes()[self.at..], self.close.as_bytes());
        let outside = !close.is_empty() && self.scan.depth() > 0 && self.scan.is_outside();
        if !outside || rest.first() != close.first() {
            return Some(false);
        }
        match rest.starts_with(close) {
            false if close.starts_with(rest) => None,
            found => Some(found),
        }
    }

    /// Returns true at the end of a list whose last object is not closed.
    pub(super) fn is_at_list_end(&self, byte: u8) -> bool {
        let in_object = self.in_list && self.scan.depth() == self.inside() && self.scan.is_outside();
        self.recovers && byte == b']' && in_object
    }
}

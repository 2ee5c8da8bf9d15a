//! Objects of calls in a JSON value: one, or those of a list.

use lm_template::Value;

use super::element::Element;
use super::keys::CallKeys;
use crate::marker_guard::guarded;
use crate::parsers::call_sink::CallSink;
use crate::parsers::fault::Fault;
use crate::parsers::json_mend::read_json;
use crate::parsers::json_scan::{JsonScan, JsonStep};
use crate::parsers::recovery::Tolerance;

/// Reader of the objects of a value.
#[derive(Debug)]
pub(super) struct Objects {
    pub(super) keys: CallKeys,
    tolerance: Tolerance,
    pub(super) in_list: bool,
    pub(super) element: Element,
    /// Number of complete calls, and the end of the last one.
    complete: usize,
    pub(super) completed: usize,
    /// Fault of an earlier object; the rest of the value is read as its text.
    pub(super) fault: Option<Fault>,
}

impl Objects {
    pub(super) fn new(keys: CallKeys, tolerance: Tolerance) -> Self {
        Self {
            keys,
            tolerance,
            in_list: false,
            element: Element::default(),
            complete: 0,
            completed: 0,
            fault: None,
        }
    }

    /// Returns true before the first name or arguments.
    pub(super) fn is_fresh(&self) -> bool {
        self.complete == 0 && !self.element.started && self.fault.is_none()
    }

    /// Returns true if no call is open, after a complete one.
    pub(super) fn is_between(&self) -> bool {
        self.complete > 0 && !self.element.started
    }

    /// Depth inside the object of a call.
    pub(super) fn inside(&self) -> usize {
        1 + usize::from(self.in_list)
    }

    /// Returns true if a number or a word is allowed here: not between the objects of a list, nor in place of
    /// an object's key.
    pub(super) fn allows_word(&self, scan: &JsonScan) -> bool {
        let (depth, inside) = (scan.depth(), self.inside());
        scan.in_string() || depth > inside || depth == inside && self.element.after_colon
    }

    /// Interprets the byte before `at`, after which the value has this depth.
    pub(super) fn interpret(
        &mut self,
        step: JsonStep,
        depth: usize,
        text: &str,
        at: usize,
        calls: &mut CallSink<'_>,
    ) {
        if self.fault.is_none() {
            self.fault = self.read(step, depth, text, at, calls).err();
        }
    }

    fn read(
        &mut self,
        step: JsonStep,
        depth: usize,
        text: &str,
        at: usize,
        calls: &mut CallSink<'_>,
    ) -> Result<(), Fault> {
        let inside = self.inside();
        match step {
            JsonStep::Open => return self.bracket_opened(depth, &text[..at], calls),
            JsonStep::Close if depth == inside => self.element.value_closed(&text[..at], calls),
            JsonStep::Close if depth + 1 == inside => {
                self.element.complete(&self.keys, &text[..at], calls)?;
                self.complete += 1;
                self.completed = at;
            }
            JsonStep::StringStart => self.element.string_start = at,
            JsonStep::StringEnd if depth == inside => {
                return self.element.string_ended(&mut self.keys, &text[..at], calls);
            }
            JsonStep::Colon if depth == inside => self.element.after_colon = true,
            JsonStep::Comma if depth == inside => self.element.next_member(),
            _ => {}
        }
        Ok(())
    }

    fn bracket_opened(&mut self, depth: usize, text: &str, calls: &mut CallSink<'_>) -> Result<(), Fault> {
        let is_list = text.ends_with('[');
        if depth == 1 && is_list {
            self.in_list = true;
        } else if depth == self.inside() {
            if is_list {
                return Err(Fault::malformed("expected an object, got a list"));
            }
            self.element = Element::new(text.len() - 1, self.tolerance);
        } else if depth == self.inside() + 1 && !is_list {
            return self.element.object_opened(&self.keys, text, calls);
        }
        Ok(())
    }

    /// Ends the value.
    pub(super) fn end(&mut self) -> Result<(), Fault> {
        match self.fault.take() {
            Some(fault) => Err(fault),
            None if self.complete == 0 => Err(Fault::malformed("the list of calls is empty")),
            None => Ok(()),
        }
    }

    /// Completes a call that lacks only its last brackets; returns false if there is none.
    pub(super) fn close(
        &mut self,
        scan: &JsonScan,
        text: &str,
        calls: &mut CallSink<'_>,
    ) -> Result<bool, Fault> {
        if self.fault.is_some() || !scan.is_outside() {
            return Ok(false);
        }
        if scan.depth() != self.inside() {
            return Ok(self.complete > 0 && scan.depth() < self.inside());
        }
        let Some(call) = self.element.unclosed_call(text)? else { return Ok(false) };
        self.element = Element::default();
        self.complete += 1;
        calls.complete(call)?;
        Ok(true)
    }

    /// Reports the calls of a whole value.
    pub(super) fn whole(&mut self, json: &str, calls: &mut CallSink<'_>) -> Result<(), Fault> {
        let objects = match read_json(json, Tolerance::NONE)? {
            Value::Array(items) => items,
            object => vec![object],
        };
        for object in objects {
            let Value::Object(object) = object else {
                return Err(Fault::malformed("expected an object, got another value"));
            };
            let call = self.keys.call(object)?;
            calls.begin(Some(&call.name), call.id.as_deref())?;
            calls.arguments(&guarded(&Value::Object(call.arguments.clone()).to_string()));
            calls.complete(call)?;
            self.complete += 1;
        }
        Ok(())
    }
}

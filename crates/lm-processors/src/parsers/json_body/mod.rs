//! Calls as JSON: one object, or a list of them.

mod element;
mod keys;

use lm_template::Value;

use self::element::Element;
use self::keys::CallKeys;
use super::body_reader::{BodyReader, MAX_BLOCK_BYTES, Progress, check_length};
use super::call_sink::CallSink;
use super::code_fence::{FENCE, fence};
use super::fault::Fault;
use super::json_mend::read_json;
use super::json_scan::{JsonScan, JsonStep, UNTERMINATED};
use super::marker_scan::{Prefix, prefix};
use super::recovery::{Departure, Tolerance};
use crate::dialect::{CallSyntax, JsonCall, Tags};
use crate::marker_guard::guarded;
use crate::values::PythonArguments;

/// Reader of [`CallBody::Json`](crate::dialect::CallBody::Json).
#[derive(Debug)]
pub(crate) struct JsonBody {
    keys: CallKeys,
    tolerance: Tolerance,
    /// Closing marker before which brackets may be missing; empty if none may be.
    close: &'static str,
    state: State,
    scan: JsonScan,
    at: usize,
    in_list: bool,
    /// True if the calls are in a code block.
    fenced: bool,
    /// Number of complete calls, and the end of the last one.
    complete: usize,
    completed: usize,
    element: Element,
    /// Fault of an earlier element; the rest of the value is read as its text.
    fault: Option<Fault>,
}

#[derive(Debug)]
enum State {
    /// Before the value, or the code block around it.
    Start,
    /// In the value, which starts at this byte once its bracket was read.
    Value { start: usize },
    /// In a value written as a Python literal, whose bracket ends at this byte.
    Python { start: usize, literal: PythonArguments },
    /// After the value, which ended before this byte.
    Ended(usize),
}

impl JsonBody {
    /// Creates a reader of calls between the markers of `around`.
    pub(crate) fn new(syntax: JsonCall, around: &'static CallSyntax, tolerance: Tolerance) -> Self {
        let Tags { open, close, .. } = around.call;
        // A marker that JSON may contain outside of strings is ambiguous.
        let foreign = !close.starts_with(|c: char| c.is_alphanumeric() || "{}[]\",:".contains(c));
        let bare = open.is_empty() && around.section.open.is_empty();
        let tolerance = if bare { tolerance.and(Tolerance::ON_ONE_LINE) } else { tolerance };
        Self {
            keys: CallKeys { object: syntax.object, bare },
            tolerance,
            close: if foreign && tolerance.accepts(Departure::Unclosed) { close } else { "" },
            state: State::Start,
            scan: JsonScan::new(tolerance),
            at: 0,
            in_list: false,
            fenced: false,
            complete: 0,
            completed: 0,
            element: Element::default(),
            fault: None,
        }
    }

    /// Skips the start of a code block; returns false if more text is needed to decide.
    fn start(&mut self, text: &str) -> bool {
        let rest = text[self.at..].trim_start();
        let Some(len) = fence(rest) else { return false };
        if len > 0 {
            (self.at, self.fenced) = (text.len() - rest.len() + len, true);
        }
        self.state = State::Value { start: self.at };
        true
    }

    /// Reads the value; returns the next state, or `None` if more text is needed.
    fn value(&mut self, text: &str, calls: &mut CallSink<'_>) -> Result<Option<State>, Fault> {
        for &byte in &text.as_bytes()[self.at..] {
            if let Some(python) = self.python(byte) {
                return Ok(Some(python));
            }
            let rest = &text.as_bytes()[self.at..];
            match self.scan.unterminated_at(rest, self.close) {
                Prefix::Absent => {}
                Prefix::Partial => break,
                Prefix::Found => return Err(Fault::malformed(UNTERMINATED)),
            }
            let at_list_end = self.is_at_list_end(byte);
            let at_close = self.at_close(rest);
            if at_close == Prefix::Partial {
                break;
            }
            if (at_close == Prefix::Found || at_list_end) && self.close_brackets(text, calls)? {
                self.at += usize::from(at_list_end);
                return Ok(Some(State::Ended(self.at)));
            }
            if self.take(text, byte, calls)? {
                return Ok(Some(State::Ended(self.at)));
            }
        }
        Ok(None)
    }

    /// Depth inside the object of a call.
    fn inside(&self) -> usize {
        1 + usize::from(self.in_list)
    }

    /// Returns true if a number or a word is allowed here: not between the objects of a list, nor in place of
    /// an object's key.
    fn allows_word(&self) -> bool {
        let depth = self.scan.depth();
        self.scan.in_string() || depth > self.inside() || depth == self.inside() && self.element.after_colon
    }

    /// Consumes the next byte; returns true if it ends the value.
    fn take(&mut self, text: &str, byte: u8, calls: &mut CallSink<'_>) -> Result<bool, Fault> {
        if self.at == MAX_BLOCK_BYTES {
            return Err(Fault::malformed("it is too long"));
        }
        let step = self.scan.step(byte);
        if let JsonStep::Invalid(reason) = step {
            return Err(Fault::malformed(reason));
        }
        if step == JsonStep::Inside && !self.allows_word() {
            return Err(Fault::malformed("expected an object or a key, got a word"));
        }
        self.at += 1;
        if self.fault.is_none() {
            self.fault = self.interpret(step, byte, text, calls).err();
        }
        if step != JsonStep::Close || self.scan.depth() > 0 {
            return Ok(false);
        }
        match self.fault.take() {
            Some(fault) => Err(fault),
            None if self.complete == 0 => Err(Fault::malformed("the list of calls is empty")),
            None => Ok(true),
        }
    }

    /// Interprets a byte as part of a list of calls, or of the object of one.
    fn interpret(
        &mut self,
        step: JsonStep,
        byte: u8,
        text: &str,
        calls: &mut CallSink<'_>,
    ) -> Result<(), Fault> {
        let (depth, inside) = (self.scan.depth(), self.inside());
        match step {
            JsonStep::Open => return self.bracket_opened(&text[..self.at], byte, calls),
            JsonStep::Close if depth == inside => self.element.value_closed(&text[..self.at], calls),
            JsonStep::Close if depth + 1 == inside => {
                self.element.complete(&self.keys, self.tolerance, &text[..self.at], calls)?;
                self.complete += 1;
                self.completed = self.at;
            }
            JsonStep::StringStart => self.element.string_start = self.at,
            JsonStep::StringEnd if depth == inside => {
                let (keys, read) = (&mut self.keys, &text[..self.at]);
                return self.element.string_ended(keys, self.tolerance, read, calls);
            }
            JsonStep::Colon if depth == inside => self.element.after_colon = true,
            JsonStep::Comma if depth == inside => self.element.next_member(),
            _ => {}
        }
        Ok(())
    }

    fn bracket_opened(&mut self, text: &str, byte: u8, calls: &mut CallSink<'_>) -> Result<(), Fault> {
        let (depth, start) = (self.scan.depth(), self.at - 1);
        if depth == 1 {
            self.state = State::Value { start };
        }
        if depth == 1 && byte == b'[' {
            self.in_list = true;
        } else if depth == self.inside() {
            if byte != b'{' {
                return Err(Fault::malformed("expected an object, got a list"));
            }
            self.element = Element::new(start);
        } else if depth == self.inside() + 1 && byte == b'{' {
            return self.element.object_opened(&self.keys, self.tolerance, text, calls);
        }
        Ok(())
    }

    /// State after a single quote in place of the first key: the value is a Python literal.
    fn python(&self, byte: u8) -> Option<State> {
        let State::Value { start } = self.state else { return None };
        let quoted = byte == b'\'' && self.scan.is_outside() && self.scan.depth() > 0;
        let fresh = self.complete == 0 && !self.element.started && self.fault.is_none();
        let bracket = if self.in_list { '[' } else { '{' };
        (quoted && fresh && self.tolerance.accepts(Departure::PythonLiteral))
            .then(|| State::Python { start: start + 1, literal: PythonArguments::literal(bracket) })
    }

    /// Reports the calls in the JSON text of a Python literal.
    fn literal_calls(&mut self, json: &str, calls: &mut CallSink<'_>) -> Result<(), Fault> {
        let value: Value = read_json(json, Tolerance::NONE)?;
        let objects = if let Value::Array(items) = value { items } else { vec![value] };
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

    /// Completes a call that lacks only its last brackets.
    fn close_brackets(&mut self, text: &str, calls: &mut CallSink<'_>) -> Result<bool, Fault> {
        if self.fault.is_some() || !self.scan.is_outside() {
            return Ok(false);
        }
        if self.scan.depth() != self.inside() {
            return Ok(self.complete > 0 && self.scan.depth() < self.inside());
        }
        let Some(call) = self.element.unclosed_call(self.tolerance, &text[..self.at])? else {
            return Ok(false);
        };
        self.element = Element::default();
        self.complete += 1;
        calls.complete(call)?;
        Ok(true)
    }

    /// Searches for the closing marker at the start of `rest`, in a value whose brackets are open.
    fn at_close(&self, rest: &[u8]) -> Prefix {
        let outside = self.scan.depth() > 0 && self.scan.is_outside();
        if outside { prefix(rest, self.close) } else { Prefix::Absent }
    }

    /// Returns true at the end of a list whose last object is not closed.
    fn is_at_list_end(&self, byte: u8) -> bool {
        let in_object = self.in_list && self.scan.depth() == self.inside() && self.scan.is_outside();
        byte == b']' && in_object && self.tolerance.accepts(Departure::Unclosed)
    }

    /// Reads the end of the enclosing code block after the value, which ends at `end`.
    fn after_value(&self, text: &str, end: usize) -> Progress {
        let rest = text[end..].trim_start();
        match prefix(rest, FENCE) {
            Prefix::Found if self.fenced => Progress::Complete(text.len() - rest.len() + FENCE.len()),
            Prefix::Partial if self.fenced => Progress::Open,
            _ => Progress::Complete(end),
        }
    }
}

impl BodyReader for JsonBody {
    fn read(&mut self, text: &str, calls: &mut CallSink<'_>) -> Result<Progress, Fault> {
        loop {
            match &mut self.state {
                State::Start => {
                    if !self.start(text) {
                        return Ok(Progress::Open);
                    }
                }
                State::Value { .. } => match self.value(text, calls) {
                    Ok(Some(next)) => self.state = next,
                    read => {
                        self.element.emit(&text[..text.floor_char_boundary(self.at)], calls);
                        return read.map(|_| Progress::Open);
                    }
                },
                State::Python { start, literal } => {
                    check_length(text)?;
                    let start = *start;
                    let ended = literal.follow(&text[start..]).map_err(Fault::malformed)?;
                    let Some(end) = ended else { return Ok(Progress::Open) };
                    let json = literal.certain().to_owned();
                    self.literal_calls(&json, calls)?;
                    self.at = start + end;
                    self.state = State::Ended(self.at);
                }
                State::Ended(end) => {
                    let end = *end;
                    return Ok(self.after_value(text, end));
                }
            }
        }
    }

    /// Complete calls of a list are kept even if its brackets are missing.
    fn finish(&mut self, text: &str, calls: &mut CallSink<'_>) -> Result<usize, Fault> {
        if let Some(fault) = self.fault.take() {
            return Err(fault);
        }
        if matches!(self.state, State::Ended(_)) {
            return Ok(text.len());
        }
        if self.keys.name_is_key()
            && let Some(call) = self.element.named_call(self.tolerance, text)?
        {
            calls.complete(call)?;
            return Ok(text.len());
        }
        if self.complete > 0 && !self.element.started { Ok(text.len()) } else { Err(Fault::unfinished()) }
    }

    fn position(&self) -> usize {
        self.at
    }

    fn completed(&self) -> usize {
        self.completed
    }
}

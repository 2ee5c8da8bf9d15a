//! Calls as JSON: one object, or a list of them.

mod element;
mod keys;
mod objects;

use self::keys::CallKeys;
use self::objects::Objects;
use super::body_reader::{BodyReader, MAX_BLOCK_BYTES, Progress, check_length};
use super::call_sink::CallSink;
use super::code_fence::{FENCE, fence};
use super::fault::Fault;
use super::json_scan::{JsonScan, JsonStep, UNTERMINATED};
use super::marker_scan::{Prefix, prefix};
use super::recovery::{Departure, Tolerance};
use crate::dialect::{CallSyntax, JsonCall, Tags};
use crate::values::PythonArguments;

/// Reader of [`CallBody::Json`](crate::dialect::CallBody::Json).
#[derive(Debug)]
pub(crate) struct JsonBody {
    tolerance: Tolerance,
    /// Closing marker before which brackets may be missing; empty if none may be.
    close: &'static str,
    state: State,
    scan: JsonScan,
    at: usize,
    /// True if the calls are in a code block.
    fenced: bool,
    /// True if the braces of the call are doubled.
    doubled: bool,
    objects: Objects,
}

#[derive(Debug)]
enum State {
    /// Before the value, or the code block around it.
    Start,
    /// In the value, whose bracket is at this byte once it was read.
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
            tolerance,
            close: if foreign && tolerance.accepts(Departure::Unclosed) { close } else { "" },
            state: State::Start,
            scan: JsonScan::new(tolerance),
            at: 0,
            fenced: false,
            doubled: false,
            objects: Objects::new(CallKeys { object: syntax.object, bare }, tolerance),
        }
    }

    /// Skips the start of a code block; returns the next state, or `None` if more text is needed to decide.
    fn start(&mut self, text: &str) -> Option<State> {
        let rest = text[self.at..].trim_start();
        let len = fence(rest)?;
        let doubled = self.doubled_brace(&rest[len..])?;
        if len + doubled > 0 {
            self.at = text.len() - rest.len() + len + doubled;
            (self.fenced, self.doubled) = (len > 0, doubled > 0);
        }
        Some(State::Value { start: self.at })
    }

    /// Length of the blanks and the first of two braces at the start of `rest`, as some templates of Qwen2.5
    /// show a call between markers; the second closing brace closes nothing. `None` if more text is needed to
    /// decide.
    fn doubled_brace(&self, rest: &str) -> Option<usize> {
        if self.objects.keys.bare || !self.tolerance.accepts(Departure::StrayBrackets) {
            return Some(0);
        }
        let object = rest.trim_start();
        match object.as_bytes() {
            b"{" => None,
            [b'{', b'{', ..] => Some(rest.len() - object.len() + 1),
            _ => Some(0),
        }
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
            let at_end = match self.at_close(rest) {
                Prefix::Partial => break,
                at_close => at_close == Prefix::Found || at_list_end,
            };
            if at_end && self.objects.close(&self.scan, &text[..self.at], calls)? {
                self.at += usize::from(at_list_end);
                return Ok(Some(State::Ended(self.at)));
            }
            if self.take(text, byte, calls)? {
                return Ok(Some(State::Ended(self.at)));
            }
        }
        Ok(None)
    }

    /// Consumes the next byte; returns true if it ends the value.
    fn take(&mut self, text: &str, byte: u8, calls: &mut CallSink<'_>) -> Result<bool, Fault> {
        if self.at == MAX_BLOCK_BYTES {
            return Err(Fault::malformed("it is too long"));
        }
        let step = self.scan.step(byte);
        let depth = self.scan.depth();
        match step {
            JsonStep::Invalid(reason) => return Err(Fault::malformed(reason)),
            JsonStep::Inside if !self.objects.allows_word(&self.scan) => {
                return Err(Fault::malformed("expected an object or a key, got a word"));
            }
            JsonStep::Open if depth == 1 => self.state = State::Value { start: self.at },
            _ => {}
        }
        self.at += 1;
        self.objects.interpret(step, depth, text, self.at, calls);
        if step != JsonStep::Close || depth > 0 {
            return Ok(false);
        }
        self.objects.end()?;
        Ok(true)
    }

    /// State after a single quote in place of the first key: the value is a Python literal.
    fn python(&self, byte: u8) -> Option<State> {
        let State::Value { start } = self.state else { return None };
        let quoted = byte == b'\'' && self.scan.is_outside() && self.scan.depth() > 0;
        let bracket = if self.objects.in_list { '[' } else { '{' };
        (quoted && self.objects.is_fresh() && self.tolerance.accepts(Departure::PythonLiteral))
            .then(|| State::Python { start: start + 1, literal: PythonArguments::literal(bracket) })
    }

    /// Reads a value written as a Python literal; returns the next state, or `None` if more text is needed.
    fn read_python(&mut self, text: &str, calls: &mut CallSink<'_>) -> Result<Option<State>, Fault> {
        let State::Python { start, literal } = &mut self.state else { return Ok(None) };
        check_length(text)?;
        let ended = literal.follow(&text[*start..]).map_err(Fault::malformed)?;
        let Some(len) = ended else { return Ok(None) };
        self.objects.whole(literal.certain(), calls)?;
        self.at = *start + len;
        Ok(Some(State::Ended(self.at)))
    }

    /// Searches for the closing marker at the start of `rest`, in a value whose brackets are open.
    fn at_close(&self, rest: &[u8]) -> Prefix {
        let outside = self.scan.depth() > 0 && self.scan.is_outside();
        if outside { prefix(rest, self.close) } else { Prefix::Absent }
    }

    /// Returns true at the end of a list whose last object is not closed.
    fn is_at_list_end(&self, byte: u8) -> bool {
        let in_object = self.objects.in_list && self.scan.depth() == self.objects.inside();
        byte == b']' && in_object && self.scan.is_outside() && self.tolerance.accepts(Departure::Unclosed)
    }

    /// Reads the second closing brace and the end of the enclosing code block after the value, which ends at
    /// `end`.
    fn after_value(&self, text: &str, mut end: usize) -> Progress {
        let mut rest = text[end..].trim_start();
        if self.doubled {
            match rest.strip_prefix('}') {
                Some(behind) => (rest, end) = (behind.trim_start(), text.len() - behind.len()),
                None if rest.is_empty() => return Progress::Open,
                None => {}
            }
        }
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
            let next = match self.state {
                State::Start => self.start(text),
                State::Value { .. } => {
                    let next = self.value(text, calls);
                    if !matches!(next, Ok(Some(_))) {
                        let read = &text[..text.floor_char_boundary(self.at)];
                        self.objects.element.emit(read, calls);
                    }
                    next?
                }
                State::Python { .. } => self.read_python(text, calls)?,
                State::Ended(end) => return Ok(self.after_value(text, end)),
            };
            let Some(next) = next else { return Ok(Progress::Open) };
            self.state = next;
        }
    }

    /// Complete calls of a list are kept even if its brackets are missing.
    fn finish(&mut self, text: &str, calls: &mut CallSink<'_>) -> Result<usize, Fault> {
        let objects = &mut self.objects;
        if let Some(fault) = objects.fault.take() {
            return Err(fault);
        }
        if matches!(self.state, State::Ended(_)) {
            return Ok(text.len());
        }
        if objects.keys.name_is_key()
            && let Some(call) = objects.element.named_call(text)?
        {
            calls.complete(call)?;
            return Ok(text.len());
        }
        if objects.is_between() { Ok(text.len()) } else { Err(Fault::unfinished()) }
    }

    fn position(&self) -> usize {
        self.at
    }

    fn completed(&self) -> usize {
        self.objects.completed
    }
}

//! Calls as JSON: one object, or a list of them.

mod element;
mod recovery;

use std::ops::Range;

use lm_template::ToolCall;

pub(super) use self::element::parsed;
use super::argument_text::{FENCE, fence};
use super::body_reader::{BodyReader, MAX_BLOCK_BYTES, Progress};
use super::call_sink::CallSink;
use super::fault::Fault;
use super::json_mend::JsonMend;
use super::json_scan::{JsonScan, JsonStep, Leniency};
use crate::dialect::{CallSyntax, JsonCall, JsonObject, Tags};
use crate::parser::Recovery;
use crate::values::PythonArguments;

/// Reader of [`CallBody::Json`](crate::dialect::CallBody::Json).
#[derive(Debug)]
pub(crate) struct JsonBody {
    syntax: JsonCall,
    /// True if calls have no marker, so that other JSON is text.
    bare: bool,
    /// True if defects are repaired.
    recovers: bool,
    /// Closing marker before which brackets may be missing; empty if none may be.
    close: &'static str,
    scan: JsonScan,
    /// Repair of the current arguments.
    mend: JsonMend,
    /// Reader of a value written as a Python literal, and the value's start.
    python: Option<(usize, PythonArguments)>,
    /// Start of the value.
    start: usize,
    at: usize,
    in_list: bool,
    /// True if the calls are in a code block.
    fenced: bool,
    /// End of the value.
    ended: Option<usize>,
    complete: usize,
    /// End of the last complete call.
    completed: usize,
    element: Element,
    /// Fault of an earlier element; the rest of the value is read as its text.
    fault: Option<Fault>,
}

/// JSON object of one call.
#[derive(Debug, Default)]
struct Element {
    start: usize,
    /// The object's current key, without quotes.
    key: Range<usize>,
    after_colon: bool,
    string_start: usize,
    name: Option<String>,
    id: Option<String>,
    started: bool,
    arguments: Arguments,
    /// End of the name or the arguments, whichever came last.
    certain: usize,
}

/// State of the arguments.
#[derive(Debug, Default, PartialEq, Eq)]
enum Arguments {
    /// Not started, or not an object.
    #[default]
    None,
    /// Started at `start`, emitted up to `emitted`.
    Open { start: usize, emitted: usize },
    /// Complete, in this range.
    Ended(Range<usize>),
}

impl JsonBody {
    /// Creates a reader of calls between the markers of `around`.
    pub(crate) fn new(syntax: JsonCall, around: &'static CallSyntax, recovery: Recovery) -> Self {
        let Tags { open, close, .. } = around.call;
        // A marker that JSON may contain outside of strings is ambiguous.
        let foreign = !close.starts_with(|c: char| c.is_alphanumeric() || "{}[]\",:".contains(c));
        let bare = open.is_empty() && around.section.open.is_empty();
        let recovers = recovery == Recovery::On;
        Self {
            syntax,
            bare,
            recovers,
            close: if recovers && foreign { close } else { "" },
            scan: JsonScan::new(Leniency::of(recovers, bare)),
            mend: JsonMend::default(),
            python: None,
            start: 0,
            at: 0,
            in_list: false,
            fenced: false,
            ended: None,
            complete: 0,
            completed: 0,
            element: Element::default(),
            fault: None,
        }
    }

    /// Skips the start of a code block; returns true if more text is needed to decide.
    fn at_start(&mut self, text: &str) -> bool {
        if self.scan.depth() > 0 || self.fenced {
            return false;
        }
        let rest = text[self.at..].trim_start();
        let Some(len) = fence(rest) else { return true };
        if len > 0 {
            (self.at, self.fenced) = (text.len() - rest.len() + len, true);
        }
        false
    }

    /// Reads the end of the enclosing code block after the value.
    fn after_value(&self, text: &str, end: usize) -> Progress {
        let rest = text[end..].trim_start();
        match self.fenced {
            true if rest.starts_with(FENCE) => Progress::Complete(text.len() - rest.len() + FENCE.len()),
            true if FENCE.starts_with(rest) => Progress::Open,
            _ => Progress::Complete(end),
        }
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

    /// Consumes the next byte; returns the end of the value if that is it.
    fn take(&mut self, text: &str, byte: u8, calls: &mut CallSink<'_>) -> Result<Option<usize>, Fault> {
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
            return Ok(None);
        }
        match self.fault.take() {
            Some(fault) => Err(fault),
            None if self.complete == 0 => Err(Fault::malformed("the list of calls is empty")),
            None => Ok(Some(self.at)),
        }
    }
}

impl BodyReader for JsonBody {
    fn read(&mut self, text: &str, calls: &mut CallSink<'_>) -> Result<Progress, Fault> {
        if let Some(end) = self.ended {
            return Ok(self.after_value(text, end));
        }
        if self.python.is_some() {
            return self.read_python(text, calls);
        }
        if self.at_start(text) {
            return Ok(Progress::Open);
        }
        for &byte in &text.as_bytes()[self.at..] {
            if self.starts_python(text) {
                return self.read_python(text, calls);
            }
            match self.is_unterminated(text) {
                Ok(false) => {}
                Ok(true) => break,
                Err(fault) => {
                    self.emit(text, calls);
                    return Err(fault);
                }
            }
            let at_list_end = self.is_at_list_end(byte);
            match self.is_at_close(text) {
                None => break,
                Some(at_close) if (at_close || at_list_end) && self.close_brackets(text, calls)? => {
                    self.at += usize::from(at_list_end);
                    self.ended = Some(self.at);
                    return Ok(self.after_value(text, self.at));
                }
                Some(_) => {}
            }
            match self.take(text, byte, calls) {
                Ok(None) => {}
                Ok(Some(end)) => {
                    self.ended = Some(end);
                    return Ok(self.after_value(text, end));
                }
                Err(fault) => {
                    self.emit(text, calls);
                    return Err(fault);
                }
            }
        }
        self.emit(text, calls);
        Ok(Progress::Open)
    }

    /// Complete calls of a list are kept even if its brackets are missing.
    fn finish(&mut self, text: &str, calls: &mut CallSink<'_>) -> Result<usize, Fault> {
        if let Some(fault) = self.fault.take() {
            return Err(fault);
        }
        if self.ended.is_some() {
            return Ok(text.len());
        }
        let element = &mut self.element;
        if matches!(self.syntax.object, JsonObject::NameIsKey)
            && let (Arguments::Ended(range), Some(name)) = (&element.arguments, element.name.take())
        {
            calls.complete(ToolCall::new(name, parsed(&text[range.clone()], self.recovers)?))?;
            return Ok(text.len());
        }
        if self.complete > 0 && !element.started { Ok(text.len()) } else { Err(Fault::unfinished()) }
    }

    fn position(&self) -> usize {
        self.at
    }

    fn completed(&self) -> usize {
        self.completed
    }
}

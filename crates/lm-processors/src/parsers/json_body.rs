//! Calls as JSON: one object, or a list of them.

use std::ops::Range;

use lm_template::{ToolCall, Value};
use serde_json::Map;

use super::argument_text::{FENCE, fence};
use super::body::MAX_BLOCK_BYTES;
use super::body::{BodyReader, CallSink, Fault, Progress};
use super::guard::{guarded, plain};
use super::json_scan::{JsonScan, Step};
use crate::dialect::{CallSyntax, JsonCall, JsonKey, JsonObject, Tags};
use crate::parser::Recovery;
use crate::values::PythonArguments;

/// Reader of [`CallBody::Json`](crate::dialect::CallBody::Json).
#[derive(Debug)]
pub(crate) struct JsonBody {
    syntax: JsonCall,
    /// True if calls have no marker, so that other JSON is text.
    bare: bool,
    /// True if defects of calls with a marker are mended.
    recovers: bool,
    /// Closing marker before which brackets may be missing; empty if none may be.
    close: &'static str,
    scan: JsonScan,
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
    begun: bool,
    arguments: Arguments,
    /// End of the name or the arguments, whichever came last.
    certain: usize,
}

/// State of the arguments.
#[derive(Debug, Default, PartialEq, Eq)]
enum Arguments {
    /// Not begun, or not an object.
    #[default]
    None,
    /// Begun at `start`, emitted up to `passed_on`.
    Open { start: usize, passed_on: usize },
    /// Complete, in this range.
    Ended(Range<usize>),
}

impl JsonBody {
    /// Creates a reader of calls between the markers of `around`.
    pub(crate) fn new(syntax: JsonCall, around: &'static CallSyntax, recovery: Recovery) -> Self {
        let Tags { open, close, .. } = around.call;
        // A marker that JSON may contain outside of strings cannot be told from it.
        let foreign = !close.starts_with(|c: char| c.is_alphanumeric() || "{}[]\",:".contains(c));
        let bare = open.is_empty() && around.section.open.is_empty();
        let recovers = recovery == Recovery::On && !bare;
        Self {
            syntax,
            bare,
            recovers,
            close: if recovers && foreign { close } else { "" },
            scan: JsonScan::default(),
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
    fn behind_value(&self, text: &str, end: usize) -> Progress {
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

    /// Returns true if a number or a word is allowed here: not between the objects of a list, nor in place of an
    /// object's key.
    fn may_hold_a_word(&self) -> bool {
        let depth = self.scan.depth();
        self.scan.in_string() || depth > self.inside() || depth == self.inside() && self.element.after_colon
    }

    /// Consumes the next byte; returns the end of the value if that is it.
    fn take(&mut self, text: &str, byte: u8, calls: &mut CallSink<'_>) -> Result<Option<usize>, Fault> {
        if self.at == MAX_BLOCK_BYTES {
            return Err(Fault::malformed("it is too long"));
        }
        let step = self.scan.step(byte);
        if let Step::Invalid(reason) = step {
            return Err(Fault::malformed(reason));
        }
        if step == Step::Inside && !self.may_hold_a_word() {
            return Err(Fault::malformed("a word stands where an object or a key must"));
        }
        self.at += 1;
        if self.fault.is_none() {
            self.fault = self.understand(step, byte, text, calls).err();
        }
        if step != Step::Close || self.scan.depth() > 0 {
            return Ok(None);
        }
        match self.fault.take() {
            Some(fault) => Err(fault),
            None if self.complete == 0 => Err(Fault::malformed("the list of calls is empty")),
            None => Ok(Some(self.at)),
        }
    }

    fn understand(
        &mut self,
        step: Step,
        byte: u8,
        text: &str,
        calls: &mut CallSink<'_>,
    ) -> Result<(), Fault> {
        let (depth, inside) = (self.scan.depth(), self.inside());
        match step {
            Step::Open => return self.opened(text, byte, depth, calls),
            Step::Close if depth == inside => self.arguments_closed(text, calls),
            Step::Close if depth + 1 == inside => return self.end_element(text, calls),
            Step::StringStart => self.element.string_start = self.at,
            Step::StringEnd if depth == inside => return self.string_ended(text, calls),
            Step::Colon if depth == inside => self.element.after_colon = true,
            Step::Comma if depth == inside => (self.element.after_colon, self.element.key) = (false, 0..0),
            _ => {}
        }
        Ok(())
    }

    fn opened(&mut self, text: &str, byte: u8, depth: usize, calls: &mut CallSink<'_>) -> Result<(), Fault> {
        if depth == 1 {
            self.start = self.at - 1;
        }
        if depth == 1 && byte == b'[' {
            self.in_list = true;
        } else if depth == self.inside() {
            if byte != b'{' {
                return Err(Fault::malformed("a list stands where an object must"));
            }
            self.element = Element { start: self.at - 1, ..Element::default() };
        } else if depth == self.inside() + 1
            && byte == b'{'
            && self.element.arguments == Arguments::None
            && self.is_value_of(text, JsonKey::Arguments)
        {
            self.element.arguments = Arguments::Open { start: self.at - 1, passed_on: self.at - 1 };
            return self.begin(calls);
        }
        Ok(())
    }

    fn string_ended(&mut self, text: &str, calls: &mut CallSink<'_>) -> Result<(), Fault> {
        let string = self.element.string_start..self.at - 1;
        if !self.element.after_colon {
            self.element.key = string.clone();
        }
        let is_name = match self.syntax.object {
            JsonObject::NameIsKey => !self.element.after_colon,
            JsonObject::Keys { .. } => self.is_value_of(text, JsonKey::Name),
        };
        if is_name && self.element.name.is_none() {
            self.element.name = unquoted(text, &string);
            self.element.certain = self.at;
            return self.begin(calls);
        }
        if self.is_value_of(text, JsonKey::Id) {
            self.element.id = unquoted(text, &string);
        }
        Ok(())
    }

    /// Reports the start of the call, with the parts known so far.
    fn begin(&mut self, calls: &mut CallSink<'_>) -> Result<(), Fault> {
        let element = &mut self.element;
        if std::mem::replace(&mut element.begun, true) {
            return Ok(());
        }
        calls.begin(element.name.as_deref(), element.id.as_deref())
    }

    fn is_value_of(&self, text: &str, part: JsonKey) -> bool {
        self.element.after_colon && self.part(&text[self.element.key.clone()]) == Some(part)
    }

    /// The part of a call that a key of its object denotes.
    fn part(&self, key: &str) -> Option<JsonKey> {
        match self.syntax.object {
            JsonObject::NameIsKey => Some(JsonKey::Arguments),
            JsonObject::Keys { written, understood } => {
                written.iter().chain(understood).find(|(_, name)| *name == key).map(|(part, _)| *part)
            }
        }
    }

    fn arguments_closed(&mut self, text: &str, calls: &mut CallSink<'_>) {
        self.pass_on(text, calls);
        if let Arguments::Open { start, .. } = self.element.arguments {
            self.element.arguments = Arguments::Ended(start..self.at);
            self.element.certain = self.at;
        }
    }

    /// Emits the new part of the arguments.
    fn pass_on(&mut self, text: &str, calls: &mut CallSink<'_>) {
        if let Arguments::Open { passed_on, .. } = &mut self.element.arguments {
            calls.arguments(&text[*passed_on..self.at]);
            *passed_on = self.at;
        }
    }

    fn end_element(&mut self, text: &str, calls: &mut CallSink<'_>) -> Result<(), Fault> {
        let object = parsed(&text[self.element.start..self.at])?;
        let element = std::mem::take(&mut self.element);
        let mut call = self.call(object)?;
        if element.name.as_ref().is_some_and(|name| *name != call.name) {
            return Err(Fault::malformed("it has two names"));
        }
        match &element.arguments {
            Arguments::Ended(range) => call.arguments = parsed(&text[range.clone()])?,
            _ if call.arguments.is_empty() => {}
            _ => {
                if !element.begun {
                    calls.begin(Some(&call.name), call.id.as_deref())?;
                }
                calls.arguments(&guarded(&Value::Object(call.arguments.clone()).to_string()));
            }
        }
        self.complete += 1;
        calls.complete(call)?;
        self.completed = self.at;
        Ok(())
    }

    /// Converts an object to a call.
    fn call(&self, object: Map<String, Value>) -> Result<ToolCall, Fault> {
        let mut call = Map::new();
        if matches!(self.syntax.object, JsonObject::NameIsKey) {
            let mut members = object.into_iter();
            let (Some((name, arguments)), None) = (members.next(), members.next()) else {
                return Err(Fault::malformed("its object must have one key, the tool's name"));
            };
            call.extend([("name".to_owned(), name.into()), ("arguments".to_owned(), arguments)]);
        } else {
            self.check_keys(&object)?;
            for (key, value) in object {
                let key = match self.part(&key) {
                    Some(JsonKey::Name) => "name",
                    Some(JsonKey::Arguments) => "arguments",
                    Some(JsonKey::Id) => "id",
                    None => &key,
                };
                call.entry(key).or_insert(value);
            }
        }
        ToolCall::from_json(call.into()).map_err(|error| Fault::malformed(error.to_string()))
    }
}

impl JsonBody {
    /// Checks that nothing of an object is lost as a call: an object without arguments has no other keys. Without a
    /// marker, a call has arguments and no other keys.
    fn check_keys(&self, object: &Map<String, Value>) -> Result<(), Fault> {
        let is_arguments = |key: &String| key == WRAPPER || self.part(key) == Some(JsonKey::Arguments);
        let has_arguments = object.keys().any(is_arguments);
        let is_known = |(key, value): (&String, &Value)| {
            key == WRAPPER || self.part(key).is_some() || (key == "type" && value == WRAPPER)
        };
        let other = object.iter().find(|member| !is_known(*member)).map(|(key, _)| key);
        match other {
            Some(key) if self.bare || !has_arguments => {
                Err(Fault::no_call(format!("`{key}` is not a key of a call")))
            }
            None if self.bare && !has_arguments => Err(Fault::no_call("it has no arguments")),
            _ => Ok(()),
        }
    }

    /// Switches to Python literals at a single quote in place of the first key.
    fn reads_python(&mut self, text: &str) -> bool {
        let quoted = text.as_bytes().get(self.at) == Some(&b'\'') && !self.scan.in_string();
        let fresh = self.complete == 0 && !self.element.begun && self.fault.is_none();
        if quoted && fresh && self.scan.depth() > 0 && self.recovers {
            let bracket = if self.in_list { '[' } else { '{' };
            self.python = Some((self.start + 1, PythonArguments::literal(bracket)));
        }
        self.python.is_some()
    }

    /// Continues a value written as a Python literal.
    fn follow_python(&mut self, text: &str, calls: &mut CallSink<'_>) -> Result<Progress, Fault> {
        let Some((start, literal)) = &mut self.python else { return Ok(Progress::Open) };
        let start = *start;
        if text.len() > MAX_BLOCK_BYTES {
            return Err(Fault::malformed("it is too long"));
        }
        let ended = literal.follow(&text[start..]).map_err(Fault::malformed)?;
        let Some(end) = ended else { return Ok(Progress::Open) };
        let value: Value = serde_json::from_str(&plain(literal.certain()))
            .map_err(|error| Fault::malformed(error.to_string()))?;
        let objects = if let Value::Array(items) = value { items } else { vec![value] };
        for object in objects {
            let Value::Object(object) = object else {
                return Err(Fault::malformed("a value stands where an object must"));
            };
            let call = self.call(object)?;
            calls.begin(Some(&call.name), call.id.as_deref())?;
            calls.arguments(&guarded(&Value::Object(call.arguments.clone()).to_string()));
            calls.complete(call)?;
            self.complete += 1;
        }
        (self.at, self.ended) = (start + end, Some(start + end));
        Ok(self.behind_value(text, start + end))
    }

    /// Completes a call that lacks only its last brackets.
    fn close_brackets(&mut self, text: &str, calls: &mut CallSink<'_>) -> Result<bool, Fault> {
        if self.fault.is_some() || self.scan.in_string() {
            return Ok(false);
        }
        let between = self.complete > 0 && self.scan.depth() < self.inside();
        if between || self.scan.depth() != self.inside() {
            return Ok(between);
        }
        let blank = text[self.element.certain..self.at].trim().is_empty();
        match (&self.element.arguments, self.element.name.take()) {
            (Arguments::Ended(range), Some(name)) if blank => {
                let mut call = ToolCall::new(name, parsed(&text[range.clone()])?);
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

    /// Position of the text relative to the closing marker; `None` if more text is needed to decide.
    fn is_at_close(&self, text: &str) -> Option<bool> {
        let (rest, close) = (&text.as_bytes()[self.at..], self.close.as_bytes());
        let outside = !close.is_empty() && self.scan.depth() > 0 && !self.scan.in_string();
        if !outside || rest.first() != close.first() {
            return Some(false);
        }
        match rest.starts_with(close) {
            false if close.starts_with(rest) => None,
            found => Some(found),
        }
    }

    /// Returns true at the end of a list whose last object is not closed.
    fn is_at_list_end(&self, byte: u8) -> bool {
        let in_object = self.in_list && self.scan.depth() == self.inside() && !self.scan.in_string();
        self.recovers && byte == b']' && in_object
    }
}

/// Key of a call inside an object with its type, and the value of that type.
const WRAPPER: &str = "function";

fn parsed(text: &str) -> Result<Map<String, Value>, Fault> {
    serde_json::from_str(&plain(text)).map_err(|error| Fault::malformed(error.to_string()))
}

fn unquoted(text: &str, string: &Range<usize>) -> Option<String> {
    serde_json::from_str(&plain(&text[string.start - 1..string.end + 1])).ok()
}

impl BodyReader for JsonBody {
    fn follow(&mut self, text: &str, calls: &mut CallSink<'_>) -> Result<Progress, Fault> {
        if let Some(end) = self.ended {
            return Ok(self.behind_value(text, end));
        }
        if self.python.is_some() {
            return self.follow_python(text, calls);
        }
        if self.at_start(text) {
            return Ok(Progress::Open);
        }
        for &byte in &text.as_bytes()[self.at..] {
            if self.reads_python(text) {
                return self.follow_python(text, calls);
            }
            let at_list_end = self.is_at_list_end(byte);
            match self.is_at_close(text) {
                None => break,
                Some(at_close) if (at_close || at_list_end) && self.close_brackets(text, calls)? => {
                    self.at += usize::from(at_list_end);
                    self.ended = Some(self.at);
                    return Ok(self.behind_value(text, self.at));
                }
                Some(_) => {}
            }
            match self.take(text, byte, calls) {
                Ok(None) => {}
                Ok(Some(end)) => {
                    self.ended = Some(end);
                    return Ok(self.behind_value(text, end));
                }
                Err(fault) => {
                    self.pass_on(text, calls);
                    return Err(fault);
                }
            }
        }
        self.pass_on(text, calls);
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
            calls.complete(ToolCall::new(name, parsed(&text[range.clone()])?))?;
            return Ok(text.len());
        }
        if self.complete > 0 && !element.begun { Ok(text.len()) } else { Err(Fault::unfinished()) }
    }

    fn position(&self) -> usize {
        self.at
    }

    fn completed(&self) -> usize {
        self.completed
    }
}

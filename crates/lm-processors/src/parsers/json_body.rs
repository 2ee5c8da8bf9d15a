//! Calls as JSON: one object, or a list of them.

use std::ops::Range;

use lm_template::{ToolCall, Value};

use super::body::{BodyReader, CallSink, Fault, MAX_BLOCK_BYTES, Progress};
use super::json_scan::{JsonScan, Step};
use crate::dialect::{JsonCall, JsonKey, JsonObject};

/// Reads [`CallBody::Json`](crate::dialect::CallBody::Json).
#[derive(Debug)]
pub(crate) struct JsonBody {
    syntax: JsonCall,
    scan: JsonScan,
    at: usize,
    in_list: bool,
    complete: usize,
    element: Element,
}

/// The object of one call.
#[derive(Debug, Default)]
struct Element {
    start: usize,
    /// The last key of the object itself, without its quotes.
    key: Range<usize>,
    after_colon: bool,
    string_start: usize,
    name: Option<String>,
    id: Option<String>,
    begun: bool,
    arguments: Arguments,
}

/// How far the arguments are.
#[derive(Debug, Default, PartialEq, Eq)]
enum Arguments {
    /// They have not begun, or are no object.
    #[default]
    None,
    /// They are passed on up to this byte.
    Open(usize),
    Ended,
}

impl JsonBody {
    pub(crate) fn new(syntax: JsonCall) -> Self {
        Self {
            syntax,
            scan: JsonScan::default(),
            at: 0,
            in_list: false,
            complete: 0,
            element: Element::default(),
        }
    }

    /// The depth inside the object of a call.
    fn inside(&self) -> usize {
        1 + usize::from(self.in_list)
    }

    fn take(&mut self, text: &str, byte: u8, calls: &mut CallSink<'_>) -> Result<Option<usize>, Fault> {
        let step = self.scan.step(byte);
        self.at += 1;
        let depth = self.scan.depth();
        match step {
            Step::Inside => {}
            Step::Invalid(reason) => {
                self.at -= 1;
                return Err(Fault::malformed(reason));
            }
            Step::Open => self.opened(text, byte, depth, calls)?,
            Step::StringStart => self.element.string_start = self.at,
            Step::StringEnd if depth == self.inside() => self.string_ended(text, calls)?,
            Step::Colon if depth == self.inside() => self.element.after_colon = true,
            Step::Comma if depth == self.inside() => {
                (self.element.after_colon, self.element.key) = (false, 0..0);
            }
            Step::Close => return self.closed(text, depth, calls),
            Step::StringEnd | Step::Colon | Step::Comma => {}
        }
        Ok(None)
    }

    fn opened(&mut self, text: &str, byte: u8, depth: usize, calls: &mut CallSink<'_>) -> Result<(), Fault> {
        if depth == 1 && byte == b'[' {
            self.in_list = true;
        } else if depth == self.inside() {
            if byte != b'{' {
                return Err(Fault::malformed("a list stands where an object must"));
            }
            self.element = Element { start: self.at - 1, ..Element::default() };
        } else if depth == self.inside() + 1 && byte == b'{' && self.is_value_of(text, JsonKey::Arguments) {
            self.element.arguments = Arguments::Open(self.at - 1);
            self.begin(calls)?;
        }
        Ok(())
    }

    fn string_ended(&mut self, text: &str, calls: &mut CallSink<'_>) -> Result<(), Fault> {
        let string = self.element.string_start..self.at - 1;
        let name_is_key = matches!(self.syntax.object, JsonObject::NameIsKey);
        if !self.element.after_colon {
            self.element.key = string.clone();
        }
        if name_is_key != self.element.after_colon && (name_is_key || self.is_value_of(text, JsonKey::Name)) {
            self.element.name = unquoted(text, &string);
            self.begin(calls)?;
        } else if !name_is_key && self.is_value_of(text, JsonKey::Id) {
            self.element.id = unquoted(text, &string);
        }
        Ok(())
    }

    /// Reports that the call has begun, with what is known of it.
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

    /// What a key of a call's object stands for.
    fn part(&self, key: &str) -> Option<JsonKey> {
        match self.syntax.object {
            JsonObject::NameIsKey => Some(JsonKey::Arguments),
            JsonObject::Keys { written, understood } => {
                written.iter().chain(understood).find(|(_, name)| *name == key).map(|(part, _)| *part)
            }
        }
    }

    fn closed(&mut self, text: &str, depth: usize, calls: &mut CallSink<'_>) -> Result<Option<usize>, Fault> {
        if depth == self.inside() && matches!(self.element.arguments, Arguments::Open(_)) {
            self.pass_on(text, calls);
            self.element.arguments = Arguments::Ended;
        } else if depth + 1 == self.inside() {
            self.end_element(text, calls)?;
        }
        if depth > 0 {
            return Ok(None);
        }
        if self.complete == 0 {
            return Err(Fault::malformed("the list of calls is empty"));
        }
        Ok(Some(self.at))
    }

    /// Passes on what is known of the arguments.
    fn pass_on(&mut self, text: &str, calls: &mut CallSink<'_>) {
        if let Arguments::Open(passed_on) = &mut self.element.arguments {
            calls.arguments(&text[*passed_on..self.at]);
            *passed_on = self.at;
        }
    }

    fn end_element(&mut self, text: &str, calls: &mut CallSink<'_>) -> Result<(), Fault> {
        let element = &self.element;
        let value: Value = serde_json::from_str(&text[element.start..self.at])
            .map_err(|error| Fault::malformed(error.to_string()))?;
        let call = self.call(value)?;
        if !element.begun {
            calls.begin(Some(&call.name), call.id.as_deref())?;
        }
        if element.arguments == Arguments::None && !call.arguments.is_empty() {
            calls.arguments(&Value::Object(call.arguments.clone()).to_string());
        }
        calls.complete(call)?;
        self.complete += 1;
        self.element = Element::default();
        Ok(())
    }

    /// The call an object says.
    fn call(&self, value: Value) -> Result<ToolCall, Fault> {
        let mut call = serde_json::Map::new();
        let Value::Object(object) = value else { return Err(Fault::malformed("it is no JSON object")) };
        if matches!(self.syntax.object, JsonObject::NameIsKey) {
            let mut members = object.into_iter();
            let (Some((name, arguments)), None) = (members.next(), members.next()) else {
                return Err(Fault::malformed("its object must have one key, the tool's name"));
            };
            call.extend([("name".to_owned(), name.into()), ("arguments".to_owned(), arguments)]);
        } else {
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

fn unquoted(text: &str, string: &Range<usize>) -> Option<String> {
    serde_json::from_str(&text[string.start - 1..string.end + 1]).ok()
}

impl BodyReader for JsonBody {
    fn follow(&mut self, text: &str, calls: &mut CallSink<'_>) -> Result<Progress, Fault> {
        for &byte in &text.as_bytes()[self.at..] {
            match self.take(text, byte, calls) {
                Ok(None) => {}
                Ok(Some(end)) => return Ok(Progress::Complete(end)),
                Err(fault) => {
                    self.pass_on(text, calls);
                    return Err(fault);
                }
            }
        }
        self.pass_on(text, calls);
        if text.len() > MAX_BLOCK_BYTES {
            Err(Fault::malformed("it is too long"))
        } else {
            Ok(Progress::Open)
        }
    }

    fn finish(&mut self, _: &str, _: &mut CallSink<'_>) -> Result<(), Fault> {
        Err(Fault::unfinished())
    }

    fn position(&self) -> usize {
        self.at
    }
}

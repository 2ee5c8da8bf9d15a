//! JSON object of one call: its keys, and the reports of the call.

use std::ops::Range;

use lm_template::{ToolCall, Value};
use serde::de::DeserializeOwned;
use serde_json::Map;

use super::{Arguments, Element, JsonBody};
use crate::dialect::{JsonKey, JsonObject};
use crate::marker_guard::{guarded, unguarded};
use crate::parsers::call_sink::CallSink;
use crate::parsers::fault::Fault;
use crate::parsers::json_mend::JsonMend;
use crate::parsers::json_scan::JsonStep;

/// Key of a call inside an object with its type, and the value of that type.
const WRAPPER: &str = "function";

/// Key of a name in other families, which objects may have whose key should be the name.
const NAME: &str = "name";

impl JsonBody {
    pub(super) fn interpret(
        &mut self,
        step: JsonStep,
        byte: u8,
        text: &str,
        calls: &mut CallSink<'_>,
    ) -> Result<(), Fault> {
        let (depth, inside) = (self.scan.depth(), self.inside());
        match step {
            JsonStep::Open => return self.bracket_opened(text, byte, depth, calls),
            JsonStep::Close if depth == inside => self.arguments_closed(text, calls),
            JsonStep::Close if depth + 1 == inside => return self.end_element(text, calls),
            JsonStep::StringStart => self.element.string_start = self.at,
            JsonStep::StringEnd if depth == inside => return self.string_ended(text, calls),
            JsonStep::Colon if depth == inside => self.element.after_colon = true,
            JsonStep::Comma if depth == inside => {
                (self.element.after_colon, self.element.key) = (false, 0..0)
            }
            _ => {}
        }
        Ok(())
    }

    pub(super) fn bracket_opened(
        &mut self,
        text: &str,
        byte: u8,
        depth: usize,
        calls: &mut CallSink<'_>,
    ) -> Result<(), Fault> {
        if depth == 1 {
            self.start = self.at - 1;
        }
        if depth == 1 && byte == b'[' {
            self.in_list = true;
        } else if depth == self.inside() {
            if byte != b'{' {
                return Err(Fault::malformed("expected an object, got a list"));
            }
            self.element = Element { start: self.at - 1, ..Element::default() };
        } else if depth == self.inside() + 1 && byte == b'{' && self.is_value_of(text, JsonKey::Arguments) {
            if self.element.arguments != Arguments::None {
                return Err(Fault::malformed("it has arguments twice"));
            }
            if matches!(self.syntax.object, JsonObject::NameIsKey) && self.element.name.is_none() {
                self.element.name = Some(NAME.to_owned());
            }
            self.element.arguments = Arguments::Open { start: self.at - 1, emitted: self.at - 1 };
            self.mend = JsonMend::default();
            return self.begin(calls);
        }
        Ok(())
    }

    pub(super) fn string_ended(&mut self, text: &str, calls: &mut CallSink<'_>) -> Result<(), Fault> {
        let string = self.element.string_start..self.at - 1;
        if !self.element.after_colon {
            self.element.key = string.clone();
        }
        let is_key = matches!(self.syntax.object, JsonObject::NameIsKey);
        if is_key && self.recovers && text[self.element.key.clone()] == *NAME {
            if !self.element.after_colon {
                return Ok(()); // The value decides whether this is a tool's name.
            }
            self.syntax.object = JsonObject::NAMED;
        }
        let is_name = match self.syntax.object {
            JsonObject::NameIsKey => !self.element.after_colon,
            JsonObject::Keys { .. } => self.is_value_of(text, JsonKey::Name),
        };
        if is_name && self.element.name.is_none() {
            self.element.name = unquoted(text, &string, self.recovers);
            self.element.certain = self.at;
            return self.begin(calls);
        }
        if self.is_value_of(text, JsonKey::Id) {
            self.element.id = unquoted(text, &string, self.recovers);
        }
        Ok(())
    }

    /// Reports the start of the call, with the parts known so far.
    pub(super) fn begin(&mut self, calls: &mut CallSink<'_>) -> Result<(), Fault> {
        let element = &mut self.element;
        if std::mem::replace(&mut element.started, true) {
            return Ok(());
        }
        calls.begin(element.name.as_deref(), element.id.as_deref())
    }

    pub(super) fn is_value_of(&self, text: &str, part: JsonKey) -> bool {
        self.element.after_colon && self.part(&text[self.element.key.clone()]) == Some(part)
    }

    /// The part of a call that a key of its object denotes.
    pub(super) fn part(&self, key: &str) -> Option<JsonKey> {
        match self.syntax.object {
            JsonObject::NameIsKey => Some(JsonKey::Arguments),
            JsonObject::Keys { written, aliases } => {
                written.iter().chain(aliases).find(|(_, name)| *name == key).map(|(part, _)| *part)
            }
        }
    }

    pub(super) fn arguments_closed(&mut self, text: &str, calls: &mut CallSink<'_>) {
        self.emit(text, calls);
        if let Arguments::Open { start, .. } = self.element.arguments {
            self.element.arguments = Arguments::Ended(start..self.at);
            self.element.certain = self.at;
        }
    }

    /// Emits the new part of the arguments.
    pub(super) fn emit(&mut self, text: &str, calls: &mut CallSink<'_>) {
        if let Arguments::Open { emitted, .. } = &mut self.element.arguments {
            let new = &text[*emitted..self.at];
            if self.recovers {
                calls.arguments(&self.mend.push(new))
            } else {
                calls.arguments(new)
            }
            *emitted = self.at;
        }
    }

    pub(super) fn end_element(&mut self, text: &str, calls: &mut CallSink<'_>) -> Result<(), Fault> {
        let object = parsed(&text[self.element.start..self.at], self.recovers)?;
        let element = std::mem::take(&mut self.element);
        let mut call = self.call(object)?;
        if element.name.as_ref().is_some_and(|name| *name != call.name) {
            return Err(Fault::malformed("it has two names"));
        }
        match &element.arguments {
            Arguments::Ended(range) => call.arguments = parsed(&text[range.clone()], self.recovers)?,
            _ if call.arguments.is_empty() => {}
            _ => {
                if !element.started {
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
    pub(super) fn call(&self, object: Map<String, Value>) -> Result<ToolCall, Fault> {
        let mut call = Map::new();
        if matches!(self.syntax.object, JsonObject::NameIsKey) {
            let mut members = object.into_iter();
            let (Some((name, arguments)), None) = (members.next(), members.next()) else {
                return Err(Fault::malformed("its object must have one key, the tool's name"));
            };
            call.extend([("name".to_owned(), name.into()), ("arguments".to_owned(), arguments)]);
        } else {
            let object = self.unwrapped(object)?;
            self.check_keys(&object)?;
            for (key, value) in object {
                let (key, value) = match (self.part(&key), value) {
                    (Some(JsonKey::Name), name) => ("name", name),
                    (Some(JsonKey::Arguments), arguments) => ("arguments", arguments),
                    (Some(JsonKey::Id), Value::Number(id)) => ("id", id.to_string().into()),
                    (Some(JsonKey::Id), id) => ("id", id),
                    (None, value) => (key.as_str(), value),
                };
                call.entry(key).or_insert(value);
            }
        }
        ToolCall::from_json(call.into()).map_err(|error| Fault::malformed(error.to_string()))
    }

    /// Moves the members of the object inside a [`WRAPPER`] beside the others. An object with other members
    /// is not a call but, for example, a declaration.
    fn unwrapped(&self, mut object: Map<String, Value>) -> Result<Map<String, Value>, Fault> {
        if !object.get(WRAPPER).is_some_and(Value::is_object) {
            return Ok(object);
        }
        let Some(Value::Object(members)) = object.remove(WRAPPER) else { return Ok(object) };
        for (key, value) in members {
            match self.part(&key) {
                Some(_) if !object.contains_key(&key) => object.insert(key, value),
                _ => return Err(Fault::not_a_call(format!("`{WRAPPER}.{key}` is not a key of a call"))),
            };
        }
        Ok(object)
    }

    /// Checks that nothing of an object is lost as a call: an object without arguments has no other keys.
    /// Without a marker, a call has arguments and no other keys.
    pub(super) fn check_keys(&self, object: &Map<String, Value>) -> Result<(), Fault> {
        let is_arguments = |key: &String| key == WRAPPER || self.part(key) == Some(JsonKey::Arguments);
        let has_arguments = object.keys().any(is_arguments);
        let is_known = |(key, value): (&String, &Value)| {
            key == WRAPPER || self.part(key).is_some() || (key == "type" && value == WRAPPER)
        };
        let other = object.iter().find(|member| !is_known(*member)).map(|(key, _)| key);
        match other {
            Some(key) if self.bare || !has_arguments => {
                Err(Fault::not_a_call(format!("`{key}` is not a key of a call")))
            }
            None if self.bare && !has_arguments => Err(Fault::not_a_call("it has no arguments")),
            _ => Ok(()),
        }
    }
}

/// Reads an object; if it `recovers`, also one with defects that [`JsonMend`] repairs.
pub(in crate::parsers) fn parsed(text: &str, recovers: bool) -> Result<Map<String, Value>, Fault> {
    read_json(text, recovers).map_err(|error| Fault::malformed(error.to_string()))
}

/// The string in this range, whose quotes are around it.
fn unquoted(text: &str, string: &Range<usize>, recovers: bool) -> Option<String> {
    let list = format!("[{}]", &text[string.start - 1..string.end + 1]);
    read_json(&list, recovers).ok().map(|[string]: [String; 1]| string)
}

fn read_json<T: DeserializeOwned>(text: &str, recovers: bool) -> serde_json::Result<T> {
    let text = unguarded(text);
    let read = serde_json::from_str(&text);
    if recovers { read.or_else(|_| serde_json::from_str(&JsonMend::default().push(&text))) } else { read }
}

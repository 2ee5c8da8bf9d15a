//! Calls without the dialect's markers: replies that are nothing but one JSON call.

use std::sync::Arc;

use lm_template::{ToolCall, ToolSpec, Value};
use serde_json::Map;

use super::code_fence::{FENCE, fence};
use super::json_scan::{JsonScan, JsonStep};
use crate::event::ProcessorEvent;
use crate::parser::OutputParser;
use crate::schema::validator;

/// Maximum length of a reply that is held back; longer text is the answer.
const MAX_BYTES: usize = 1 << 20;
/// Maximum length of the white space around the object and its first key.
const MAX_LAYOUT_BYTES: usize = 256;
/// Length of an object's beginning that has its first key and a name.
const MAX_HEAD_BYTES: usize = 2 << 10;
/// Tags that models write around a call in place of their dialect's.
const TAGS: &[(&str, &str)] = &[
    ("<tools>", "</tools>"),
    ("<function>", "</function>"),
    ("<function-call>", "</function-call>"),
    ("<function_call>", "</function_call>"),
    ("<tool_call>", "</tool_call>"),
];
/// Names of the key of the arguments.
const ARGUMENTS: [&str; 2] = ["arguments", "parameters"];

/// Parser that reads a reply as a call if all of it is one JSON object `{"name": …, "arguments": {…}}`, in a
/// code block or in tags that are not the dialect's: with these keys and no other, the name of a declared
/// tool, and arguments that its schema allows. The braces of the object may be doubled, as some templates of
/// Qwen2.5-Coder write them in their example.
///
/// Text is held back only while it can still be such a reply. With further keys it is text: a model that
/// repeats a result beside its call would call for ever.
pub(crate) struct UnmarkedCallParser {
    inner: Box<dyn OutputParser>,
    tools: Arc<[ToolSpec]>,
    /// The text so far; `None` once the reply is known to be something else.
    held: Option<Held>,
}

/// Text of a reply that may be a call.
#[derive(Debug, Default)]
struct Held {
    text: String,
    /// The object, once its start was found.
    object: Option<Object>,
}

/// The object of a call.
#[derive(Debug)]
struct Object {
    /// Byte at which it starts.
    start: usize,
    /// True if a second pair of braces is around it.
    is_doubled: bool,
    /// Text that must follow it; may be empty.
    close: &'static str,
    scan: JsonScan,
    /// Bytes scanned.
    scanned: usize,
    /// Byte after it, once it is complete.
    end: Option<usize>,
}

/// Start of a text that may be a call.
enum Head {
    /// More text is needed to decide.
    Open,
    /// The object starts at this byte, after a second brace or none, and the text ends with this marker.
    Object { start: usize, is_doubled: bool, close: &'static str },
    /// The text is no call.
    Text,
}

impl UnmarkedCallParser {
    pub(crate) fn new(inner: Box<dyn OutputParser>, tools: Arc<[ToolSpec]>) -> Self {
        let held = (!tools.is_empty()).then(Held::default);
        Self { inner, tools, held }
    }

    fn read(&mut self, events: Vec<ProcessorEvent>) -> Vec<ProcessorEvent> {
        let mut out = Vec::new();
        for event in events {
            match (&mut self.held, event) {
                (Some(held), ProcessorEvent::Text(text)) => {
                    held.text += &text;
                    if !held.may_be_call(&self.tools) {
                        self.release(&mut out);
                    }
                }
                (Some(held), event @ ProcessorEvent::Channel { .. }) if held.text.trim().is_empty() => {
                    out.push(event);
                }
                (_, event) => {
                    self.release(&mut out);
                    out.push(event);
                }
            }
        }
        out
    }

    /// Passes the held text on.
    fn release(&mut self, events: &mut Vec<ProcessorEvent>) {
        let text = self.held.take().map(|held| held.text).filter(|text| !text.is_empty());
        events.extend(text.map(ProcessorEvent::Text));
    }
}

impl OutputParser for UnmarkedCallParser {
    fn push(&mut self, delta: &str) -> Vec<ProcessorEvent> {
        let events = self.inner.push(delta);
        self.read(events)
    }

    fn push_token(&mut self, token: &str) -> Vec<ProcessorEvent> {
        let events = self.inner.push_token(token);
        self.read(events)
    }

    fn finish(&mut self) -> Vec<ProcessorEvent> {
        let events = self.inner.finish();
        let mut out = self.read(events);
        match self.held.as_ref().and_then(|held| held.call(&self.tools)) {
            Some((call, arguments)) => {
                let (index, name) = (0, Some(call.name.clone()));
                out.push(ProcessorEvent::ToolCallStarted { index, name, id: None });
                out.push(ProcessorEvent::ToolCallArguments { index, fragment: arguments });
                out.push(ProcessorEvent::ToolCall { index, call });
                self.held = None;
            }
            None => self.release(&mut out),
        }
        out
    }
}

impl Held {
    /// Reads the new part of the text; returns false if it cannot become a call.
    fn may_be_call(&mut self, tools: &[ToolSpec]) -> bool {
        if self.text.len() > MAX_BYTES {
            return false;
        }
        if self.object.is_none() {
            match head(&self.text) {
                Head::Open => return true,
                Head::Text => return false,
                Head::Object { start, is_doubled, close } => {
                    self.object = Some(Object::new(start, is_doubled, close));
                }
            }
        }
        let Some(object) = &mut self.object else { return true };
        starts_as_call(&self.text[object.start..], tools) && object.read(&self.text)
    }

    /// The call, and the text of its arguments.
    fn call(&self, tools: &[ToolSpec]) -> Option<(ToolCall, String)> {
        let object = self.object.as_ref()?;
        let end = object.end?;
        if object.rest(&self.text[end..]) != Some(object.close) {
            return None;
        }
        let members: Map<String, Value> = serde_json::from_str(&self.text[object.start..end]).ok()?;
        let key = ARGUMENTS.into_iter().find(|key| members.contains_key(*key))?;
        if members.len() != 2 {
            return None;
        }
        let name = members.get("name")?.as_str()?;
        let arguments = members.get(key)?;
        let tool = tools.iter().find(|tool| tool.name() == name)?;
        let Value::Object(fields) = arguments else { return None };
        let fits = match tool.parameters() {
            Value::Null => true,
            schema => {
                declares(schema, fields)
                    && validator(schema, false).is_ok_and(|validator| validator.is_valid(arguments))
            }
        };
        let arguments = fields;
        let text = serde_json::to_string(arguments).ok()?;
        fits.then(|| (ToolCall::new(name, arguments.clone()), text))
    }
}

impl Object {
    fn new(start: usize, is_doubled: bool, close: &'static str) -> Self {
        Self { start, is_doubled, close, scan: JsonScan::default(), scanned: start, end: None }
    }

    /// Returns the text after the object's braces, without white space; `None` if the second brace is
    /// missing.
    fn rest<'a>(&self, after: &'a str) -> Option<&'a str> {
        let rest = after.trim();
        if self.is_doubled { rest.strip_prefix('}').map(str::trim_start) } else { Some(rest) }
    }

    /// Scans the new part of the text; returns false if it is no JSON, or more follows the object.
    fn read(&mut self, text: &str) -> bool {
        if self.end.is_none() {
            for byte in text.as_bytes()[self.scanned..].iter().copied() {
                self.scanned += 1;
                match self.scan.step(byte) {
                    JsonStep::Invalid(_) => return false,
                    JsonStep::Close if self.scan.depth() == 0 => {
                        self.end = Some(self.scanned);
                        break;
                    }
                    _ => {}
                }
            }
        }
        let Some(end) = self.end else { return true };
        let after = &text[end..];
        let Some(rest) = self.rest(after) else {
            return after.trim().is_empty() && after.len() <= MAX_LAYOUT_BYTES;
        };
        self.close.starts_with(rest) && after.len() <= rest.len() + 1 + MAX_LAYOUT_BYTES
    }
}

/// Returns true if a schema that lists its properties lists all of these, as the grammar of marked calls
/// requires where the schema says nothing about others.
fn declares(schema: &Value, fields: &Map<String, Value>) -> bool {
    const OTHERS: [&str; 5] = ["additionalProperties", "patternProperties", "allOf", "anyOf", "oneOf"];
    if OTHERS.iter().any(|keyword| schema.get(*keyword).is_some()) {
        return true;
    }
    let properties = schema.get("properties").and_then(Value::as_object);
    properties.is_none_or(|properties| fields.keys().all(|name| properties.contains_key(name)))
}

/// Start of a reply: a code block, tags, or the object itself.
fn head(text: &str) -> Head {
    let rest = text.trim_start();
    let before = text.len() - rest.len();
    if before > MAX_LAYOUT_BYTES {
        return Head::Text;
    }
    let (len, close) = match TAGS.iter().find(|(open, _)| rest.starts_with(open)) {
        Some((open, close)) => (open.len(), *close),
        None if TAGS.iter().any(|(open, _)| open.starts_with(rest)) => return Head::Open,
        None => match fence(rest) {
            None => return Head::Open,
            Some(0) => (0, ""),
            Some(len) => (len, FENCE),
        },
    };
    let body = rest[len..].trim_start();
    if rest.len() - len - body.len() > MAX_LAYOUT_BYTES {
        return Head::Text;
    }
    let start = before + rest.len() - body.len();
    match body.as_bytes() {
        [] | b"{" => Head::Open,
        [b'{', b'{', ..] => Head::Object { start: start + 1, is_doubled: true, close },
        [b'{', ..] => Head::Object { start, is_doubled: false, close },
        _ => Head::Text,
    }
}

/// Returns true if an object starts with a key of a call, and names a declared tool where it starts with the
/// name.
fn starts_as_call(object: &str, tools: &[ToolSpec]) -> bool {
    let head = &object[1..object.floor_char_boundary(MAX_HEAD_BYTES)];
    let first = head.trim_start();
    if head.len() - first.len() > MAX_LAYOUT_BYTES {
        return false;
    }
    let mut keys = ["name"].into_iter().chain(ARGUMENTS).map(|key| format!("\"{key}\""));
    if !keys.any(|key| first.starts_with(key.as_str()) || key.starts_with(first)) {
        return false;
    }
    let Some(value) = first.strip_prefix("\"name\"") else { return true };
    let value = value.trim_start().strip_prefix(':').map_or(value.trim_start(), str::trim_start);
    let Some(name) = value.strip_prefix('"') else {
        return value.is_empty() && object.len() < MAX_HEAD_BYTES;
    };
    match name.split_once('"') {
        Some((name, _)) => tools.iter().map(ToolSpec::name).any(|tool| tool == name),
        None => tools.iter().map(ToolSpec::name).any(|tool| tool.starts_with(name)),
    }
}

#[cfg(test)]
mod tests;

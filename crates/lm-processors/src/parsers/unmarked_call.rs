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
mod tests {
    use serde_json::json;

    use super::*;
    use crate::{ParserOptions, UnmarkedCalls, by_name};

    fn options() -> ParserOptions {
        let parameters =
            json!({"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]});
        let tool = ToolSpec::from_json(json!({"name": "weather", "parameters": parameters})).expect("a tool");
        ParserOptions {
            tools: [tool].into(),
            unmarked: Some(UnmarkedCalls::Read),
            prompt_tail: Some("".into()),
            ..ParserOptions::default()
        }
    }

    /// Text and calls of a reply, with the same result in every split.
    fn read(reply: &str, options: &ParserOptions) -> (String, Vec<ToolCall>) {
        let read_from = |cut: usize| {
            let mut parser = by_name("qwen").expect("a family").parser(options);
            let mut events = parser.push(&reply[..cut]);
            events.extend(parser.push(&reply[cut..]));
            events.extend(parser.finish());
            let (mut text, mut calls) = (String::new(), Vec::new());
            for event in events {
                match event {
                    ProcessorEvent::Text(more) => text += &more,
                    ProcessorEvent::ToolCall { call, .. } => calls.push(call),
                    _ => {}
                }
            }
            (text, calls)
        };
        let whole = read_from(0);
        (1..reply.len()).for_each(|cut| assert_eq!(read_from(cut), whole, "{reply} cut at {cut}"));
        whole
    }

    const CALL: &str = r#"{"name": "weather", "arguments": {"city": "Rome"}}"#;

    #[test]
    fn whole_reply_is_a_call() {
        let pretty = "{\n  \"name\": \"weather\",\n  \"arguments\": {\"city\": \"Rome\"}\n}";
        let swapped = r#"{"arguments": {"city": "Rome"}, "name": "weather"}"#;
        let named = r#"{"name": "weather", "parameters": {"city": "Rome"}}"#;
        let doubled = format!("{{{CALL}}}");
        let mut replies = [CALL, pretty, swapped, named, &doubled].map(str::to_owned).to_vec();
        replies.extend([format!("```json\n{doubled}\n```"), format!("{{{CALL}\n}}\n")]);
        replies.extend(["```json\n", "```\n", " \n```JSON\n"].map(|open| format!("{open}{pretty}\n```\n")));
        replies
            .extend(["tools", "function", "function-call"].map(|tag| format!("<{tag}>\n{CALL}\n</{tag}>")));
        for reply in replies {
            let (text, calls) = read(&reply, &options());
            assert_eq!((text.as_str(), calls.len()), ("", 1), "{reply}");
            assert_eq!(
                calls[0],
                ToolCall::new("weather", json!({"city": "Rome"}).as_object().unwrap().clone())
            );
        }
    }

    #[test]
    fn everything_else_stays_text() {
        let others = [
            format!("Here it is: {CALL}"),
            format!("{CALL} Done."),
            format!("{CALL}\n{CALL}"),
            format!("{{{CALL}"),
            format!("{{{CALL}}} Done."),
            format!("{{{CALL}}}}}"),
            format!("{{ {CALL}}}"),
            format!("```json\n{CALL}"),
            format!("```json\n{CALL}\n```\nDone."),
            CALL.replace("weather", "wether"),
            CALL.replace("weather", "weather2"),
            CALL.replace("city", "town"),
            CALL.replace("\"Rome\"", "\"Rome\", \"country\": \"Italy\""),
            CALL.replace("\"Rome\"", "5"),
            CALL.replace("{\"name\"", "{\"id\": 1, \"name\""),
            format!("{}, \"response\": 5}}", &CALL[..CALL.len() - 1]),
            "{\"name\": \"weather\"}".to_owned(),
            "```rust\nfn main() {}\n```".to_owned(),
            "{".to_owned(),
            "```".to_owned(),
            format!("{}{CALL}", " ".repeat(300)),
            format!("{{{}{}", " ".repeat(300), &CALL[1..]),
            format!("{CALL}{}", "\n".repeat(300)),
            format!("{{\"name\"{}:", " ".repeat(3_000)),
        ];
        for reply in others {
            assert_eq!(read(&reply, &options()), (reply.clone(), vec![]));
        }
        let off = ParserOptions { unmarked: Some(UnmarkedCalls::Text), ..options() };
        assert_eq!(read(CALL, &off), (CALL.to_owned(), vec![]));
        let none = ParserOptions { tools: [].into(), ..options() };
        assert_eq!(read(CALL, &none), (CALL.to_owned(), vec![]));
    }

    /// A parser whose events are given.
    struct Scripted(Vec<ProcessorEvent>);

    impl OutputParser for Scripted {
        fn push(&mut self, _delta: &str) -> Vec<ProcessorEvent> {
            std::mem::take(&mut self.0)
        }
        fn finish(&mut self) -> Vec<ProcessorEvent> {
            Vec::new()
        }
    }

    #[test]
    fn held_text_precedes_a_later_channel() {
        let channel = ProcessorEvent::Channel { name: "reasoning".to_owned(), text: "Hm.".to_owned() };
        let events = vec![ProcessorEvent::Text("{\"name\": ".to_owned()), channel];
        let mut parser = UnmarkedCallParser::new(Box::new(Scripted(events.clone())), options().tools);
        let mut got = parser.push("");
        got.extend(parser.finish());
        assert_eq!(got, events);
    }

    #[test]
    fn text_passes_as_soon_as_it_is_no_call() {
        for (reply, held) in [
            ("Hello", 0),
            ("{\"answer\": 5}", 3),
            ("```python\nprint()", 10),
            ("{\"name\": \"wex\"", 12),
            ("<tooth>", 4),
        ] {
            let mut parser = by_name("qwen").expect("a family").parser(&options());
            let passed = (0..reply.len()).find(|&at| !parser.push(&reply[at..=at]).is_empty());
            assert_eq!(passed, Some(held), "{reply}");
        }
    }
}

//! Calls whose arguments are keys and values in markup.

use std::sync::Arc;

use lm_template::ToolSpec;

use super::argument_text::{ArgumentText, is_name, schema};
use super::body::{BodyReader, CallSink, Fault, MAX_BLOCK_BYTES, Progress};
use super::elements::{element_value, elements_end};
use crate::dialect::{Accepted, ParameterCall, ValueText};
use crate::json_text::json_text;
use crate::values::{Schema, Types, partial, push_json_chars, push_json_string, typed_value};

/// Names and keys are shorter; a search for their end must not go on through the reply.
const MAX_NAME_BYTES: usize = 1 << 10;

const CDATA_OPEN: &str = "<![CDATA[";
const CDATA_CLOSE: &str = "]]>";

/// Reads [`CallBody::Parameters`](crate::dialect::CallBody::Parameters).
///
/// A string whose type is certain is passed on while it arrives, any other value when it is complete.
#[derive(Debug)]
pub(crate) struct ParameterBody {
    syntax: &'static ParameterCall,
    /// The marker after the body.
    close: &'static str,
    tools: Arc<[ToolSpec]>,
    state: State,
    at: usize,
    name: String,
    /// The parameter that is being read.
    key: String,
    parameters: usize,
    /// The parameters that came, where only declared ones count.
    given: Vec<String>,
    json: String,
    arguments: ArgumentText,
}

#[derive(Debug, Clone)]
enum State {
    /// Before the marker of the name.
    NameOpen,
    Name,
    Number,
    /// Before a parameter or the end.
    Parameter,
    Key,
    Type(Meaning),
    /// Before the marker of the value.
    ValueOpen(Meaning),
    /// Before the first character of the value.
    ValueStart(Meaning),
    Value(ValueReader),
    /// After protected text, before the value's end.
    ValueClose,
}

/// What the text of a value stands for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Meaning {
    /// Itself.
    Text,
    /// What the schema makes of it.
    BySchema,
    /// JSON.
    Json,
    /// Elements, or a value of another type than a string.
    Elements,
    /// Nothing: the parameter is dropped.
    Nothing,
}

/// A value that is being read.
#[derive(Debug, Clone)]
struct ValueReader {
    meaning: Meaning,
    start: usize,
    close: String,
    /// The layout before `close` that is not part of the value.
    layout: &'static str,
    protected: bool,
    /// Elements that are open.
    depth: usize,
}

enum Need {
    MoreText,
    AnotherLook,
    /// The body ended before this byte.
    Nothing(usize),
}

impl ParameterBody {
    pub(crate) fn new(syntax: &'static ParameterCall, close: &'static str, tools: Arc<[ToolSpec]>) -> Self {
        Self {
            syntax,
            close,
            tools,
            state: State::NameOpen,
            at: 0,
            name: String::new(),
            key: String::new(),
            parameters: 0,
            given: Vec::new(),
            json: String::new(),
            arguments: ArgumentText::default(),
        }
    }

    fn schema(&self) -> Option<Schema<'_>> {
        schema(&self.tools, &self.name)
    }

    fn step(&mut self, text: &str, calls: &mut CallSink<'_>) -> Result<Need, Fault> {
        match std::mem::replace(&mut self.state, State::Parameter) {
            State::NameOpen => self.marker(text, self.syntax.name.open, State::NameOpen, State::Name),
            State::Name => self.name(text, calls),
            State::Number => self.number(text),
            State::Parameter => self.parameter(text),
            State::Key => self.key(text, calls),
            State::Type(meaning) => self.value_type(text, meaning),
            State::ValueOpen(meaning) => self.value_open(text, meaning),
            State::ValueStart(meaning) => Ok(self.value_start(text, meaning)),
            State::Value(reader) => self.value(text, reader),
            State::ValueClose => {
                self.marker(text, self.syntax.value.close, State::ValueClose, State::Parameter)
            }
        }
    }

    /// Takes a marker, with whitespace before it, and goes on to `next`; without it yet, stays in `here`.
    fn marker(&mut self, text: &str, marker: &str, here: State, next: State) -> Result<Need, Fault> {
        let rest = text[self.at..].trim_start();
        let marker = marker.trim();
        self.at = text.len() - rest.len();
        if rest.starts_with(marker) {
            self.at += marker.len();
            self.state = next;
            Ok(Need::AnotherLook)
        } else if marker.starts_with(rest) {
            self.state = here;
            Ok(Need::MoreText)
        } else {
            Err(Fault::malformed(format!("`{marker}` is missing")))
        }
    }

    /// The text up to `close`, once that has come.
    fn up_to<'t>(&mut self, text: &'t str, close: &str, here: State) -> Result<Option<&'t str>, Fault> {
        let rest = &text[self.at..];
        match rest.find(close) {
            Some(end) => {
                self.at += end + close.len();
                Ok(Some(rest[..end].trim()))
            }
            None if rest.len() > MAX_NAME_BYTES => Err(Fault::malformed(format!("`{close}` is missing"))),
            None => {
                self.state = here;
                Ok(None)
            }
        }
    }

    fn name(&mut self, text: &str, calls: &mut CallSink<'_>) -> Result<Need, Fault> {
        let rest = text[self.at..].trim_start();
        let ParameterCall { name, key, .. } = *self.syntax;
        self.at = text.len() - rest.len();
        let mut ends = vec![name.close];
        if name.open.is_empty() {
            ends.extend([key.open, self.close]);
        }
        ends.retain(|end| !end.is_empty());
        let marked = ends.iter().filter_map(|end| Some((rest.find(end)?, *end))).min();
        let marked = marked.filter(|(at, end)| at + end.len() <= MAX_NAME_BYTES);
        let blank = if name.open.is_empty() { rest.find(char::is_whitespace) } else { None };
        let (end, taken) = match (marked, blank) {
            (Some((end, close)), blank) if blank.is_none_or(|blank| end < blank) => {
                (end, if close == name.close { close.len() } else { 0 })
            }
            (_, Some(blank)) => (blank, 0),
            _ if rest.len() > MAX_NAME_BYTES => return Err(Fault::malformed("its name has no end")),
            _ => {
                self.state = State::Name;
                return Ok(Need::MoreText);
            }
        };
        let (found, start) = (&rest[..end], text.len() - rest.len());
        if !is_name(found) {
            return Err(Fault::malformed(format!("`{found}` is no name")));
        }
        self.name = found.to_owned();
        self.at = start + end + taken;
        calls.begin(Some(found), None)?;
        self.state = if self.syntax.number.is_some() { State::Number } else { State::Parameter };
        Ok(Need::AnotherLook)
    }

    /// The call's number says nothing that its place does not.
    fn number(&mut self, text: &str) -> Result<Need, Fault> {
        let Some(tags) = self.syntax.number else { return Ok(Need::AnotherLook) };
        match self.up_to(text, tags.close, State::Number)? {
            None => Ok(Need::MoreText),
            Some(number) if number.starts_with(tags.open.trim()) => Ok(Need::AnotherLook),
            Some(_) => Err(Fault::malformed(format!("`{}` is missing", tags.open))),
        }
    }

    fn parameter(&mut self, text: &str) -> Result<Need, Fault> {
        let rest = text[self.at..].trim_start();
        let start = text.len() - rest.len();
        self.at = start;
        let (end, key) = (self.syntax.end, self.syntax.key.open);
        let last = if end.is_empty() { self.close } else { end };
        if rest.starts_with(last) {
            return self.last_parameter(start + end.len());
        }
        // A name that is followed by its optional end.
        let name_close = self.syntax.name.close;
        if self.parameters == 0 && self.syntax.name.open.is_empty() && !name_close.is_empty() {
            if rest.starts_with(name_close) {
                self.at = start + name_close.len();
                return Ok(Need::AnotherLook);
            }
            if name_close.starts_with(rest) {
                return Ok(Need::MoreText);
            }
        }
        if last.starts_with(rest) {
            return Ok(Need::MoreText);
        }
        if rest.starts_with(key) {
            self.at = start + key.len();
            self.state = State::Key;
            return Ok(Need::AnotherLook);
        }
        if key.starts_with(rest) {
            Ok(Need::MoreText)
        } else {
            Err(Fault::malformed("text stands between the parameters"))
        }
    }

    fn last_parameter(&mut self, end: usize) -> Result<Need, Fault> {
        if self.syntax.accepted == Accepted::Declared
            && let Some(missing) = self.schema().and_then(|schema| schema.missing(&self.given))
        {
            return Err(Fault::malformed(format!("the required argument `{missing}` is missing")));
        }
        self.json.push_str(if self.json.is_empty() { "{}" } else { "}" });
        Ok(Need::Nothing(end))
    }

    fn key(&mut self, text: &str, calls: &mut CallSink<'_>) -> Result<Need, Fault> {
        let Some(key) = self.up_to(text, self.syntax.key.close, State::Key)? else {
            return Ok(Need::MoreText);
        };
        if key.is_empty() || key.contains(['<', '>', '\n']) {
            return Err(Fault::malformed(format!("`{key}` is no key")));
        }
        if self.given.iter().any(|given| given == key) {
            return Err(Fault::malformed(format!("the argument `{key}` is given twice")));
        }
        self.parameters += 1;
        self.key = key.to_owned();
        let meaning = self.meaning(key);
        if meaning != Meaning::Nothing {
            if self.syntax.accepted == Accepted::Declared && self.schema().is_some() {
                self.given.push(key.to_owned());
            }
            self.json.push_str(if self.json.is_empty() { "{" } else { ", " });
            push_json_string(&mut self.json, key);
            self.json.push_str(": ");
            self.arguments.pass_on(&self.json, calls);
        }
        let typed = self.syntax.type_attribute.is_some();
        self.state = if typed { State::Type(meaning) } else { State::ValueOpen(meaning) };
        Ok(Need::AnotherLook)
    }

    /// What the schema says of the argument's text.
    fn meaning(&self, key: &str) -> Meaning {
        let schema = self.schema();
        let property = schema.and_then(|schema| schema.property(key));
        let types = property.map_or(Types::ANY, Schema::types);
        let elements = self.syntax.written == ValueText::Elements;
        match types {
            _ if self.syntax.accepted == Accepted::Declared && property.is_none() && schema.is_some() => {
                Meaning::Nothing
            }
            Types::STRING => Meaning::Text,
            types if elements && types != Types::ANY && types.contains(Types::STRING) => Meaning::BySchema,
            _ if elements => Meaning::Elements,
            _ => Meaning::BySchema,
        }
    }

    fn value_type(&mut self, text: &str, meaning: Meaning) -> Result<Need, Fault> {
        let Some(attribute) = self.syntax.type_attribute else { return Ok(Need::AnotherLook) };
        let Some(word) = self.up_to(text, attribute.close, State::Type(meaning))? else {
            return Ok(Need::MoreText);
        };
        let Some(word) = word.strip_prefix(attribute.open.trim()) else {
            return Err(Fault::malformed(format!("`{}` is missing", attribute.open)));
        };
        let meaning = match meaning {
            Meaning::Nothing => Meaning::Nothing,
            _ if word == attribute.text => Meaning::Text,
            _ => Meaning::Json,
        };
        self.state = State::ValueOpen(meaning);
        Ok(Need::AnotherLook)
    }

    fn value_open(&mut self, text: &str, meaning: Meaning) -> Result<Need, Fault> {
        let open = self.syntax.value.open;
        if open.is_empty() {
            // The whitespace here is the value's.
            self.state = State::ValueStart(meaning);
            return Ok(Need::AnotherLook);
        }
        self.marker(text, open, State::ValueOpen(meaning), State::ValueStart(meaning))
    }

    /// The layout that a value begins with, and whether it is protected, must be known before anything is passed on.
    fn value_start(&mut self, text: &str, meaning: Meaning) -> Need {
        let ParameterCall { value, key, written, .. } = *self.syntax;
        let rest = &text[self.at..];
        let layout = rest.starts_with(value.after_open);
        let content = if layout { &rest[value.after_open.len()..] } else { rest };
        let unprotected = content.trim_start();
        let undecided = !layout && value.after_open.starts_with(rest)
            || written == ValueText::OrCdata
                && content.len() - unprotected.len() <= MAX_NAME_BYTES
                && CDATA_OPEN.len() > unprotected.len()
                && CDATA_OPEN.starts_with(unprotected);
        if undecided {
            self.state = State::ValueStart(meaning);
            return Need::MoreText;
        }
        let protected = written == ValueText::OrCdata && unprotected.starts_with(CDATA_OPEN);
        let close = match (protected, written) {
            (true, _) => CDATA_CLOSE.to_owned(),
            (_, ValueText::Elements) => format!("{}{}{}", value.close, self.key, key.close),
            _ => value.close.to_owned(),
        };
        let start = if protected {
            text.len() - unprotected.len() + CDATA_OPEN.len()
        } else {
            text.len() - content.len()
        };
        let layout = if layout && !protected { value.before_close } else { "" };
        if meaning == Meaning::Text {
            self.json.push('"');
        }
        self.at = start;
        self.state = State::Value(ValueReader { meaning, start, close, layout, protected, depth: 0 });
        Need::AnotherLook
    }

    fn value(&mut self, text: &str, mut reader: ValueReader) -> Result<Need, Fault> {
        let rest = &text[self.at..];
        let found = match reader.meaning {
            Meaning::Elements => {
                let (searched, ended) = elements_end(rest, self.syntax, &mut reader.depth)?;
                let end = &rest[searched..];
                let closed = ended && end.starts_with(&reader.close);
                if ended && !closed && !reader.close.starts_with(end) {
                    return Err(Fault::malformed(format!("`{}` is missing", reader.close)));
                }
                if closed { Ok(searched) } else { Err(searched) }
            }
            _ => rest.find(&reader.close).ok_or_else(|| rest.len() - partial(rest, &reader.close)),
        };
        let (Ok(until) | Err(until)) = found;
        if reader.meaning == Meaning::Text {
            let layout = match found {
                Ok(end) if rest[..end].ends_with(reader.layout) => reader.layout.len(),
                Ok(_) => 0,
                Err(until) => partial(&rest[..until], &format!("{}\0", reader.layout)),
            };
            push_json_chars(&mut self.json, &rest[..until - layout]);
            self.at += until - layout;
        } else {
            self.at += until;
        }
        if found.is_err() {
            self.state = State::Value(reader);
            return Ok(Need::MoreText);
        }
        let end = text.len() - rest.len() + until;
        self.value_ends(&text[reader.start..end], &reader)?;
        self.at = end + reader.close.len();
        self.state = if reader.protected { State::ValueClose } else { State::Parameter };
        Ok(Need::AnotherLook)
    }

    fn value_ends(&mut self, content: &str, reader: &ValueReader) -> Result<(), Fault> {
        let content = content.strip_suffix(reader.layout).unwrap_or(content);
        let schema = self.schema().and_then(|schema| schema.property(&self.key));
        let by_schema = || typed_value(content, schema, self.syntax.untyped);
        let value = match reader.meaning {
            Meaning::Nothing => return Ok(()),
            Meaning::Text => {
                self.json.push('"');
                return Ok(());
            }
            Meaning::BySchema => by_schema(),
            Meaning::Json => serde_json::from_str(content).unwrap_or_else(|_| by_schema()),
            Meaning::Elements => element_value(content, self.syntax, schema)?,
        };
        self.json.push_str(&json_text(&value));
        Ok(())
    }
}

impl BodyReader for ParameterBody {
    fn follow(&mut self, text: &str, calls: &mut CallSink<'_>) -> Result<Progress, Fault> {
        if text.len() > MAX_BLOCK_BYTES {
            return Err(Fault::malformed("it is too long"));
        }
        loop {
            let need = self.step(text, calls);
            self.arguments.pass_on(&self.json, calls);
            match need? {
                Need::AnotherLook => {}
                Need::MoreText => return Ok(Progress::Open),
                Need::Nothing(end) => {
                    std::mem::take(&mut self.arguments).complete(&self.name, &self.json, calls)?;
                    return Ok(Progress::Complete(end));
                }
            }
        }
    }

    fn finish(&mut self, _: &str, _: &mut CallSink<'_>) -> Result<(), Fault> {
        Err(Fault::unfinished())
    }

    fn position(&self) -> usize {
        self.at
    }
}

//! Calls whose arguments are keys and values in markup.

use std::sync::Arc;

use lm_template::{Map, ToolSpec, Value};

use super::argument_text::{ArgumentText, is_name, names, schema};
use super::body::{BodyReader, CallSink, Fault, MAX_BLOCK_BYTES, Progress};
use super::elements::{element_value, elements_end};
use super::json_scan::{JsonScan, Step};
use super::marker_scan::{Scan, scan};
use super::tag::{Tag, begins_with, end_of_name, trim_blanks};
use crate::declared_names::{Declared, declared};
use crate::dialect::{Accepted, CallSyntax, ParameterCall, Tags, ValueText};
use crate::json_text::json_text;
use crate::parser::{ParserOptions, Recovery};
use crate::values::{Schema, Types, partial, push_json_chars, push_json_string, python_literal, typed_value};

/// Names and keys are shorter; a search for their end must not go on through the reply.
const MAX_NAME_BYTES: usize = 1 << 10;

/// How much whitespace may stand between the markers that end a call.
const MAX_LAYOUT_BYTES: usize = 256;

/// Parameters that hold all arguments as one object, where a model writes so and no tool declares them.
const WRAPPERS: [&str; 4] = ["arguments", "parameters", "properties", "args"];

pub(crate) const CDATA_OPEN: &str = "<![CDATA[";
pub(crate) const CDATA_CLOSE: &str = "]]>";

/// The texts that end a call's name.
pub(super) fn name_ends(syntax: &ParameterCall, close: &'static str) -> Vec<&'static str> {
    let mut ends = vec![syntax.name.close];
    if syntax.name.open.is_empty() {
        ends.extend([syntax.key.open, close, syntax.between]);
    }
    ends.retain(|end| !end.is_empty());
    ends
}

/// Reads [`CallBody::Parameters`](crate::dialect::CallBody::Parameters).
///
/// A string whose type is certain is passed on while it arrives, any other value when it is complete.
#[derive(Debug)]
pub(crate) struct ParameterBody {
    syntax: &'static ParameterCall,
    /// What stands around the body.
    around: &'static CallSyntax,
    tools: Arc<[ToolSpec]>,
    recovers: bool,
    state: State,
    at: usize,
    name: String,
    /// The names of the parameters that the tool declares.
    declared_keys: Vec<String>,
    /// The parameter that is being read.
    key: String,
    /// The parameters that came.
    keys: Vec<String>,
    /// Those of them that the tool declares, where only such count.
    given: Vec<String>,
    json: String,
    arguments: ArgumentText,
}

#[derive(Debug, Clone)]
enum State {
    /// Before the marker of the name.
    NameOpen,
    /// In the name; its marker ended with this quote.
    Name(Option<char>),
    Number,
    /// Before a parameter or the end.
    Parameter,
    Key(Option<char>),
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
    /// All arguments.
    Wrapped,
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
    /// Up to where the value's end was searched.
    searched: usize,
    /// Where the value ends if its closing marker never comes: before a marker that ends the call.
    held: Option<usize>,
    /// The brackets and strings that are open in a value that can only be JSON, where no text ends it.
    json: Option<JsonScan>,
}

enum Need {
    MoreText,
    AnotherLook,
    /// The body ended before this byte.
    Nothing(usize),
}

impl ParameterBody {
    pub(crate) fn new(
        syntax: &'static ParameterCall,
        around: &'static CallSyntax,
        options: &ParserOptions,
    ) -> Self {
        Self {
            syntax,
            around,
            tools: options.tools.clone(),
            recovers: options.recovery == Recovery::On,
            state: State::NameOpen,
            at: 0,
            name: String::new(),
            declared_keys: Vec::new(),
            key: String::new(),
            keys: Vec::new(),
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
            State::NameOpen => self.name_open(text),
            State::Name(quote) => self.name(text, quote, calls),
            State::Number => self.number(text),
            State::Parameter => self.parameter(text),
            State::Key(quote) => self.key(text, quote, calls),
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
        let rest = &text[self.at..text.floor_char_boundary(self.at + MAX_NAME_BYTES + close.len())];
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

    /// Takes the marker of the name, and what may stand before it: a word that is not part of the call's data.
    fn name_open(&mut self, text: &str) -> Result<Need, Fault> {
        let rest = trim_blanks(&text[self.at..]);
        self.at = text.len() - rest.len();
        let (before, open) = (self.syntax.before_name, self.syntax.name.open.trim_start());
        self.state = State::NameOpen;
        if !before.is_empty() && rest.starts_with(before) {
            self.at += before.len();
            return Ok(Need::AnotherLook);
        }
        match begins_with(rest, open) {
            Tag::Is { len, quote } => {
                self.at += len;
                self.state = State::Name(quote);
                return Ok(Need::AnotherLook);
            }
            Tag::MayBe => return Ok(Need::MoreText),
            Tag::IsNot if before.starts_with(rest) => return Ok(Need::MoreText),
            Tag::IsNot => {}
        }
        let word = &rest[..rest.find('<').unwrap_or(rest.len())];
        if !open.starts_with('<') || word.len() > MAX_LAYOUT_BYTES || !is_name(word.trim_end()) {
            return Err(Fault::malformed(format!("`{open}` is missing")));
        }
        if word.len() == rest.len() {
            return Ok(Need::MoreText);
        }
        self.at += word.len();
        Ok(Need::AnotherLook)
    }

    fn name(&mut self, text: &str, quote: Option<char>, calls: &mut CallSink<'_>) -> Result<Need, Fault> {
        let rest = text[self.at..].trim_start();
        self.at = text.len() - rest.len();
        let tools = self.tools.clone();
        match declared(rest, names(&tools), &name_ends(self.syntax, self.around.call.close)) {
            Declared::Found(found) => {
                let close = self.syntax.name.close;
                self.at += found.len() + if rest[found.len()..].starts_with(close) { close.len() } else { 0 };
                return self.call_begins(found, calls);
            }
            Declared::Open => {
                self.state = State::Name(quote);
                return Ok(Need::MoreText);
            }
            Declared::Absent => {}
        }
        let ended = match self.syntax.name {
            Tags { open: "", .. } => self.end_of_bare_name(rest),
            Tags { close, .. } => end_of_name(rest, quote, close, MAX_NAME_BYTES),
        };
        let Some((end, behind)) = ended else {
            if rest.len() > MAX_NAME_BYTES {
                return Err(Fault::malformed("its name has no end"));
            }
            self.state = State::Name(quote);
            return Ok(Need::MoreText);
        };
        let found = rest[..end].trim_end();
        if !is_name(found) {
            return Err(Fault::malformed(format!("`{found}` is no name")));
        }
        self.at += behind;
        self.call_begins(found, calls)
    }

    fn call_begins(&mut self, name: &str, calls: &mut CallSink<'_>) -> Result<Need, Fault> {
        self.name = name.to_owned();
        calls.begin(Some(name), None)?;
        self.declared_keys = self.schema().map(Schema::declared_names).unwrap_or_default();
        self.state = if self.syntax.number.is_some() { State::Number } else { State::Parameter };
        Ok(Need::AnotherLook)
    }

    /// Where a name without an opening marker ends, and where the text goes on.
    fn end_of_bare_name(&self, rest: &str) -> Option<(usize, usize)> {
        let ParameterCall { name, .. } = *self.syntax;
        let ends = name_ends(self.syntax, self.around.call.close);
        let window = &rest[..rest.floor_char_boundary(MAX_NAME_BYTES)];
        let marked = ends.iter().filter_map(|end| Some((window.find(end)?, *end))).min();
        let blank = window.find(char::is_whitespace);
        match marked {
            Some((end, close)) if blank.is_none_or(|blank| end < blank) => {
                Some((end, end + if close == name.close { close.len() } else { 0 }))
            }
            _ => blank.map(|blank| (blank, blank)),
        }
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
        let rest = trim_blanks(&text[self.at..]);
        let start = text.len() - rest.len();
        self.at = start;
        let ParameterCall { name, key, value, written, end, .. } = *self.syntax;
        let last = if end.is_empty() { self.around.call.close } else { end };
        if rest.starts_with(last) {
            return self.last_parameter(start + end.len());
        }
        // A name that is followed by its optional end, and a closing marker that stands twice.
        let after_name = self.keys.is_empty() && name.open.is_empty();
        let repeated = written != ValueText::Elements && !value.close.trim().is_empty();
        let skipped = [(after_name, name.close), (repeated, value.close)];
        let mut skipped = skipped.iter().filter(|(may_stand, _)| *may_stand).map(|(_, marker)| *marker);
        if let Some(marker) = skipped.clone().find(|marker| !marker.is_empty() && rest.starts_with(marker)) {
            self.at += marker.len();
            return Ok(Need::AnotherLook);
        }
        // The end's own marker is missing: the call's or the section's stands there, or another call.
        let Tags { open: next, close, .. } = self.around.call;
        let others = [close, next, self.around.section.close];
        if others
            .iter()
            .any(|marker| begins_marker(rest, marker) == Tag::Is { len: marker.len(), quote: None })
        {
            return self.last_parameter(start);
        }
        let may_be = |marker: &str| begins_marker(rest, marker) == Tag::MayBe;
        if may_be(last) || others.into_iter().any(may_be) || skipped.any(may_be) {
            return Ok(Need::MoreText);
        }
        match begins_with(rest, key.open) {
            Tag::Is { len, quote } => {
                self.at += len;
                self.state = State::Key(quote);
                Ok(Need::AnotherLook)
            }
            Tag::MayBe => Ok(Need::MoreText),
            Tag::IsNot => Err(Fault::malformed("text stands between the parameters")),
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

    fn key(&mut self, text: &str, quote: Option<char>, calls: &mut CallSink<'_>) -> Result<Need, Fault> {
        let rest = &text[self.at..];
        let close = self.syntax.key.close;
        match declared(rest, self.declared_keys.iter().map(String::as_str), &[close]) {
            Declared::Found(key) => {
                self.at += key.len() + close.len();
                let key = key.to_owned();
                return self.parameter_begins(&key, calls);
            }
            Declared::Open => {
                self.state = State::Key(quote);
                return Ok(Need::MoreText);
            }
            Declared::Absent => {}
        }
        let Some((end, behind)) = self.end_of_key(rest, quote) else {
            if rest.len() > MAX_NAME_BYTES {
                return Err(Fault::malformed(format!("`{}` is missing", self.syntax.key.close)));
            }
            self.state = State::Key(quote);
            return Ok(Need::MoreText);
        };
        let key = rest[..end].trim();
        self.at += behind;
        if key.is_empty() || key.contains(['<', '>', '\n']) {
            return Err(Fault::malformed(format!("`{key}` is no key")));
        }
        self.parameter_begins(key, calls)
    }

    fn parameter_begins(&mut self, key: &str, calls: &mut CallSink<'_>) -> Result<Need, Fault> {
        if self.given.iter().any(|given| given == key) {
            return Err(Fault::malformed(format!("the argument `{key}` is given twice")));
        }
        self.key = key.to_owned();
        let meaning = self.meaning(key);
        self.keys.push(key.to_owned());
        if !matches!(meaning, Meaning::Nothing | Meaning::Wrapped) {
            self.member(key);
            self.arguments.pass_on(&self.json, calls);
        }
        let typed = self.syntax.type_attribute.is_some();
        self.state = if typed { State::Type(meaning) } else { State::ValueOpen(meaning) };
        Ok(Need::AnotherLook)
    }

    /// Where the key ends that `rest` begins with, and where the text goes on; the value's opening marker ends it too.
    fn end_of_key(&self, rest: &str, quote: Option<char>) -> Option<(usize, usize)> {
        let ParameterCall { key, value, .. } = *self.syntax;
        let ended = end_of_name(rest, quote, key.close, MAX_NAME_BYTES + key.close.len());
        let window = &rest[..rest.floor_char_boundary(ended.map_or(MAX_NAME_BYTES, |(end, _)| end))];
        let open = if value.open.is_empty() { None } else { window.find(value.open) };
        open.map(|open| (open, open)).or(ended)
    }

    /// Begins a member of the arguments.
    fn member(&mut self, key: &str) {
        if self.syntax.accepted == Accepted::Declared && self.schema().is_some() {
            self.given.push(key.to_owned());
        }
        self.json.push_str(if self.json.is_empty() { "{" } else { ", " });
        push_json_string(&mut self.json, key);
        self.json.push_str(": ");
    }

    /// What the schema says of the argument's text.
    fn meaning(&self, key: &str) -> Meaning {
        let schema = self.schema();
        let property = schema.and_then(|schema| schema.property(key));
        let types = property.map_or(Types::ANY, Schema::types);
        let elements = self.syntax.written == ValueText::Elements;
        let names = schema.map(Schema::property_names).unwrap_or_default();
        let undeclared = !names.is_empty() && names.iter().all(|name| name != key);
        match types {
            _ if undeclared && self.recovers && self.keys.is_empty() && WRAPPERS.contains(&key) => {
                Meaning::Wrapped
            }
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
        let rest = trim_blanks(&text[self.at..]);
        let start = text.len() - rest.len();
        let end = attribute.close.trim_start_matches('"');
        if rest.starts_with(end) {
            // Without the attribute the schema tells the type.
            (self.at, self.state) = (start + end.len(), State::ValueOpen(meaning));
            return Ok(Need::AnotherLook);
        }
        self.state = State::Type(meaning);
        let (len, quote) = match begins_with(rest, attribute.open.trim_start()) {
            Tag::Is { len, quote } => (len, quote),
            Tag::IsNot if !end.starts_with(rest) => {
                return Err(Fault::malformed(format!("`{}` is missing", attribute.open)));
            }
            Tag::MayBe | Tag::IsNot => return Ok(Need::MoreText),
        };
        let Some((word, behind)) = end_of_name(&rest[len..], quote, attribute.close, MAX_NAME_BYTES) else {
            return match rest.len() > len + MAX_NAME_BYTES {
                true => Err(Fault::malformed(format!("`{}` is missing", attribute.close))),
                false => Ok(Need::MoreText),
            };
        };
        let meaning = match meaning {
            Meaning::Nothing | Meaning::Wrapped => meaning,
            _ if rest[len..len + word].trim() == attribute.text => Meaning::Text,
            _ => Meaning::Json,
        };
        (self.at, self.state) = (start + len + behind, State::ValueOpen(meaning));
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
        let json = (!protected && self.is_json(meaning)).then(JsonScan::default);
        self.state = State::Value(ValueReader {
            meaning,
            start,
            close,
            layout,
            protected,
            depth: 0,
            searched: start,
            held: None,
            json,
        });
        Need::AnotherLook
    }

    /// Whether a value cannot be a text as it is.
    fn is_json(&self, meaning: Meaning) -> bool {
        let schema = self.schema().and_then(|schema| schema.property(&self.key));
        match meaning {
            Meaning::Json => true,
            Meaning::BySchema => schema.is_some_and(|schema| !schema.types().contains(Types::STRING)),
            Meaning::Text | Meaning::Elements | Meaning::Wrapped | Meaning::Nothing => false,
        }
    }

    fn value(&mut self, text: &str, mut reader: ValueReader) -> Result<Need, Fault> {
        if reader.meaning == Meaning::Elements {
            return self.elements(text, reader);
        }
        if !pass_json(text, &mut reader) {
            return Ok(self.value_goes_on(text, reader));
        }
        let markers = self.ends_of_value(&reader);
        loop {
            let (found, marker) = match scan(&text[reader.searched..], &markers, false) {
                Scan::Clear { until } => {
                    reader.searched += until;
                    return Ok(self.value_goes_on(text, reader));
                }
                Scan::Found { start, marker } => (reader.searched + start, marker),
            };
            let behind = &text[found..];
            let ends = match marker {
                0 => return self.end_value(text, reader, found, markers[0].len()),
                1 => self.is_next_parameter(&text[..found], behind),
                _ => self.is_end_of_call(behind),
            };
            if marker > 1 {
                reader.held.get_or_insert(found);
            }
            match ends {
                Some(true) => {
                    let end = if marker > 1 { reader.held.unwrap_or(found) } else { found };
                    return self.end_value(text, reader, end, 0);
                }
                Some(false) => reader.searched = found + markers[marker].len(),
                None => {
                    reader.searched = found;
                    return Ok(self.value_goes_on(text, reader));
                }
            }
        }
    }

    /// The markers that a value may end with or before: its own, the next key's, and those that end the call.
    fn ends_of_value(&self, reader: &ValueReader) -> Vec<String> {
        let mut markers = vec![reader.close.clone()];
        if self.recovers && !reader.protected {
            let others = [self.syntax.key.open, self.syntax.end, self.around.call.close];
            markers.extend(others.map(str::to_owned));
        }
        markers
    }

    /// Whether the key's marker that `text` begins with is one: it names a parameter of the tool that did not come yet,
    /// or stands on a line of its own where that is not known. None when more text must tell.
    fn is_next_parameter(&self, before: &str, text: &str) -> Option<bool> {
        let ParameterCall { key, .. } = *self.syntax;
        let rest = &text[key.open.len()..];
        let quote = key.open.ends_with('"').then_some('"');
        let Some((end, _)) = end_of_name(rest, quote, key.close, MAX_LAYOUT_BYTES) else {
            return (rest.len() > MAX_LAYOUT_BYTES).then_some(false);
        };
        let name = rest[..end].trim();
        let names = self.schema().map(Schema::property_names).unwrap_or_default();
        let known = if names.is_empty() {
            is_name(name) && before.ends_with('\n')
        } else {
            names.iter().any(|declared| declared == name)
        };
        Some(known && self.keys.iter().all(|given| given != name))
    }

    /// Whether the call ends with the marker that `text` begins with: another call follows, or the section's end. None
    /// when more text must tell.
    fn is_end_of_call(&self, text: &str) -> Option<bool> {
        let CallSyntax { section, call, .. } = *self.around;
        let mut rest = text;
        for marker in [self.syntax.end, call.close] {
            let behind = rest.trim_start();
            if marker.is_empty() || !behind.starts_with(marker) {
                continue;
            }
            rest = &behind[marker.len()..];
        }
        let behind = rest.trim_start();
        if rest.len() - behind.len() > MAX_LAYOUT_BYTES {
            return Some(false);
        }
        let follow = [section.close, section.open, call.open, call.close];
        let follow = || follow.iter().filter(|marker| !marker.is_empty());
        if follow().any(|marker| behind.starts_with(marker)) {
            return Some(true);
        }
        if follow().any(|marker| marker.starts_with(behind)) { None } else { Some(false) }
    }

    /// Passes on what is certain of a string.
    fn value_goes_on(&mut self, text: &str, reader: ValueReader) -> Need {
        let certain = &text[self.at..reader.held.unwrap_or(reader.searched)];
        let layout = if reader.layout.is_empty() && self.recovers { "\n" } else { reader.layout };
        if reader.meaning == Meaning::Text {
            let until = certain.len() - partial(certain, &format!("{layout}\0"));
            push_json_chars(&mut self.json, &certain[..until]);
            self.at += until;
        }
        self.state = State::Value(reader);
        Need::MoreText
    }

    /// The value ends at this byte; a marker of `taken` bytes follows, or none where it is missing.
    fn end_value(
        &mut self,
        text: &str,
        reader: ValueReader,
        end: usize,
        taken: usize,
    ) -> Result<Need, Fault> {
        let layout = if taken == 0 && reader.layout.is_empty() { "\n" } else { reader.layout };
        let content = &text[reader.start..end];
        let content = content.strip_suffix(layout).unwrap_or(content);
        if reader.meaning == Meaning::Text {
            push_json_chars(&mut self.json, &text[self.at..reader.start + content.len()]);
        }
        self.value_ends(content, &reader)?;
        self.at = end + taken;
        self.state = if reader.protected { State::ValueClose } else { State::Parameter };
        Ok(Need::AnotherLook)
    }

    fn elements(&mut self, text: &str, mut reader: ValueReader) -> Result<Need, Fault> {
        let rest = &text[self.at..];
        let (searched, ended) = elements_end(rest, self.syntax, &mut reader.depth)?;
        let end = &rest[searched..];
        self.at += searched;
        if !ended || !end.starts_with(&reader.close) {
            if ended && !reader.close.starts_with(end) {
                return Err(Fault::malformed(format!("`{}` is missing", reader.close)));
            }
            self.state = State::Value(reader);
            return Ok(Need::MoreText);
        }
        self.value_ends(&text[reader.start..self.at], &reader)?;
        self.at += reader.close.len();
        Ok(Need::AnotherLook)
    }

    fn value_ends(&mut self, content: &str, reader: &ValueReader) -> Result<(), Fault> {
        let schema = self.schema().and_then(|schema| schema.property(&self.key));
        let by_schema = || typed_value(content, schema, self.syntax.untyped);
        let value = match reader.meaning {
            Meaning::Nothing => return Ok(()),
            Meaning::Text => {
                self.json.push('"');
                return Ok(());
            }
            Meaning::Wrapped => {
                self.unwrapped(content);
                return Ok(());
            }
            Meaning::BySchema => by_schema(),
            Meaning::Json => serde_json::from_str(content).unwrap_or_else(|_| by_schema()),
            Meaning::Elements => element_value(content, self.syntax, schema)?,
        };
        self.json.push_str(&json_text(&value));
        Ok(())
    }

    /// Arguments that stand in one parameter; what is no object is a parameter like any other.
    fn unwrapped(&mut self, content: &str) {
        let text = content.trim();
        let object = serde_json::from_str(text).ok().or_else(|| python_literal(text));
        let only_declared = self.syntax.accepted == Accepted::Declared;
        let members: Map<String, Value> = match object {
            Some(Value::Object(members)) => members,
            _ if only_declared => return,
            _ => Map::from_iter([(self.key.clone(), typed_value(content, None, self.syntax.untyped))]),
        };
        for (key, value) in members {
            let declared = self.schema().and_then(|schema| schema.property(&key)).is_some();
            if declared || !only_declared {
                self.member(&key);
                self.json.push_str(&json_text(&value));
            }
        }
    }
}

/// Passes over a list or an object in JSON, whose strings may hold the closing marker; false when more text must come. What
/// turns out to be none is looked through from its beginning.
fn pass_json(text: &str, reader: &mut ValueReader) -> bool {
    let Some(scan) = &mut reader.json else { return true };
    for &byte in &text.as_bytes()[reader.searched..] {
        let step = scan.step(byte);
        let invalid = matches!(step, Step::Invalid(_));
        reader.searched = if invalid { reader.start } else { reader.searched + 1 };
        if invalid || step == Step::Close && scan.depth() == 0 {
            reader.json = None;
            return true;
        }
    }
    false
}

/// Whether `text` begins with this marker; where that ends with a letter, a blank must follow it.
fn begins_marker(text: &str, marker: &str) -> Tag {
    if marker.is_empty() {
        return Tag::IsNot;
    }
    match text.strip_prefix(marker) {
        Some("") if marker.ends_with(char::is_alphanumeric) => Tag::MayBe,
        Some(behind) if marker.ends_with(char::is_alphanumeric) && trim_blanks(behind) == behind => {
            Tag::IsNot
        }
        Some(_) => Tag::Is { len: marker.len(), quote: None },
        None if marker.starts_with(text) => Tag::MayBe,
        None => Tag::IsNot,
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

    /// A value without its closing marker ends with its call; a string that is open did not hold the markers after it.
    fn finish(&mut self, text: &str, calls: &mut CallSink<'_>) -> Result<usize, Fault> {
        if let State::Value(reader) = &mut self.state
            && reader.json.take().is_some()
        {
            reader.searched = reader.start;
            if let Progress::Complete(end) = self.follow(text, calls)? {
                return Ok(end);
            }
            return self.finish(text, calls);
        }
        let State::Value(reader) = std::mem::replace(&mut self.state, State::Parameter) else {
            return Err(Fault::unfinished());
        };
        let end = reader.held.ok_or_else(Fault::unfinished)?;
        self.end_value(text, reader, end, 0)?;
        match self.follow(text, calls)? {
            Progress::Complete(end) => Ok(end),
            Progress::Open | Progress::Answer(_) => Err(Fault::unfinished()),
        }
    }

    fn position(&self) -> usize {
        self.at
    }
}

//! Values of arguments, and the search for their end.

use lm_template::{Map, Value};

use super::{
    CDATA_CLOSE, CDATA_OPEN, MAX_LAYOUT_BYTES, ParameterBody, State, Step, ValueKind, ValueReader, name_ends,
};
use crate::declared_names::Declared;
use crate::dialect::{Accepted, CallSyntax, ParameterCall, Tags, ValueText};
use crate::json_text::json_text;
use crate::marker_guard::{guarded, unguarded};
use crate::parsers::elements::{element_value, elements_end};
use crate::parsers::fault::Fault;
use crate::parsers::json_mend::read_json;
use crate::parsers::json_scan::{JsonScan, JsonStep};
use crate::parsers::marker_scan::{Scan, scan};
use crate::parsers::recovery::Departure;
use crate::parsers::tag::{Tag, end_of_name, match_tag};
use crate::parsers::tools::{MAX_NAME_BYTES, is_name};
use crate::values::{Schema, Types, partial, push_json_chars, python_literal, typed_value};

/// A line's end that models write in place of a line feed.
const CRLF: &str = "\r\n";

/// Marker that may end a value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum End {
    /// The value's own.
    Value,
    /// The next key's.
    NextKey,
    /// The one after the last parameter, or the call's.
    Call,
    /// The next call's.
    NextCall,
}

impl ParameterBody {
    /// Reads the layout before a value and its CDATA marker, both of which must be known before anything is
    /// emitted.
    pub(super) fn value_start(&mut self, text: &str, kind: ValueKind) -> Step {
        let ParameterCall { value, key, written, .. } = *self.syntax;
        let rest = &text[self.at..];
        let is_line = value.after_open == "\n" && self.tolerance.accepts(Departure::CarriageReturns);
        let line_break = if is_line { CRLF } else { value.after_open };
        let framed = rest.strip_prefix(value.after_open).or_else(|| rest.strip_prefix(line_break));
        let (layout, content) = (framed.is_some(), framed.unwrap_or(rest));
        let unprotected = content.trim_start();
        let undecided = !layout && (value.after_open.starts_with(rest) || line_break.starts_with(rest))
            || written == ValueText::VerbatimOrCdata
                && content.len() - unprotected.len() <= MAX_NAME_BYTES
                && CDATA_OPEN.len() > unprotected.len()
                && CDATA_OPEN.starts_with(unprotected);
        if undecided {
            self.state = State::ValueStart(kind);
            return Step::NeedText;
        }
        let protected = written == ValueText::VerbatimOrCdata && unprotected.starts_with(CDATA_OPEN);
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
        if kind == ValueKind::Text {
            self.json.write(|json| json.push('"'));
        }
        self.at = start;
        let json = (!protected && self.is_json(kind)).then(JsonScan::default);
        self.state = State::Value(ValueReader {
            kind,
            start,
            close,
            layout,
            protected,
            depth: 0,
            searched: start,
            held: None,
            json,
        });
        Step::Continue
    }

    /// Returns true if a value cannot be verbatim text.
    fn is_json(&self, kind: ValueKind) -> bool {
        match kind {
            ValueKind::Json => true,
            ValueKind::BySchema => !self.types(&self.key).contains(Types::STRING),
            ValueKind::Text | ValueKind::Elements | ValueKind::Wrapped | ValueKind::Ignored => false,
        }
    }

    pub(super) fn value(&mut self, text: &str, mut reader: ValueReader) -> Result<Step, Fault> {
        if reader.kind == ValueKind::Elements {
            return self.elements(text, reader);
        }
        if !skip_json(text, &mut reader) {
            return Ok(self.emit_partial(text, reader));
        }
        let close = reader.close.clone();
        let markers = self.end_markers(&close, reader.protected);
        loop {
            let (marker, found, len) = match scan(&text[reader.searched..], &markers, false) {
                Scan::Clear { until } => {
                    reader.searched += until;
                    return Ok(self.emit_partial(text, reader));
                }
                Scan::Found { marker, start, len } => (marker, reader.searched + start, len),
            };
            let behind = &text[found..];
            let mut end = found;
            let ends = match marker {
                End::Value => return self.end_value(text, reader, found, len),
                End::NextKey => self.is_next_parameter(&text[..found], behind),
                End::NextCall => self.is_next_call(behind),
                End::Call => {
                    end = *reader.held.get_or_insert(found);
                    self.is_end_of_call(behind)
                }
            };
            match ends {
                Some(true) => return self.end_value(text, reader, end, 0),
                Some(false) => reader.searched = found + len,
                None => {
                    reader.searched = found;
                    return Ok(self.emit_partial(text, reader));
                }
            }
        }
    }

    /// Markers that may end a value: its own, the next key's, and those that end the call.
    fn end_markers<'t>(&self, own: &'t str, protected: bool) -> Vec<(End, &'t str)> {
        let mut markers = vec![(End::Value, own)];
        if !protected && self.tolerance.accepts(Departure::ParameterMarkers) {
            let Tags { open, close, .. } = self.call_syntax.call;
            let ParameterCall { key, end, .. } = *self.syntax;
            markers.extend([(End::NextKey, key.open), (End::Call, end), (End::Call, close)]);
            markers.push((End::NextCall, open));
        }
        markers
    }

    /// Returns true if the key marker at the start of `text` is a real one: it names a declared parameter not
    /// given yet, or starts a line if the declaration is unknown. `None` if more text is needed to decide.
    fn is_next_parameter(&self, before: &str, text: &str) -> Option<bool> {
        let ParameterCall { key, value, .. } = *self.syntax;
        let rest = &text[key.open.len()..];
        let quote = key.open.ends_with('"').then_some('"');
        let ended = end_of_name(rest, quote, key.close, MAX_LAYOUT_BYTES);
        let closed = if value.close.is_empty() { None } else { rest.find(value.close) };
        if closed.is_some_and(|closed| ended.is_none_or(|(end, _)| closed < end)) {
            return Some(false); // The value ends first: it quotes a key's marker.
        }
        let Some((end, _)) = ended else {
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

    /// Returns true if the opening marker at the start of `text` begins a call of a declared tool. `None` if
    /// more text is needed to decide.
    fn is_next_call(&self, text: &str) -> Option<bool> {
        let rest = text[self.call_syntax.call.open.len()..].trim_start();
        let name = match match_tag(rest, self.syntax.name.open.trim_start()) {
            Tag::Match { len, .. } => &rest[len..],
            Tag::Partial => return None,
            Tag::NoMatch => return Some(false),
        };
        let mut ends = name_ends(self.syntax, self.call_syntax.call.close);
        ends.push("\n");
        match self.tools.match_name(name, &ends) {
            Declared::Found(_) => Some(true),
            Declared::Open => None,
            Declared::Absent => Some(false),
        }
    }

    /// Returns true if the marker at the start of `text` ends the call: another call or the section's end
    /// follows. `None` if more text is needed to decide.
    fn is_end_of_call(&self, text: &str) -> Option<bool> {
        let CallSyntax { section, call, .. } = *self.call_syntax;
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

    /// Emits the certain part of a string.
    fn emit_partial(&mut self, text: &str, reader: ValueReader) -> Step {
        let certain = &text[self.at..reader.held.unwrap_or(reader.searched)];
        let may_lack_marker = self.tolerance.accepts(Departure::ParameterMarkers);
        let layout = if reader.layout.is_empty() && may_lack_marker { "\n" } else { reader.layout };
        if reader.kind == ValueKind::Text {
            let until = certain.len() - partial(certain, &format!("{layout}\0"));
            let until = self.without_return(&certain[..until], layout, &reader).len();
            self.json.write(|json| push_json_chars(json, &certain[..until]));
            self.at += until;
        }
        self.state = State::Value(reader);
        Step::NeedText
    }

    /// Ends the value at this byte; `taken` is the length of the marker after it, 0 if that is missing.
    pub(super) fn end_value(
        &mut self,
        text: &str,
        reader: ValueReader,
        end: usize,
        taken: usize,
    ) -> Result<Step, Fault> {
        let layout = if taken == 0 && reader.layout.is_empty() { "\n" } else { reader.layout };
        let content = &text[reader.start..end];
        let content = content
            .strip_suffix(layout)
            .map_or(content, |content| self.without_return(content, layout, &reader));
        if reader.kind == ValueKind::Text {
            let rest = &text[self.at..reader.start + content.len()];
            self.json.write(|json| push_json_chars(json, rest));
        }
        self.finish_value(content, &reader)?;
        self.at = end + taken;
        self.state = if reader.protected { State::ValueClose } else { State::Parameter };
        Ok(Step::Continue)
    }

    /// Removes the carriage return at the end of a text before `layout` and the closing marker, if these are
    /// a line's end.
    fn without_return<'t>(&self, text: &'t str, layout: &str, reader: &ValueReader) -> &'t str {
        let ends_line = layout == "\n" || layout.is_empty() && reader.close == "\n";
        if ends_line && self.tolerance.accepts(Departure::CarriageReturns) {
            text.strip_suffix('\r').unwrap_or(text)
        } else {
            text
        }
    }

    fn elements(&mut self, text: &str, mut reader: ValueReader) -> Result<Step, Fault> {
        let rest = &text[self.at..];
        let (searched, ended) = elements_end(rest, self.syntax, &mut reader.depth)?;
        let end = &rest[searched..];
        self.at += searched;
        if !ended || !end.starts_with(&reader.close) {
            if ended && !reader.close.starts_with(end) {
                return Err(Fault::malformed(format!("`{}` is missing", reader.close)));
            }
            self.state = State::Value(reader);
            return Ok(Step::NeedText);
        }
        self.finish_value(&text[reader.start..self.at], &reader)?;
        self.at += reader.close.len();
        Ok(Step::Continue)
    }

    fn finish_value(&mut self, content: &str, reader: &ValueReader) -> Result<(), Fault> {
        let (syntax, key, plain) = (self.syntax, &self.key, unguarded(content));
        let schema = self.tools.schema(&self.name);
        let json = if reader.kind == ValueKind::Json { serde_json::from_str(&plain).ok() } else { None };
        let by_schema = |schema: Option<Schema<'_>>| {
            Ok(json.clone().unwrap_or_else(|| typed_value(&plain, schema, syntax.untyped)))
        };
        match reader.kind {
            ValueKind::Ignored => Ok(()),
            ValueKind::Text => {
                self.json.write(|json| json.push('"'));
                self.json.narrow(schema, key, &Value::from(&*plain));
                Ok(())
            }
            ValueKind::Wrapped => {
                self.unwrapped(content);
                Ok(())
            }
            ValueKind::BySchema | ValueKind::Json => self.json.value(schema, key, by_schema),
            ValueKind::Elements => {
                self.json.value(schema, key, |schema| element_value(content, syntax, schema))
            }
        }
    }

    /// Unwraps arguments given as one parameter; a value that is not an object is an ordinary parameter.
    fn unwrapped(&mut self, content: &str) {
        let content = &*unguarded(content);
        let text = content.trim();
        let object = serde_json::from_str(text).ok().or_else(|| python_literal(text));
        let only_declared = self.syntax.accepted == Accepted::Declared;
        let members: Map<String, Value> = match object {
            Some(Value::Object(members)) => members,
            _ if only_declared => return,
            _ => Map::from_iter([(
                unguarded(&self.key).into_owned(),
                typed_value(content, None, self.syntax.untyped),
            )]),
        };
        self.members(members);
    }

    /// Reads a JSON object that is written in place of the parameters.
    pub(super) fn object(&mut self, text: &str, mut scan: JsonScan, searched: usize) -> Result<Step, Fault> {
        for (at, byte) in text.bytes().enumerate().skip(searched) {
            match scan.step(byte) {
                JsonStep::Invalid(reason) => return Err(Fault::malformed(reason)),
                JsonStep::Close if scan.depth() == 0 => {
                    let members = read_json(&text[self.at..=at], self.tolerance)?;
                    self.members(members);
                    self.at = at + 1;
                    return Ok(Step::Continue);
                }
                _ => {}
            }
        }
        self.state = State::Object(scan, text.len());
        Ok(Step::NeedText)
    }

    fn members(&mut self, members: Map<String, Value>) {
        let only_declared = self.syntax.accepted == Accepted::Declared;
        for (key, value) in members {
            let declared = self.schema().is_some_and(|schema| schema.declares(&key));
            if declared || !only_declared {
                self.member(&guarded(&key));
                self.json.write(|json| json.push_str(&guarded(&json_text(&value))));
            }
        }
    }
}

/// Skips a JSON list or object, whose strings may contain the closing marker; returns false if more text is
/// needed. Text that is not JSON is searched from its start.
fn skip_json(text: &str, reader: &mut ValueReader) -> bool {
    let Some(scan) = &mut reader.json else { return true };
    for &byte in &text.as_bytes()[reader.searched..] {
        let step = scan.step(byte);
        let invalid = matches!(step, JsonStep::Invalid(_));
        reader.searched = if invalid { reader.start } else { reader.searched + 1 };
        if invalid || step == JsonStep::Close && scan.depth() == 0 {
            reader.json = None;
            return true;
        }
    }
    false
}

//! Keys of arguments, and the syntax between a key and its value.

use super::{MAX_GRAMMAR_KEY_BYTES, ParameterBody, State, Step, ValueKind, WRAPPERS};
use crate::declared_names::{Declared, declared};
use crate::dialect::{Accepted, ParameterCall, ValueText};
use crate::marker_guard::unguarded;
use crate::parsers::call_sink::CallSink;
use crate::parsers::fault::Fault;
use crate::parsers::recovery::{Departure, Tolerance};
use crate::parsers::tag::{Tag, end_of_name, match_tag, trim_blanks, unquoted};
use crate::parsers::tools::MAX_NAME_BYTES;
use crate::values::{Schema, Types, push_json_string};

impl ParameterBody {
    pub(super) fn key(
        &mut self,
        text: &str,
        quote: Option<char>,
        calls: &mut CallSink<'_>,
    ) -> Result<Step, Fault> {
        let open = self.syntax.key.open;
        let may_be_repeated = quote.is_none() && self.tolerance.accepts(Departure::ParameterMarkers);
        if may_be_repeated && !open.is_empty() && text[self.at..].starts_with(open) {
            // A repeated opening marker.
            self.at += open.len();
        }
        let rest = &text[self.at..];
        let close = self.syntax.key.close;
        match declared(rest, self.declared_keys.iter().map(String::as_str), &[close]) {
            Declared::Found(key) => {
                self.at += key.len() + close.len();
                let key = key.to_owned();
                return self.begin_parameter(&key, calls);
            }
            Declared::Open => {
                self.state = State::Key(quote);
                return Ok(Step::NeedText);
            }
            Declared::Absent => {}
        }
        let Some((end, behind)) = self.end_of_key(rest, quote) else {
            if rest.len() > self.max_key_bytes() {
                return Err(Fault::malformed(format!("`{}` is missing", self.syntax.key.close)));
            }
            self.state = State::Key(quote);
            return Ok(Step::NeedText);
        };
        let key = rest[..end].trim();
        let key = if self.tolerance.accepts(Departure::QuotedName) { unquoted(key) } else { key };
        self.at += behind;
        if key.is_empty() || key.contains(['<', '>', '\n']) {
            return Err(Fault::malformed(format!("`{key}` is no key")));
        }
        self.begin_parameter(key, calls)
    }

    fn begin_parameter(&mut self, key: &str, calls: &mut CallSink<'_>) -> Result<Step, Fault> {
        if self.given.iter().any(|given| *given == unguarded(key)) {
            return Err(Fault::malformed(format!("the argument `{key}` is given twice")));
        }
        if std::mem::take(&mut self.is_doubtful) {
            calls.begin(Some(&self.name), None)?;
        }
        self.key = key.to_owned();
        let kind = self.kind(key);
        self.keys.push(unguarded(key).into_owned());
        if !matches!(kind, ValueKind::Ignored | ValueKind::Wrapped) {
            self.member(key);
            self.arguments.emit(self.json.certain(), calls);
        }
        let typed = self.syntax.type_attribute.is_some();
        self.state = if typed { State::Type(kind) } else { State::ValueOpen(kind) };
        Ok(Step::Continue)
    }

    /// End of the key at the start of `rest`, and the position after it; the value's opening marker also ends
    /// it.
    fn end_of_key(&self, rest: &str, quote: Option<char>) -> Option<(usize, usize)> {
        let ParameterCall { key, value, .. } = *self.syntax;
        let most = self.max_key_bytes();
        let ended = end_of_name(rest, quote, key.close, most + key.close.len());
        let window = &rest[..rest.floor_char_boundary(ended.map_or(most, |(end, _)| end))];
        let open = if value.open.is_empty() { None } else { window.find(value.open) };
        open.map(|open| (open, open)).or(ended)
    }

    fn max_key_bytes(&self) -> usize {
        if self.tolerance == Tolerance::NONE { MAX_GRAMMAR_KEY_BYTES } else { MAX_NAME_BYTES }
    }

    /// Starts a member of the arguments.
    pub(super) fn member(&mut self, key: &str) {
        if self.syntax.accepted == Accepted::Declared && self.schema().is_some() {
            self.given.push(unguarded(key).into_owned());
        }
        let before = if self.json.certain().is_empty() { "{" } else { ", " };
        self.json.write(|json| {
            json.push_str(before);
            push_json_string(json, key);
            json.push_str(": ");
        });
    }

    /// Interpretation of the argument's text by the schema.
    fn kind(&self, key: &str) -> ValueKind {
        let schema = self.schema();
        let types = self.types(key);
        let elements = self.syntax.written == ValueText::Elements;
        let names = schema.map(Schema::property_names).unwrap_or_default();
        let undeclared = !names.is_empty() && names.iter().all(|name| name != key);
        match types {
            _ if undeclared
                && self.keys.is_empty()
                && WRAPPERS.contains(&key)
                && self.tolerance.accepts(Departure::WrappedArguments) =>
            {
                ValueKind::Wrapped
            }
            _ if self.syntax.accepted == Accepted::Declared
                && schema.is_some_and(|schema| !schema.declares(key)) =>
            {
                ValueKind::Ignored
            }
            Types::STRING => ValueKind::Text,
            types if elements && types != Types::ANY && types.contains(Types::STRING) => ValueKind::BySchema,
            _ if elements => ValueKind::Elements,
            _ => ValueKind::BySchema,
        }
    }

    pub(super) fn value_type(&mut self, text: &str, kind: ValueKind) -> Result<Step, Fault> {
        let Some(attribute) = self.syntax.type_attribute else { return Ok(Step::Continue) };
        let rest = trim_blanks(&text[self.at..]);
        let start = text.len() - rest.len();
        let end = attribute.close.trim_start_matches('"');
        if rest.starts_with(end) {
            // Without the attribute, the schema determines the type.
            (self.at, self.state) = (start + end.len(), State::ValueOpen(kind));
            return Ok(Step::Continue);
        }
        self.state = State::Type(kind);
        let (len, quote) = match match_tag(rest, attribute.open.trim_start()) {
            Tag::Match { len, quote } => (len, quote),
            Tag::NoMatch if !end.starts_with(rest) => {
                return Err(Fault::malformed(format!("`{}` is missing", attribute.open)));
            }
            Tag::Partial | Tag::NoMatch => return Ok(Step::NeedText),
        };
        let Some((word, behind)) = end_of_name(&rest[len..], quote, attribute.close, MAX_NAME_BYTES) else {
            return match rest.len() > len + MAX_NAME_BYTES {
                true => Err(Fault::malformed(format!("`{}` is missing", attribute.close))),
                false => Ok(Step::NeedText),
            };
        };
        let kind = match kind {
            ValueKind::Ignored | ValueKind::Wrapped => kind,
            _ if rest[len..len + word].trim() == attribute.text => ValueKind::Text,
            _ => ValueKind::Json,
        };
        (self.at, self.state) = (start + len + behind, State::ValueOpen(kind));
        Ok(Step::Continue)
    }

    pub(super) fn value_open(&mut self, text: &str, kind: ValueKind) -> Result<Step, Fault> {
        let open = self.syntax.value.open;
        if open.is_empty() {
            // The whitespace here belongs to the value.
            self.state = State::ValueStart(kind);
            return Ok(Step::Continue);
        }
        if self.syntax.type_attribute.is_none() && self.tolerance.accepts(Departure::ParameterMarkers) {
            let rest = trim_blanks(&text[self.at..]);
            self.at = text.len() - rest.len();
            let close = self.syntax.key.close;
            if !close.is_empty() && rest.starts_with(close) {
                // A repeated closing marker of the key.
                (self.at, self.state) = (self.at + close.len(), State::ValueOpen(kind));
                return Ok(Step::Continue);
            }
            if !rest.is_empty() && rest.chars().next() != open.trim_start().chars().next() {
                // No marker begins here: the opening one is missing.
                self.state = State::ValueStart(kind);
                return Ok(Step::Continue);
            }
            if close.starts_with(rest) {
                self.state = State::ValueOpen(kind);
                return Ok(Step::NeedText);
            }
        }
        self.marker(text, open, State::ValueOpen(kind), State::ValueStart(kind))
    }
}

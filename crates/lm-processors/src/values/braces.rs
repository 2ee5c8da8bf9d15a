//! Incremental conversion to JSON text of the brace syntax of function-calling models: `{text:<mark>as it
//! is<mark>,n:1,o:{k:true},l:[1,2]}`, with a token of the model as the mark.

mod key;
mod lost_marks;
mod state;

use serde_json::Value;

use self::key::KeyEnd;
use self::lost_marks::LostStart;
use self::state::{Frame, Need, State};
use super::readings::Readings;
use super::schema::{Schema, Types};
use super::typed::typed_value;
use super::{MAX_DEPTH, partial, push_json_chars, push_json_string};
use crate::dialect::Untyped;
use crate::json_text::json_text;
use crate::marker_guard::{guarded, unguarded};

/// Maximum whitespace between a closing quote and what follows it.
const MAX_LAYOUT_BYTES: usize = 256;

/// Parser of arguments in braces, including the outer ones.
///
/// A value without marks is a constant, a number, or text that the tool's schema types; it ends at a comma or
/// closing bracket. Keys may also be between marks, and both may be JSON strings. [`lost_marks`] describes
/// the marks that may be missing.
#[derive(Debug)]
pub(crate) struct BraceArguments {
    mark: &'static str,
    /// Text after the arguments, before which the last brace may be missing; empty if defects are not
    /// repaired.
    close: &'static str,
    /// True if the outer brackets are round, as in Python.
    round: bool,
    out: Readings,
    stack: Vec<Frame>,
    state: State,
    /// Search for the end of the current key.
    key_end: KeyEnd,
    /// Name of the current argument.
    argument: String,
    /// Number of bytes read.
    at: usize,
}

impl BraceArguments {
    /// Creates a parser for arguments with strings between two of `mark`. With the call's closing marker,
    /// defects are repaired: round outer brackets, strings in single quotes, equals signs in place of colons,
    /// a last brace that is missing before the marker.
    pub(crate) fn new(mark: &'static str, close: &'static str) -> Self {
        let (out, argument, state) = (Readings::default(), String::new(), State::Start);
        Self {
            mark,
            close,
            round: false,
            out,
            stack: Vec::new(),
            state,
            key_end: KeyEnd::default(),
            argument,
            at: 0,
        }
    }

    /// The JSON text that is certain.
    pub(crate) fn certain(&self) -> &str {
        self.out.certain()
    }

    /// Continues in `text`, which starts with the text of the previous calls; `schema` is that of the
    /// arguments. Returns the end of the arguments, once reached.
    ///
    /// # Errors
    /// Description of the fault.
    pub(crate) fn follow(&mut self, text: &str, schema: Option<Schema<'_>>) -> Result<Option<usize>, String> {
        loop {
            match self.step(text, schema) {
                Err(reason) => return Err(reason),
                Ok(Need::MoreText) => return Ok(None),
                Ok(Need::AnotherLook) if self.stack.is_empty() => {
                    self.out.end(schema);
                    return Ok(Some(self.at));
                }
                Ok(Need::AnotherLook) => {}
            }
        }
    }

    fn step(&mut self, text: &str, schema: Option<Schema<'_>>) -> Result<Need, String> {
        match self.state {
            State::Marked { start } => return Ok(self.marked(text, start, schema)),
            State::MarkedOther { start } => return self.marked_other(text, start, schema),
            State::Quoted { start, escaped } => return self.quoted(text, start, escaped, schema),
            State::SingleQuoted { start } => return self.single_quoted(text, start, schema),
            State::Bare { start } => return self.bare(text, start, schema),
            _ => {}
        }
        let rest = text[self.at..].trim_start();
        self.at = text.len() - rest.len();
        let Some(c) = rest.chars().next() else { return Ok(Need::MoreText) };
        match (self.state, c) {
            (State::Start, '{') => {
                self.out = Readings::of(schema);
                self.open(c)?;
            }
            (State::Start, '(') if !self.close.is_empty() => {
                self.out = Readings::of(schema);
                self.round = true;
                self.open('{')?;
            }
            (State::Value, '{' | '[') => self.open(c)?,
            (State::Colon, ':') => self.state = State::Value,
            (State::Colon, '=') if !self.close.is_empty() => self.state = State::Value,
            (State::After, ',') => self.state = self.element(),
            (State::After | State::Key | State::Value, '}' | ']') => self.close(c)?,
            (State::After | State::Key, ')') if self.round && self.is_argument() => self.close('}')?,
            (State::Key, _) => return self.key(rest, schema),
            (State::After, _)
                if self.is_argument() && rest.starts_with(self.close) && !self.close.is_empty() =>
            {
                self.close('}')?;
                return Ok(Need::AnotherLook);
            }
            (State::After, _) if self.is_argument() && self.close.starts_with(rest) => {
                return Ok(Need::MoreText);
            }
            (State::After, _) if self.may_lack_comma(text) => match self.lacks_comma(rest, schema) {
                Some(true) => {
                    self.state = State::Key;
                    return Ok(Need::AnotherLook);
                }
                Some(false) => return Err(format!("unexpected `{c}`")),
                None => return Ok(Need::MoreText),
            },
            (State::Value, '\'') if !self.close.is_empty() => {
                self.begin_element();
                self.state = State::SingleQuoted { start: self.at };
            }
            (State::Value, '"') => {
                self.begin_element();
                self.state = State::Quoted { start: self.at, escaped: false };
            }
            (State::Value, _) if rest.starts_with(self.mark) => {
                self.at += self.mark.len();
                self.begin_marked(schema);
                return Ok(Need::AnotherLook);
            }
            (State::Value, _) if self.mark.starts_with(rest) => return Ok(Need::MoreText),
            (State::Value, _) if c != ',' && c != ':' => self.state = State::Bare { start: self.at },
            _ => return Err(format!("unexpected `{c}`")),
        }
        self.at += c.len_utf8();
        Ok(Need::AnotherLook)
    }

    /// The state at the start of an element in the innermost bracket.
    fn element(&self) -> State {
        if self.stack.last().is_some_and(|frame| frame.object) { State::Key } else { State::Value }
    }

    fn open(&mut self, c: char) -> Result<(), String> {
        if self.stack.len() == MAX_DEPTH {
            return Err(format!("it is nested deeper than {MAX_DEPTH}"));
        }
        self.begin_element();
        self.write(|out| out.push(c));
        self.stack.push(Frame { object: c == '{', filled: false });
        self.state = self.element();
        Ok(())
    }

    /// Writes the comma before a list element; in an object, the key writes it.
    fn begin_element(&mut self) {
        if self.stack.last().is_some_and(|frame| !frame.object && frame.filled) {
            self.write(|out| out.push_str(", "));
        }
    }

    fn write(&mut self, write: impl Fn(&mut String)) {
        self.out.write(write);
    }

    fn close(&mut self, c: char) -> Result<(), String> {
        let frame = self.stack.pop().filter(|frame| frame.object == (c == '}'));
        if frame.is_none_or(|frame| frame.object && self.state == State::Value) {
            return Err(format!("unexpected `{c}`"));
        }
        self.write(|out| out.push(c));
        self.value_ends();
        Ok(())
    }

    fn value_ends(&mut self) {
        if let Some(frame) = self.stack.last_mut() {
            frame.filled = true;
        }
        self.state = State::After;
    }

    /// Returns true if the current value is an argument, and not inside one.
    fn is_argument(&self) -> bool {
        self.stack.len() == 1
    }

    /// Schema of the current element of an argument that is a list, if all have the same: of the
    /// alternatives, one that allows `types`.
    fn item_schema<'a>(&self, schema: Option<Schema<'a>>, types: Types) -> Option<Schema<'a>> {
        if self.stack.len() != 2 || self.element() != State::Value {
            return None;
        }
        let lists = self.out.schemas(schema, &self.argument).into_iter();
        let lists = lists.filter(|schema| schema.types().contains(Types::ARRAY));
        let items: Vec<Schema<'a>> = lists.map(Schema::all_items).collect::<Option<_>>()?;
        items.iter().find(|items| items.types().contains(types)).or(items.first()).copied()
    }

    /// Some templates put marks around values of every type.
    fn begin_marked(&mut self, schema: Option<Schema<'_>>) {
        self.begin_element();
        let types = match self.is_argument() {
            true => self.out.types(schema, &self.argument),
            false => self.item_schema(schema, Types::STRING).map(Schema::types),
        };
        if types.unwrap_or(Types::STRING).contains(Types::STRING) {
            self.write(|out| out.push('"'));
            self.state = State::Marked { start: self.at };
        } else {
            self.state = State::MarkedOther { start: self.at };
        }
    }

    fn marked_other(&mut self, text: &str, start: usize, schema: Option<Schema<'_>>) -> Result<Need, String> {
        let rest = &text[self.at..];
        let Some(end) = rest.find(self.mark) else {
            self.at += rest.len() - partial(rest, self.mark);
            return Ok(Need::MoreText);
        };
        self.typed(&text[start..self.at + end], schema, Types::STRING, Untyped::Text)?;
        self.at += end + self.mark.len();
        self.value_ends();
        Ok(Need::AnotherLook)
    }

    /// Writes a value that the schema types; `types` are the types of its spelling.
    fn typed(
        &mut self,
        text: &str,
        schema: Option<Schema<'_>>,
        types: Types,
        untyped: Untyped,
    ) -> Result<(), String> {
        let text = &*unguarded(text);
        if self.is_argument() {
            return self.out.value(schema, &self.argument, |schema| Ok(typed_value(text, schema, untyped)));
        }
        let value = typed_value(text, self.item_schema(schema, types), untyped);
        self.write(|out| out.push_str(&guarded(&json_text(&value))));
        Ok(())
    }

    fn marked(&mut self, text: &str, start: usize, schema: Option<Schema<'_>>) -> Need {
        let rest = &text[self.at..];
        let end = rest.find(self.mark);
        let certain = end.unwrap_or(rest.len() - partial(rest, self.mark));
        self.write(|out| push_json_chars(out, &rest[..certain]));
        self.at += certain;
        if end.is_none() {
            return Need::MoreText;
        }
        self.write(|out| out.push('"'));
        self.string_ends(&text[start..self.at], schema);
        self.at += self.mark.len();
        Need::AnotherLook
    }

    /// Ends a string that has been written.
    fn string_ends(&mut self, string: &str, schema: Option<Schema<'_>>) {
        if self.is_argument() {
            self.out.narrow(schema, &self.argument, &Value::from(unguarded(string)));
        }
        self.value_ends();
    }

    fn quoted(
        &mut self,
        text: &str,
        start: usize,
        mut escaped: bool,
        schema: Option<Schema<'_>>,
    ) -> Result<Need, String> {
        for (offset, byte) in text[self.at..].bytes().enumerate() {
            match byte {
                _ if escaped => escaped = false,
                b'\\' => escaped = true,
                b'"' => {
                    self.at += offset + 1;
                    let string = json_string(&text[start..self.at])?;
                    self.write(|out| push_json_string(out, &string));
                    self.string_ends(&string, schema);
                    return Ok(Need::AnotherLook);
                }
                _ => {}
            }
        }
        self.at = text.len();
        self.state = State::Quoted { start, escaped };
        Ok(Need::MoreText)
    }

    /// Reads a string in single quotes, whose closing quote precedes a comma or a bracket.
    fn single_quoted(
        &mut self,
        text: &str,
        start: usize,
        schema: Option<Schema<'_>>,
    ) -> Result<Need, String> {
        while let Some(offset) = text[self.at..].find('\'') {
            let (end, after) = (self.at + offset, &text[self.at + offset + 1..]);
            let window = &after[..after.floor_char_boundary(MAX_LAYOUT_BYTES + self.close.len())];
            let behind = window.trim_start();
            if window.len() == after.len() && (behind.is_empty() || self.close.starts_with(behind)) {
                self.at = end;
                return Ok(Need::MoreText);
            }
            self.at = end + 1;
            if behind.starts_with([',', '}', ']']) || behind.starts_with(self.close) {
                let string = text[start + 1..end].replace("\\'", "'");
                self.write(|out| push_json_string(out, &string));
                self.string_ends(&string, schema);
                return Ok(Need::AnotherLook);
            }
        }
        self.at = text.len();
        Ok(Need::MoreText)
    }

    fn bare(&mut self, text: &str, start: usize, schema: Option<Schema<'_>>) -> Result<Need, String> {
        let close = match self.element() {
            State::Key if self.round && self.is_argument() => ')',
            State::Key => '}',
            _ => ']',
        };
        let Some(end) = text[self.at..].find([',', close]) else {
            self.at = text.len();
            return Ok(Need::MoreText);
        };
        match self.lost_start(&text[start..], schema) {
            LostStart::No => {}
            LostStart::Open => return Ok(Need::MoreText),
            LostStart::Ended(len) => return self.unopened(text, start..start + len, schema),
        }
        self.at += end;
        let content = text[start..self.at].trim_end();
        if content.contains(self.mark) {
            return Err("a string has one mark".to_owned());
        }
        self.begin_element();
        let types = Types::of(&typed_value(content, None, Untyped::Json));
        self.typed(content, schema, types, Untyped::Json)?;
        self.value_ends();
        Ok(Need::AnotherLook)
    }
}

fn json_string(text: &str) -> Result<String, String> {
    serde_json::from_str(text).map_err(|error| error.to_string())
}

#[cfg(test)]
mod tests;

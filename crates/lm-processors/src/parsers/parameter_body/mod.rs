//! Calls whose arguments are keys and values in markup.

mod between;
mod call;
mod key;
mod name;
mod state;
mod value;
mod value_end;

use self::between::Between;
use self::call::Call;
use self::key::{FoundKey, StatedType};
use self::state::{Form, Next, Parameter, State, ValueKind};
use self::value::ValueReader;
use super::body_reader::{BodyReader, Progress, check_length};
use super::call_sink::CallSink;
use super::elements::elements_end;
use super::fault::Fault;
use super::json_mend::read_json;
use super::json_scan::{JsonScan, JsonStep};
use super::marker_scan::{Prefix, prefix};
use super::recovery::{Departure, Tolerance};
use super::tag::trim_blanks;
use super::tools::Tools;
use crate::dialect::{CallSyntax, ParameterCall};

/// Maximum whitespace between the markers that end a call.
const MAX_LAYOUT_BYTES: usize = 256;

pub(crate) const CDATA_OPEN: &str = "<![CDATA[";
pub(crate) const CDATA_CLOSE: &str = "]]>";

/// Texts that end a call's name.
pub(super) fn name_ends(syntax: &ParameterCall, close: &'static str) -> Vec<&'static str> {
    let mut ends = vec![syntax.name.close];
    if syntax.name.open.is_empty() {
        ends.extend([syntax.key.open, close, syntax.between]);
    }
    ends.retain(|end| !end.is_empty());
    ends
}

/// Reader of [`CallBody::Parameters`](crate::dialect::CallBody::Parameters).
///
/// A value known to be a string is emitted while it arrives, any other value at its end.
#[derive(Debug)]
pub(crate) struct ParameterBody {
    form: Form,
    state: State,
    at: usize,
    call: Call,
}

impl ParameterBody {
    pub(crate) fn new(
        syntax: &'static ParameterCall,
        around: &'static CallSyntax,
        tools: Tools,
        tolerance: Tolerance,
    ) -> Self {
        let form = Form { syntax, around, tolerance };
        Self { form, state: State::NameOpen, at: 0, call: Call::new(form, tools) }
    }

    fn step(&mut self, state: State, text: &str, calls: &mut CallSink<'_>) -> Result<Next, Fault> {
        match state {
            State::NameOpen => self.name_open(text),
            State::Name(quote) => self.name(text, quote, calls),
            State::Number => self.number(text),
            State::Parameter => self.parameter(text),
            State::Key(quote) => self.key(text, quote, calls),
            State::Type(parameter) => self.value_type(text, parameter),
            State::ValueOpen(parameter) => self.value_open(text, parameter),
            State::ValueStart(parameter) => Ok(self.value_start(text, parameter)),
            State::Value(reader) if reader.parameter.kind == ValueKind::Elements => {
                self.elements(text, reader)
            }
            State::Value(reader) => self.value(text, reader),
            State::ValueClose => self.value_close(text),
            State::Object { scan, searched } => self.object(text, scan, searched),
        }
    }

    /// Consumes `len` bytes and enters `state`.
    fn enter(&mut self, len: usize, state: State) -> Result<Next, Fault> {
        self.at += len;
        Ok(Next::Enter(state))
    }

    /// Skips blanks, and returns the text after them.
    fn skip_blanks<'t>(&mut self, text: &'t str) -> &'t str {
        let rest = trim_blanks(&text[self.at..]);
        self.at = text.len() - rest.len();
        rest
    }

    /// Skips a marker, preceded by whitespace; returns false if more text is needed.
    fn skip_marker(&mut self, text: &str, marker: &str) -> Result<bool, Fault> {
        let rest = text[self.at..].trim_start();
        let marker = marker.trim();
        self.at = text.len() - rest.len();
        match rest.starts_with(marker) {
            true => self.at += marker.len(),
            false if marker.starts_with(rest) => return Ok(false),
            false => return Err(Fault::malformed(format!("`{marker}` is missing"))),
        }
        Ok(true)
    }

    /// Consumes the name's marker, and an unrelated word before it.
    fn name_open(&mut self, text: &str) -> Result<Next, Fault> {
        let rest = self.skip_blanks(text);
        match name::opening(rest, self.form)? {
            Some((len, next)) => self.enter(len, next),
            None => Ok(Next::Wait(State::NameOpen)),
        }
    }

    fn name(&mut self, text: &str, quote: Option<char>, calls: &mut CallSink<'_>) -> Result<Next, Fault> {
        let rest = text[self.at..].trim_start();
        self.at = text.len() - rest.len();
        let Some((name, len)) = name::find(rest, quote, self.form, self.call.tools())? else {
            return Ok(Next::Wait(State::Name(quote)));
        };
        self.at += len;
        self.call.begin(name, calls)?;
        Ok(Next::Enter(if self.form.syntax.number.is_some() { State::Number } else { State::Parameter }))
    }

    /// Reads the call's number, which its position already implies.
    fn number(&mut self, text: &str) -> Result<Next, Fault> {
        let Some(tags) = self.form.syntax.number else { return Ok(Next::Enter(State::Parameter)) };
        let Some((number, len)) = name::number(&text[self.at..], tags)? else {
            return Ok(Next::Wait(State::Number));
        };
        self.at += len;
        match number.trim().starts_with(tags.open.trim()) {
            true => Ok(Next::Enter(State::Parameter)),
            false => Err(Fault::malformed(format!("`{}` is missing", tags.open))),
        }
    }

    fn parameter(&mut self, text: &str) -> Result<Next, Fault> {
        let rest = self.skip_blanks(text);
        match between::read(rest, self.form, &self.call)? {
            Between::Marker(len, state) => self.enter(len, state),
            Between::Object => {
                let scan = JsonScan::new(Tolerance::ON_ONE_LINE);
                Ok(Next::Enter(State::Object { scan, searched: self.at }))
            }
            Between::Partial => Ok(Next::Wait(State::Parameter)),
            Between::End(len) => {
                self.call.end()?;
                Ok(Next::End(self.at + len))
            }
        }
    }

    fn key(&mut self, text: &str, quote: Option<char>, calls: &mut CallSink<'_>) -> Result<Next, Fault> {
        let (form, open) = (self.form, self.form.syntax.key.open);
        let may_be_repeated = quote.is_none() && form.tolerance.accepts(Departure::ParameterMarkers);
        while may_be_repeated && prefix(&text[self.at..], open) == Prefix::Found {
            self.at += open.len();
        }
        let found = key::find(&text[self.at..], quote, form, self.call.declared_keys())?;
        let Some(FoundKey { key, len, is_declared }) = found else {
            return Ok(Next::Wait(State::Key(quote)));
        };
        self.at += len;
        if !is_declared && (key.is_empty() || key.contains(['<', '>', '\n'])) {
            return Err(Fault::malformed(format!("`{key}` is no key")));
        }
        let kind = self.call.begin_parameter(key, calls)?;
        let parameter = Parameter { key: key.to_owned(), kind };
        let typed = form.syntax.type_attribute.is_some();
        Ok(Next::Enter(if typed { State::Type(parameter) } else { State::ValueOpen(parameter) }))
    }

    fn value_type(&mut self, text: &str, mut parameter: Parameter) -> Result<Next, Fault> {
        let Some(attribute) = &self.form.syntax.type_attribute else {
            return Ok(Next::Enter(State::ValueOpen(parameter)));
        };
        let rest = trim_blanks(&text[self.at..]);
        let Some((stated, len)) = key::stated_type(rest, attribute)? else {
            return Ok(Next::Wait(State::Type(parameter)));
        };
        parameter.kind = match (parameter.kind, stated) {
            (kind @ (ValueKind::Ignored | ValueKind::Wrapped), _) | (kind, StatedType::Absent) => kind,
            (_, StatedType::Text) => ValueKind::Text,
            (_, StatedType::Other) => ValueKind::Json,
        };
        self.at = text.len() - rest.len();
        self.enter(len, State::ValueOpen(parameter))
    }

    fn value_open(&mut self, text: &str, parameter: Parameter) -> Result<Next, Fault> {
        let ParameterCall { key, value, type_attribute, .. } = self.form.syntax;
        if value.open.is_empty() {
            // The whitespace here belongs to the value.
            return Ok(Next::Enter(State::ValueStart(parameter)));
        }
        if type_attribute.is_none() && self.form.tolerance.accepts(Departure::ParameterMarkers) {
            let rest = self.skip_blanks(text);
            let at_key_close = prefix(rest, key.close);
            if at_key_close == Prefix::Found {
                // It is repeated.
                return self.enter(key.close.len(), State::ValueOpen(parameter));
            }
            if !rest.is_empty() && rest.chars().next() != value.open.trim_start().chars().next() {
                // No marker begins here: the opening one is missing.
                return Ok(Next::Enter(State::ValueStart(parameter)));
            }
            if at_key_close == Prefix::Partial {
                return Ok(Next::Wait(State::ValueOpen(parameter)));
            }
        }
        Ok(match self.skip_marker(text, value.open)? {
            true => Next::Enter(State::ValueStart(parameter)),
            false => Next::Wait(State::ValueOpen(parameter)),
        })
    }

    /// Reads the layout before a value and its CDATA marker, both of which must be known before anything is
    /// emitted.
    fn value_start(&mut self, text: &str, parameter: Parameter) -> Next {
        let Some(frame) = value::frame(&text[self.at..], self.form) else {
            return Next::Wait(State::ValueStart(parameter));
        };
        self.at += frame.len;
        if parameter.kind == ValueKind::Text {
            self.call.write("\"");
        }
        let is_json = !frame.protected && self.call.is_json(&parameter);
        Next::Enter(State::Value(ValueReader::new(parameter, self.at, frame, is_json, self.form)))
    }

    fn value(&mut self, text: &str, mut reader: ValueReader) -> Result<Next, Fault> {
        if let Some((end, taken)) = value_end::find(text, &mut reader, self.form, &self.call) {
            return self.end_value(text, reader, end, taken);
        }
        if reader.parameter.kind == ValueKind::Text {
            let certain = reader.certain(text, self.at, self.form);
            self.call.write_text(certain);
            self.at += certain.len();
        }
        Ok(Next::Wait(State::Value(reader)))
    }

    /// Ends the value at this byte; `taken` is the length of the marker after it, 0 if that is missing.
    fn end_value(
        &mut self,
        text: &str,
        reader: ValueReader,
        end: usize,
        taken: usize,
    ) -> Result<Next, Fault> {
        let content = reader.content(text, end, taken, self.form);
        if reader.parameter.kind == ValueKind::Text {
            self.call.write_text(&text[self.at..reader.start + content.len()]);
        }
        self.call.end_value(&reader.parameter, content)?;
        self.at = end + taken;
        Ok(Next::Enter(if reader.protected { State::ValueClose } else { State::Parameter }))
    }

    fn value_close(&mut self, text: &str) -> Result<Next, Fault> {
        let closed = self.skip_marker(text, self.form.syntax.value.close)?;
        Ok(if closed { Next::Enter(State::Parameter) } else { Next::Wait(State::ValueClose) })
    }

    fn elements(&mut self, text: &str, mut reader: ValueReader) -> Result<Next, Fault> {
        let rest = &text[self.at..];
        let (searched, ended) = elements_end(rest, self.form.syntax, &mut reader.depth)?;
        self.at += searched;
        match prefix(&rest[searched..], &reader.close) {
            _ if !ended => Ok(Next::Wait(State::Value(reader))),
            Prefix::Partial => Ok(Next::Wait(State::Value(reader))),
            Prefix::Absent => Err(Fault::malformed(format!("`{}` is missing", reader.close))),
            Prefix::Found => {
                self.call.end_value(&reader.parameter, &text[reader.start..self.at])?;
                self.enter(reader.close.len(), State::Parameter)
            }
        }
    }

    /// Reads a JSON object that is written in place of the parameters.
    fn object(&mut self, text: &str, mut scan: JsonScan, searched: usize) -> Result<Next, Fault> {
        for (at, byte) in text.bytes().enumerate().skip(searched) {
            match scan.step(byte) {
                JsonStep::Invalid(reason) => return Err(Fault::malformed(reason)),
                JsonStep::Close if scan.depth() == 0 => {
                    self.call.members(read_json(&text[self.at..=at], self.form.tolerance)?);
                    self.at = at + 1;
                    return Ok(Next::Enter(State::Parameter));
                }
                _ => {}
            }
        }
        Ok(Next::Wait(State::Object { scan, searched: text.len() }))
    }
}

impl BodyReader for ParameterBody {
    fn read(&mut self, text: &str, calls: &mut CallSink<'_>) -> Result<Progress, Fault> {
        check_length(text)?;
        loop {
            let state = std::mem::replace(&mut self.state, State::Parameter);
            let next = self.step(state, text, calls);
            self.call.emit(calls);
            match next? {
                Next::Enter(state) => self.state = state,
                Next::Wait(state) => {
                    self.state = state;
                    return Ok(Progress::Open);
                }
                Next::End(end) => {
                    self.call.complete(calls)?;
                    return Ok(Progress::Complete(end));
                }
            }
        }
    }

    /// A value without its closing marker ends with its call, and one whose closing marker no other marker
    /// follows at the first such; an unterminated string does not contain the markers after it.
    fn finish(&mut self, text: &str, calls: &mut CallSink<'_>) -> Result<usize, Fault> {
        while let State::Value(reader) = &mut self.state
            && reader.forget_json()
        {
            if let Progress::Complete(end) = self.read(text, calls)? {
                return Ok(end);
            }
        }
        let State::Value(reader) = std::mem::replace(&mut self.state, State::Parameter) else {
            return Err(Fault::unfinished());
        };
        let held = reader.held.map(|end| (end, 0));
        let (end, taken) = reader.closed.or(held).ok_or_else(Fault::unfinished)?;
        if let Next::Enter(state) = self.end_value(text, reader, end, taken)? {
            self.state = state;
        }
        match self.read(text, calls)? {
            Progress::Complete(end) => Ok(end),
            Progress::Open | Progress::Answer(_) => Err(Fault::unfinished()),
        }
    }

    fn position(&self) -> usize {
        self.at
    }
}

//! Calls whose arguments are keys and values in markup.

mod key;
mod name;
mod value;

use super::argument_text::ArgumentText;
use super::body_reader::{BodyReader, Progress, check_length};
use super::call_sink::CallSink;
use super::fault::Fault;
use super::json_scan::JsonScan;
use super::recovery::{Departure, Tolerance};
use super::tag::{Tag, match_tag, trim_blanks};
use super::tools::{MAX_NAME_BYTES, Tools};
use crate::dialect::{Accepted, CallSyntax, ParameterCall, Tags, ValueText};
use crate::values::{Readings, Schema, Types};

/// Maximum length of keys in replies under a grammar, which writes keys of any length where a pattern of
/// names allows them.
const MAX_GRAMMAR_KEY_BYTES: usize = 1 << 16;

/// Maximum whitespace between the markers that end a call.
const MAX_LAYOUT_BYTES: usize = 256;

/// Parameters that some models wrap all arguments in, if the tool does not declare them.
const WRAPPERS: [&str; 4] = ["arguments", "parameters", "properties", "args"];

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
    syntax: &'static ParameterCall,
    /// Markers around the body.
    call_syntax: &'static CallSyntax,
    tools: Tools,
    tolerance: Tolerance,
    state: State,
    at: usize,
    name: String,
    /// True if neither the name nor the calls have a marker, and the name is undeclared: without parameters,
    /// this is text.
    is_doubtful: bool,
    /// Names of the tool's declared parameters.
    declared_keys: Vec<String>,
    /// Key of the current parameter.
    key: String,
    /// Keys of the parameters so far.
    keys: Vec<String>,
    /// Declared ones of them, if only declared parameters are accepted.
    given: Vec<String>,
    json: Readings,
    arguments: ArgumentText,
}

#[derive(Debug, Clone)]
enum State {
    /// Before the name's marker.
    NameOpen,
    /// In the name; its marker ended with this quote.
    Name(Option<char>),
    Number,
    /// Before a parameter or the end.
    Parameter,
    Key(Option<char>),
    Type(ValueKind),
    /// Before the value's marker.
    ValueOpen(ValueKind),
    /// Before the value's first character.
    ValueStart(ValueKind),
    Value(ValueReader),
    /// After protected text (CDATA), before the value's end.
    ValueClose,
    /// In a JSON object of all arguments, which was searched up to this byte.
    Object(JsonScan, usize),
}

/// Interpretation of the text of a value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ValueKind {
    /// Verbatim text.
    Text,
    /// By the schema.
    BySchema,
    /// JSON.
    Json,
    /// Elements, or a value of a type other than string.
    Elements,
    /// Ignored: the parameter is dropped.
    Ignored,
    /// An object of all arguments.
    Wrapped,
}

/// The value being read.
#[derive(Debug, Clone)]
struct ValueReader {
    kind: ValueKind,
    start: usize,
    close: String,
    /// Layout before `close` that is not part of the value.
    layout: &'static str,
    protected: bool,
    /// Number of open elements.
    depth: usize,
    /// End of the range searched for the value's end.
    searched: usize,
    /// End of the value if its closing marker is missing: before a marker that ends the call.
    held: Option<usize>,
    /// Nesting and strings of a value that can only be JSON, inside which no marker ends it.
    json: Option<JsonScan>,
}

enum Step {
    NeedText,
    Continue,
    /// The body ended before this byte.
    Done(usize),
}

impl ParameterBody {
    pub(crate) fn new(
        syntax: &'static ParameterCall,
        call_syntax: &'static CallSyntax,
        tools: Tools,
        tolerance: Tolerance,
    ) -> Self {
        Self {
            syntax,
            call_syntax,
            tools,
            tolerance,
            state: State::NameOpen,
            at: 0,
            name: String::new(),
            is_doubtful: false,
            declared_keys: Vec::new(),
            key: String::new(),
            keys: Vec::new(),
            given: Vec::new(),
            json: Readings::default(),
            arguments: ArgumentText::default(),
        }
    }

    fn schema(&self) -> Option<Schema<'_>> {
        self.tools.schema(&self.name)
    }

    /// Types that an argument may have.
    fn types(&self, key: &str) -> Types {
        self.json.types(self.schema(), key).unwrap_or(Types::ANY)
    }

    fn step(&mut self, text: &str, calls: &mut CallSink<'_>) -> Result<Step, Fault> {
        match std::mem::replace(&mut self.state, State::Parameter) {
            State::NameOpen => self.name_open(text),
            State::Name(quote) => self.name(text, quote, calls),
            State::Number => self.number(text),
            State::Parameter => self.parameter(text),
            State::Key(quote) => self.key(text, quote, calls),
            State::Type(kind) => self.value_type(text, kind),
            State::ValueOpen(kind) => self.value_open(text, kind),
            State::ValueStart(kind) => Ok(self.value_start(text, kind)),
            State::Value(reader) => self.value(text, reader),
            State::ValueClose => {
                self.marker(text, self.syntax.value.close, State::ValueClose, State::Parameter)
            }
            State::Object(scan, searched) => self.object(text, scan, searched),
        }
    }

    /// Consumes a marker, preceded by whitespace, and enters `next`; stays in `here` while it is incomplete.
    fn marker(&mut self, text: &str, marker: &str, here: State, next: State) -> Result<Step, Fault> {
        let rest = text[self.at..].trim_start();
        let marker = marker.trim();
        self.at = text.len() - rest.len();
        if rest.starts_with(marker) {
            self.at += marker.len();
            self.state = next;
            Ok(Step::Continue)
        } else if marker.starts_with(rest) {
            self.state = here;
            Ok(Step::NeedText)
        } else {
            Err(Fault::malformed(format!("`{marker}` is missing")))
        }
    }

    /// Consumes and returns the text up to `close`, once complete.
    fn read_until<'t>(&mut self, text: &'t str, close: &str, here: State) -> Result<Option<&'t str>, Fault> {
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

    /// Reads the call's number, which its position already implies.
    fn number(&mut self, text: &str) -> Result<Step, Fault> {
        let Some(tags) = self.syntax.number else { return Ok(Step::Continue) };
        match self.read_until(text, tags.close, State::Number)? {
            None => Ok(Step::NeedText),
            Some(number) if number.starts_with(tags.open.trim()) => Ok(Step::Continue),
            Some(_) => Err(Fault::malformed(format!("`{}` is missing", tags.open))),
        }
    }

    fn parameter(&mut self, text: &str) -> Result<Step, Fault> {
        let rest = trim_blanks(&text[self.at..]);
        let start = text.len() - rest.len();
        self.at = start;
        let ParameterCall { name, key, value, written, end, .. } = *self.syntax;
        let last = if end.is_empty() { self.call_syntax.call.close } else { end };
        if rest.starts_with(last) {
            return self.end_parameters(start + end.len());
        }
        // An optional end marker after the name, or a repeated closing marker.
        let after_name = self.keys.is_empty() && name.open.is_empty();
        let repeated = written != ValueText::Elements && !value.close.trim().is_empty();
        let skipped = [(after_name, name.close), (repeated, value.close)];
        let mut skipped = skipped.iter().filter(|(may_stand, _)| *may_stand).map(|(_, marker)| *marker);
        if let Some(marker) = skipped.clone().find(|marker| !marker.is_empty() && rest.starts_with(marker)) {
            self.at += marker.len();
            return Ok(Step::Continue);
        }
        // The end marker is missing if the call's or section's follows, or another call.
        let Tags { open: next, close, .. } = self.call_syntax.call;
        let others = [close, next, self.call_syntax.section.close];
        if others
            .iter()
            .any(|marker| match_marker(rest, marker) == Tag::Match { len: marker.len(), quote: None })
        {
            return self.end_parameters(start);
        }
        let may_be = |marker: &str| match_marker(rest, marker) == Tag::Partial;
        if may_be(last) || others.into_iter().any(may_be) || skipped.any(may_be) {
            return Ok(Step::NeedText);
        }
        match match_tag(rest, key.open) {
            Tag::Match { len, quote } => {
                self.at += len;
                self.state = State::Key(quote);
                Ok(Step::Continue)
            }
            Tag::Partial => Ok(Step::NeedText),
            Tag::NoMatch
                if rest.starts_with('{')
                    && self.json.certain().is_empty()
                    && self.tolerance.accepts(Departure::JsonArguments) =>
            {
                self.state = State::Object(JsonScan::new(Tolerance::ON_ONE_LINE), start);
                Ok(Step::Continue)
            }
            Tag::NoMatch => Err(Fault::malformed("unexpected text between the parameters")),
        }
    }

    fn end_parameters(&mut self, end: usize) -> Result<Step, Fault> {
        if self.is_doubtful {
            return Err(Fault::text_of_undeclared(&self.name));
        }
        if self.syntax.accepted == Accepted::Declared
            && let Some(missing) = self.schema().and_then(|schema| schema.missing(&self.given))
        {
            return Err(Fault::malformed(format!("the required argument `{missing}` is missing")));
        }
        let last = if self.json.certain().is_empty() { "{}" } else { "}" };
        self.json.write(|json| json.push_str(last));
        self.json.end(self.tools.schema(&self.name));
        Ok(Step::Done(end))
    }
}

/// Returns whether `text` starts with this marker; a blank must follow a marker that ends with a letter.
fn match_marker(text: &str, marker: &str) -> Tag {
    if marker.is_empty() {
        return Tag::NoMatch;
    }
    match text.strip_prefix(marker) {
        Some("") if marker.ends_with(char::is_alphanumeric) => Tag::Partial,
        Some(behind) if marker.ends_with(char::is_alphanumeric) && trim_blanks(behind) == behind => {
            Tag::NoMatch
        }
        Some(_) => Tag::Match { len: marker.len(), quote: None },
        None if marker.starts_with(text) => Tag::Partial,
        None => Tag::NoMatch,
    }
}

impl BodyReader for ParameterBody {
    fn read(&mut self, text: &str, calls: &mut CallSink<'_>) -> Result<Progress, Fault> {
        check_length(text)?;
        loop {
            let need = self.step(text, calls);
            self.arguments.emit(self.json.certain(), calls);
            match need? {
                Step::Continue => {}
                Step::NeedText => return Ok(Progress::Open),
                Step::Done(end) => {
                    std::mem::take(&mut self.arguments).complete(&self.name, self.json.certain(), calls)?;
                    return Ok(Progress::Complete(end));
                }
            }
        }
    }

    /// A value without its closing marker ends with its call; an unterminated string does not contain the
    /// markers after it.
    fn finish(&mut self, text: &str, calls: &mut CallSink<'_>) -> Result<usize, Fault> {
        if let State::Value(reader) = &mut self.state
            && reader.json.take().is_some()
        {
            reader.searched = reader.start;
            if let Progress::Complete(end) = self.read(text, calls)? {
                return Ok(end);
            }
            return self.finish(text, calls);
        }
        let State::Value(reader) = std::mem::replace(&mut self.state, State::Parameter) else {
            return Err(Fault::unfinished());
        };
        let end = reader.held.ok_or_else(Fault::unfinished)?;
        self.end_value(text, reader, end, 0)?;
        match self.read(text, calls)? {
            Progress::Complete(end) => Ok(end),
            Progress::Open | Progress::Answer(_) => Err(Fault::unfinished()),
        }
    }

    fn position(&self) -> usize {
        self.at
    }
}

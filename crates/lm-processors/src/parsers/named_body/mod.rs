//! Calls that start with their name: NAME, then the arguments as a JSON object.

mod arguments;
mod name;
mod word;

use lm_template::ToolCall;
use serde_json::{Map, Value};

use self::arguments::JsonArguments;
use self::name::CallName;
use self::word::{MAX_WORD_BYTES, WordEnd, check_word};
use super::body_reader::{BodyReader, NEED_TEXT, Progress, Step, check_length};
use super::call_sink::CallSink;
use super::code_fence::{FENCE, fence};
use super::fault::Fault;
use super::json_mend::read_json;
use super::marker_scan::{Prefix, prefix};
use super::recovery::{Departure, Tolerance};
use super::tools::Tools;
use crate::declared_names::Declared;
use crate::dialect::{NamedCall, NamedId};
use crate::marker_guard::unguarded;
use crate::values::PythonArguments;

/// Texts that end a call's name.
pub(super) fn name_ends(syntax: &NamedCall) -> Vec<&'static str> {
    let mut ends = match syntax.id {
        NamedId::NameAndIndex => return vec![":"],
        NamedId::After(marker) => vec![syntax.after_name, marker, syntax.other.1, "{"],
        NamedId::None => vec![syntax.after_name, syntax.other.1, "{"],
    };
    ends.retain(|end| !end.is_empty());
    ends
}

/// Reader of [`CallBody::Named`](crate::dialect::CallBody::Named).
#[derive(Debug)]
pub(crate) struct NamedBody {
    syntax: NamedCall,
    tools: Tools,
    tolerance: Tolerance,
    /// Closing marker that may replace the arguments; empty if none may.
    close: &'static str,
    /// True if the arguments are in a code block.
    fenced: bool,
    at: usize,
    call: CallName,
    state: State,
}

/// The part being read.
#[derive(Debug)]
enum State {
    /// The prefix of the name, and a declared name after it.
    Start,
    /// The name, after the declared one at the start, if any, with its end.
    Name(Option<(String, usize)>),
    /// The id, from this byte on.
    Id(usize),
    BeforeArguments,
    Arguments(JsonArguments),
    /// Arguments written as a Python literal.
    PythonArguments {
        start: usize,
        literal: PythonArguments,
    },
    AfterArguments,
}

impl NamedBody {
    pub(crate) fn new(syntax: NamedCall, close: &'static str, tools: Tools, tolerance: Tolerance) -> Self {
        Self {
            syntax,
            tools,
            tolerance,
            close: if tolerance.accepts(Departure::Unclosed) { close } else { "" },
            fenced: false,
            at: 0,
            call: CallName::default(),
            state: State::Start,
        }
    }

    /// Skips the prefix before the name, and matches a declared name after it.
    fn start(&mut self, text: &str) -> Result<Step, Fault> {
        if self.at == 0 {
            let (rest, prefixes) = (text.trim_start(), [self.syntax.before_name, self.syntax.other.0]);
            if let Some(found) = prefixes.iter().find(|marker| prefix(rest, marker) == Prefix::Found) {
                self.at = text.len() - rest.len() + found.len();
            } else if text.len() <= MAX_WORD_BYTES
                && prefixes.iter().any(|marker| prefix(rest, marker) == Prefix::Partial)
            {
                return Ok(NEED_TEXT);
            }
        }
        check_word(text)?;
        let rest = text[self.at..].trim_start();
        let found = match self.tools.match_name(rest, &name_ends(&self.syntax)) {
            Declared::Open => return Ok(NEED_TEXT),
            Declared::Found(name) => {
                self.at = text.len() - rest.len() + name.len();
                Some((name.to_owned(), self.at))
            }
            Declared::Absent => None,
        };
        self.state = State::Name(found);
        Ok(Step::Continue(()))
    }

    fn name(&mut self, text: &str, calls: &mut CallSink<'_>) -> Result<Step, Fault> {
        let id_marker = if let NamedId::After(marker) = self.syntax.id { marker } else { "" };
        let mut ends = self.word_ends();
        ends.extend([(WordEnd::Id, id_marker), (WordEnd::Next, self.close)]);
        let Some(word) = word::find(text, 0, &mut self.at, &ends)? else { return Ok(NEED_TEXT) };
        self.fenced |= word.fenced;
        let written = text[..self.at].trim_end();
        let declared = match &mut self.state {
            State::Name(declared) => declared.take(),
            _ => None,
        };
        let declared = declared.and_then(|(name, end)| {
            CallName::declared(name, word.text, written.get(end..).unwrap_or_default(), &self.syntax)
        });
        self.call = match declared {
            Some(call) => call,
            None => CallName::undeclared(word.text, &self.syntax, &self.tools, self.tolerance)?,
        };
        self.at += word.marker;
        if word.end == WordEnd::Id {
            self.state = State::Id(self.at);
            return Ok(Step::Continue(()));
        }
        self.begin(calls)
    }

    fn id(&mut self, text: &str, start: usize, calls: &mut CallSink<'_>) -> Result<Step, Fault> {
        let ends = self.word_ends();
        let Some(word) = word::find(text, start, &mut self.at, &ends)? else { return Ok(NEED_TEXT) };
        self.fenced |= word.fenced;
        self.call.id = Some(unguarded(word.text).into_owned());
        self.at += word.marker;
        self.begin(calls)
    }

    /// Ends of a name or an id.
    fn word_ends(&self) -> Vec<(WordEnd, &'static str)> {
        let NamedCall { after_name, other, .. } = self.syntax;
        vec![(WordEnd::Marker, after_name), (WordEnd::Marker, other.1), (WordEnd::Next, "{")]
    }

    /// Begins the call, after its name and id.
    fn begin(&mut self, calls: &mut CallSink<'_>) -> Result<Step, Fault> {
        if self.syntax.answer_name == Some(&self.call.name) {
            return Ok(Step::Break(Progress::Answer(self.at)));
        }
        calls.begin(Some(&self.call.name), self.call.id.as_deref())?;
        self.state = State::BeforeArguments;
        Ok(Step::Continue(()))
    }

    fn before_arguments(&mut self, text: &str, calls: &mut CallSink<'_>) -> Result<Step, Fault> {
        let rest = text[self.at..].trim_start();
        self.at = text.len() - rest.len();
        if !self.fenced {
            let Some(len) = fence(rest) else { return Ok(NEED_TEXT) };
            if len > 0 {
                (self.at, self.fenced) = (self.at + len, true);
                return Ok(Step::Continue(()));
            }
        }
        // A declared tool may be called without arguments.
        if self.close.starts_with(['<', '[']) && self.tools.declares(&self.call.name) {
            match prefix(rest, self.close) {
                Prefix::Found => {
                    calls.arguments("{}");
                    self.complete(Map::new(), calls)?;
                    return Ok(Step::Break(Progress::Complete(self.at)));
                }
                Prefix::Partial => return Ok(NEED_TEXT),
                Prefix::Absent => {}
            }
        }
        let Some(object) = rest.strip_prefix('{') else {
            return match rest.is_empty() {
                true => Ok(NEED_TEXT),
                false => Err(Fault::malformed("its arguments are no JSON object")),
            };
        };
        let may_be_python = self.tolerance.accepts(Departure::PythonLiteral);
        self.state = match object.trim_start().chars().next() {
            None if may_be_python => return Ok(NEED_TEXT),
            Some('\'') if may_be_python => {
                State::PythonArguments { start: self.at + 1, literal: PythonArguments::literal('{') }
            }
            _ => State::Arguments(JsonArguments::new(self.at, self.tolerance)),
        };
        Ok(Step::Continue(()))
    }

    fn arguments(&mut self, text: &str, calls: &mut CallSink<'_>) -> Result<Step, Fault> {
        let State::Arguments(arguments) = &mut self.state else { return Ok(NEED_TEXT) };
        let from = self.at;
        let ended = arguments.follow(text, &mut self.at, self.close);
        arguments.emit(&text[from..text.floor_char_boundary(self.at)], calls);
        if !ended? {
            return Ok(NEED_TEXT);
        }
        let object = read_json(&text[arguments.start..self.at], self.tolerance)?;
        self.complete(object, calls)?;
        Ok(Step::Continue(()))
    }

    fn complete(&mut self, arguments: Map<String, Value>, calls: &mut CallSink<'_>) -> Result<(), Fault> {
        let CallName { name, id } = std::mem::take(&mut self.call);
        let mut call = ToolCall::new(name, arguments);
        call.id = id;
        self.state = State::AfterArguments;
        calls.complete(call)
    }

    fn python_arguments(&mut self, text: &str, calls: &mut CallSink<'_>) -> Result<Step, Fault> {
        let State::PythonArguments { start, literal } = &mut self.state else { return Ok(NEED_TEXT) };
        check_length(text)?;
        let ended = literal.follow(&text[*start..]).map_err(Fault::malformed)?;
        let Some(end) = ended else { return Ok(NEED_TEXT) };
        let arguments = read_json(literal.certain(), Tolerance::NONE)?;
        calls.arguments(literal.certain());
        self.at = *start + end;
        self.complete(arguments, calls)?;
        Ok(Step::Continue(()))
    }

    fn after_arguments(&mut self, text: &str) -> Progress {
        let after = match self.syntax.after_arguments.trim() {
            "" if self.fenced => FENCE,
            after => after,
        };
        let rest = text[self.at..].trim_start();
        let at = text.len() - rest.len();
        match prefix(rest, after) {
            Prefix::Found => Progress::Complete(at + after.len()),
            Prefix::Partial => {
                self.at = at;
                Progress::Open
            }
            Prefix::Absent => Progress::Complete(self.at),
        }
    }
}

impl BodyReader for NamedBody {
    fn read(&mut self, text: &str, calls: &mut CallSink<'_>) -> Result<Progress, Fault> {
        loop {
            let step = match self.state {
                State::Start => self.start(text)?,
                State::Name(_) => self.name(text, calls)?,
                State::Id(start) => self.id(text, start, calls)?,
                State::BeforeArguments => self.before_arguments(text, calls)?,
                State::PythonArguments { .. } => self.python_arguments(text, calls)?,
                State::Arguments(_) => self.arguments(text, calls)?,
                State::AfterArguments => Step::Break(self.after_arguments(text)),
            };
            if let Step::Break(progress) = step {
                return Ok(progress);
            }
        }
    }

    fn finish(&mut self, text: &str, _: &mut CallSink<'_>) -> Result<usize, Fault> {
        match self.state {
            State::AfterArguments => Ok(text.len()),
            _ => Err(Fault::unfinished()),
        }
    }

    fn position(&self) -> usize {
        self.at
    }
}

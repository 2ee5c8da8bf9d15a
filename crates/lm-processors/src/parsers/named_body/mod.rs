//! Calls that start with their name: NAME, then the arguments as a JSON object.

mod name;

use lm_template::ToolCall;
use serde_json::{Map, Value};

use self::name::CallName;
use super::body_reader::{BodyReader, MAX_BLOCK_BYTES, NEED_TEXT, Progress, Step, check_length};
use super::call_sink::CallSink;
use super::code_fence::{FENCE, fence};
use super::fault::Fault;
use super::json_mend::{JsonMend, read_json};
use super::json_scan::{JsonScan, JsonStep, UNTERMINATED};
use super::marker_scan::{Prefix, Scan, prefix, scan};
use super::recovery::{Departure, Tolerance};
use super::tools::Tools;
use crate::declared_names::Declared;
use crate::dialect::{NamedCall, NamedId};
use crate::marker_guard::unguarded;
use crate::values::PythonArguments;

/// Maximum length of a name or id.
const MAX_WORD_BYTES: usize = 256;

/// Characters that are invalid in names.
const ODD: &str = "[]{}<>()\"'";

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
    Arguments {
        start: usize,
        scan: JsonScan,
        mend: JsonMend,
    },
    /// Arguments written as a Python literal.
    PythonArguments {
        start: usize,
        literal: PythonArguments,
    },
    AfterArguments,
}

/// End of a name or id.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum WordEnd {
    /// Its end marker.
    Marker,
    /// The id's marker.
    Id,
    /// The text that follows, which is read next: the arguments or the closing marker.
    Next,
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
        let Some((end, word, len)) = self.word(text, 0, id_marker, self.close)? else { return Ok(NEED_TEXT) };
        let written = text[..self.at].trim_end();
        let declared = match &mut self.state {
            State::Name(declared) => declared.take(),
            _ => None,
        };
        let declared = declared.and_then(|(name, end)| {
            CallName::declared(name, word, written.get(end..).unwrap_or_default(), &self.syntax)
        });
        self.call = match declared {
            Some(call) => call,
            None => CallName::undeclared(word, &self.syntax, &self.tools, self.tolerance)?,
        };
        self.at += len;
        if end == WordEnd::Id {
            self.state = State::Id(self.at);
            return Ok(Step::Continue(()));
        }
        self.begin(calls)
    }

    fn id(&mut self, text: &str, start: usize, calls: &mut CallSink<'_>) -> Result<Step, Fault> {
        // Without a name there is no call to end.
        let Some((_, word, len)) = self.word(text, start, "", "")? else { return Ok(NEED_TEXT) };
        self.call.id = Some(unguarded(word).into_owned());
        self.at += len;
        self.begin(calls)
    }

    /// Reads the name or id that starts at `start`, up to its end: the kind of the end, the word, and the
    /// length of its marker. `None` if more text is needed.
    fn word<'t>(
        &mut self,
        text: &'t str,
        start: usize,
        id_marker: &str,
        close: &str,
    ) -> Result<Option<(WordEnd, &'t str, usize)>, Fault> {
        check_word(&text[start..])?;
        let markers = [
            (WordEnd::Marker, self.syntax.after_name),
            (WordEnd::Id, id_marker),
            (WordEnd::Marker, self.syntax.other.1),
            (WordEnd::Next, "{"),
            (WordEnd::Next, close),
        ];
        let (found, end) = match scan(&text[self.at..], &markers, false) {
            Scan::Clear { until } => (None, self.at + until),
            Scan::Found { marker: WordEnd::Next, start, .. } => (Some((WordEnd::Next, 0)), self.at + start),
            Scan::Found { marker, start, len } => (Some((marker, len)), self.at + start),
        };
        let limit = start + MAX_WORD_BYTES;
        let odd = |c: char| c.is_control() && !c.is_whitespace() || ODD.contains(c);
        if let Some(at) = text[self.at..end].find(odd).filter(|at| self.at + at < limit) {
            self.at += at;
            return Err(Fault::malformed("its name has an invalid character"));
        }
        if end > limit {
            self.at = text.floor_char_boundary(limit);
            return Err(Fault::malformed("its name is too long"));
        }
        self.at = end;
        let Some((marker, len)) = found else { return Ok(None) };
        let word = text[start..end].trim();
        // A code block may start at the end of the name.
        let fence =
            word.rfind(FENCE).filter(|at| fence(&word[*at..]).is_none_or(|len| at + len == word.len()));
        self.fenced |= fence.is_some();
        Ok(Some((marker, fence.map_or(word, |at| word[..at].trim_end()), len)))
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
            _ => State::Arguments {
                start: self.at,
                scan: JsonScan::new(self.tolerance),
                mend: JsonMend::new(self.tolerance),
            },
        };
        Ok(Step::Continue(()))
    }

    fn arguments(&mut self, text: &str, calls: &mut CallSink<'_>) -> Result<Step, Fault> {
        let State::Arguments { start, scan, mend } = &mut self.state else { return Ok(NEED_TEXT) };
        let (from, start) = (self.at, *start);
        let mut ended = Ok(false);
        for &byte in &text.as_bytes()[from..] {
            let step = match scan.unterminated_at(&text.as_bytes()[self.at..], self.close) {
                Prefix::Partial => break,
                _ if self.at - start == MAX_BLOCK_BYTES => JsonStep::Invalid("it is too long"),
                Prefix::Found => JsonStep::Invalid(UNTERMINATED),
                Prefix::Absent => scan.step(byte),
            };
            if let JsonStep::Invalid(reason) = step {
                ended = Err(Fault::malformed(reason));
                break;
            }
            self.at += 1;
            if step == JsonStep::Close && scan.depth() == 0 {
                ended = Ok(true);
                break;
            }
        }
        calls.arguments(&mend.push(&text[from..text.floor_char_boundary(self.at)]));
        if !ended? {
            return Ok(NEED_TEXT);
        }
        self.complete(read_json(&text[start..self.at], self.tolerance)?, calls)?;
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

/// Checks that the text from the start of a name or id on is not blank.
fn check_word(text: &str) -> Result<(), Fault> {
    let is_blank = text.len() > MAX_WORD_BYTES && text.trim_start().is_empty();
    if is_blank { Err(Fault::malformed("it has no name")) } else { Ok(()) }
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
                State::Arguments { .. } => self.arguments(text, calls)?,
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

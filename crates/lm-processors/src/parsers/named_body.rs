//! Calls that start with their name: NAME, then the arguments as a JSON object.

use std::sync::Arc;

use lm_template::{ToolCall, ToolSpec};
use serde_json::{Map, Value};

use super::argument_text::{FENCE, fence, names};
use super::body_reader::{BodyReader, MAX_BLOCK_BYTES, Progress};
use super::call_sink::CallSink;
use super::fault::Fault;
use super::json_body::parsed;
use super::json_mend::JsonMend;
use super::json_scan::{JsonScan, JsonStep, Leniency, UNTERMINATED};
use super::marker_scan::{Scan, scan};
use crate::declared_names::{Declared, declared};
use crate::dialect::{CallSyntax, NamedCall, NamedId, Nameless};
use crate::marker_guard::unguarded;
use crate::parser::{ParserOptions, Recovery};
use crate::values::PythonArguments;

/// Maximum length of a name or id.
const MAX_NAME_BYTES: usize = 256;

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
    tools: Arc<[ToolSpec]>,
    /// Closing marker that may replace the arguments; empty if none may.
    close: &'static str,
    recovers: bool,
    /// True if the arguments are in a code block.
    fenced: bool,
    /// The declared name at the start and its end, once decided.
    declared: Option<Option<(String, usize)>>,
    at: usize,
    name: String,
    id: Option<String>,
    part: Part,
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

/// The part being read.
#[derive(Debug)]
enum Part {
    /// The name, from this byte on.
    Name(usize),
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

impl NamedBody {
    /// Creates a reader of calls between the markers of `around`.
    pub(crate) fn new(syntax: NamedCall, around: &'static CallSyntax, options: &ParserOptions) -> Self {
        let recovers = options.recovery == Recovery::On;
        Self {
            syntax,
            tools: options.tools.clone(),
            close: if recovers { around.call.close } else { "" },
            recovers,
            fenced: false,
            declared: None,
            at: 0,
            name: String::new(),
            id: None,
            part: Part::Name(0),
        }
    }

    /// Reads the name or id that starts at `start`, up to its end marker.
    fn word(
        &mut self,
        text: &str,
        start: usize,
        calls: &mut CallSink<'_>,
    ) -> Result<Option<Progress>, Fault> {
        let NamedCall { after_name, other, id, .. } = self.syntax;
        let id_marker = match id {
            NamedId::After(marker) if matches!(self.part, Part::Name(_)) => marker,
            _ => "",
        };
        if !self.pass_prefix(text, start) {
            return Ok(Some(Progress::Open));
        }
        if text.len() > start + MAX_NAME_BYTES && text[start..].trim_start().is_empty() {
            return Err(Fault::malformed("it has no name"));
        }
        if matches!(self.part, Part::Name(_)) && !self.find_declared(text) {
            return Ok(Some(Progress::Open));
        }
        // Without a name there is no call to end.
        let close = if matches!(self.part, Part::Name(_)) { self.close } else { "" };
        let markers = [
            (WordEnd::Marker, after_name),
            (WordEnd::Id, id_marker),
            (WordEnd::Marker, other.1),
            (WordEnd::Next, "{"),
            (WordEnd::Next, close),
        ];
        let (found, end) = match scan(&text[self.at..], &markers, false) {
            Scan::Clear { until } => (None, self.at + until),
            Scan::Found { marker, start, len } => (Some((marker, len)), self.at + start),
        };
        let limit = start + MAX_NAME_BYTES;
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
        let Some((marker, len)) = found else { return Ok(Some(Progress::Open)) };
        let word = text[start..end].trim();
        // A code block may start at the end of the name.
        let fence =
            word.rfind(FENCE).filter(|at| fence(&word[*at..]).is_none_or(|len| at + len == word.len()));
        self.fenced |= fence.is_some();
        let word = fence.map_or(word, |at| word[..at].trim_end());
        match self.part {
            Part::Name(_) => self.named(word, text[..end].trim_end())?,
            _ => self.id = Some(unguarded(word).into_owned()),
        }
        self.at += if marker == WordEnd::Next { 0 } else { len };
        if marker == WordEnd::Id {
            self.part = Part::Id(self.at);
            return Ok(None);
        }
        if self.syntax.answer_name == Some(&self.name) {
            return Ok(Some(Progress::Answer(self.at)));
        }
        calls.begin(Some(&self.name), self.id.as_deref())?;
        self.part = Part::BeforeArguments;
        Ok(None)
    }

    /// Matches a declared name; returns false if more text is needed to decide.
    fn find_declared(&mut self, text: &str) -> bool {
        if self.declared.is_none() {
            let rest = text[self.at..].trim_start();
            let found = match declared(rest, names(&self.tools), &name_ends(&self.syntax)) {
                Declared::Open => return false,
                Declared::Found(name) => {
                    self.at = text.len() - rest.len() + name.len();
                    Some((name.to_owned(), self.at))
                }
                Declared::Absent => None,
            };
            self.declared = Some(found);
        }
        true
    }

    /// Skips the prefix before the name; returns false if more text is needed to decide.
    fn pass_prefix(&mut self, text: &str, start: usize) -> bool {
        if self.at > start || !matches!(self.part, Part::Name(_)) {
            return true;
        }
        let rest = text[start..].trim_start();
        let mut prefixes = [self.syntax.before_name, self.syntax.other.0].into_iter();
        if let Some(prefix) = prefixes.clone().find(|prefix| !prefix.is_empty() && rest.starts_with(prefix)) {
            self.at = text.len() - rest.len() + prefix.len();
            return true;
        }
        let may_be = |prefix: &str| !prefix.is_empty() && prefix.starts_with(rest);
        !prefixes.any(may_be) || text.len() > start + MAX_NAME_BYTES
    }

    /// Sets the name to `word`, or to a declared one that starts there; `text` ends with it.
    fn named(&mut self, word: &str, text: &str) -> Result<(), Fault> {
        let NamedCall { before_name, other, id, nameless, .. } = self.syntax;
        if let Some(Some((name, end))) = self.declared.take() {
            let after = text.get(end..).unwrap_or_default();
            let index = after.strip_prefix(':').filter(|index| index.bytes().all(|b| b.is_ascii_digit()));
            let whole = if id == NamedId::NameAndIndex { index.is_some() } else { after.is_empty() };
            if whole {
                self.id = index.map(|_| word.to_owned());
                self.name = name;
                return Ok(());
            }
        }
        let word = word.strip_prefix(other.0).unwrap_or(word);
        let mut name = word.strip_prefix(before_name).unwrap_or(word).to_owned();
        if id == NamedId::NameAndIndex {
            name = self.name_before_index(&name)?;
            self.id = Some(unguarded(word).into_owned());
        }
        if name.contains(|c: char| c.is_whitespace() || c == '`') {
            return Err(Fault::malformed(format!("`{name}` is no name")));
        }
        if name.is_empty() && nameless == Nameless::Malformed {
            return Err(Fault::malformed("it has no name"));
        }
        self.name = unguarded(&name).into_owned();
        Ok(())
    }

    /// Extracts the name from a word with an index: the part after the last dot, unless a declared tool has
    /// the whole name. An index alone denotes the only tool.
    fn name_before_index(&self, name: &str) -> Result<String, Fault> {
        let is_index = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
        let declared = |name: &str| self.tools.iter().any(|tool| tool.name() == name);
        match (name.rsplit_once(':').filter(|(_, index)| is_index(index)), &*self.tools) {
            (Some((name, _)), _) if declared(name) => Ok(name.to_owned()),
            (Some((name, _)), _) => Ok(name.rsplit_once('.').map_or(name, |(_, last)| last).to_owned()),
            (None, [only]) if is_index(name) => Ok(only.name().to_owned()),
            (None, _) if declared(name) => Ok(name.to_owned()),
            _ if let Some(name) =
                self.recovers.then(|| without_affixes(name)).filter(|name| declared(name)) =>
            {
                Ok(name.to_owned())
            }
            _ => Err(Fault::malformed(format!("`{name}` is no name and index"))),
        }
    }

    fn before_arguments(&mut self, text: &str, calls: &mut CallSink<'_>) -> Result<Option<Progress>, Fault> {
        let rest = text[self.at..].trim_start();
        self.at = text.len() - rest.len();
        if !self.fenced {
            let Some(len) = fence(rest) else { return Ok(Some(Progress::Open)) };
            if len > 0 {
                (self.at, self.fenced) = (self.at + len, true);
                return Ok(None);
            }
        }
        // A declared tool may be called without arguments.
        let is_declared = self.tools.iter().any(|tool| tool.name() == self.name);
        if is_declared && !self.close.is_empty() && self.close.starts_with(['<', '[']) {
            if rest.starts_with(self.close) {
                calls.arguments("{}");
                self.complete(Map::new(), calls)?;
                return Ok(Some(Progress::Complete(self.at)));
            }
            if self.close.starts_with(rest) {
                return Ok(Some(Progress::Open));
            }
        }
        let first_key = rest.strip_prefix('{').map(str::trim_start);
        match rest.bytes().next() {
            None => return Ok(Some(Progress::Open)),
            Some(b'{') if self.recovers && first_key == Some("") => return Ok(Some(Progress::Open)),
            Some(b'{') if self.recovers && first_key.is_some_and(|key| key.starts_with('\'')) => {
                let literal = PythonArguments::literal('{');
                self.part = Part::PythonArguments { start: self.at + 1, literal };
            }
            Some(b'{') => {
                let scan = JsonScan::new(Leniency::of(self.recovers, false));
                self.part = Part::Arguments { start: self.at, scan, mend: JsonMend::default() };
            }
            Some(_) => return Err(Fault::malformed("its arguments are no JSON object")),
        }
        Ok(None)
    }

    fn arguments(&mut self, text: &str, calls: &mut CallSink<'_>) -> Result<Option<Progress>, Fault> {
        let Part::Arguments { start, scan, mend } = &mut self.part else { return Ok(None) };
        let (from, start, recovers) = (self.at, *start, self.recovers);
        let mut emit =
            |new: &str| if recovers { calls.arguments(&mend.push(new)) } else { calls.arguments(new) };
        for &byte in &text.as_bytes()[from..] {
            let rest = &text.as_bytes()[self.at..];
            let may_be_unterminated =
                scan.may_be_unterminated() && self.close.as_bytes().first() == rest.first();
            if may_be_unterminated && self.close.as_bytes().starts_with(rest) && rest.len() < self.close.len()
            {
                break;
            }
            let step = match byte {
                _ if self.at - start == MAX_BLOCK_BYTES => JsonStep::Invalid("it is too long"),
                _ if may_be_unterminated && rest.starts_with(self.close.as_bytes()) => {
                    JsonStep::Invalid(UNTERMINATED)
                }
                byte => scan.step(byte),
            };
            if let JsonStep::Invalid(reason) = step {
                emit(&text[from..self.at]);
                return Err(Fault::malformed(reason));
            }
            self.at += 1;
            if step == JsonStep::Close && scan.depth() == 0 {
                emit(&text[from..self.at]);
                let arguments = parsed(&text[start..self.at], recovers)?;
                self.complete(arguments, calls)?;
                return Ok(None);
            }
        }
        emit(&text[from..self.at]);
        Ok(Some(Progress::Open))
    }

    fn complete(&mut self, arguments: Map<String, Value>, calls: &mut CallSink<'_>) -> Result<(), Fault> {
        let mut call = ToolCall::new(std::mem::take(&mut self.name), arguments);
        call.id = self.id.take();
        self.part = Part::AfterArguments;
        calls.complete(call)
    }

    fn python_arguments(&mut self, text: &str, calls: &mut CallSink<'_>) -> Result<Option<Progress>, Fault> {
        let Part::PythonArguments { start, literal } = &mut self.part else { return Ok(None) };
        if text.len() > MAX_BLOCK_BYTES {
            return Err(Fault::malformed("it is too long"));
        }
        let start = *start;
        let ended = literal.follow(&text[start..]).map_err(Fault::malformed)?;
        let Some(end) = ended else { return Ok(Some(Progress::Open)) };
        let json = literal.certain().to_owned();
        let arguments =
            serde_json::from_str(&unguarded(&json)).map_err(|error| Fault::malformed(error.to_string()))?;
        calls.arguments(&json);
        self.at = start + end;
        self.complete(arguments, calls)?;
        Ok(None)
    }

    fn after_arguments(&mut self, text: &str) -> Progress {
        let after = match self.syntax.after_arguments.trim() {
            "" if self.fenced => FENCE,
            after => after,
        };
        if after.is_empty() {
            return Progress::Complete(self.at);
        }
        let rest = text[self.at..].trim_start();
        let at = text.len() - rest.len();
        if rest.starts_with(after) {
            return Progress::Complete(at + after.len());
        }
        if !after.starts_with(rest) {
            return Progress::Complete(self.at);
        }
        self.at = at;
        Progress::Open
    }
}

/// The name in an id whose separators were lost or replaced: `functions_forecast_1`, `functionsforecast1`.
fn without_affixes(id: &str) -> &str {
    const SEPARATORS: [char; 3] = ['_', '.', ':'];
    let name = id.strip_prefix("functions").map_or(id, |name| name.strip_prefix(SEPARATORS).unwrap_or(name));
    let name = name.trim_end_matches(|c: char| c.is_ascii_digit());
    name.strip_suffix(SEPARATORS).unwrap_or(name)
}

impl BodyReader for NamedBody {
    fn read(&mut self, text: &str, calls: &mut CallSink<'_>) -> Result<Progress, Fault> {
        loop {
            let progress = match self.part {
                Part::Name(start) | Part::Id(start) => self.word(text, start, calls)?,
                Part::BeforeArguments => self.before_arguments(text, calls)?,
                Part::PythonArguments { .. } => self.python_arguments(text, calls)?,
                Part::Arguments { .. } => self.arguments(text, calls)?,
                Part::AfterArguments => Some(self.after_arguments(text)),
            };
            if let Some(progress) = progress {
                return Ok(progress);
            }
        }
    }

    fn finish(&mut self, text: &str, _: &mut CallSink<'_>) -> Result<usize, Fault> {
        match self.part {
            Part::AfterArguments => Ok(text.len()),
            _ => Err(Fault::unfinished()),
        }
    }

    fn position(&self) -> usize {
        self.at
    }
}

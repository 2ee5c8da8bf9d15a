//! Calls in Python syntax.

use super::argument_text::ArgumentText;
use super::body_reader::{BodyReader, NEED_TEXT, Progress, Step, check_length};
use super::call_sink::CallSink;
use super::fault::Fault;
use super::marker_scan::{Prefix, prefix};
use super::tools::{MAX_NAME_BYTES, Tools};
use crate::declared_names::Declared;
use crate::dialect::{PythonCall, PythonList};
use crate::values::{PythonArguments, Schema};

/// Texts that end a call's name.
pub(super) const NAME_ENDS: &[&str] = &["("];

/// Reader of [`CallBody::Python`](crate::dialect::CallBody::Python): calls in brackets, or several in
/// sequence, each on its own line or not. `print(…)` around a call, `default_api.` before its name and
/// `.call` after a declared one are ignored.
#[derive(Debug)]
pub(crate) struct PythonBody {
    list: PythonList,
    close: &'static str,
    tools: Tools,
    state: State,
    /// True if the calls are in brackets.
    bracketed: bool,
    /// True inside of `print(…)`.
    printed: bool,
    /// End of the last complete call; 0 if there is none.
    completed: usize,
    at: usize,
}

#[derive(Debug)]
enum State {
    /// Before the first call.
    Start,
    /// Before a call's name.
    Name,
    /// In the arguments of this tool.
    Arguments { name: String, literal: Box<PythonArguments>, emitted: ArgumentText },
    /// After a call.
    After,
}

impl PythonBody {
    pub(crate) fn new(syntax: PythonCall, close: &'static str, tools: Tools) -> Self {
        Self {
            list: syntax.list,
            close,
            tools,
            state: State::Start,
            bracketed: false,
            printed: false,
            completed: 0,
            at: 0,
        }
    }

    /// Reads the start of the body, or the text between its calls.
    fn between(&mut self, text: &str, calls: &mut CallSink<'_>) -> Result<Step, Fault> {
        let rest = text[self.at..].trim_start();
        self.at = text.len() - rest.len();
        let Some(c) = rest.chars().next() else { return Ok(NEED_TEXT) };
        match &self.state {
            State::Start => {
                self.bracketed = c == '[';
                self.at += usize::from(self.bracketed);
                self.state = State::Name;
                Ok(Step::Continue(()))
            }
            State::After => self.after_call(rest, c),
            State::Name | State::Arguments { .. } => self.call_name(rest, c, calls),
        }
    }

    /// Reads the text after a call: the closing bracket of `print`, another call, or the end.
    fn after_call(&mut self, rest: &str, c: char) -> Result<Step, Fault> {
        match (c, prefix(rest, self.close)) {
            (')', _) if std::mem::take(&mut self.printed) => {}
            _ if self.printed => return Err(Fault::malformed("`print` is not closed")),
            (']', _) if self.bracketed => return Ok(Step::Break(Progress::Complete(self.at + 1))),
            (',', _) => self.state = State::Name,
            _ if self.bracketed => {
                return Err(Fault::malformed(format!("unexpected `{c}` between the calls")));
            }
            (_, Prefix::Found) => return Ok(Step::Break(Progress::Complete(self.at))),
            (_, Prefix::Partial) => return Ok(NEED_TEXT),
            // The driver reads other text.
            _ if !begins_name(c) => return Ok(Step::Break(Progress::Complete(self.completed))),
            _ => {
                self.state = State::Name;
                return Ok(Step::Continue(()));
            }
        }
        self.at += 1;
        Ok(Step::Continue(()))
    }

    fn call_name(&mut self, rest: &str, c: char, calls: &mut CallSink<'_>) -> Result<Step, Fault> {
        if self.completed > 0 && self.bracketed && c == ']' {
            return Ok(Step::Break(Progress::Complete(self.at + 1)));
        }
        match self.tools.match_name(rest, NAME_ENDS) {
            Declared::Found(name) => {
                let name = name.to_owned();
                return self.begin_call(&name, name.len() + 1, calls);
            }
            Declared::Open => return Ok(NEED_TEXT),
            Declared::Absent => {}
        }
        if !begins_name(c) {
            return Err(Fault::malformed(format!("a call cannot begin with `{c}`")));
        }
        let end =
            rest.find(|c: char| !c.is_alphanumeric() && !matches!(c, '_' | '.' | '-')).unwrap_or(rest.len());
        let (name, after) = (&rest[..end], rest[end..].trim_start());
        if end > MAX_NAME_BYTES {
            return Err(Fault::malformed("its name has no end"));
        }
        if after.is_empty() {
            return Ok(NEED_TEXT);
        }
        if !after.starts_with('(') {
            return Err(Fault::malformed(format!("`{name}` is no call")));
        }
        let len = rest.len() - after.len() + 1;
        if name == "print" && self.list == PythonList::Lines && !self.printed {
            self.printed = true;
            self.at += len;
            return Ok(Step::Continue(()));
        }
        let name = name.strip_prefix("default_api.").unwrap_or(name);
        let method = name.strip_suffix(".call").filter(|name| self.tools.declares(name));
        self.begin_call(method.unwrap_or(name), len, calls)
    }

    /// Begins a call; `len` is the length of its name and opening bracket.
    fn begin_call(&mut self, name: &str, len: usize, calls: &mut CallSink<'_>) -> Result<Step, Fault> {
        self.at += len;
        calls.begin(Some(name), None)?;
        let schema = self.tools.schema(name);
        let positional = schema.map(Schema::property_names).unwrap_or_default();
        let keywords = schema.map(Schema::declared_names).unwrap_or_default();
        let literal = Box::new(PythonArguments::new(positional, keywords));
        self.state = State::Arguments { name: name.to_owned(), literal, emitted: ArgumentText::default() };
        Ok(Step::Continue(()))
    }
}

fn begins_name(c: char) -> bool {
    c.is_alphabetic() || c == '_'
}

impl BodyReader for PythonBody {
    fn read(&mut self, text: &str, calls: &mut CallSink<'_>) -> Result<Progress, Fault> {
        check_length(text)?;
        loop {
            let State::Arguments { name, literal, emitted } = &mut self.state else {
                match self.between(text, calls)? {
                    Step::Continue(()) => continue,
                    Step::Break(progress) => return Ok(progress),
                }
            };
            let ended = literal.follow(&text[self.at..]);
            emitted.emit(literal.certain(), calls);
            let Some(end) = ended.map_err(Fault::malformed)? else { return Ok(Progress::Open) };
            std::mem::take(emitted).complete(name, literal.certain(), calls)?;
            self.at += end;
            self.completed = self.at;
            self.state = State::After;
        }
    }

    /// Calls without brackets are complete after the last one.
    fn finish(&mut self, text: &str, _: &mut CallSink<'_>) -> Result<usize, Fault> {
        let complete = matches!(self.state, State::After) && !self.bracketed && !self.printed;
        let rest = text[self.at..].trim();
        if complete && self.close.starts_with(rest) { Ok(text.len()) } else { Err(Fault::unfinished()) }
    }

    fn position(&self) -> usize {
        self.at
    }

    fn completed(&self) -> usize {
        self.completed
    }
}

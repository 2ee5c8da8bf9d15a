//! Calls in Python syntax.

use std::sync::Arc;

use lm_template::ToolSpec;

use super::argument_text::{ArgumentText, names, schema};
use super::body_reader::{BodyReader, MAX_BLOCK_BYTES, Progress};
use super::call_sink::CallSink;
use super::fault::Fault;
use crate::declared_names::{Declared, declared};
use crate::dialect::{PythonCall, PythonList};
use crate::values::{PythonArguments, Schema, SchemaCache};

/// Maximum length of a name; longer text is not a call.
const MAX_NAME_BYTES: usize = 1 << 10;

/// Texts that end a call's name.
pub(super) const NAME_ENDS: &[&str] = &["("];

/// Reader of [`CallBody::Python`](crate::dialect::CallBody::Python): calls in brackets, or several in
/// sequence, each on its own line or not. `print(…)` around a call, `default_api.` before its name and
/// `.call` after a declared one are ignored.
#[derive(Debug)]
pub(crate) struct PythonBody {
    list: PythonList,
    close: &'static str,
    tools: Arc<[ToolSpec]>,
    schemas: Arc<SchemaCache>,
    state: State,
    /// True if the calls are in brackets.
    bracketed: bool,
    printed: bool,
    calls: usize,
    /// End of the last complete call.
    completed: usize,
    at: usize,
    name: String,
    arguments: ArgumentText,
}

#[derive(Debug)]
enum State {
    /// Before the first call.
    Start,
    /// Before a call's name.
    Name,
    Arguments(PythonArguments),
    /// After a call.
    After,
}

enum Step {
    NeedText,
    Continue,
    /// The body ended before this byte.
    Done(usize),
}

impl PythonBody {
    pub(crate) fn new(
        syntax: PythonCall,
        close: &'static str,
        tools: Arc<[ToolSpec]>,
        schemas: Arc<SchemaCache>,
    ) -> Self {
        Self {
            list: syntax.list,
            close,
            tools,
            schemas,
            state: State::Start,
            bracketed: false,
            printed: false,
            calls: 0,
            completed: 0,
            at: 0,
            name: String::new(),
            arguments: ArgumentText::default(),
        }
    }

    fn step(&mut self, text: &str, calls: &mut CallSink<'_>) -> Result<Step, Fault> {
        if let State::Arguments(_) = self.state {
            return self.read_arguments(text, calls);
        }
        let rest = text[self.at..].trim_start();
        self.at = text.len() - rest.len();
        match (&self.state, rest.chars().next()) {
            (_, None) => Ok(Step::NeedText),
            (State::Start, Some('[')) => {
                (self.bracketed, self.state) = (true, State::Name);
                self.at += 1;
                Ok(Step::Continue)
            }
            (State::Start, Some(_)) => {
                self.state = State::Name;
                Ok(Step::Continue)
            }
            (State::After, Some(c)) => self.after_call(rest, c),
            (_, Some(c)) => self.call_name(rest, c, calls),
        }
    }

    /// Reads the text after a call: the closing bracket of `print`, another call, or the end.
    fn after_call(&mut self, rest: &str, c: char) -> Result<Step, Fault> {
        match c {
            ')' if std::mem::take(&mut self.printed) => {}
            _ if self.printed => return Err(Fault::malformed("`print` is not closed")),
            ']' if self.bracketed => return Ok(Step::Done(self.at + 1)),
            ',' => self.state = State::Name,
            _ if self.bracketed => {
                return Err(Fault::malformed(format!("unexpected `{c}` between the calls")));
            }
            _ if !self.close.is_empty() && rest.starts_with(self.close) => return Ok(Step::Done(self.at)),
            _ if self.close.starts_with(rest) => return Ok(Step::NeedText),
            // The driver reads other text.
            _ if !c.is_alphabetic() && c != '_' => return Ok(Step::Done(self.completed)),
            _ => {
                self.state = State::Name;
                return Ok(Step::Continue);
            }
        }
        self.at += 1;
        Ok(Step::Continue)
    }

    fn call_name(&mut self, rest: &str, c: char, calls: &mut CallSink<'_>) -> Result<Step, Fault> {
        if self.calls > 0 && self.bracketed && c == ']' {
            return Ok(Step::Done(self.at + 1));
        }
        let tools = self.tools.clone();
        match declared(rest, names(&tools), NAME_ENDS) {
            Declared::Found(name) => return self.begin_call(name, name.len() + 1, calls),
            Declared::Open => return Ok(Step::NeedText),
            Declared::Absent => {}
        }
        if !c.is_alphabetic() && c != '_' {
            return Err(Fault::malformed(format!("a call cannot begin with `{c}`")));
        }
        let end =
            rest.find(|c: char| !c.is_alphanumeric() && !matches!(c, '_' | '.' | '-')).unwrap_or(rest.len());
        let after = rest[end..].trim_start();
        if end > MAX_NAME_BYTES {
            return Err(Fault::malformed("its name has no end"));
        }
        if after.is_empty() {
            return Ok(Step::NeedText);
        }
        if !after.starts_with('(') {
            return Err(Fault::malformed(format!("`{}` is no call", &rest[..end])));
        }
        let (name, len) = (&rest[..end], rest.len() - after.len() + 1);
        if name == "print" && self.list == PythonList::Lines && !self.printed {
            self.printed = true;
            self.at += len;
            return Ok(Step::Continue);
        }
        let name = name.strip_prefix("default_api.").unwrap_or(name);
        let method = name.strip_suffix(".call").filter(|name| names(&tools).any(|tool| tool == *name));
        self.begin_call(method.unwrap_or(name), len, calls)
    }

    /// Begins a call; `len` is the length of its name and opening bracket.
    fn begin_call(&mut self, name: &str, len: usize, calls: &mut CallSink<'_>) -> Result<Step, Fault> {
        self.at += len;
        self.name = name.to_owned();
        calls.begin(Some(name), None)?;
        let schema = schema(&self.tools, &self.schemas, name);
        let positional = schema.map(Schema::property_names).unwrap_or_default();
        let keywords = schema.map(Schema::declared_names).unwrap_or_default();
        self.state = State::Arguments(PythonArguments::new(positional, keywords));
        Ok(Step::Continue)
    }

    fn read_arguments(&mut self, text: &str, calls: &mut CallSink<'_>) -> Result<Step, Fault> {
        let State::Arguments(arguments) = &mut self.state else { return Ok(Step::Continue) };
        let ended = arguments.follow(&text[self.at..]);
        self.arguments.emit(arguments.certain(), calls);
        let Some(end) = ended.map_err(Fault::malformed)? else { return Ok(Step::NeedText) };
        std::mem::take(&mut self.arguments).complete(&self.name, arguments.certain(), calls)?;
        self.at += end;
        self.completed = self.at;
        self.calls += 1;
        self.state = State::After;
        Ok(Step::Continue)
    }
}

impl BodyReader for PythonBody {
    fn read(&mut self, text: &str, calls: &mut CallSink<'_>) -> Result<Progress, Fault> {
        if text.len() > MAX_BLOCK_BYTES {
            return Err(Fault::malformed("it is too long"));
        }
        loop {
            match self.step(text, calls)? {
                Step::Continue => {}
                Step::NeedText => return Ok(Progress::Open),
                Step::Done(end) => return Ok(Progress::Complete(end)),
            }
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

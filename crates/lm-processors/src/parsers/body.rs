//! What the driver of a reply and the readers of call bodies say to each other.

use std::fmt::Debug;
use std::sync::Arc;

use lm_template::{ToolCall, ToolSpec};

use super::brace_body::{self, BraceBody};
use super::json_body::JsonBody;
use super::named_body::{self, NamedBody};
use super::parameter_body::{self, ParameterBody};
use super::python_body::{self, PythonBody};
use crate::dialect::{CallBody, CallSyntax, Undeclared};
use crate::event::{CallFault, ProcessorEvent};
use crate::parser::ParserOptions;

/// The longest text of a block; a reader of endless text must end.
pub(crate) const MAX_BLOCK_BYTES: usize = 1 << 20;

/// Reads what stands between the opening and the closing marker of a call, while it arrives.
///
/// A reader is made for one block and dropped with it. It decides on certain text only: whatever it reports for a text
/// it also reports when that text comes in other pieces.
pub(crate) trait BodyReader: Debug + Send {
    /// Reads on in `text`, all of the block so far: it begins right after the opening marker (with the body's first
    /// character, where there is no marker) and only grows from one call to the next. The reader remembers how far it
    /// has read, so that the work stays linear.
    ///
    /// # Errors
    /// When this is not a call.
    fn follow(&mut self, text: &str, calls: &mut CallSink<'_>) -> Result<Progress, Fault>;

    /// The reply has ended with `text`, and the last `follow` said [`Progress::Open`]: completes what is complete but
    /// for its last marker, and tells where the body ends.
    ///
    /// # Errors
    /// [`Fault::unfinished`], when that is no whole call.
    fn finish(&mut self, text: &str, calls: &mut CallSink<'_>) -> Result<usize, Fault>;

    /// How many bytes it has read.
    fn position(&self) -> usize;

    /// How many bytes belong to calls that are complete, where a body may hold several.
    fn completed(&self) -> usize {
        0
    }
}

/// How far a block is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Progress {
    /// More must come.
    Open,
    /// The body ended before this byte. Whitespace and the closing marker, which the driver reads, may follow.
    Complete(usize),
    /// This is no call but the answer, which goes on at this byte.
    Answer(usize),
}

/// Why a text is not a call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Fault {
    pub(crate) kind: CallFault,
    pub(crate) reason: String,
}

impl Fault {
    pub(crate) fn malformed(reason: impl Into<String>) -> Self {
        Self { kind: CallFault::Malformed, reason: reason.into() }
    }

    pub(crate) fn unfinished() -> Self {
        Self { kind: CallFault::Unfinished, reason: "it is unfinished".to_owned() }
    }

    pub(crate) fn undeclared(name: &str) -> Self {
        Self { kind: CallFault::Undeclared, reason: format!("there is no tool `{name}`") }
    }
}

/// A new reader for a block of this syntax. Readers that type values by a schema find it among the tools.
pub(crate) fn reader(syntax: &'static CallSyntax, options: &ParserOptions) -> Box<dyn BodyReader> {
    let tools = &options.tools;
    match syntax.body {
        CallBody::Json(json) => Box::new(JsonBody::new(json)),
        CallBody::Named(named) => Box::new(NamedBody::new(named, tools.clone())),
        CallBody::Parameters(call) => Box::new(ParameterBody::new(call, syntax, options)),
        CallBody::Python(call) => Box::new(PythonBody::new(call, syntax.call.close, tools.clone())),
        CallBody::Braces(call) => Box::new(BraceBody::new(call, syntax.call.close, tools.clone())),
    }
}

/// The texts of which one stands after a call's name; none where the name is quoted.
pub(crate) fn name_ends(syntax: &CallSyntax) -> Vec<&'static str> {
    match syntax.body {
        CallBody::Json(_) => vec![],
        CallBody::Named(named) => named_body::name_ends(&named),
        CallBody::Parameters(call) => parameter_body::name_ends(call, syntax.call.close),
        CallBody::Python(_) => python_body::NAME_ENDS.to_vec(),
        CallBody::Braces(_) => vec![brace_body::NAME_END],
    }
}

/// The calls of a reply, as far as they were reported.
#[derive(Debug)]
pub(crate) struct CallState {
    tools: Arc<[ToolSpec]>,
    undeclared: Undeclared,
    /// The number of the next call to begin, or of the one that has begun.
    index: usize,
    begun: bool,
    /// The number of the first call of the block under way.
    first_of_block: usize,
    /// Whether a call of a declared tool has begun in the block under way.
    certain: bool,
}

impl CallState {
    pub(crate) fn new(tools: Arc<[ToolSpec]>, undeclared: Undeclared) -> Self {
        Self { tools, undeclared, index: 0, begun: false, first_of_block: 0, certain: false }
    }

    pub(crate) fn block_begins(&mut self) {
        (self.first_of_block, self.certain) = (self.index, false);
    }

    /// Whether a call of a declared tool has begun in this block.
    pub(crate) fn certain(&self) -> bool {
        self.certain
    }

    /// What has begun ends without becoming a call; gives its number.
    pub(crate) fn give_up(&mut self) -> Option<usize> {
        let index = std::mem::take(&mut self.begun).then_some(self.index);
        self.index += usize::from(index.is_some());
        index
    }

    /// Nothing of this block was a call, and nobody was told that it was.
    pub(crate) fn take_back(&mut self) {
        (self.index, self.begun) = (self.first_of_block, false);
    }

    /// The last `count` calls that began were not reported, and will not be.
    pub(crate) fn take_back_last(&mut self, count: usize) {
        self.index = self.index.saturating_sub(count);
    }
}

/// Where a reader reports calls: it numbers them, and checks their names.
#[derive(Debug)]
pub(crate) struct CallSink<'a> {
    pub(crate) state: &'a mut CallState,
    pub(crate) events: &'a mut Vec<ProcessorEvent>,
}

/// The name under which a tool was declared, where the model writes `functions.` before it.
pub(crate) fn declared_name<'a>(tools: &[ToolSpec], name: &'a str) -> &'a str {
    let declared = |name: &str| tools.iter().any(|tool| tool.name() == name);
    match name.strip_prefix("functions.") {
        Some(bare) if !declared(name) && declared(bare) => bare,
        _ => name,
    }
}

impl CallSink<'_> {
    /// A call has begun. Its name and its id are given when they are known before the arguments.
    pub(crate) fn begin(&mut self, name: Option<&str>, id: Option<&str>) -> Result<(), Fault> {
        let state = &mut *self.state;
        let name = name.map(|name| declared_name(&state.tools, name));
        state.certain |= name.is_some_and(|name| state.tools.iter().any(|tool| tool.name() == name));
        if let Some(name) = name {
            self.check(name)?;
        }
        let (name, id) = (name.map(str::to_owned), id.map(str::to_owned));
        self.events.push(ProcessorEvent::ToolCallStarted { index: self.state.index, name, id });
        self.state.begun = true;
        Ok(())
    }

    /// More of the arguments of the call that has begun: JSON text, as the model wrote it where it writes JSON.
    pub(crate) fn arguments(&mut self, fragment: &str) {
        if !fragment.is_empty() {
            let (index, fragment) = (self.state.index, fragment.to_owned());
            self.events.push(ProcessorEvent::ToolCallArguments { index, fragment });
        }
    }

    /// A call is complete; it is begun here when it was not.
    pub(crate) fn complete(&mut self, mut call: ToolCall) -> Result<(), Fault> {
        call.name = declared_name(&self.state.tools, &call.name).to_owned();
        self.check(&call.name)?;
        if !self.state.begun {
            self.begin(Some(&call.name), call.id.as_deref())?;
        }
        self.events.push(ProcessorEvent::ToolCall { index: self.state.index, call });
        self.state.index += 1;
        self.state.begun = false;
        Ok(())
    }

    fn check(&self, name: &str) -> Result<(), Fault> {
        let CallState { tools, undeclared, .. } = &*self.state;
        let known = tools.is_empty() || tools.iter().any(|tool| tool.name() == name);
        if known || *undeclared == Undeclared::Call { Ok(()) } else { Err(Fault::undeclared(name)) }
    }
}

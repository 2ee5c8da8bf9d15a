//! Interface between the reply parser and the readers of call bodies.

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
use crate::values::SchemaCache;

/// Maximum length of a block, so that endless text ends a reader.
pub(crate) const MAX_BLOCK_BYTES: usize = 1 << 20;

/// Incremental reader of a call's body, between its opening and closing marker.
///
/// A reader is created for one block and dropped with it. It decides on certain text only: its events do not depend on
/// the split of the text.
pub(crate) trait BodyReader: Debug + Send {
    /// Continues with `text`, the whole block so far: it starts right after the opening marker (or with the body's
    /// first character if there is no marker), and only grows between calls. The reader keeps its position, so that the
    /// work is linear.
    ///
    /// # Errors
    /// If this is not a call.
    fn read(&mut self, text: &str, calls: &mut CallSink<'_>) -> Result<Progress, Fault>;

    /// Ends the body at the end of the reply, after the last `read` returned [`Progress::Open`]: completes a call
    /// that lacks only its last marker, and returns the end of the body.
    ///
    /// # Errors
    /// [`Fault::unfinished`] if the call is incomplete.
    fn finish(&mut self, text: &str, calls: &mut CallSink<'_>) -> Result<usize, Fault>;

    /// Number of bytes read.
    fn position(&self) -> usize;

    /// Number of bytes of complete calls, if a body may contain several.
    fn completed(&self) -> usize {
        0
    }
}

/// Progress of a block.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Progress {
    /// Incomplete: more text is needed.
    Open,
    /// The body ended before this byte. Whitespace and the closing marker, which the driver reads, may follow.
    Complete(usize),
    /// The text is the answer, which continues at this byte, and not a call.
    Answer(usize),
}

/// Reason for which a text is not a call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Fault {
    pub(crate) kind: CallFault,
    pub(crate) reason: String,
    /// True if the text is valid, but is no call. It is text of the answer if it has no marker of calls.
    pub(crate) is_text: bool,
}

impl Fault {
    pub(crate) fn malformed(reason: impl Into<String>) -> Self {
        Self { kind: CallFault::Malformed, reason: reason.into(), is_text: false }
    }

    pub(crate) fn not_a_call(reason: impl Into<String>) -> Self {
        Self { is_text: true, ..Self::malformed(reason) }
    }

    pub(crate) fn unfinished() -> Self {
        Self { kind: CallFault::Unfinished, reason: "it is unfinished".to_owned(), is_text: false }
    }

    pub(crate) fn undeclared(name: &str) -> Self {
        Self { kind: CallFault::Undeclared, reason: format!("there is no tool `{name}`"), is_text: false }
    }

    /// A call of an undeclared tool that is text.
    pub(crate) fn text_of_undeclared(name: &str) -> Self {
        Self { is_text: true, ..Self::undeclared(name) }
    }
}

/// Creates a reader for a block of this syntax. Readers that type values by a schema take it from the tools, to which `schemas`
/// belongs.
pub(crate) fn reader(
    syntax: &'static CallSyntax,
    options: &ParserOptions,
    schemas: &Arc<SchemaCache>,
) -> Box<dyn BodyReader> {
    let (tools, schemas) = (options.tools.clone(), schemas.clone());
    match syntax.body {
        CallBody::Json(json) => Box::new(JsonBody::new(json, syntax, options.recovery)),
        CallBody::Named(named) => Box::new(NamedBody::new(named, syntax, options)),
        CallBody::Parameters(call) => Box::new(ParameterBody::new(call, syntax, options, schemas)),
        CallBody::Python(call) => Box::new(PythonBody::new(call, syntax.call.close, tools, schemas)),
        CallBody::Braces(call) => {
            Box::new(BraceBody::new(call, syntax.call.close, tools, schemas, options.recovery))
        }
    }
}

/// Texts that end a call's name; empty if the name is quoted.
pub(crate) fn name_ends(syntax: &CallSyntax) -> Vec<&'static str> {
    match syntax.body {
        CallBody::Json(_) => vec![],
        CallBody::Named(named) => named_body::name_ends(&named),
        CallBody::Parameters(call) => parameter_body::name_ends(call, syntax.call.close),
        CallBody::Python(_) => python_body::NAME_ENDS.to_vec(),
        CallBody::Braces(_) => vec![brace_body::NAME_END],
    }
}

/// State of the calls of a reply, as reported.
#[derive(Debug)]
pub(crate) struct CallState {
    tools: Arc<[ToolSpec]>,
    undeclared: Undeclared,
    /// Index of the current call, or of the next if none has begun.
    index: usize,
    begun: bool,
    /// Index of the first call of the current block.
    first_of_block: usize,
    /// True if a call of a declared tool has begun in the current block.
    certain: bool,
    /// True if the name must tell the current block from other text: it lacks a marker.
    by_name: bool,
}

impl CallState {
    pub(crate) fn new(tools: Arc<[ToolSpec]>, undeclared: Undeclared) -> Self {
        Self { tools, undeclared, index: 0, begun: false, first_of_block: 0, certain: false, by_name: false }
    }

    pub(crate) fn block_begins(&mut self, by_name: bool) {
        (self.first_of_block, self.certain, self.by_name) = (self.index, false, by_name);
    }

    /// Returns true if a call of a declared tool has begun in this block.
    pub(crate) fn certain(&self) -> bool {
        self.certain
    }

    /// Abandons the current call; returns its index if it was begun.
    pub(crate) fn abandon(&mut self) -> Option<usize> {
        let index = std::mem::take(&mut self.begun).then_some(self.index);
        self.index += usize::from(index.is_some());
        index
    }

    /// Rolls back to the start of the block, if none of its calls was reported.
    pub(crate) fn rollback(&mut self) {
        (self.index, self.begun) = (self.first_of_block, false);
    }

    /// Reverts the last `count` calls, which were begun but not reported.
    pub(crate) fn rollback_last(&mut self, count: usize) {
        self.index = self.index.saturating_sub(count);
    }
}

/// Sink of a reader's calls: numbers them and checks their names.
#[derive(Debug)]
pub(crate) struct CallSink<'a> {
    pub(crate) state: &'a mut CallState,
    pub(crate) events: &'a mut Vec<ProcessorEvent>,
}

/// Declared name of a tool, without a `functions.` prefix that the model adds.
pub(crate) fn declared_name<'a>(tools: &[ToolSpec], name: &'a str) -> &'a str {
    let declared = |name: &str| tools.iter().any(|tool| tool.name() == name);
    match name.strip_prefix("functions.") {
        Some(bare) if !declared(name) && declared(bare) => bare,
        _ => name,
    }
}

impl CallSink<'_> {
    /// Begins a call. Name and id are given if known before the arguments.
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

    /// Emits a fragment of the current call's arguments: JSON text, verbatim if the model writes JSON.
    pub(crate) fn arguments(&mut self, fragment: &str) {
        if !fragment.is_empty() {
            let (index, fragment) = (self.state.index, fragment.to_owned());
            self.events.push(ProcessorEvent::ToolCallArguments { index, fragment });
        }
    }

    /// Completes a call, and begins it first if necessary.
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
        let CallState { tools, undeclared, by_name, .. } = &*self.state;
        let known = tools.is_empty() || tools.iter().any(|tool| tool.name() == name);
        match undeclared {
            _ if known => Ok(()),
            _ if *by_name => Err(Fault::text_of_undeclared(name)),
            Undeclared::Call => Ok(()),
            Undeclared::Malformed => Err(Fault::undeclared(name)),
            Undeclared::Text => Err(Fault::text_of_undeclared(name)),
        }
    }
}

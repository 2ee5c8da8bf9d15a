//! Sink of the calls of a reply: their numbers, names and events.

use lm_template::ToolCall;

use super::fault::Fault;
use super::tools::Tools;
use crate::dialect::Undeclared;
use crate::event::ProcessorEvent;

/// State of the calls of a reply, as reported.
#[derive(Debug)]
pub(crate) struct CallState {
    tools: Tools,
    undeclared: Undeclared,
    /// Index of the current call, or of the next if none has started.
    index: usize,
    started: bool,
    /// Index of the first call of the current block.
    first_of_block: usize,
    /// True if a call of a declared tool has started in the current block.
    certain: bool,
    /// True if only the name distinguishes the current block from text: it lacks a marker.
    by_name: bool,
}

impl CallState {
    pub(crate) fn new(tools: Tools, undeclared: Undeclared) -> Self {
        Self {
            tools,
            undeclared,
            index: 0,
            started: false,
            first_of_block: 0,
            certain: false,
            by_name: false,
        }
    }

    pub(crate) fn block_begins(&mut self, by_name: bool) {
        (self.first_of_block, self.certain, self.by_name) = (self.index, false, by_name);
    }

    /// Returns true if a call of a declared tool has started in this block.
    pub(crate) fn certain(&self) -> bool {
        self.certain
    }

    /// Abandons the current call; returns its index if it was started.
    pub(crate) fn abandon(&mut self) -> Option<usize> {
        let index = std::mem::take(&mut self.started).then_some(self.index);
        self.index += usize::from(index.is_some());
        index
    }

    /// Rolls back to the start of the block, if none of its calls was reported.
    pub(crate) fn rollback(&mut self) {
        (self.index, self.started) = (self.first_of_block, false);
    }

    /// Reverts the last `count` calls, which were started but not reported.
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

impl CallSink<'_> {
    /// Begins a call. Name and id are given if known before the arguments.
    pub(crate) fn begin(&mut self, name: Option<&str>, id: Option<&str>) -> Result<(), Fault> {
        let state = &mut *self.state;
        let name = name.map(|name| state.tools.declared_name(name));
        state.certain |= name.is_some_and(|name| state.tools.declares(name));
        if let Some(name) = name {
            self.check(name)?;
        }
        let (name, id) = (name.map(str::to_owned), id.map(str::to_owned));
        self.events.push(ProcessorEvent::ToolCallStarted { index: self.state.index, name, id });
        self.state.started = true;
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
        call.name = self.state.tools.declared_name(&call.name).to_owned();
        self.check(&call.name)?;
        if !self.state.started {
            self.begin(Some(&call.name), call.id.as_deref())?;
        }
        self.events.push(ProcessorEvent::ToolCall { index: self.state.index, call });
        self.state.index += 1;
        self.state.started = false;
        Ok(())
    }

    fn check(&self, name: &str) -> Result<(), Fault> {
        let CallState { tools, undeclared, by_name, .. } = &*self.state;
        let known = tools.is_empty() || tools.declares(name);
        match undeclared {
            _ if known => Ok(()),
            _ if *by_name => Err(Fault::text_of_undeclared(name)),
            Undeclared::Call => Ok(()),
            Undeclared::Malformed => Err(Fault::undeclared(name)),
            Undeclared::Text => Err(Fault::text_of_undeclared(name)),
        }
    }
}

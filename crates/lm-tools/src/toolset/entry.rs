//! A tool of a toolset.

use super::Toolset;
use crate::annotations::ToolAnnotations;
use crate::context::States;
use crate::error::{Error, Result};
use crate::execution::RetryPolicy;
use crate::tool::Tool;
use crate::validation::ArgumentSchema;
use lm_template::ToolSpec;
use serde_json::Value;
use std::sync::Arc;
use std::time::Duration;

/// A tool with its properties.
#[derive(Clone)]
pub(crate) struct Entry {
    pub(super) spec: ToolSpec,
    pub(super) schema: Arc<ArgumentSchema>,
    pub(crate) timeout: Option<Duration>,
    pub(crate) retries: Option<RetryPolicy>,
    pub(crate) is_sequential: bool,
    pub(crate) annotations: ToolAnnotations,
    pub(super) output_schema: Option<Value>,
    /// States of the toolset that it was added to.
    pub(crate) states: States,
    /// The caller runs it.
    pub(super) is_external: bool,
    pub(crate) tool: Arc<dyn Tool>,
}

impl Entry {
    fn new(tool: Arc<dyn Tool>, states: &States) -> Result<Self> {
        let spec = tool.spec();
        if let Some(missing) = tool.states().into_iter().find(|&state| !states.has(state)) {
            return Err(Error::MissingState { tool: spec.name().to_owned(), state: missing });
        }
        Ok(Self {
            schema: Arc::new(ArgumentSchema::compile(&spec)?),
            spec,
            timeout: tool.timeout(),
            retries: tool.retries(),
            is_sequential: tool.is_sequential(),
            annotations: tool.annotations(),
            output_schema: tool.output_schema(),
            states: states.clone(),
            is_external: false,
            tool,
        })
    }
}

impl Toolset {
    pub(super) fn with_tool(self, tool: Arc<dyn Tool>) -> Result<Self> {
        let entry = Entry::new(tool, &self.states)?;
        self.with_entry(Arc::new(entry))
    }

    pub(super) fn with_entry(mut self, entry: Arc<Entry>) -> Result<Self> {
        if self.entry(entry.spec.name()).is_some() {
            return Err(Error::DuplicateTool { name: entry.spec.name().to_owned() });
        }
        self.entries.push(entry);
        Ok(self)
    }

    pub(super) fn mark_last_external(&mut self) {
        if let Some(entry) = self.entries.last_mut() {
            Arc::make_mut(entry).is_external = true;
        }
    }
}

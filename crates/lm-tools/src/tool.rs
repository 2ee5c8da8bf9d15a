//! The trait of callable tools.

use crate::annotations::ToolAnnotations;
use crate::context::{CallContext, StateType};
use crate::execution::RetryPolicy;
use crate::tool_error::ToolError;
use lm_template::ToolSpec;
use serde_json::{Map, Value};
use std::fmt;
use std::pin::Pin;
use std::time::Duration;

/// Future of a tool's result.
pub type ToolFuture = Pin<Box<dyn Future<Output = Result<Value, ToolError>> + Send>>;

/// A function that a model can call.
///
/// [`#[tool]`](macro@crate::tool) implements it for a function, [`Toolset::with_fn`](crate::Toolset::with_fn)
/// for a declaration and a closure; implement it directly for a tool with a schema made at run time.
pub trait Tool: Send + Sync {
    /// Returns the declaration that the model reads: name, description and the JSON schema of the arguments.
    /// Called once, when the tool is added to a [`Toolset`](crate::Toolset).
    fn spec(&self) -> ToolSpec;

    /// Runs the tool. A [`Toolset`](crate::Toolset) passes only arguments that are valid for the schema of
    /// [`spec`](Self::spec), and calls it on its own thread. An error is a message for the model, instead of
    /// a result.
    ///
    /// A result that is a list of `{"type": "text", "text": …}` and of `{"type": "image", "blob": …}` or
    /// `{"type": "audio", "blob": …}`, with the base64 of a file, shows the images and audio to a model that
    /// reads them; other models read notes in their places. A `mime_type` may be beside the `blob`.
    fn call(&self, arguments: Map<String, Value>, context: &CallContext) -> ToolOutput;

    /// Returns true if [`call`](Self::call) returns a future at once, so that it needs no thread. Default
    /// false.
    fn is_async(&self) -> bool {
        false
    }

    /// Types of the [states](crate::State) that the tool needs: a toolset without them refuses the tool.
    /// Default: none.
    fn states(&self) -> Vec<StateType> {
        Vec::new()
    }

    /// Time limit of a call, in place of [`CallLimits::timeout`](crate::CallLimits::timeout). Default `None`:
    /// the toolset's limit.
    fn timeout(&self) -> Option<Duration> {
        None
    }

    /// Retries of a call, in place of [`CallLimits::retries`](crate::CallLimits::retries), read once, when
    /// the tool is added. Default `None`: the toolset's policy.
    fn retries(&self) -> Option<RetryPolicy> {
        None
    }

    /// Returns true if the tool never runs at the same time as another call of the reply: it starts after the
    /// calls before it have their results, and later calls start when it has its own. Read once, when the
    /// tool is added. Default false.
    fn is_sequential(&self) -> bool {
        false
    }

    /// Hints about the tool's effects, read once, when it is added. Default: none.
    fn annotations(&self) -> ToolAnnotations {
        ToolAnnotations::default()
    }

    /// JSON schema of the result, read once, when the tool is added. Default `None`: not described.
    fn output_schema(&self) -> Option<Value> {
        None
    }
}

/// Result of [`Tool::call`]: ready, or a future.
pub enum ToolOutput {
    /// The result.
    Ready(Result<Value, ToolError>),
    /// A future of the result. Dropping it cancels the call.
    Pending(ToolFuture),
}

impl ToolOutput {
    /// Boxes a future.
    pub fn pending(future: impl Future<Output = Result<Value, ToolError>> + Send + 'static) -> Self {
        Self::Pending(Box::pin(future))
    }

    /// Waits for the result, on this thread.
    ///
    /// # Errors
    /// Those of the tool.
    pub fn wait(self) -> Result<Value, ToolError> {
        match self {
            Self::Ready(result) => result,
            Self::Pending(future) => pollster::block_on(future),
        }
    }
}

impl From<Result<Value, ToolError>> for ToolOutput {
    fn from(result: Result<Value, ToolError>) -> Self {
        Self::Ready(result)
    }
}

impl fmt::Debug for ToolOutput {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Ready(result) => f.debug_tuple("Ready").field(result).finish(),
            Self::Pending(_) => f.debug_tuple("Pending").finish_non_exhaustive(),
        }
    }
}

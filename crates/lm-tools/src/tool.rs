//! The trait of everything that a model can call.

use crate::ToolError;
use lm_template::ToolSpec;
use serde_json::{Map, Value};

/// A function that a model can call.
///
/// [`#[tool]`](macro@crate::tool) writes this for a function, [`Toolset::with_fn`](crate::Toolset::with_fn) for a
/// declaration and a closure; implement it for a tool that keeps state.
pub trait Tool: Send + Sync {
    /// What the model reads: name, description and the JSON schema of the arguments. Asked once, when the tool joins
    /// a [`Toolset`](crate::Toolset).
    fn spec(&self) -> ToolSpec;

    /// Runs the tool. Within a [`Toolset`](crate::Toolset) the arguments fit the schema of [`spec`](Self::spec).
    ///
    /// # Errors
    /// What the model should read in place of a result.
    fn call(&self, arguments: Map<String, Value>) -> Result<Value, ToolError>;
}

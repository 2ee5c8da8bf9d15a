//! The trait of callable tools.

use crate::ToolError;
use lm_template::ToolSpec;
use serde_json::{Map, Value};

/// A function that a model can call.
///
/// [`#[tool]`](macro@crate::tool) implements it for a function, [`Toolset::with_fn`](crate::Toolset::with_fn) for a
/// declaration and a closure; implement it directly for a tool with state.
pub trait Tool: Send + Sync {
    /// Returns the declaration that the model reads: name, description and the JSON schema of the arguments. Called
    /// once, when the tool is added to a [`Toolset`](crate::Toolset).
    fn spec(&self) -> ToolSpec;

    /// Runs the tool. A [`Toolset`](crate::Toolset) passes only arguments that are valid for the schema of
    /// [`spec`](Self::spec).
    ///
    /// # Errors
    /// An error message for the model, instead of a result.
    fn call(&self, arguments: Map<String, Value>) -> Result<Value, ToolError>;
}

//! Checks of a call before it runs.

use super::{Entry, Toolset};
use crate::coercion::coerce;
use crate::{Coerced, Coercion, ToolError, ToolErrorKind};
use lm_template::ToolCall;
use serde_json::{Map, Value};
use std::sync::Arc;

/// A call that may run.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct CheckedCall {
    /// The arguments that the tool gets.
    pub arguments: Map<String, Value>,
    /// Arguments that were converted ([`Toolset::with_coercion`]).
    pub coerced: Vec<Coerced>,
    /// The caller runs the tool ([`Toolset::with_external`]).
    pub is_external: bool,
}

impl Toolset {
    /// Validates a call without running it.
    ///
    /// # Errors
    /// When there is no such tool, or each invalid argument, with the expected value: the text that the model would read.
    pub fn check(&self, call: &ToolCall) -> Result<CheckedCall, ToolError> {
        self.checked_entry(call).map(|(_, checked)| checked)
    }

    /// Returns the tool of a call, and replaces the arguments by those that it gets.
    pub(crate) fn checked(&self, call: &mut ToolCall) -> Result<Arc<Entry>, ToolError> {
        let (entry, checked) = self.checked_entry(call)?;
        if !checked.coerced.is_empty() {
            let coerced: Vec<String> = checked.coerced.iter().map(ToString::to_string).collect();
            tracing::warn!(tool = call.name, coerced = coerced.join(", "), "arguments were converted");
        }
        call.arguments = checked.arguments;
        Ok(entry)
    }

    fn checked_entry(&self, call: &ToolCall) -> Result<(Arc<Entry>, CheckedCall), ToolError> {
        let unknown = || ToolError::new(ToolErrorKind::UnknownTool, "Tool not found");
        let entry = self.entry(&call.name).ok_or_else(unknown)?;
        let given = Value::Object(call.arguments.clone());
        let (arguments, coerced) = match entry.schema.check(&given) {
            Ok(()) => (given, Vec::new()),
            Err(error) => match self.coercion {
                Coercion::Off => return Err(error.cut()),
                Coercion::On => {
                    let (converted, coerced) = coerce(entry.schema.parameters(), given);
                    entry.schema.check(&converted).map_err(|_| error.cut())?;
                    (converted, coerced)
                }
            },
        };
        let Value::Object(arguments) = arguments else {
            return Err(ToolError::failed("the arguments are not an object"));
        };
        let is_external = entry.is_external;
        Ok((entry.clone(), CheckedCall { arguments, coerced, is_external }))
    }
}

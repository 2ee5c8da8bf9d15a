//! Checks of a call before it runs.

use super::{Entry, Toolset};
use crate::coercion::coerce;
use crate::coercion::{Coerced, Coercion};
use crate::execution::is_shallow;
use crate::tool_error::{ToolError, ToolErrorKind};
use lm_template::ToolCall;
use serde_json::{Map, Value};
use std::sync::Arc;

/// A checked call.
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
    /// The text that the model would read: an unknown tool, or each invalid argument with the expected value.
    pub fn check(&self, call: &ToolCall) -> Result<CheckedCall, ToolError> {
        self.checked_entry(call).map(|(_, checked)| checked)
    }

    /// Returns the tool of a call, and replaces the arguments by the converted ones.
    pub(crate) fn checked(&self, call: &mut ToolCall) -> Result<Arc<Entry>, ToolError> {
        let (entry, checked) = self.checked_entry(call)?;
        if !checked.coerced.is_empty() {
            tracing::warn!(tool = call.name, coerced = paths(&checked.coerced), "arguments were converted");
        }
        call.arguments = checked.arguments;
        Ok(entry)
    }

    fn checked_entry(&self, call: &ToolCall) -> Result<(Arc<Entry>, CheckedCall), ToolError> {
        let unknown = || ToolError::new(ToolErrorKind::UnknownTool, "Tool not found");
        let entry = self.entry(&call.name).ok_or_else(unknown)?;
        if call.arguments_text().is_some() {
            let text = "the arguments are not a JSON object";
            return Err(ToolError::new(ToolErrorKind::InvalidArguments, text));
        }
        if !is_shallow(&call.arguments) {
            let text = "the arguments are nested deeper than 128 levels";
            return Err(ToolError::new(ToolErrorKind::InvalidArguments, text));
        }
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

/// Paths of converted arguments, for the log. Their values may be long, or secret.
fn paths(coerced: &[Coerced]) -> String {
    coerced.iter().map(|coerced| coerced.path.as_str()).collect::<Vec<_>>().join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;
    use lm_template::ToolSpec;
    use serde_json::json;

    fn tools() -> Toolset {
        let schema = json!({"type": "object", "properties": {"keys": {"type": "array"}, "x": {}}});
        Toolset::new().with_fn(ToolSpec::new("f", "F.", schema), |_| Ok(1.into())).expect("a tool")
    }

    #[test]
    fn overly_deep_arguments_are_rejected() {
        let nested = |levels| (0..levels).fold(json!(1), |value, _| json!([value]));
        let check =
            |levels| tools().check(&ToolCall::new("f", Map::from_iter([("x".to_owned(), nested(levels))])));
        assert!(check(126).is_ok());
        let error = check(127).expect_err("129 levels with the object and the number");
        assert_eq!(error.kind(), ToolErrorKind::InvalidArguments);
        assert_eq!(error.to_string(), "the arguments are nested deeper than 128 levels");
    }

    #[test]
    fn call_with_cut_arguments_is_rejected() {
        let error = tools().check(&ToolCall::with_arguments_text("f", "{\"x\": 1")).expect_err("a cut call");
        assert_eq!(error.kind(), ToolErrorKind::InvalidArguments);
        assert_eq!(error.to_string(), "the arguments are not a JSON object");
        assert!(tools().check(&ToolCall::with_arguments_text("f", "{\"x\": 1}")).is_ok());
    }

    #[test]
    fn conversion_log_has_no_values() {
        let tools = tools().with_coercion(Coercion::On);
        let call = ToolCall::new("f", Map::from_iter([("keys".to_owned(), json!("s3cret"))]));
        assert_eq!(paths(&tools.check(&call).expect("a list of it").coerced), "/keys");
    }
}

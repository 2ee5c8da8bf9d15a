//! `tools` and `tool_choice` of a request.

use lm_conversation::{Calls, ToolChoice, ToolSpec};
use serde_json::Value;

use super::fields::NAMES;
use crate::client_tools::ClientTools;
use crate::error::{ApiError, Result};
use crate::fields::shown;
use crate::limits::Limits;
use crate::tools::{check_choice, tools};

/// Reads `tools`; tools that run on Anthropic's servers, or that their models know, are left out. A custom
/// tool is a function.
pub(super) fn declared(mut declared: Vec<Value>, limits: &Limits) -> Result<(Vec<ToolSpec>, ClientTools)> {
    for tool in declared.iter_mut().filter_map(Value::as_object_mut) {
        if tool.get("type").is_some_and(|kind| kind == "custom") {
            tool.shift_remove("type");
        }
    }
    tools(declared, &NAMES, limits)
}

/// Reads `tool_choice`: `auto`, `any`, `tool` or `none`, and the number of calls.
pub(super) fn choice(
    choice: &Value,
    tools: &[ToolSpec],
    client: &ClientTools,
) -> Result<(ToolChoice, Calls)> {
    let name = || choice.get("name").and_then(Value::as_str).map(str::to_owned);
    let read = match choice.get("type").and_then(Value::as_str) {
        None if choice.is_null() => Some(ToolChoice::Auto),
        Some("auto") => Some(ToolChoice::Auto),
        Some("any") => Some(ToolChoice::Required),
        Some("none") => Some(ToolChoice::None),
        Some("tool") => name().map(ToolChoice::Named),
        _ => None,
    };
    let read = read.ok_or_else(|| {
        let expected = r#"a `type` of "auto", "any", "none", or "tool" with a `name`"#;
        ApiError::unexpected("tool_choice", shown(choice), expected)
    })?;
    let one = match choice.get("disable_parallel_tool_use") {
        None | Some(Value::Null) => false,
        Some(Value::Bool(one)) => *one,
        Some(other) => {
            let at = "tool_choice.disable_parallel_tool_use";
            return Err(ApiError::unexpected(at, shown(other), "a boolean"));
        }
    };
    Ok((check_choice(read, tools, client)?, if one { Calls::One } else { Calls::Several }))
}

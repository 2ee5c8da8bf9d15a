//! `tools` and `tool_choice` of a request.

use lm_conversation::{ToolChoice, ToolSpec};
use serde_json::Value;

use crate::error::{ApiError, Result};
use crate::error_map;
use crate::fields::{json_type, shown};
use crate::limits::{Limits, at_most};

/// Reads `tools`: function tools with distinct names.
pub(crate) fn tools(tools: Value, limits: &Limits) -> Result<Vec<ToolSpec>> {
    let Value::Array(tools) = tools else {
        let message = format!("`tools` is {}, expected an array", json_type(&tools));
        return Err(ApiError::invalid_param("tools", message));
    };
    at_most("tools", tools.len(), limits.tools, "tools")?;
    let mut specs: Vec<ToolSpec> = Vec::with_capacity(tools.len());
    for (index, tool) in tools.into_iter().enumerate() {
        let spec = tool_spec(tool, index, limits)?;
        if specs.iter().any(|other| other.name() == spec.name()) {
            let message = format!("a tool of the name `{}` is already declared", spec.name());
            return Err(ApiError::invalid_param(format!("tools[{index}].function.name"), message));
        }
        specs.push(spec);
    }
    Ok(specs)
}

fn tool_spec(tool: Value, index: usize, limits: &Limits) -> Result<ToolSpec> {
    let wrong = |path: &str, message: String| {
        Err(ApiError::invalid_param(format!("tools[{index}]{path}"), format!("tool {index}: {message}")))
    };
    if let Some(kind) = tool.get("type").filter(|kind| *kind != "function" && tool.get("function").is_some())
    {
        return wrong(".type", format!("type {} is not supported, only \"function\" is", shown(kind)));
    }
    let spec = ToolSpec::from_json(tool).map_err(|error| {
        let message = error.to_string();
        let place = error_map::template(&error).param.unwrap_or_default();
        let path = place.strip_prefix("tool").unwrap_or_default().to_owned();
        ApiError::invalid_param(format!("tools[{index}]{path}"), message)
    })?;
    let name = spec.name();
    if name.is_empty() || name.len() > limits.tool_name_bytes || name.contains(char::is_control) {
        let expected = format!("expected 1 to {} bytes without control characters", limits.tool_name_bytes);
        return wrong(".function.name", format!("`name` is {}, {expected}", shown(&name.into())));
    }
    if !matches!(spec.parameters(), Value::Null | Value::Object(_)) {
        let got = json_type(spec.parameters());
        return wrong(
            ".function.parameters",
            format!("`parameters` is {got}, expected a JSON schema object"),
        );
    }
    Ok(spec)
}

/// Reads `tool_choice`: `auto`, `required`, `none`, or an object that names a function. Null is `auto`.
///
/// ```
/// use lm_openai::{ToolChoice, tool_choice};
/// use serde_json::json;
///
/// let named = json!({"type": "function", "function": {"name": "get_weather"}});
/// assert_eq!(tool_choice(&named)?, ToolChoice::Named("get_weather".to_owned()));
/// assert_eq!(tool_choice(&json!("required"))?, ToolChoice::Required);
/// assert!(tool_choice(&json!("get_weather")).is_err());
/// # Ok::<(), lm_openai::ApiError>(())
/// ```
///
/// # Errors
/// When the value is none of these.
pub fn tool_choice(choice: &Value) -> Result<ToolChoice> {
    let read = match choice {
        Value::Null => Some(ToolChoice::Auto),
        Value::String(word) => keyword(word),
        named => {
            let name = named.pointer("/function/name").or_else(|| named.get("name")).and_then(Value::as_str);
            name.map(|name| ToolChoice::Named(name.to_owned()))
        }
    };
    read.ok_or_else(|| {
        let expected = r#""auto", "required", "none" or {"type": "function", "function": {"name": …}}"#;
        ApiError::invalid_param(
            "tool_choice",
            format!("`tool_choice` is {}, expected {expected}", shown(choice)),
        )
    })
}

/// Reads a tool choice of a command line: a keyword of [`tool_choice`], or else the name of a tool.
pub fn tool_choice_word(word: &str) -> ToolChoice {
    keyword(word).unwrap_or_else(|| ToolChoice::Named(word.to_owned()))
}

fn keyword(word: &str) -> Option<ToolChoice> {
    match word {
        "auto" => Some(ToolChoice::Auto),
        "required" => Some(ToolChoice::Required),
        "none" => Some(ToolChoice::None),
        _ => None,
    }
}

/// Reads `tool_choice` for the declared tools. The choice `allowed_tools` removes the tools that it does not list.
pub(crate) fn choice_among(choice: &Value, tools: &mut Vec<ToolSpec>) -> Result<ToolChoice> {
    let choice = match choice.get("type").and_then(Value::as_str) {
        Some("allowed_tools") => {
            let allowed = choice.get("allowed_tools").unwrap_or(choice);
            restrict(allowed.get("tools").unwrap_or(&Value::Null), tools)?;
            tool_choice(allowed.get("mode").unwrap_or(&Value::Null))?
        }
        _ => tool_choice(choice)?,
    };
    match &choice {
        ToolChoice::Required | ToolChoice::Named(_) if tools.is_empty() => {
            Err(ApiError::invalid_param("tool_choice", "a tool call is required, but `tools` is empty"))
        }
        ToolChoice::Named(name) if !tools.iter().any(|tool| tool.name() == name) => {
            let message = format!("the tool `{name}` must be called, but is not in `tools`");
            Err(ApiError::invalid_param("tool_choice", message))
        }
        _ => Ok(choice),
    }
}

/// Keeps the tools that `allowed` names.
fn restrict(allowed: &Value, tools: &mut Vec<ToolSpec>) -> Result<()> {
    let wrong = |message: String| ApiError::invalid_param("tool_choice.allowed_tools", message);
    let Value::Array(allowed) = allowed else {
        return Err(wrong(format!("`tools` is {}, expected an array", json_type(allowed))));
    };
    at_most("tool_choice.allowed_tools", allowed.len(), tools.len(), "tools")?;
    let mut names = Vec::with_capacity(allowed.len());
    for tool in allowed {
        match tool_choice(tool) {
            Ok(ToolChoice::Named(name)) if tools.iter().any(|tool| *tool.name() == name) => names.push(name),
            _ => return Err(wrong(format!("{} names no tool of `tools`", shown(tool)))),
        }
    }
    tools.retain(|tool| names.iter().any(|name| name == tool.name()));
    Ok(())
}

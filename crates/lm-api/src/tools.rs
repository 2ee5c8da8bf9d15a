//! Tools of a request, and the choice among them.

use lm_conversation::{ToolChoice, ToolSpec};
use serde_json::Value;

use crate::client_tools::ClientTools;
use crate::error::{ApiError, Result};
use crate::error_map;
use crate::fields::{json_type, shown};
use crate::limits::{Limits, at_most};
use crate::request::FieldNames;

/// Reads `tools`: functions with distinct names, in any form that [`ToolSpec::from_json`] reads, and tools of
/// other kinds, which the second part of the result has.
pub(crate) fn tools(
    tools: Vec<Value>,
    names: &FieldNames,
    limits: &Limits,
) -> Result<(Vec<ToolSpec>, ClientTools)> {
    at_most("tools", tools.len(), limits.tools, "tools")?;
    let mut client = ClientTools::default();
    let functions = client.functions(tools, names.builtin_tools)?;
    at_most("tools", functions.len(), limits.tools, "tools")?;
    let mut specs: Vec<ToolSpec> = Vec::with_capacity(functions.len());
    for (index, tool) in functions {
        let spec = tool_spec(tool, index, names, limits)?;
        if specs.iter().any(|other| other.name() == spec.name()) {
            let message = format!("a tool of the name `{}` is already declared", spec.name());
            return Err(ApiError::invalid_param(format!("tools[{index}].{}", names.tool_name), message));
        }
        specs.push(client.constrained(spec));
    }
    if !client.dropped.is_empty() {
        tracing::warn!(
            kinds = %client.dropped.join(", "),
            "tools of kinds that are not supported are left out"
        );
    }
    Ok((specs, client))
}

fn tool_spec(tool: Value, index: usize, names: &FieldNames, limits: &Limits) -> Result<ToolSpec> {
    let wrong = |path: &str, message: String| {
        Err(ApiError::invalid_param(format!("tools[{index}].{path}"), format!("tool {index}: {message}")))
    };
    let is_function = tool.get("function").is_some();
    let is_named = tool.get("name").is_some();
    if let Some(kind) = tool.get("type").filter(|kind| *kind != "function" && (is_function || !is_named)) {
        return wrong("type", format!("type {} is not supported, only \"function\" is", shown(kind)));
    }
    let spec = ToolSpec::from_json(tool).map_err(|error| {
        let message = error.to_string();
        let place = error_map::template(&error).param.unwrap_or_default();
        let path = place.strip_prefix("tool").unwrap_or_default();
        let path = if is_function && [".name", ".description"].contains(&path) {
            format!(".function{path}")
        } else {
            path.to_owned()
        };
        ApiError::invalid_param(format!("tools[{index}]{path}"), message)
    })?;
    let name = spec.name();
    if name.is_empty() || name.len() > limits.tool_name_bytes || name.contains(char::is_control) {
        let expected = format!("expected 1 to {} bytes without control characters", limits.tool_name_bytes);
        return wrong(names.tool_name, format!("`name` is {}, {expected}", shown(&name.into())));
    }
    if !matches!(spec.parameters(), Value::Null | Value::Object(_)) {
        let got = json_type(spec.parameters());
        return wrong(
            names.tool_schema,
            format!("the schema of the parameters is {got}, expected a JSON schema object"),
        );
    }
    Ok(spec)
}

/// Checks that the choice is possible with these tools.
pub(crate) fn check_choice(
    choice: ToolChoice,
    tools: &[ToolSpec],
    client: &ClientTools,
) -> Result<ToolChoice> {
    let is_declared = |name: &String| tools.iter().any(|tool| tool.name() == name);
    if let ToolChoice::Named(name) = &choice
        && !is_declared(name)
        && let Some(error) = client.left_out(name)
    {
        return Err(error);
    }
    match &choice {
        ToolChoice::Required if tools.is_empty() && !client.dropped.is_empty() => {
            let kinds = client.dropped.join(", ");
            let message = format!(
                "a tool call is required, but all of `tools` were left out: their types ({kinds}) run on the servers of an API, or are unknown here"
            );
            Err(ApiError::invalid_param("tool_choice", message))
        }
        ToolChoice::Required | ToolChoice::Named(_) if tools.is_empty() => Err(ApiError::invalid_param(
            "tool_choice",
            "a tool call is required, but `tools` has no function",
        )),
        ToolChoice::Named(name) if !is_declared(name) => {
            let message = format!("the tool `{name}` must be called, but is no function of `tools`");
            Err(ApiError::invalid_param("tool_choice", message))
        }
        _ => Ok(choice),
    }
}

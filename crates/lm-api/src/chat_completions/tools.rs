//! `tool_choice` of a request.

use lm_conversation::{Calls, ToolChoice, ToolSpec, TurnOptions};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Map, Value};

use crate::client_tools::{ClientTools, flat_name};
use crate::error::{ApiError, Result};
use crate::fields::{json_type, shown};
use crate::limits::{Limits, at_most};
use crate::request::FieldNames;
use crate::tools::{check_choice, tools};

/// Reads `tool_choice`: `auto`, `required`, `none`, or an object that names a function. Null is `auto`.
///
/// ```
/// use lm_api::{ToolChoice, tool_choice};
/// use serde_json::json;
///
/// let named = json!({"type": "function", "function": {"name": "get_weather"}});
/// assert_eq!(tool_choice(&named)?, ToolChoice::Named("get_weather".to_owned()));
/// assert_eq!(tool_choice(&json!("required"))?, ToolChoice::Required);
/// assert!(tool_choice(&json!("get_weather")).is_err());
/// # Ok::<(), lm_api::ApiError>(())
/// ```
///
/// # Errors
/// When the value is none of these.
pub fn tool_choice(choice: &Value) -> Result<ToolChoice> {
    let read = match choice {
        Value::Null => Some(ToolChoice::Auto),
        Value::String(word) => keyword(word),
        named => {
            let inner =
                ["/function/name", "/custom/name", "/name"].iter().find_map(|path| named.pointer(path));
            let namespace = named["namespace"].as_str();
            inner.and_then(Value::as_str).map(|name| ToolChoice::Named(flat_name(namespace, name)))
        }
    };
    read.ok_or_else(|| {
        let expected = r#""auto", "required", "none" or {"type": "function", "function": {"name": …}}"#;
        ApiError::unexpected("tool_choice", shown(choice), expected)
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

/// Fields of tools, which chat completions and responses have.
#[derive(Deserialize, JsonSchema)]
pub(crate) struct ToolFields {
    /// Functions that the model may call.
    #[schemars(with = "Option<Vec<Map<String, Value>>>")]
    tools: Option<Vec<Value>>,
    /// Choice among the tools, or a function that must be called.
    #[schemars(extend("anyOf" = [{"enum": ["auto", "required", "none", null]}, {"type": "object"}]))]
    tool_choice: Option<Value>,
    /// Permits several calls in a reply; true if absent.
    parallel_tool_calls: Option<bool>,
}

impl ToolFields {
    /// Adds tools that messages declare, unless they are declared already.
    pub fn with(mut self, more: Vec<Value>) -> Self {
        let tools = self.tools.get_or_insert_default();
        for tool in more {
            let name = declared_name(&tool);
            let is_known = |known: &Value| *known == tool || (name.is_some() && declared_name(known) == name);
            if !tools.iter().any(is_known) {
                tools.push(tool);
            }
        }
        self
    }

    /// The tools, and the choice among them as options of a turn.
    pub fn read(
        self,
        names: &FieldNames,
        limits: &Limits,
    ) -> Result<(Vec<ToolSpec>, ClientTools, TurnOptions)> {
        let (mut tools, client) = tools(self.tools.unwrap_or_default(), names, limits)?;
        let tool_choice = choice_among(&self.tool_choice.unwrap_or_default(), &mut tools, &client)?;
        let calls = if self.parallel_tool_calls.unwrap_or(true) { Calls::Several } else { Calls::One };
        Ok((tools, client, TurnOptions { tool_choice, calls, ..TurnOptions::default() }))
    }
}

fn declared_name(tool: &Value) -> Option<&str> {
    ["/function/name", "/name"].iter().find_map(|path| tool.pointer(path)).and_then(Value::as_str)
}

/// Parses `tool_choice` against the declared `tools`. For `allowed_tools`, tools that are not listed are
/// removed from `tools`.
///
/// # Errors
/// If the value is invalid, or names a tool that is not declared.
fn choice_among(choice: &Value, tools: &mut Vec<ToolSpec>, client: &ClientTools) -> Result<ToolChoice> {
    let choice = match choice.get("type").and_then(Value::as_str) {
        Some("allowed_tools") => {
            let allowed = choice.get("allowed_tools").unwrap_or(choice);
            restrict(allowed.get("tools").unwrap_or(&Value::Null), tools, client)?;
            tool_choice(allowed.get("mode").unwrap_or(&Value::Null))?
        }
        Some(kind) if client.is_builtin(kind) => ToolChoice::Named(kind.to_owned()),
        _ => client.named_left_out(choice).map_or_else(|| tool_choice(choice), Err)?,
    };
    check_choice(choice, tools, client)
}

/// Keeps the tools that `allowed` names.
fn restrict(allowed: &Value, tools: &mut Vec<ToolSpec>, client: &ClientTools) -> Result<()> {
    let wrong = |message: String| ApiError::invalid_param("tool_choice.allowed_tools", message);
    let Value::Array(allowed) = allowed else {
        return Err(wrong(format!("`tools` is {}, expected an array", json_type(allowed))));
    };
    let declared = tools.len() + client.dropped.len();
    at_most("tool_choice.allowed_tools", allowed.len(), declared, "tools")?;
    let is_dropped = |tool: &Value| client.dropped.iter().any(|kind| tool["type"] == **kind);
    let mut names = Vec::with_capacity(allowed.len());
    for tool in allowed.iter().filter(|tool| !is_dropped(tool)) {
        let kind = tool["type"].as_str().filter(|kind| client.is_builtin(kind));
        match kind.map_or_else(|| tool_choice(tool), |kind| Ok(ToolChoice::Named(kind.to_owned()))) {
            Ok(ToolChoice::Named(name)) if tools.iter().any(|tool| *tool.name() == name) => names.push(name),
            _ => return Err(wrong(format!("{} names no tool of `tools`", shown(tool)))),
        }
    }
    tools.retain(|tool| names.iter().any(|name| name == tool.name()));
    Ok(())
}

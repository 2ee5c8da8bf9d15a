//! Tools of other kinds than functions: custom ones, namespaces, and tools that run on the servers of an API.

use std::collections::BTreeMap;

use lm_processors::{lark_pattern, schema_pattern};
use lm_template::{ToolCall, ToolSpec};
use serde_json::{Map, Value, json};

use crate::builtin_tools::BuiltinTool;
use crate::error::{ApiError, Result};
use crate::fields::shown;

/// Keys of a schema in a declaration.
const SCHEMAS: [&str; 4] = ["parameters", "input_schema", "inputSchema", "parametersJsonSchema"];

/// The argument of the function that a custom tool is to the model.
const INPUT: &str = "input";

/// Tools of a request by the kind that the client knows them by. To the model, all are functions.
#[derive(Debug, Clone, Default)]
pub(crate) struct ClientTools {
    /// Types of tools that are left out: they run on the servers of an API, or are unknown.
    pub dropped: Vec<String>,
    /// Names of tools that are left out, with their types.
    dropped_names: BTreeMap<String, String>,
    /// Built-in tools of the API, by their names to the model.
    builtin: BTreeMap<String, &'static BuiltinTool>,
    /// Custom tools, whose input is a text, by name: the patterns of those whose grammar has one.
    custom: BTreeMap<String, Option<String>>,
    /// Paths in the request to the patterns of custom tools, by name.
    definitions: BTreeMap<String, String>,
    /// Names of functions in namespaces: namespace and name.
    namespaces: BTreeMap<String, (String, String)>,
}

/// Kind of a declaration.
enum Kind<'a> {
    Function,
    Custom,
    Namespace(&'a [Value]),
    Builtin(&'static BuiltinTool),
    Unsupported(&'a str),
}

impl<'a> Kind<'a> {
    fn of(tool: &'a Value, builtin: &'static [BuiltinTool]) -> Self {
        let is_function =
            tool.get("function").is_some() || SCHEMAS.iter().any(|key| tool.get(*key).is_some());
        let builtin = || builtin.iter().find(|known| tool["type"] == known.kind);
        match (tool["type"].as_str(), tool["tools"].as_array()) {
            (None | Some("function"), _) => Self::Function,
            (Some("namespace"), Some(tools)) => Self::Namespace(tools),
            _ if is_function => Self::Function,
            (Some("custom"), _) => Self::Custom,
            (Some(kind), _) => builtin().map_or(Self::Unsupported(kind), Self::Builtin),
        }
    }
}

/// Place of a declaration: the index of its tool, and the built-in tools of its API.
#[derive(Clone, Copy)]
struct Place {
    index: usize,
    builtin: &'static [BuiltinTool],
}

/// Format of the input of a custom tool.
enum InputFormat<'a> {
    Text,
    Regex(&'a str),
    Lark(&'a str),
}

impl<'a> InputFormat<'a> {
    /// Reads a `format`, in whose grammar chat completions have an object of their own.
    fn of(format: &'a Value, index: usize) -> Result<Self> {
        let at = |name: &str| format!("tools[{index}].format{name}");
        match format.get("type").unwrap_or(format).as_str() {
            None if format.is_null() => return Ok(Self::Text),
            Some("text") if format.is_object() => return Ok(Self::Text),
            Some("grammar") if format.is_object() => {}
            _ => return Err(ApiError::unexpected(at(""), shown(format), "the type \"text\" or \"grammar\"")),
        }
        let grammar = format.get("grammar").unwrap_or(format);
        let definition = grammar["definition"].as_str().ok_or_else(|| {
            ApiError::unexpected(at(".definition"), shown(&grammar["definition"]), "a string")
        })?;
        match grammar["syntax"].as_str() {
            Some("regex") => Ok(Self::Regex(definition)),
            Some("lark") => Ok(Self::Lark(definition)),
            _ => {
                let syntax = shown(&grammar["syntax"]);
                Err(ApiError::unexpected(at(".syntax"), syntax, "\"regex\" or \"lark\""))
            }
        }
    }
}

impl ClientTools {
    /// Returns the functions that these tools are to the model, each with the index of its tool.
    pub fn functions(
        &mut self,
        tools: Vec<Value>,
        builtin: &'static [BuiltinTool],
    ) -> Result<Vec<(usize, Value)>> {
        let mut functions = Vec::with_capacity(tools.len());
        for (index, tool) in tools.into_iter().enumerate() {
            self.add(tool, None, Place { index, builtin }, &mut functions)?;
        }
        Ok(functions)
    }

    fn add(
        &mut self,
        tool: Value,
        namespace: Option<&str>,
        place: Place,
        functions: &mut Vec<(usize, Value)>,
    ) -> Result<()> {
        let function = match Kind::of(&tool, place.builtin) {
            Kind::Function => tool,
            Kind::Custom => self.custom(&tool, namespace, place.index)?,
            Kind::Builtin(builtin) => {
                self.builtin.insert(builtin.kind.to_owned(), builtin);
                functions.push((place.index, builtin.function()));
                return Ok(());
            }
            Kind::Unsupported(kind) => {
                let names = ["name", "server_label"].iter().filter_map(|key| tool[*key].as_str());
                self.dropped_names.extend(names.map(|name| (flat_name(namespace, name), kind.to_owned())));
                self.dropped.push(kind.to_owned());
                return Ok(());
            }
            Kind::Namespace(tools) => {
                let name = flat_name(namespace, tool["name"].as_str().unwrap_or_default());
                return tools
                    .iter()
                    .try_for_each(|tool| self.add(tool.clone(), Some(&name), place, functions));
            }
        };
        functions.push((place.index, self.in_namespace(function, namespace)));
        Ok(())
    }

    /// The function of a custom tool: its input is its only argument.
    fn custom(&mut self, tool: &Value, namespace: Option<&str>, index: usize) -> Result<Value> {
        let declared = tool.get("custom").unwrap_or(tool);
        let name = declared["name"].as_str().ok_or_else(|| {
            let at = format!("tools[{index}].name");
            ApiError::invalid_param(&at, format!("`{at}` is {}, expected a string", shown(&declared["name"])))
        })?;
        let mut grammar_pattern = None;
        let mut description = declared["description"].as_str().unwrap_or_default().to_owned();
        let mut input = json!({"type": "string", "description": "The input, as text."});
        match InputFormat::of(&declared["format"], index)? {
            InputFormat::Text => {}
            InputFormat::Regex(regex) => {
                let pattern = schema_pattern(regex).unwrap_or_else(|| format!("^(?:{regex})$"));
                input["pattern"] = pattern.into();
                let chat = if declared["format"].get("grammar").is_some() { ".grammar" } else { "" };
                let custom = if tool.get("custom").is_some() { ".custom" } else { "" };
                let path = format!("tools[{index}]{custom}.format{chat}.definition");
                self.definitions.insert(flat_name(namespace, name), path);
            }
            InputFormat::Lark(grammar) => {
                description += &format!("\n\nThe input is a text of this lark grammar:\n{grammar}");
                grammar_pattern = lark_pattern(grammar).and_then(|regex| schema_pattern(&regex));
            }
        }
        self.custom.insert(flat_name(namespace, name), grammar_pattern);
        let schema = json!({
            "type": "object", "properties": {INPUT: input}, "required": [INPUT], "additionalProperties": false,
        });
        let function = json!({"name": name, "description": description.trim_start(), "parameters": schema});
        Ok(json!({"type": "function", "function": function}))
    }

    /// The function under its name in a namespace.
    fn in_namespace(&mut self, mut function: Value, namespace: Option<&str>) -> Value {
        let Some(namespace) = namespace else { return function };
        let path = if function.get("function").is_some() { "/function/name" } else { "/name" };
        if let Some(place) = function.pointer_mut(path)
            && let Some(name) = place.as_str().map(str::to_owned)
        {
            let flat = flat_name(Some(namespace), &name);
            *place = flat.as_str().into();
            self.namespaces.insert(flat, (namespace.to_owned(), name));
        }
        function
    }

    /// Returns true if a built-in tool of this type is declared.
    pub fn is_builtin(&self, kind: &str) -> bool {
        self.builtin.contains_key(kind)
    }

    /// The built-in tool that is a function to the model.
    pub fn builtin(&self, name: &str) -> Option<&'static BuiltinTool> {
        self.builtin.get(name).copied()
    }

    /// Error of a choice of a tool that was left out, by its name or its type; `None` for another one.
    pub fn left_out(&self, name: &str) -> Option<ApiError> {
        let kind = self.dropped_names.get(name).or_else(|| self.dropped.iter().find(|kind| *kind == name))?;
        let message = format!(
            "`tool_choice` names `{name}`, which was left out of `tools`: tools of type `{kind}` run on the servers of an API, or are unknown here"
        );
        Some(ApiError::invalid_param("tool_choice", message))
    }

    /// [`left_out`](Self::left_out) of a choice that names a type instead of a function.
    pub fn named_left_out(&self, choice: &Value) -> Option<ApiError> {
        let kind = choice["type"].as_str().filter(|kind| !["function", "custom"].contains(kind))?;
        let name = ["name", "server_label"].iter().find_map(|key| choice[*key].as_str());
        name.and_then(|name| self.left_out(name)).or_else(|| self.left_out(kind))
    }

    /// Returns true if the tool's input is a text.
    pub fn is_custom(&self, name: &str) -> bool {
        self.custom.contains_key(name)
    }

    /// Path in the request to the pattern of a custom tool's input.
    pub fn definition(&self, name: &str) -> Option<&str> {
        self.definitions.get(name).map(String::as_str)
    }

    /// The declaration with the pattern of its grammar, which its description shows already.
    pub fn constrained(&self, tool: ToolSpec) -> ToolSpec {
        let Some(Some(pattern)) = self.custom.get(tool.name()) else { return tool };
        let mut parameters = tool.parameters().clone();
        parameters["properties"][INPUT]["pattern"] = pattern.as_str().into();
        tool.constrained(parameters)
    }

    /// Returns true if the call of the tool is shown to the client when it is complete.
    pub fn is_whole(&self, name: &str) -> bool {
        self.is_custom(name) || self.is_builtin(name)
    }

    /// Name and namespace by which the client knows a function.
    pub fn client_name<'a>(&'a self, name: &'a str) -> (&'a str, Option<&'a str>) {
        match self.namespaces.get(name) {
            Some((namespace, name)) => (name, Some(namespace)),
            None => (name, None),
        }
    }

    /// Text of a call: the input of a custom tool, or else the arguments as JSON.
    pub fn text(&self, call: &ToolCall) -> String {
        match call.arguments.get(INPUT) {
            Some(Value::String(input)) if self.is_custom(&call.name) => input.clone(),
            _ => Value::Object(call.arguments.clone()).to_string(),
        }
    }
}

/// Name of a function in a namespace, for the model.
pub(crate) fn flat_name(namespace: Option<&str>, name: &str) -> String {
    match namespace {
        None | Some("") => name.to_owned(),
        Some(namespace) if namespace.ends_with("__") => format!("{namespace}{name}"),
        Some(namespace) => format!("{namespace}__{name}"),
    }
}

/// Arguments of a call of a custom tool.
pub(crate) fn custom_arguments(input: &Value) -> Value {
    Value::Object(Map::from_iter([(INPUT.to_owned(), input.clone())]))
}

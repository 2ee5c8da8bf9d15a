//! Forms of tool declarations in common APIs.

use crate::error::Result;
use crate::openapi_schema;
use crate::tool_call::expect_object;
use crate::tool_spec::ToolSpec;
use serde_json::{Map, Value, json};

/// Keys of the arguments' schema: of OpenAI, bare declarations and Gemini; of Anthropic; of the Model Context
/// Protocol; and of Gemini for plain JSON Schema.
const SCHEMA_KEYS: [&str; 4] = ["parameters", "input_schema", "inputSchema", "parametersJsonSchema"];

/// Keys of lists of declarations: Gemini's in both spellings, and the result of `tools/list` in the Model
/// Context Protocol.
const LIST_KEYS: [&str; 3] = ["functionDeclarations", "function_declarations", "tools"];

/// Form of a list of tool declarations in an API. [`ToolSpec::list_from_json`] reads all of them.
///
/// ```
/// use lm_template::{ToolForm, ToolSpec};
/// use serde_json::json;
///
/// let schema = json!({"type": "object", "properties": {"host": {"type": "string"}}});
/// let specs = [ToolSpec::new("ping", "Pings a host.", schema.clone())];
/// let written = ToolForm::Anthropic.declarations(&specs);
/// assert_eq!(written.json, json!([{"name": "ping", "description": "Pings a host.", "input_schema": schema}]));
/// assert_eq!(ToolSpec::list_from_json(written.json)?, specs);
/// # Ok::<(), lm_template::Error>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ToolForm {
    /// OpenAI's chat completions, and most chat templates:
    /// `{"type": "function", "function": {"name", "description", "parameters"}}`.
    OpenAi,
    /// `{"name", "description", "parameters"}`.
    Bare,
    /// Anthropic's messages: `{"name", "description", "input_schema"}`.
    Anthropic,
    /// The Model Context Protocol: `{"name", "description", "inputSchema"}`.
    Mcp,
    /// Gemini: `{"functionDeclarations": [{"name", "description", "parameters"}]}`, with schemas in its
    /// subset of OpenAPI.
    Gemini,
}

/// Written declarations.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Declarations {
    /// An array; for Gemini an object with the key `functionDeclarations`.
    pub json: Value,
    /// Parts of schemas that the form cannot express, and that were omitted: the tool's name, and the JSON
    /// pointer into its parameters, as in `ping#/properties/host/not`. Only Gemini's has any.
    pub dropped: Vec<String>,
}

impl ToolForm {
    /// Writes declarations in this form.
    ///
    /// Gemini's schemas have no `$ref`, `not`, `const` or `enum` of values that are not texts,
    /// `additionalProperties`, `prefixItems`, `uniqueItems`, and other keywords outside of OpenAPI: these are
    /// omitted and listed. A list of types becomes `anyOf` or `nullable`, `oneOf` becomes `anyOf`, the first
    /// of the `examples` becomes `example`.
    pub fn declarations(self, specs: &[ToolSpec]) -> Declarations {
        let mut dropped = Vec::new();
        let written: Vec<Value> = specs.iter().map(|spec| self.declaration(spec, &mut dropped)).collect();
        let json = match self {
            Self::Gemini => json!({"functionDeclarations": written}),
            _ => written.into(),
        };
        Declarations { json, dropped }
    }

    fn declaration(self, spec: &ToolSpec, dropped: &mut Vec<String>) -> Value {
        let parameters = spec.parameters();
        let (key, schema) = match self {
            Self::OpenAi => return spec.to_function_json(),
            Self::Bare => ("parameters", parameters.clone()),
            Self::Anthropic => ("input_schema", object_schema(parameters)),
            Self::Mcp => ("inputSchema", object_schema(parameters)),
            Self::Gemini => ("parameters", openapi_schema::subset(parameters, spec.name(), dropped)),
        };
        let mut declaration = Map::new();
        declaration.insert("name".to_owned(), spec.name().into());
        declaration.insert("description".to_owned(), spec.description().into());
        if !schema.is_null() {
            declaration.insert(key.to_owned(), schema);
        }
        declaration.into()
    }
}

/// Anthropic and the Model Context Protocol require a schema.
fn object_schema(parameters: &Value) -> Value {
    match parameters {
        Value::Null => json!({"type": "object", "properties": {}}),
        parameters => parameters.clone(),
    }
}

impl ToolSpec {
    /// Reads declarations of any [`ToolForm`]: an array of them, one alone, or an object with a list under
    /// `functionDeclarations` or `tools`. An array may hold objects with lists, as Gemini's `tools` does.
    ///
    /// # Errors
    /// As [`from_json`](Self::from_json), for the first declaration that cannot be read.
    pub fn list_from_json(value: Value) -> Result<Vec<Self>> {
        if let Value::Array(list) = value {
            let lists = list.into_iter().map(Self::list_of_object).collect::<Result<Vec<_>>>()?;
            return Ok(lists.into_iter().flatten().collect());
        }
        Self::list_of_object(value)
    }

    fn list_of_object(value: Value) -> Result<Vec<Self>> {
        let mut object = expect_object(value, "tool")?;
        let key = LIST_KEYS.into_iter().find(|key| object.get(*key).is_some_and(Value::is_array));
        match key.and_then(|key| object.shift_remove(key)) {
            Some(Value::Array(list)) => list.into_iter().map(Self::from_json).collect(),
            _ => Ok(vec![Self::from_json(Value::Object(object))?]),
        }
    }
}

/// The schema of a declaration's arguments, and true if the declaration is not in OpenAI's form or a bare
/// one.
pub(crate) fn schema(function: &Map<String, Value>) -> (Value, bool) {
    let Some(key) = SCHEMA_KEYS.into_iter().find(|key| function.contains_key(*key)) else {
        return (Value::Null, false);
    };
    let schema = &function[key];
    match openapi_schema::to_json_schema(schema) {
        Some(converted) => (converted, true),
        None => (schema.clone(), key != "parameters"),
    }
}

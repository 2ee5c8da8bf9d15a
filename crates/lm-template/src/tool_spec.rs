//! A tool declaration.

use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::{Map, Value, json};

use crate::error::{Error, Result};
use crate::tool_call::{expect_object, expect_string};
use crate::tool_form;

/// A tool declaration: name, description, and the JSON schema of the arguments.
///
/// Read from `{"name", "description", "parameters"}` and from `{"type": "function", "function": {…}}`; each
/// is written back unchanged. The forms of other APIs ([`ToolForm`](crate::ToolForm)) are read, too, and
/// written back in the second form.
///
/// ```
/// use lm_template::ToolSpec;
/// use serde_json::json;
///
/// let spec = ToolSpec::from_json(json!({"name": "current_time", "description": "The time."}))?;
/// assert_eq!(spec.to_function_json()["function"]["name"], "current_time");
/// # Ok::<(), lm_template::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq)]
pub struct ToolSpec {
    name: String,
    description: String,
    parameters: Value,
    json: Map<String, Value>,
}

impl ToolSpec {
    /// Creates a declaration; `parameters` is a JSON schema of type `object`.
    pub fn new(name: impl Into<String>, description: impl Into<String>, parameters: Value) -> Self {
        let (name, description) = (name.into(), description.into());
        let mut json = Map::new();
        json.insert("type".to_owned(), "function".into());
        let function = json!({"name": name, "description": description, "parameters": parameters});
        json.insert("function".to_owned(), function);
        Self { name, description, parameters, json }
    }

    /// Creates a declaration for OpenAI's strict mode: with `"strict": true` beside the parameters, which are
    /// as that mode requires them.
    pub fn strict(name: impl Into<String>, description: impl Into<String>, parameters: Value) -> Self {
        let mut spec = Self::new(name, description, parameters);
        if let Some(Value::Object(function)) = spec.json.get_mut("function") {
            function.insert("strict".to_owned(), true.into());
        }
        spec
    }

    /// Adds the JSON schema of the result, under `return` beside the parameters, as `get_json_schema` of
    /// transformers does. Templates see it, other APIs' forms ([`ToolForm`](crate::ToolForm)) omit it.
    ///
    /// ```
    /// use lm_template::ToolSpec;
    /// use serde_json::json;
    ///
    /// let returned = json!({"type": "number", "description": "The temperature."});
    /// let spec = ToolSpec::new("measure", "Measures.", json!({"type": "object", "properties": {}}));
    /// let spec = spec.with_return(returned.clone());
    /// assert_eq!(spec.to_function_json()["function"]["return"], returned);
    /// ```
    #[must_use]
    pub fn with_return(mut self, schema: Value) -> Self {
        match self.json.get_mut("function") {
            Some(Value::Object(function)) => function.insert("return".to_owned(), schema),
            _ => self.json.insert("return".to_owned(), schema),
        };
        self
    }

    /// Reads a declaration in the form of any API; see [`list_from_json`](Self::list_from_json) for lists.
    ///
    /// # Errors
    /// If it is not an object, or name or description are not strings.
    pub fn from_json(value: Value) -> Result<Self> {
        let json = expect_object(value, "tool")?;
        let function = match json.get("function") {
            Some(function) => expect_object(function.clone(), "tool.function")?,
            None => json.clone(),
        };
        let name = function.get("name").cloned();
        let name = name.ok_or_else(|| Error::MissingKey { at: "tool".to_owned(), key: "name" })?;
        let name = expect_string(name, "tool", "name")?;
        let description = match function.get("description") {
            None | Some(Value::Null) => String::new(),
            Some(text) => expect_string(text.clone(), "tool", "description")?,
        };
        let (parameters, is_foreign) = tool_form::schema(&function);
        if is_foreign {
            return Ok(Self::new(name, description, parameters));
        }
        Ok(Self { name, description, parameters, json })
    }

    /// The same declaration under another name.
    #[must_use]
    pub fn with_name(mut self, name: impl Into<String>) -> Self {
        self.name = name.into();
        let value = Value::from(self.name.as_str());
        if let Some(Value::Object(function)) = self.json.get_mut("function") {
            function.insert("name".to_owned(), value);
        } else {
            self.json.insert("name".to_owned(), value);
        }
        self
    }

    /// Replaces the JSON schema that arguments have to fit. The declaration that a template shows is as
    /// before: for constraints that a model need not read.
    #[must_use]
    pub fn constrained(self, parameters: Value) -> Self {
        Self { parameters, ..self }
    }

    /// Name of the tool.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Description of the tool; empty if the declaration has none.
    pub fn description(&self) -> &str {
        &self.description
    }

    /// JSON schema of the arguments; null if the tool takes none.
    pub fn parameters(&self) -> &Value {
        &self.parameters
    }

    /// Writes the declaration in the form it was read, key for key.
    pub fn to_json(&self) -> Value {
        Value::Object(self.json.clone())
    }

    /// Writes the declaration as `{"type": "function", "function": {…}}`, the form most models were trained
    /// with.
    pub fn to_function_json(&self) -> Value {
        if self.json.contains_key("function") {
            return self.to_json();
        }
        let mut function = self.json.clone();
        if function.get("type").is_some_and(|kind| kind == "function") {
            function.shift_remove("type");
        }
        json!({"type": "function", "function": function})
    }
}

impl Serialize for ToolSpec {
    fn serialize<S: Serializer>(&self, serializer: S) -> std::result::Result<S::Ok, S::Error> {
        self.json.serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for ToolSpec {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> std::result::Result<Self, D::Error> {
        Self::from_json(Value::deserialize(deserializer)?).map_err(serde::de::Error::custom)
    }
}

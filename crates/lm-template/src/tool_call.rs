//! A tool call of the model.

use std::fmt;

use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::{Map, Value};

use crate::error::{Error, Result, json_type};
use crate::json_layout::JsonLayout;

const CALL: [&str; 3] = ["id", "type", "function"];
const FUNCTION: [&str; 2] = ["name", "arguments"];

/// A tool call of the model.
///
/// JSON: `{"id"?: …, "type": "function", "function": {"name": …, "arguments": {…}}}`; `arguments` is always
/// written as an object. Also read: the bare form `{"name", "arguments"}`, `args` and `parameters` for
/// `arguments` in it, and arguments that are the JSON text of an object. Unknown keys and key order are kept.
///
/// ```
/// use lm_template::ToolCall;
/// use serde_json::json;
///
/// let call = ToolCall::from_json(json!({"name": "get_weather", "arguments": "{\"location\": \"Paris\"}"}))?;
/// assert_eq!(call.arguments["location"], "Paris");
/// assert_eq!(call.to_json()["function"]["name"], "get_weather");
/// # Ok::<(), lm_template::Error>(())
/// ```
#[derive(Clone, PartialEq)]
pub struct ToolCall {
    /// Links the call to its result; `None` if the model gives none.
    pub id: Option<String>,
    /// Name of the tool.
    pub name: String,
    /// The arguments by name, in the model's order.
    pub arguments: Map<String, Value>,
    layout: Box<Layout>,
}

#[derive(Clone, PartialEq)]
struct Layout {
    call: JsonLayout,
    function: JsonLayout,
}

/// The three fields, and the unknown keys if there are any.
impl fmt::Debug for ToolCall {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { id, name, arguments, layout } = self;
        let arguments = fmt::from_fn(|f| write!(f, "{}", Value::Object(arguments.clone())));
        let mut fields = f.debug_struct("ToolCall");
        fields.field("id", id).field("name", name).field("arguments", &arguments);
        for (name, others) in [("others", &layout.call), ("others_of_function", &layout.function)] {
            if others.unknown().next().is_some() {
                fields.field(name, others);
            }
        }
        fields.finish()
    }
}

impl ToolCall {
    /// Creates a call without an id.
    pub fn new(name: impl Into<String>, arguments: Map<String, Value>) -> Self {
        let layout = Box::new(Layout { call: JsonLayout::new(&CALL), function: JsonLayout::new(&FUNCTION) });
        Self { id: None, name: name.into(), arguments, layout }
    }

    /// Sets the id.
    pub fn with_id(mut self, id: impl Into<String>) -> Self {
        self.id = Some(id.into());
        self
    }

    /// Reads a call in one of the forms of [`ToolCall`].
    ///
    /// # Errors
    /// If the name is missing, a key has the wrong type, or arguments in text form are not a JSON object.
    pub fn from_json(value: Value) -> Result<Self> {
        Self::read(value, "tool_call")
    }

    pub(crate) fn read(value: Value, at: &str) -> Result<Self> {
        let object = expect_object(value, at)?;
        if object.contains_key("function") {
            let (call, [id, _, function]) = JsonLayout::split(object, &CALL);
            let at = format!("{at}.function");
            let (function, [name, arguments]) =
                JsonLayout::split(expect_object(function.unwrap_or_default(), &at)?, &FUNCTION);
            let (name, arguments) = (read_name(name, &at)?, read_arguments(arguments, &at)?);
            let layout = Box::new(Layout { call, function });
            return Ok(Self { id: read_id(id, &at)?, name, arguments, layout });
        }
        let mut object = object;
        let arguments =
            ["arguments", "args", "parameters"].into_iter().find_map(|key| object.shift_remove(key));
        let (name, id) = (object.shift_remove("name"), object.shift_remove("id"));
        let mut call = Self::new(read_name(name, at)?, read_arguments(arguments, at)?);
        call.id = read_id(id, at)?;
        object.into_iter().for_each(|(key, value)| call.layout.call.set(key, value));
        Ok(call)
    }

    /// Writes the call as JSON.
    pub fn to_json(&self) -> Value {
        let function = self.layout.function.fill([
            ("name", Some(self.name.as_str().into())),
            ("arguments", Some(Value::Object(self.arguments.clone()))),
        ]);
        let id = self.id.as_deref().map(Value::from);
        let id = id.or_else(|| self.layout.call.has("id").then_some(Value::Null));
        Value::Object(self.layout.call.fill([
            ("id", id),
            ("type", Some("function".into())),
            ("function", Some(Value::Object(function))),
        ]))
    }
}

pub(crate) fn expect_object(value: Value, at: &str) -> Result<Map<String, Value>> {
    match value {
        Value::Object(object) => Ok(object),
        other => Err(Error::WrongType { at: at.to_owned(), expected: "an object", got: json_type(&other) }),
    }
}

pub(crate) fn expect_string(value: Value, at: &str, key: &'static str) -> Result<String> {
    match value {
        Value::String(text) => Ok(text),
        other => {
            Err(Error::WrongType { at: format!("{at}.{key}"), expected: "a string", got: json_type(&other) })
        }
    }
}

fn read_id(id: Option<Value>, at: &str) -> Result<Option<String>> {
    match id {
        None | Some(Value::Null) => Ok(None),
        Some(id) => expect_string(id, at, "id").map(Some),
    }
}

/// Some clients quote the name twice; tool names contain no quotes, so one pair is removed.
fn read_name(name: Option<Value>, at: &str) -> Result<String> {
    let name = name.ok_or_else(|| Error::MissingKey { at: at.to_owned(), key: "name" })?;
    let name = expect_string(name, at, "name")?;
    match name.strip_prefix('"').and_then(|name| name.strip_suffix('"')) {
        Some(inner) => Ok(inner.to_owned()),
        None => Ok(name),
    }
}

fn read_arguments(arguments: Option<Value>, at: &str) -> Result<Map<String, Value>> {
    let at = || format!("{at}.arguments");
    match arguments {
        None | Some(Value::Null) => Ok(Map::new()),
        Some(Value::String(text)) if text.trim().is_empty() => Ok(Map::new()),
        Some(Value::String(text)) => serde_json::from_str(&text)
            .map_err(|error| Error::ArgumentsText { at: at(), reason: error.to_string() }),
        Some(value) => expect_object(value, &at()),
    }
}

impl Serialize for ToolCall {
    fn serialize<S: Serializer>(&self, serializer: S) -> std::result::Result<S::Ok, S::Error> {
        self.to_json().serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for ToolCall {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> std::result::Result<Self, D::Error> {
        Self::from_json(Value::deserialize(deserializer)?).map_err(serde::de::Error::custom)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Media, Message};
    use serde_json::json;

    #[test]
    fn debug_shows_values_without_json_layout() {
        let call = json!({"id": "1", "type": "function", "function": {"name": "f", "arguments": {"a": [1]}}});
        let call = ToolCall::from_json(call).expect("a call");
        let shown = r#"ToolCall { id: Some("1"), name: "f", arguments: {"a":[1]} }"#;
        assert_eq!(format!("{call:?}"), shown);
        let message = json!({"role": "assistant", "tool_calls": [call.to_json()], "mood": "curious"});
        let message = Message::from_json(message).expect("a message");
        let expected = format!(
            r#"Message {{ role: Assistant, content: None, tool_calls: [{shown}], others: {{"mood": String("curious")}} }}"#
        );
        assert_eq!(format!("{message:?}"), expected);
        assert!(!format!("{:?}", Media::from_path("a.png")).contains("layout"));
    }
}

//! A tool call of the model.

use std::fmt;

use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::{Map, Value};

use crate::error::{Error, Result, json_type};
use crate::json_layout::JsonLayout;
use crate::json_text::json_from_slice;

const CALL: [&str; 3] = ["id", "type", "function"];
const FUNCTION: [&str; 2] = ["name", "arguments"];

/// A tool call of the model.
///
/// JSON: `{"id"?: …, "type": "function", "function": {"name": …, "arguments": {…}}}`; `arguments` is always
/// written as an object. Also read: the bare form `{"name", "arguments"}`, `args` and `parameters` for
/// `arguments` in it, and arguments that are the JSON text of an object. Another text, as of a call that was
/// cut off, is kept as it is ([`arguments_text`](Self::arguments_text)). Unknown keys and key order are kept.
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
    /// Text of arguments that are not the JSON text of an object.
    text: Option<String>,
}

/// The three fields, and the unknown keys if there are any.
impl fmt::Debug for ToolCall {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { id, name, arguments, layout } = self;
        let arguments = fmt::from_fn(|f| match self.arguments_text() {
            Some(text) => write!(f, "{text:?}"),
            None => write!(f, "{}", Value::Object(arguments.clone())),
        });
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
        let (call, function) = (JsonLayout::new(&CALL), JsonLayout::new(&FUNCTION));
        let layout = Box::new(Layout { call, function, text: None });
        Self { id: None, name: name.into(), arguments, layout }
    }

    /// Sets the id.
    pub fn with_id(mut self, id: impl Into<String>) -> Self {
        self.id = Some(id.into());
        self
    }

    /// Creates a call without an id from the text of its arguments, which need not be JSON.
    pub fn with_arguments_text(name: impl Into<String>, text: impl Into<String>) -> Self {
        let (arguments, text) = arguments_of_text(text.into());
        let mut call = Self::new(name, arguments);
        call.layout.text = text;
        call
    }

    /// Text of the arguments, if it is not the JSON text of an object; `arguments` is empty then.
    pub fn arguments_text(&self) -> Option<&str> {
        self.layout.text.as_deref().filter(|_| self.arguments.is_empty())
    }

    /// Reads a call in one of the forms of [`ToolCall`].
    ///
    /// # Errors
    /// If the name is missing, or a key has the wrong type.
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
            let (name, (arguments, text)) = (read_name(name, &at)?, read_arguments(arguments, &at)?);
            let layout = Box::new(Layout { call, function, text });
            return Ok(Self { id: read_id(id, &at)?, name, arguments, layout });
        }
        let mut object = object;
        let arguments =
            ["arguments", "args", "parameters"].into_iter().find_map(|key| object.shift_remove(key));
        let (name, id) = (object.shift_remove("name"), object.shift_remove("id"));
        let (arguments, text) = read_arguments(arguments, at)?;
        let mut call = Self::new(read_name(name, at)?, arguments);
        call.layout.text = text;
        call.id = read_id(id, at)?;
        object.into_iter().for_each(|(key, value)| call.layout.call.set(key, value));
        Ok(call)
    }

    /// Writes the call as JSON.
    pub fn to_json(&self) -> Value {
        let text = self.arguments_text().map(Value::from);
        let arguments = text.unwrap_or_else(|| Value::Object(self.arguments.clone()));
        let function = self
            .layout
            .function
            .fill([("name", Some(self.name.as_str().into())), ("arguments", Some(arguments))]);
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

/// Arguments, and their text if it is not that of an object. Some programs write no arguments as an empty
/// list.
fn read_arguments(arguments: Option<Value>, at: &str) -> Result<(Map<String, Value>, Option<String>)> {
    match arguments {
        None | Some(Value::Null) => Ok((Map::new(), None)),
        Some(Value::Array(none)) if none.is_empty() => Ok((Map::new(), None)),
        Some(Value::String(text)) => Ok(arguments_of_text(text)),
        Some(value) => Ok((expect_object(value, &format!("{at}.arguments"))?, None)),
    }
}

fn arguments_of_text(text: String) -> (Map<String, Value>, Option<String>) {
    if text.trim().is_empty() {
        return (Map::new(), None);
    }
    match json_from_slice(text.as_bytes()) {
        Ok(Value::Object(arguments)) => (arguments, None),
        _ => (Map::new(), Some(text)),
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

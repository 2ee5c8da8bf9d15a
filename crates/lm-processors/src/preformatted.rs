//! Template input for templates that print values verbatim (those of LiteRT-LM for Gemma 3 and
//! FunctionGemma): declarations, arguments and results as finished text in the family's own syntax.

use lm_template::{Content, Map, Message, Part, Role, ToolSpec, Value};

use crate::values::{in_braces, in_python};

/// Syntax that a family's templates expect.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Syntax {
    /// Python: signatures and literals.
    Python,
    /// Braces, with this delimiter around strings.
    Braces(&'static str),
}

impl Syntax {
    fn value(self, value: &Value) -> String {
        match self {
            Self::Python => in_python(value),
            Self::Braces(mark) => in_braces(value, mark),
        }
    }

    /// Formats a tool's declaration.
    pub(crate) fn tool(self, tool: &ToolSpec) -> String {
        match self {
            Self::Python => signature(tool),
            Self::Braces(mark) => {
                let (name, description) = (tool.name(), in_braces(&tool.description().into(), mark));
                let parameters = declared(tool.parameters(), mark);
                format!("declaration:{name}{{description:{description},parameters:{parameters}}}")
            }
        }
    }

    /// Converts a message: arguments of calls become text, and so does a tool result.
    pub(crate) fn message(self, mut message: Message) -> Message {
        for call in &mut message.tool_calls {
            for value in call.arguments.values_mut() {
                *value = self.value(value).into();
            }
        }
        if message.role == Role::Tool {
            let text = self.result(&message);
            message.content = with_media(text, message.content);
        }
        message
    }

    /// Formats a result; in braces, it starts with the tool's name and is an object.
    fn result(self, message: &Message) -> String {
        let value = match &message.content {
            Content::Json(value) => value.clone(),
            content => content.text().into(),
        };
        match self {
            Self::Python => value.as_str().map_or_else(|| in_python(&value), str::to_owned),
            Self::Braces(mark) => {
                let value = if value.is_object() {
                    value
                } else {
                    Value::Object(Map::from_iter([("value".to_owned(), value)]))
                };
                format!("{}{}", message.name.as_deref().unwrap_or_default(), in_braces(&value, mark))
            }
        }
    }
}

/// A formatted result, and after it the media of the result that it formats.
fn with_media(text: String, result: Content) -> Content {
    let Content::Parts(mut parts) = result else { return Content::Text(text) };
    parts.retain(|part| part.as_text().is_none());
    if parts.is_empty() {
        return Content::Text(text);
    }
    parts.insert(0, Part::Text(text));
    Content::Parts(parts)
}

/// Formats a schema in braces: keywords in alphabetical order, type names in capitals.
fn declared(schema: &Value, mark: &'static str) -> String {
    let Value::Object(members) = schema else { return in_braces(schema, mark) };
    let mut members: Vec<_> = members.iter().collect();
    members.sort_by_key(|(key, _)| *key);
    let member = |(key, value): (&String, &Value)| {
        let text = match (key.as_str(), value) {
            ("type", value) => in_braces(&capitals(value), mark),
            ("properties", Value::Object(properties)) => {
                let each =
                    properties.iter().map(|(name, schema)| format!("{name}:{}", declared(schema, mark)));
                format!("{{{}}}", each.collect::<Vec<_>>().join(","))
            }
            ("items", schema) => declared(schema, mark),
            (_, value) => in_braces(value, mark),
        };
        format!("{key}:{text}")
    };
    format!("{{{}}}", members.into_iter().map(member).collect::<Vec<_>>().join(","))
}

fn capitals(names: &Value) -> Value {
    match names {
        Value::String(name) => name.to_uppercase().into(),
        Value::Array(names) => names.iter().map(capitals).collect(),
        other => other.clone(),
    }
}

/// Formats a tool as the signature of a Python function with a docstring.
fn signature(tool: &ToolSpec) -> String {
    let properties = tool.parameters().get("properties").and_then(Value::as_object);
    let required = tool.parameters().get("required").and_then(Value::as_array);
    let (mut parameters, mut arguments) = (String::new(), String::new());
    for (name, schema) in properties.into_iter().flatten() {
        let optional = !required.into_iter().flatten().any(|required| required == name.as_str());
        let default = if optional { " | None = None" } else { "" };
        parameters += &format!("    {name}: {}{default},\n", python_type(schema));
        let description = schema.get("description").and_then(Value::as_str).unwrap_or_default();
        arguments += &format!("    {name}: {description}\n");
    }
    let head = if parameters.is_empty() {
        format!("def {}()", tool.name())
    } else {
        format!("def {}(\n{parameters})", tool.name())
    };
    let arguments = match arguments.strip_suffix('\n') {
        Some(arguments) => format!("\n\n  Args:\n{arguments}"),
        None => String::new(),
    };
    format!("{head} -> dict:\n  \"\"\"{}{arguments}\n  \"\"\"\n", tool.description())
}

fn python_type(schema: &Value) -> String {
    match schema.get("type").and_then(Value::as_str) {
        Some("string") => "str".to_owned(),
        Some("integer") => "int".to_owned(),
        Some("number") => "float".to_owned(),
        Some("boolean") => "bool".to_owned(),
        Some("object") => "dict".to_owned(),
        Some("array") => format!("list[{}]", schema.get("items").map_or("Any".to_owned(), python_type)),
        _ => "Any".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use lm_template::ToolCall;
    use serde_json::json;

    use super::*;

    fn weather() -> ToolSpec {
        let days = json!({"type": "array", "items": {"type": "integer"}});
        let place = json!({"type": "string", "description": "A town."});
        let parameters =
            json!({"type": "object", "properties": {"place": place, "days": days}, "required": ["place"]});
        ToolSpec::new("weather", "The weather.", parameters)
    }

    #[test]
    fn declarations() {
        assert_eq!(
            Syntax::Braces("|").tool(&weather()),
            "declaration:weather{description:|The weather.|,parameters:{properties:{place:{description:|A town.|,type:|STRING|},\
             days:{items:{type:|INTEGER|},type:|ARRAY|}},required:[|place|],type:|OBJECT|}}"
        );
        assert_eq!(
            Syntax::Python.tool(&weather()),
            "def weather(\n    place: str,\n    days: list[int] | None = None,\n) -> dict:\n  \"\"\"The weather.\n\n  Args:\n    \
             place: A town.\n    days: \n  \"\"\"\n"
        );
        assert_eq!(
            Syntax::Python.tool(&ToolSpec::new("now", "The time.", json!({}))),
            "def now() -> dict:\n  \"\"\"The time.\n  \"\"\"\n"
        );
    }

    #[test]
    fn calls_and_results() {
        let arguments = json!({"place": "Rome", "days": [1], "hot": true}).as_object().unwrap().clone();
        let mut call = Message::assistant(Content::None);
        call.tool_calls = vec![ToolCall::new("weather", arguments)];
        let texts =
            |syntax: Syntax| Value::Object(syntax.message(call.clone()).tool_calls[0].arguments.clone());
        assert_eq!(texts(Syntax::Braces("|")), json!({"place": "|Rome|", "days": "[1]", "hot": "true"}));
        assert_eq!(texts(Syntax::Python), json!({"place": "\"Rome\"", "days": "[1]", "hot": "True"}));
        let mut result = Message::new(Role::Tool, Content::Json(json!({"sky": "blue"})));
        result.name = Some("weather".to_owned());
        assert_eq!(Syntax::Braces("|").message(result.clone()).content.text(), "weather{sky:|blue|}");
        assert_eq!(Syntax::Python.message(result.clone()).content.text(), "{\"sky\": \"blue\"}");
        result.content = Content::Text("blue".to_owned());
        assert_eq!(Syntax::Braces("|").message(result.clone()).content.text(), "weather{value:|blue|}");
        assert_eq!(Syntax::Python.message(result).content.text(), "blue");
    }
}

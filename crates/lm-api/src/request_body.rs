//! Fields of request bodies, as data: readers take no others, and JSON Schemas are made of them.

use serde_json::{Map, Value, json};

/// Schema of a boolean.
pub(crate) const BOOLEAN: &str = r#"{"type": "boolean"}"#;
/// Schema of a count.
pub(crate) const COUNT: &str = r#"{"type": "integer", "minimum": 0}"#;
/// Schema of a count of at least 1.
pub(crate) const POSITIVE: &str = r#"{"type": "integer", "minimum": 1}"#;
/// Schema of an integer.
pub(crate) const INTEGER: &str = r#"{"type": "integer", "format": "int64"}"#;
/// Schema of an object.
pub(crate) const OBJECT: &str = r#"{"type": "object"}"#;
/// Schema of an array of objects.
pub(crate) const OBJECTS: &str = r#"{"type": "array", "items": {"type": "object"}}"#;
/// Schema of text.
pub(crate) const TEXT: &str = r#"{"type": "string"}"#;
/// Schema of stop sequences.
pub(crate) const STOP: &str = r#"{"anyOf": [{"type": "string", "minLength": 1}, {"type": "array", "items": {"type": "string", "minLength": 1}}]}"#;
/// Schema of texts or tokens.
pub(crate) const TEXTS_OR_TOKENS: &str = r#"{"anyOf": [
    {"type": "string", "minLength": 1},
    {"type": "array", "minItems": 1, "items": {"type": "integer", "minimum": 0}},
    {"type": "array", "minItems": 1, "items": {"anyOf": [
        {"type": "string", "minLength": 1}, {"type": "array", "minItems": 1, "items": {"type": "integer", "minimum": 0}}
    ]}}
]}"#;

/// The field `model`, which all bodies have.
pub(crate) const MODEL: BodyField =
    BodyField::new("model", TEXT, "Name or alias of a model; the server's first model if absent.");

/// Request body: the fields that its reader takes. It ignores others.
#[derive(Debug)]
pub struct RequestBody {
    /// Name of its schema.
    pub name: &'static str,
    /// Groups of fields.
    pub fields: &'static [&'static [BodyField]],
    /// Fields that a body needs: one of the names of each entry.
    pub required: &'static [&'static [&'static str]],
    /// A small valid body, as JSON text.
    pub example: &'static str,
}

/// Field of a request body.
#[derive(Debug, Clone, Copy)]
pub struct BodyField {
    name: &'static str,
    values: Values,
    about: &'static str,
}

/// Values of a field; null is an absent field.
#[derive(Debug, Clone, Copy)]
enum Values {
    /// Those of a JSON Schema, as JSON text.
    Schema(&'static str),
    /// Objects with nested fields.
    Object(&'static RequestBody),
    /// Only neutral values, as JSON texts: the field is not supported.
    Nothing(&'static [&'static str]),
}

impl BodyField {
    /// Creates a field: its name, the JSON Schema of its values as JSON text, and its description.
    pub const fn new(name: &'static str, schema: &'static str, about: &'static str) -> Self {
        Self { name, values: Values::Schema(schema), about }
    }

    /// Creates a field whose value is an object with nested fields.
    pub(crate) const fn object(name: &'static str, body: &'static RequestBody, about: &'static str) -> Self {
        Self { name, values: Values::Object(body), about }
    }

    /// Creates a field that is refused, unless its value is null or one of `ignored`, as JSON texts.
    pub(crate) const fn unsupported(name: &'static str, ignored: &'static [&'static str]) -> Self {
        Self { name, values: Values::Nothing(ignored), about: "Not supported." }
    }

    /// Name of the field.
    pub(crate) fn name(&self) -> &'static str {
        self.name
    }

    /// Returns true if the field is not supported and the value asks for something.
    pub(crate) fn refuses(&self, value: &Value) -> bool {
        match self.values {
            Values::Nothing(ignored) => !value.is_null() && !ignored.contains(&value.to_string().as_str()),
            _ => false,
        }
    }

    fn schema(&self, is_required: bool) -> Value {
        let schema = match self.values {
            Values::Schema(text) => parsed(text),
            Values::Object(body) => body.schema(),
            Values::Nothing(ignored) => {
                json!({"enum": ignored.iter().map(|text| parsed(text)).collect::<Vec<_>>()})
            }
        };
        let mut schema = if is_required { schema } else { or_null(schema) };
        schema["description"] = self.about.into();
        schema
    }
}

impl RequestBody {
    /// Fields of all groups.
    pub(crate) fn fields(&self) -> impl Iterator<Item = &BodyField> {
        self.fields.iter().copied().flatten()
    }

    /// JSON Schema of the body.
    ///
    /// ```
    /// use lm_api::EmbeddingRequest;
    ///
    /// let schema = EmbeddingRequest::BODY.schema();
    /// assert_eq!(schema["required"][0], "input");
    /// assert_eq!(schema["properties"]["dimensions"]["minimum"], 1);
    /// ```
    pub fn schema(&self) -> Value {
        let is_required = |field: &BodyField| self.required.iter().any(|names| **names == [field.name]);
        let properties: Map<_, _> =
            self.fields().map(|field| (field.name.to_owned(), field.schema(is_required(field)))).collect();
        let mut required = Vec::new();
        let mut schema = json!({"type": "object", "properties": properties, "additionalProperties": true});
        for names in self.required {
            match names {
                [name] => required.push(*name),
                names => schema["anyOf"] = names.iter().map(|name| json!({"required": [name]})).collect(),
            }
        }
        if !required.is_empty() {
            schema["required"] = required.into();
        }
        schema
    }

    /// The example.
    pub fn example(&self) -> Value {
        parsed(self.example)
    }
}

/// JSON of a table.
fn parsed(text: &str) -> Value {
    serde_json::from_str(text).expect("the tests read all tables")
}

/// Schema of the same values and null.
fn or_null(mut schema: Value) -> Value {
    if let Some(Value::Array(values)) = schema.get_mut("enum") {
        values.push(Value::Null);
    } else if let Some(Value::Array(schemas)) = schema.get_mut("anyOf") {
        schemas.push(json!({"type": "null"}));
    } else if let Some(place) = schema.get_mut("type") {
        let mut types = match place.take() {
            Value::Array(types) => types,
            one => vec![one],
        };
        types.push("null".into());
        *place = types.into();
    }
    schema
}

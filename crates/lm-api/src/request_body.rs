//! Request bodies as data: the groups of fields that readers take, and the JSON Schema made of them.

use schemars::generate::SchemaSettings;
use schemars::{Schema, SchemaGenerator};
use serde_json::{Map, Value, json};

/// Request body: groups of fields, each a struct that derives `Deserialize` and `JsonSchema`. Other fields
/// are ignored.
#[derive(Debug)]
pub struct RequestBody {
    /// Name of its schema.
    pub name: &'static str,
    /// Schemas of the groups: `<T as JsonSchema>::json_schema`.
    pub groups: &'static [fn(&mut SchemaGenerator) -> Schema],
    /// Tables of fields that are not supported, with the values that ask for nothing as JSON texts.
    pub unsupported: &'static [&'static [(&'static str, &'static [&'static str])]],
    /// A small valid body, as JSON text.
    pub example: &'static str,
}

impl RequestBody {
    /// Name of a field that is not supported and asks for something.
    pub(crate) fn unsupported_in(&self, values: &Map<String, Value>) -> Option<&'static str> {
        let asks = |(name, neutral): &&(&str, &[&str])| {
            values.get(*name).is_some_and(|value| !neutral.contains(&value.to_string().as_str()))
        };
        self.unsupported.iter().copied().flatten().find(asks).map(|(name, _)| *name)
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
        let settings = SchemaSettings::draft2020_12().with(|settings| settings.inline_subschemas = true);
        let mut generator = settings.into_generator();
        let mut schema = json!({"type": "object", "properties": {}, "additionalProperties": true});
        for group in self.groups {
            let mut group = group(&mut generator);
            for key in ["properties", "required", "anyOf"] {
                let Some(own) = group.remove(key) else { continue };
                match (&mut schema[key], own) {
                    (Value::Object(known), Value::Object(mut own)) => known.append(&mut own),
                    (Value::Array(known), Value::Array(mut own)) => known.append(&mut own),
                    (known, own) => *known = own,
                }
            }
        }
        for (name, neutral) in self.unsupported.iter().copied().flatten() {
            let values: Value = neutral.iter().copied().chain(["null"]).map(parsed).collect();
            schema["properties"][name] = json!({"enum": values, "description": "Not supported."});
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

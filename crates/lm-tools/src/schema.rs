//! Declarations from types, in the shape in which models have learned them.

use lm_template::ToolSpec;
use schemars::generate::SchemaSettings;
use schemars::transform::transform_subschemas;
use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde_json::{Map, Value, json};

/// `format`s that only repeat a Rust number's width.
const NUMBER_FORMATS: [&str; 14] = [
    "int8", "int16", "int32", "int64", "int128", "int", "uint8", "uint16", "uint32", "uint64", "uint128",
    "uint", "float", "double",
];

/// The declaration of a function under construction; `#[tool]` writes the calls.
///
/// It gives what `get_json_schema` of transformers gives for the same function: `{"type": "function", "function":
/// {"name", "description", "parameters"}}`, each property with its type first and its description last, and
/// `required` only where an argument is.
#[derive(Debug)]
pub struct Declaration {
    name: &'static str,
    description: &'static str,
    generator: SchemaGenerator,
    properties: Map<String, Value>,
    required: Vec<Value>,
}

impl Declaration {
    /// A function without arguments.
    pub fn new(name: &'static str, description: &'static str) -> Self {
        let settings = SchemaSettings::draft2020_12().with(|settings| {
            settings.meta_schema = None;
            settings.inline_subschemas = true;
        });
        let generator = settings.into_generator();
        Self { name, description, generator, properties: Map::new(), required: Vec::new() }
    }

    /// Adds an argument that every call gives.
    pub fn required<T: JsonSchema>(mut self, name: &str, description: &str, choices: &[&str]) -> Self {
        self.required.push(name.into());
        self.optional::<T>(name, description, choices)
    }

    /// Adds an argument that a call may leave out.
    pub fn optional<T: JsonSchema>(mut self, name: &str, description: &str, choices: &[&str]) -> Self {
        let mut schema = self.generator.subschema_for::<T>();
        let object = schema.ensure_object();
        if !choices.is_empty() {
            object.insert("enum".to_owned(), json!(choices));
        }
        if !description.is_empty() {
            object.insert("description".to_owned(), description.into());
        }
        plain(&mut schema);
        self.properties.insert(name.to_owned(), schema.to_value());
        self
    }

    /// The finished declaration.
    pub fn spec(mut self) -> ToolSpec {
        let mut parameters = Map::new();
        parameters.insert("type".to_owned(), "object".into());
        parameters.insert("properties".to_owned(), self.properties.into());
        if !self.required.is_empty() {
            parameters.insert("required".to_owned(), self.required.into());
        }
        // What is left after inlining are types that contain themselves.
        let definitions = self.generator.take_definitions(true);
        if !definitions.is_empty() {
            let mut schema = Schema::from(Map::from_iter([("$defs".to_owned(), definitions.into())]));
            plain(&mut schema);
            parameters.extend(schema.ensure_object().clone());
        }
        ToolSpec::new(self.name, self.description, parameters.into())
    }
}

/// Takes off what schemars adds for Rust's sake, and orders the keys as declarations have them.
fn plain(schema: &mut Schema) {
    transform_subschemas(&mut plain, schema);
    let Some(object) = schema.as_object_mut() else { return };
    join_string_choices(object);
    let format = object.get("format").and_then(Value::as_str);
    let is_number_format = format.is_some_and(|format| NUMBER_FORMATS.contains(&format));
    let mut rest = std::mem::take(object);
    let mut take = |key: &str| rest.shift_remove(key).map(|value| (key.to_owned(), value));
    let first: Vec<_> = ["type", "enum", "const"].into_iter().filter_map(&mut take).collect();
    let last = take("description");
    rest.retain(|key, _| {
        !(matches!(key.as_str(), "$schema" | "title") || key == "format" && is_number_format)
    });
    object.extend(first);
    object.extend(rest);
    object.extend(last);
}

/// Turns `oneOf` string constants, which schemars writes for an enum whose variants have docs, into one `enum`.
fn join_string_choices(schema: &mut Map<String, Value>) {
    let Some(Value::Array(variants)) = schema.get("oneOf") else { return };
    let mut choices = Vec::new();
    for variant in variants {
        match (variant.get("type").and_then(Value::as_str), variant.get("const"), variant.get("enum")) {
            (Some("string"), Some(choice), None) => choices.push(choice.clone()),
            (Some("string"), None, Some(Value::Array(several))) => choices.extend(several.iter().cloned()),
            _ => return,
        }
    }
    schema.shift_remove("oneOf");
    schema.insert("type".to_owned(), "string".into());
    schema.insert("enum".to_owned(), choices.into());
}

#[cfg(test)]
mod tests;

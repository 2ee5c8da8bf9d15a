//! Length of the shortest value of a schema.

use std::collections::BTreeMap;

use lm_template::Value;

use super::document::escaped;
use super::error::{SchemaError, SchemaFault};
use super::node::Object;
use super::normalize::Normalizer;
use super::parts::{declared, definition, list, property, required, type_names};

/// Maximum length of the shortest value of a schema, in characters of JSON.
const MAX_SHORTEST: u64 = 100_000;
/// Maximum number of passes over the definitions. Lengths that are not final by then are not judged.
const MAX_ROUNDS: usize = 64;

/// Lengths by definition; `None` without a value.
type Lengths = BTreeMap<String, Option<u64>>;

impl Normalizer<'_> {
    /// Refuses a schema without values, or all of whose values are longer than any reply.
    ///
    /// # Errors
    /// [`SchemaFault::Unsatisfiable`], [`SchemaFault::TooLarge`].
    pub(super) fn reject_long(&self, root: &Value) -> Result<(), SchemaError> {
        let mut lengths: Lengths = self.definitions.keys().map(|name| (name.clone(), None)).collect();
        for _ in 0..MAX_ROUNDS {
            let next: Lengths = self
                .definitions
                .iter()
                .map(|(name, schema)| (name.clone(), shortest(schema, &lengths)))
                .collect();
            if next == lengths {
                let fault = match shortest(root, &lengths) {
                    None => return Err(SchemaError::unsatisfiable(&without_value(root, &lengths), "", "")),
                    Some(length) if length <= MAX_SHORTEST => return Ok(()),
                    Some(_) => SchemaFault::TooLarge("its shortest value has more than 100,000 characters"),
                };
                return Err(SchemaError::new("#", "", fault));
            }
            lengths = next;
        }
        Ok(())
    }
}

/// Place of a required property without values; the root if there is none.
fn without_value(root: &Value, lengths: &Lengths) -> String {
    let (mut schema, mut path) = (root, "#".to_owned());
    for _ in 0..super::node::MAX_DEPTH {
        let Some(object) = schema.as_object() else { break };
        let declared = |name| Some((name, declared(object, name)?));
        let is_empty = |(_, schema): &(&str, &Value)| shortest(schema, lengths).is_none();
        let Some((name, property)) = required(object).filter_map(declared).find(is_empty) else { break };
        path = format!("{path}/properties/{}", escaped(name));
        schema = property;
    }
    path
}

/// Lower bound of the length of a value: patterns and formats are not considered. `None` if there is no
/// value.
fn shortest(schema: &Value, lengths: &Lengths) -> Option<u64> {
    let Value::Object(schema) = schema else {
        return (*schema != Value::Bool(false)).then_some(1);
    };
    if let Some(name) = definition(schema) {
        return lengths.get(name).copied().unwrap_or(Some(1));
    }
    if let Some(values) = list(schema, "enum") {
        return values.iter().map(|value| value.to_string().len() as u64).min();
    }
    let mut length = 1;
    for part in list(schema, "allOf").unwrap_or_default() {
        length = length.max(shortest(part, lengths)?);
    }
    if let Some(any) = list(schema, "anyOf") {
        length = length.max(any.iter().filter_map(|schema| shortest(schema, lengths)).min()?);
    }
    let types = type_names(schema).unwrap_or_else(|| vec!["number"]);
    let own = types.into_iter().filter_map(|name| of_type(name, schema, lengths)).min()?;
    Some(length.max(own))
}

fn of_type(name: &str, schema: &Object, lengths: &Lengths) -> Option<u64> {
    let count = |key: &str| schema.get(key).and_then(Value::as_u64).unwrap_or(0);
    match name {
        "string" => Some(count("minLength").saturating_add(2)),
        "array" => shortest_array(schema, count("minItems"), lengths),
        "object" => shortest_object(schema, count("minProperties"), lengths),
        _ => Some(1),
    }
}

fn shortest_array(schema: &Object, least: u64, lengths: &Lengths) -> Option<u64> {
    let heads = list(schema, "prefixItems").unwrap_or_default();
    let heads = &heads[..heads.len().min(least as usize)];
    let more = least - heads.len() as u64;
    let mut length = least.saturating_add(1);
    for head in heads {
        length = length.saturating_add(shortest(head, lengths)?);
    }
    if more > 0 {
        let item = schema.get("items").map_or(Some(1), |items| shortest(items, lengths))?;
        length = length.saturating_add(item.saturating_mul(more));
    }
    Some(length)
}

fn shortest_object(schema: &Object, least: u64, lengths: &Lengths) -> Option<u64> {
    let (mut names, mut length) = (0, 2_u64);
    for name in required(schema) {
        let value = property(schema, name).map_or(Some(1), |schema| shortest(schema, lengths))?;
        length = length.saturating_add(name.len() as u64 + 4).saturating_add(value);
        names += 1;
    }
    // Further members have a name of one character and a value of one.
    Some(length.saturating_add(least.saturating_sub(names).saturating_mul(6)))
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use crate::SchemaFault;
    use crate::schema::{Reading, normalized};

    #[test]
    fn schemas_of_long_values_are_rejected() {
        let list = |items: Value, least: u32| json!({"type": "array", "items": items, "minItems": least});
        let text = |least: u32| json!({"type": "string", "minLength": least});
        let long = [
            list(list(json!({"type": "integer"}), 1_000), 1_000),
            json!({"type": "object", "properties": {"a": text(60_000), "b": text(60_000)}, "required": ["a", "b"]}),
            json!({"anyOf": [text(200_000), {"$ref": "#/$defs/a"}], "$defs": {"a": list(json!({"$ref": "#/$defs/b"}), 500), "b": text(300)}}),
            json!({"allOf": [text(200_000), {"maxLength": 300_000}]}),
        ];
        for schema in long {
            let error = normalized(&schema, Reading::Open).expect_err("no reply is that long");
            assert!(matches!(error.fault, SchemaFault::TooLarge(_)), "{error}");
        }
        let tree =
            json!({"type": "object", "properties": {"a": list(json!({"$ref": "#"}), 0)}, "required": ["a"]});
        // Its required members are as many as it must have.
        let names: Vec<String> = (0..600).map(|number| format!("{number:0160}")).collect();
        let many = json!({"type": "object", "required": names, "minProperties": 600});
        for schema in [text(60_000), tree, many, json!({"anyOf": [text(200_000), {"type": "null"}]})] {
            normalized(&schema, Reading::Open).expect("it has a short value");
        }
    }

    #[test]
    fn empty_schemas_are_rejected_with_pointer() {
        let never = |name: &str| json!({"type": "object", "properties": {name: false}, "required": [name]});
        let cases = [
            (json!(false), "#"),
            (json!({"not": {}}), "#"),
            (
                json!({"type": "object", "properties": {"a": {"not": true}}, "required": ["a"]}),
                "#/properties/a",
            ),
            (never("a/b"), "#/properties/a~1b"),
            (
                json!({"type": "object", "properties": {"x": never("y")}, "required": ["x"]}),
                "#/properties/x/properties/y",
            ),
            (json!({"type": "object", "required": ["a"], "additionalProperties": false}), "#"),
            (json!({"type": "array", "items": false, "minItems": 1}), "#"),
            (json!({"type": "array", "prefixItems": [{}, false], "minItems": 2}), "#"),
            (json!({"anyOf": [false, never("a")]}), "#"),
            (json!({"allOf": [{}, {"$ref": "#/$defs/a"}], "$defs": {"a": false}}), "#"),
        ];
        for (schema, path) in cases {
            let error = normalized(&schema, Reading::Open).expect_err("no value");
            assert!(matches!(error.fault, SchemaFault::Unsatisfiable(_)), "{error}");
            assert_eq!(error.path, path, "{schema}");
        }
        for schema in [
            json!({"type": "object", "properties": {"a": false}}),
            json!({"type": ["object", "null"], "properties": {"a": false}, "required": ["a"]}),
            json!({"type": "object", "required": ["x1"], "patternProperties": {"^x": {}}, "additionalProperties": false}),
            json!({"type": "array", "prefixItems": [{}, false], "minItems": 1}),
        ] {
            normalized(&schema, Reading::Open).expect("it has a value");
        }
    }
}

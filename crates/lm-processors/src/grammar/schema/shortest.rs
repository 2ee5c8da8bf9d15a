//! Length of the shortest value of a schema.

use std::collections::BTreeMap;

use lm_template::Value;

use super::normalize::{Normalizer, Object};
use crate::grammar::error::{SchemaError, SchemaFault};

/// Maximum length of the shortest value of a schema, in characters of JSON.
const MAX_SHORTEST: u64 = 100_000;
/// Maximum number of passes over the definitions. Lengths that are not final by then are not judged.
const MAX_ROUNDS: usize = 64;

type Lengths = BTreeMap<String, u64>;

impl Normalizer<'_> {
    /// Refuses a schema all of whose values are longer than any reply.
    ///
    /// # Errors
    /// [`SchemaFault::TooLarge`].
    pub(super) fn refuse_long(&self, root: &Value) -> Result<(), SchemaError> {
        let mut lengths: Lengths = self.definitions.keys().map(|name| (name.clone(), u64::MAX)).collect();
        for _ in 0..MAX_ROUNDS {
            let next: Lengths = self
                .definitions
                .iter()
                .map(|(name, schema)| (name.clone(), shortest(schema, &lengths)))
                .collect();
            if next == lengths {
                if shortest(root, &lengths) <= MAX_SHORTEST {
                    return Ok(());
                }
                let fault = SchemaFault::TooLarge("its shortest value has more than 100,000 characters");
                return Err(SchemaError::new("#", "", fault));
            }
            lengths = next;
        }
        Ok(())
    }
}

/// Lower bound of the length of a value: patterns and formats are not considered. `u64::MAX` if there is no value.
fn shortest(schema: &Value, lengths: &Lengths) -> u64 {
    let Value::Object(schema) = schema else {
        return if *schema == Value::Bool(false) { u64::MAX } else { 1 };
    };
    if let Some(reference) = schema.get("$ref").and_then(Value::as_str) {
        let name = reference.strip_prefix("#/$defs/").unwrap_or_default();
        return lengths.get(name).copied().unwrap_or(1);
    }
    let list = |key: &str| schema.get(key).and_then(Value::as_array);
    if let Some(values) = list("enum") {
        return values.iter().map(|value| value.to_string().len() as u64).min().unwrap_or(u64::MAX);
    }
    let all = list("allOf").into_iter().flatten().map(|schema| shortest(schema, lengths)).max();
    let any = list("anyOf").and_then(|any| any.iter().map(|schema| shortest(schema, lengths)).min());
    let types: Vec<&str> = match schema.get("type") {
        Some(Value::String(name)) => vec![name],
        Some(Value::Array(names)) => names.iter().filter_map(Value::as_str).collect(),
        _ => vec!["number"],
    };
    let own = types.into_iter().map(|name| of_type(name, schema, lengths)).min();
    [all, any, own].into_iter().flatten().max().unwrap_or(1)
}

fn of_type(name: &str, schema: &Object, lengths: &Lengths) -> u64 {
    let count = |key: &str| schema.get(key).and_then(Value::as_u64).unwrap_or(0);
    match name {
        "string" => count("minLength").saturating_add(2),
        "array" => shortest_array(schema, count("minItems"), lengths),
        "object" => shortest_object(schema, count("minProperties"), lengths),
        _ => 1,
    }
}

fn shortest_array(schema: &Object, least: u64, lengths: &Lengths) -> u64 {
    let heads = schema.get("prefixItems").and_then(Value::as_array).map_or(&[][..], Vec::as_slice);
    let heads = &heads[..heads.len().min(least as usize)];
    let more = least - heads.len() as u64;
    let item = schema.get("items").map_or(1, |items| shortest(items, lengths));
    let heads = heads.iter().map(|head| shortest(head, lengths)).fold(0, u64::saturating_add);
    let items = if more == 0 { 0 } else { item.saturating_mul(more) };
    heads.saturating_add(items).saturating_add(least.saturating_add(1))
}

fn shortest_object(schema: &Object, least: u64, lengths: &Lengths) -> u64 {
    let required = schema.get("required").and_then(Value::as_array).into_iter().flatten();
    let declared = |name: &str| schema.get("properties").and_then(|properties| properties.get(name));
    let (mut names, mut length) = (0, 2_u64);
    for name in required.filter_map(Value::as_str) {
        let property = declared(name).or_else(|| schema.get("additionalProperties"));
        let value = property.map_or(1, |schema| shortest(schema, lengths));
        length = length.saturating_add(name.len() as u64 + 4).saturating_add(value);
        names += 1;
    }
    // Further members have a name of one character and a value of one.
    length.saturating_add(least.saturating_sub(names).saturating_mul(6))
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use crate::{Reading, SchemaFault, relax};

    #[test]
    fn schemas_of_long_values_are_refused() {
        let list = |items: Value, least: u32| json!({"type": "array", "items": items, "minItems": least});
        let text = |least: u32| json!({"type": "string", "minLength": least});
        let long = [
            list(list(json!({"type": "integer"}), 1_000), 1_000),
            json!({"type": "object", "properties": {"a": text(60_000), "b": text(60_000)}, "required": ["a", "b"]}),
            json!({"anyOf": [text(200_000), {"$ref": "#/$defs/a"}], "$defs": {"a": list(json!({"$ref": "#/$defs/b"}), 500), "b": text(300)}}),
            json!({"allOf": [text(200_000), {"maxLength": 300_000}]}),
        ];
        for schema in long {
            let error = relax(&schema, Reading::Open).expect_err("no reply is that long");
            assert!(matches!(error.fault, SchemaFault::TooLarge(_)), "{error}");
        }
        let tree =
            json!({"type": "object", "properties": {"a": list(json!({"$ref": "#"}), 0)}, "required": ["a"]});
        for schema in [text(60_000), tree, json!({"anyOf": [text(200_000), {"type": "null"}]})] {
            relax(&schema, Reading::Open).expect("it has a short value");
        }
    }
}

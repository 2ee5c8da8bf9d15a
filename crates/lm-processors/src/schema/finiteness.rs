//! Detection of schemas that only infinite values match: they require themselves as a property or an item.

use std::collections::BTreeSet;

use lm_template::Value;

use super::error::SchemaError;
use super::node::Object;
use super::normalize::Normalizer;
use super::parts::{definition, list, property, required, type_names};

/// Maximum number of passes over the definitions. Undecided ones then count as having values.
const MAX_ROUNDS: usize = 64;

impl Normalizer<'_> {
    /// Replaces definitions without finite values by `false`.
    ///
    /// # Errors
    /// If `root` needs one of them.
    pub(super) fn reject_infinite(&mut self, root: &Value) -> Result<(), SchemaError> {
        let mut open: BTreeSet<String> = self.definitions.keys().cloned().collect();
        for _ in 0..MAX_ROUNDS {
            let decided: BTreeSet<String> = open
                .iter()
                .rev()
                .filter(|name| is_finite(&self.definitions[*name], &open))
                .cloned()
                .collect();
            if decided.is_empty() {
                break;
            }
            open.retain(|name| !decided.contains(name));
        }
        if self.definitions.iter().any(|(name, schema)| open.contains(name) && is_finite(schema, &open)) {
            return Ok(());
        }
        if !is_finite(root, &open) && !open.is_empty() {
            let pointer = self.names.iter().find(|(_, number)| open.contains(&format!("d{number}")));
            let path = pointer.map_or_else(|| "#".to_owned(), |((pointer, _), _)| format!("#{pointer}"));
            return Err(SchemaError::unsatisfiable(&path, "$ref", ": it requires itself without an end"));
        }
        for name in open {
            self.definitions.insert(name, Value::Bool(false));
        }
        Ok(())
    }
}

/// Returns true if a value matches without the definitions in `open`.
fn is_finite(schema: &Value, open: &BTreeSet<String>) -> bool {
    let Value::Object(schema) = schema else { return true };
    if let Some(name) = definition(schema) {
        return !open.contains(name);
    }
    if schema.contains_key("enum") {
        return true;
    }
    if list(schema, "allOf").is_some_and(|all| !all.iter().all(|schema| is_finite(schema, open)))
        || list(schema, "anyOf").is_some_and(|any| !any.iter().any(|schema| is_finite(schema, open)))
    {
        return false;
    }
    let Some(types) = type_names(schema) else { return true };
    types.iter().any(|name| match *name {
        "object" => has_finite_object(schema, open),
        "array" => has_finite_array(schema, open),
        _ => true,
    })
}

fn has_finite_object(schema: &Object, open: &BTreeSet<String>) -> bool {
    required(schema).all(|name| property(schema, name).is_none_or(|schema| is_finite(schema, open)))
}

fn has_finite_array(schema: &Object, open: &BTreeSet<String>) -> bool {
    let least = schema.get("minItems").and_then(Value::as_u64).unwrap_or(0) as usize;
    let heads = list(schema, "prefixItems").unwrap_or_default();
    let items = || schema.get("items").is_none_or(|items| is_finite(items, open));
    heads.iter().take(least).all(|head| is_finite(head, open)) && (least <= heads.len() || items())
}

#[cfg(test)]
mod tests {
    use lm_template::Value;
    use serde_json::json;

    use crate::grammar::json_grammar;
    use crate::layout::Layout;

    fn is_refused(schema: &Value) -> bool {
        json_grammar(schema, Layout::Exact)
            .is_err_and(|error| error.to_string().contains("requires itself without an end"))
    }

    #[test]
    fn property_of_a_pattern_does_not_require_further_properties() {
        let further = |patterns: Value| {
            json!({
                "type": "object",
                "required": ["x1"],
                "patternProperties": patterns,
                "additionalProperties": {"$ref": "#"}
            })
        };
        assert!(!is_refused(&further(json!({"^x": {"type": "null"}}))));
        let mut without = further(json!({}));
        without.as_object_mut().unwrap().remove("patternProperties");
        assert!(is_refused(&without));
    }
}

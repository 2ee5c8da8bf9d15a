//! `patternProperties`: schemas of members by the pattern of their name.

use lm_template::Value;
use serde_json::{Map, json};

use super::objects::named_properties;
use crate::schema::{SchemaValidator, full_match, needs_escape, validator};

/// A pattern of names, and the schema of the members that have such a name.
pub(in crate::grammar) struct NamePattern {
    pub(super) pattern: String,
    /// Terminal expression for the names.
    pub(super) names: String,
    pub(super) schema: Value,
    validator: SchemaValidator,
}

impl NamePattern {
    /// Returns the pattern; `None` if each of its names has one of the characters `avoided`.
    pub(super) fn new(pattern: &str, schema: &Value, avoided: &str) -> Option<Self> {
        let names = full_match(pattern).filter(|_| !needs_escape(pattern, avoided))?;
        let names = format!("({})", names.join(" & "));
        let validator = validator(&json!({"pattern": pattern}), false).ok()?;
        Some(Self { pattern: pattern.to_owned(), names, schema: schema.clone(), validator })
    }

    pub(super) fn matches(&self, name: &str) -> bool {
        self.validator.is_valid(&Value::from(name))
    }
}

/// The schema with the patterns applied to its named properties, and without the patterns.
pub(in crate::grammar) fn with_patterns(
    schema: &Map<String, Value>,
    patterns: &[NamePattern],
) -> Map<String, Value> {
    let mut out = schema.clone();
    if patterns.is_empty() {
        return out;
    }
    let declared = schema.get("properties").and_then(Value::as_object);
    let named = named_properties(schema).into_iter().map(|(name, further, _)| {
        let of_name = patterns.iter().find(|pattern| pattern.matches(&name)).map(|pattern| &pattern.schema);
        let own = declared.and_then(|declared| declared.get(&name));
        let schema = match (own, of_name) {
            (Some(own), Some(of_name)) => json!({"allOf": [own, of_name]}),
            (None, Some(of_name)) => of_name.clone(),
            (_, None) => further,
        };
        (name, schema)
    });
    let named: Map<String, Value> = named.collect();
    if !named.is_empty() {
        out.insert("properties".to_owned(), named.into());
    }
    out.shift_remove("patternProperties");
    out
}

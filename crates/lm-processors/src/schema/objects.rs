//! Normalization across several keywords of an object.

use lm_template::Value;
use serde_json::Map;

use super::Reading;
use super::error::SchemaError;
use super::node::{Closing, Node, Object};
use super::normalize::Normalizer;
use super::parts::required;
use super::pattern::{are_disjoint, full_match};

impl Normalizer<'_> {
    pub(super) fn adjust(&mut self, out: &mut Object, node: Node<'_>) {
        if self.reading == Reading::ToolParameters {
            infer_type(out);
        }
        let combines = ["allOf", "anyOf", "oneOf"].iter().any(|key| node.map.contains_key(*key));
        let lists_all = out.contains_key("properties") && !out.contains_key("patternProperties");
        if node.place.closing == Closing::Closed && lists_all && !combines {
            close(out);
        }
        if !patterns_have_grammar(out) {
            self.leave_unenforced(node.path, "patternProperties");
            out.shift_remove("patternProperties");
            out.shift_remove("additionalProperties");
        }
    }
}

impl Normalizer<'_> {
    /// `propertyNames` has a grammar where the names are listed, or are texts of a pattern or length, and the
    /// object names none itself.
    pub(super) fn names(
        &mut self,
        node: Node<'_>,
        value: &Value,
        out: &mut Object,
    ) -> Result<(), SchemaError> {
        let place = self.below(node);
        let mut names = self.schema(value, &format!("{}/propertyNames", node.path), place)?;
        let named = ["properties", "patternProperties", "required"];
        let texts = ["enum", "format", "maxLength", "minLength", "pattern", "type"];
        match &mut names {
            Value::Object(names)
                if !named.iter().any(|key| node.map.contains_key(*key))
                    && names.keys().all(|key| texts.contains(&&**key)) =>
            {
                names.insert("type".to_owned(), "string".into());
                out.insert("propertyNames".to_owned(), Value::Object(std::mem::take(names)));
            }
            _ => self.leave_unenforced(node.path, "propertyNames"),
        }
        Ok(())
    }
}

fn infer_type(out: &mut Object) {
    if ["type", "enum", "const"].iter().any(|key| out.contains_key(*key)) {
        return;
    }
    if out.contains_key("properties") {
        out.insert("type".to_owned(), "object".into());
    } else if out.contains_key("items") {
        out.insert("type".to_owned(), "array".into());
    }
}

/// Declares all required properties and forbids others, unless the schema defines additional ones.
fn close(out: &mut Object) {
    if out.contains_key("additionalProperties") {
        return;
    }
    let required: Vec<String> = required(out).map(str::to_owned).collect();
    if let Some(Value::Object(properties)) = out.get_mut("properties") {
        for name in required {
            properties.entry(name).or_insert(Value::Bool(true));
        }
    }
    out.insert("additionalProperties".to_owned(), Value::Bool(false));
}

/// Name patterns can be expressed if no name matches two of them.
fn patterns_have_grammar(out: &Object) -> bool {
    let patterns = out.get("patternProperties").and_then(Value::as_object);
    let patterns: Vec<&str> = patterns.into_iter().flat_map(Map::keys).map(String::as_str).collect();
    patterns.iter().all(|pattern| full_match(pattern).is_some())
        && (patterns.len() < 2 || are_disjoint(patterns.into_iter()))
}

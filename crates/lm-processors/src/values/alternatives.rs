//! Alternatives of a schema.

use super::schema::{Schema, Types};

/// Maximum number of alternatives of a schema.
const MAX_ALTERNATIVES: usize = 64;
/// Maximum depth of references and combinations that are expanded, and maximum number of schemas.
const MAX_DEPTH: usize = 8;
const MAX_STEPS: usize = 1_000;

/// One alternative of a schema: schemas that all apply, whose own alternatives have been chosen.
#[derive(Debug, Clone)]
pub(crate) struct Alternative<'a>(Vec<Schema<'a>>);

impl<'a> Alternative<'a> {
    /// Types that all its schemas allow, their alternatives aside; all if they have none in common.
    pub(crate) fn types(&self) -> Types {
        let common = self.0.iter().fold(Types::ANY, |types, schema| types.and(schema.own_types()));
        if common == Types::NONE { Types::ANY } else { common }
    }

    /// Schema of a property, if one of its schemas defines it.
    pub(crate) fn property(&self, key: &str) -> Option<Schema<'a>> {
        self.0.iter().find_map(|schema| schema.own_property(key))
    }

    /// Schemas of a property, which all apply.
    pub(super) fn properties(&self, key: &str) -> Vec<Schema<'a>> {
        self.0.iter().filter_map(|schema| schema.own_property(key)).collect()
    }

    /// Schema of an array's elements.
    pub(crate) fn items(&self) -> Option<Schema<'a>> {
        self.0.iter().find_map(|schema| schema.own_items())
    }
}

impl<'a> Schema<'a> {
    /// The alternatives of the schema, in order; the first ones if there are more than 64.
    pub(crate) fn alternatives(self) -> Vec<Alternative<'a>> {
        self.expanded(MAX_DEPTH, &mut { MAX_STEPS }).into_iter().map(Alternative).collect()
    }

    fn expanded(self, depth: usize, steps: &mut usize) -> Vec<Vec<Self>> {
        let mut found = vec![vec![self]];
        let (Some(depth), Some(left)) = (depth.checked_sub(1), steps.checked_sub(1)) else { return found };
        *steps = left;
        let parts = self.reference().into_iter().chain(self.branches("allOf"));
        for part in parts {
            found = product(&found, &part.expanded(depth, steps));
        }
        for key in ["anyOf", "oneOf"] {
            let mut options = Vec::new();
            for option in self.branches(key).take(MAX_ALTERNATIVES) {
                options.extend(option.expanded(depth, steps));
            }
            if !options.is_empty() {
                found = product(&found, &options);
            }
        }
        found
    }
}

/// Every pair of `these` and `those`, joined.
fn product<T: Clone>(these: &[Vec<T>], those: &[Vec<T>]) -> Vec<Vec<T>> {
    let joined = those.iter().flat_map(|other| these.iter().map(|one| [&one[..], other].concat()));
    joined.take(MAX_ALTERNATIVES).collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::values::SchemaCache;

    #[test]
    fn alternatives_are_those_of_unions_and_references() {
        let schema = json!({
            "properties": {"own": {"type": "null"}},
            "anyOf": [
                {"$ref": "#/$defs/list"},
                {"properties": {"a": {"type": "integer"}}},
                {"allOf": [{"oneOf": [{"properties": {"a": {"type": "string"}}}, {"items": {"type": "null"}}]}]},
            ],
            "$defs": {"list": {"items": {"type": "boolean"}}},
        });
        let cache = SchemaCache::default();
        let alternatives = Schema::new(&schema, &cache).alternatives();
        let types = |schema: Option<Schema<'_>>| schema.map(Schema::types);
        let items: Vec<_> = alternatives.iter().map(|one| types(one.items())).collect();
        assert_eq!(items, [Some(Types::BOOLEAN), None, None, Some(Types::NULL)]);
        let a: Vec<_> = alternatives.iter().map(|one| types(one.property("a"))).collect();
        assert_eq!(a, [None, Some(Types::INTEGER), Some(Types::STRING), None]);
        assert!(alternatives.iter().all(|one| types(one.property("own")) == Some(Types::NULL)));
    }

    #[test]
    fn alternatives_are_bounded() {
        let many = vec![json!({"$ref": "#"}); 100];
        let schema = json!({"anyOf": many, "allOf": [{"anyOf": many}, {"oneOf": many}]});
        assert_eq!(Schema::new(&schema, &SchemaCache::default()).alternatives().len(), MAX_ALTERNATIVES);
    }
}

//! The schemas that a validator applies together with a schema: to the same value, or to parts of it.

use lm_template::Value;
use referencing::{Draft, Resolver};

use super::document::escaped;
use super::keywords::{IN_PLACE, MAPS};

/// Keywords that refer to a schema for the value itself.
const REFERENCES: &[&str] = &["$dynamicRef", "$recursiveRef", "$ref"];

/// Schema of a document.
pub(super) struct Located<'r> {
    pub(super) schema: &'r Value,
    /// Location, as a JSON pointer in URI form.
    pub(super) path: String,
    /// Resolves references as the validator does, relative to the nearest `$id`.
    resolver: Resolver<'r>,
    draft: Draft,
}

impl<'r> Located<'r> {
    pub(super) fn new(schema: &'r Value, path: String, resolver: Resolver<'r>, draft: Draft) -> Self {
        let draft = draft.detect(schema);
        let resolver = resolver.in_subresource(draft.create_resource_ref(schema)).unwrap_or(resolver);
        Self { schema, path, resolver, draft }
    }

    /// Schemas of a keyword, with their keys: names, indices, or nothing for a single schema.
    pub(super) fn schemas(&self, keyword: &str) -> Vec<(String, Self)> {
        let schemas: Vec<(String, &Value)> = match self.schema.get(keyword) {
            None => Vec::new(),
            Some(Value::Array(list)) => {
                list.iter().enumerate().map(|(index, schema)| (index.to_string(), schema)).collect()
            }
            Some(Value::Object(map)) if MAPS.contains(&keyword) => {
                map.iter().map(|(name, schema)| (name.clone(), schema)).collect()
            }
            Some(schema) => vec![(String::new(), schema)],
        };
        let located = |(key, schema): (String, &'r Value)| {
            let at = if key.is_empty() { String::new() } else { format!("/{}", escaped(&key)) };
            let path = format!("{}/{keyword}{at}", self.path);
            (key, Self::new(schema, path, self.resolver.clone(), self.draft))
        };
        schemas.into_iter().map(located).collect()
    }

    /// Schemas that apply to the same value.
    pub(super) fn in_place(&self) -> Vec<Self> {
        let schemas = IN_PLACE.iter().flat_map(|keyword| self.schemas(keyword)).map(|(_, schema)| schema);
        schemas.chain(REFERENCES.iter().filter_map(|keyword| self.referenced(keyword))).collect()
    }

    /// Number of times that the schemas in place apply: `unevaluatedProperties` and `unevaluatedItems` ask
    /// them again which parts they evaluate.
    pub(super) fn rounds(&self) -> u64 {
        let has = |keyword| u64::from(self.schema.get(keyword).is_some());
        1 + 2 * (has("unevaluatedProperties") + has("unevaluatedItems"))
    }

    fn referenced(&self, keyword: &str) -> Option<Self> {
        let reference = self.schema.get(keyword)?.as_str()?;
        let found = match keyword {
            "$recursiveRef" => self.resolver.lookup_recursive_ref(),
            _ => self.resolver.lookup(reference),
        };
        // A reference that leads nowhere is an error of the validator.
        let (schema, resolver, draft) = found.ok()?.into_inner();
        let path = match reference.starts_with('#') {
            true => reference.to_owned(),
            false => format!("{}/{keyword}", self.path),
        };
        Some(Self::new(schema, path, resolver, draft))
    }
}

//! Compiled parts of the schemas that values are read by.

use std::collections::HashMap;
use std::ptr::from_ref;
use std::sync::{Arc, Mutex, PoisonError};

use serde_json::{Value, json};

use crate::schema::{SchemaValidator, validator};

/// Maximum number of schemas, and of name patterns, that are compiled.
const MAX_VALIDATORS: usize = 64;
const MAX_PATTERNS: usize = 256;

/// Validators of schemas and patterns of names, compiled once for all values of a reply. It belongs to the
/// declared tools of one parser: a schema is known by its address.
#[derive(Debug, Default)]
pub(crate) struct SchemaCache {
    validators: Compiled,
    patterns: Compiled,
}

#[derive(Debug, Default)]
struct Compiled(Mutex<HashMap<usize, Option<Arc<SchemaValidator>>>>);

impl SchemaCache {
    /// Validator of `schema`, which `compile` builds; `None` if it cannot be built, or too many others were.
    pub(super) fn validator(
        &self,
        schema: &Value,
        compile: impl FnOnce() -> Option<SchemaValidator>,
    ) -> Option<Arc<SchemaValidator>> {
        self.validators.get(schema, MAX_VALIDATORS, compile)
    }

    /// Returns true if `pattern` is found in `name`; `schema` is the schema of its names. Patterns beyond the
    /// 256th are found in none.
    pub(super) fn finds(&self, pattern: &str, schema: &Value, name: &str) -> bool {
        let compile = || validator(&json!({"pattern": pattern}), false).ok();
        let validator = self.patterns.get(schema, MAX_PATTERNS, compile);
        validator.is_some_and(|validator| validator.is_valid(&name.into()))
    }
}

impl Compiled {
    fn get(
        &self,
        schema: &Value,
        max: usize,
        compile: impl FnOnce() -> Option<SchemaValidator>,
    ) -> Option<Arc<SchemaValidator>> {
        let mut compiled = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let key = from_ref(schema).addr();
        if !compiled.contains_key(&key) && compiled.len() == max {
            return None;
        }
        compiled.entry(key).or_insert_with(|| compile().map(Arc::new)).clone()
    }
}

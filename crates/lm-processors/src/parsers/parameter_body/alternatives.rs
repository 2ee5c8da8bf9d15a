//! Schemas of an argument by the alternatives of the tool's schema.

use lm_template::Value;

use super::ParameterBody;
use crate::parsers::body::Fault;
use crate::values::{Schema, Types};

impl ParameterBody {
    /// Schemas that an argument may have: by each alternative of the tool's schema that the arguments so far fit.
    pub(super) fn schemas(&self, key: &str) -> Vec<Schema<'_>> {
        let Some(schema) = self.schema() else { return Vec::new() };
        let alternatives = schema.alternatives();
        let mut found: Vec<Schema<'_>> = Vec::new();
        for schema in self.fitting.iter().filter_map(|at| alternatives.get(*at)?.property(key)) {
            if !found.iter().any(|known| known.is(schema)) {
                found.push(schema);
            }
        }
        if found.is_empty() { schema.property(key).into_iter().collect() } else { found }
    }

    /// Types that an argument may have.
    pub(super) fn types(&self, key: &str) -> Types {
        let types = self.schemas(key).into_iter().map(Schema::types).reduce(Types::or);
        types.unwrap_or(Types::ANY)
    }

    /// Value of the current argument: the first reading that fits its schema, a string last.
    pub(super) fn value_of<'a>(
        &'a self,
        read: impl Fn(Option<Schema<'a>>) -> Result<Value, Fault>,
    ) -> Result<Value, Fault> {
        let schemas = self.schemas(&self.key);
        if schemas.len() < 2 {
            return read(schemas.first().copied());
        }
        let readings = schemas.iter().map(|schema| Ok((*schema, read(Some(*schema))?)));
        let mut readings: Vec<_> = readings.collect::<Result<_, Fault>>()?;
        readings.sort_by_key(|(_, value)| value.is_string());
        let fitting = readings.iter().position(|(schema, value)| schema.fits(value));
        Ok(readings.swap_remove(fitting.unwrap_or_default()).1)
    }

    /// Drops the alternatives of the tool's schema that the current argument does not fit, unless none is left.
    pub(super) fn narrow(&mut self, value: &Value) {
        if self.fitting.len() < 2 {
            return;
        }
        let alternatives = self.schema().map(Schema::alternatives).unwrap_or_default();
        let fits = |at: &usize| {
            let schema = alternatives.get(*at).and_then(|alternative| alternative.property(&self.key));
            schema.is_none_or(|schema| schema.fits(value))
        };
        let left: Vec<usize> = self.fitting.iter().copied().filter(fits).collect();
        if !left.is_empty() {
            self.fitting = left;
        }
    }
}

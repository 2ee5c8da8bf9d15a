//! Arguments of a call, read by the alternatives of its tool's schema.

use serde_json::Value;

use super::schema::{Schema, Types};
use crate::json_text::json_text;
use crate::marker_guard::{guarded, unguarded};

/// Maximum number of readings of a call.
const MAX_READINGS: usize = 16;

/// JSON text of a call's arguments, with the alternatives of the tool's schema that they fit.
///
/// The arguments after it decide about an argument that the alternatives read as different values: no further
/// text is certain until one reading is left, or the call ends.
#[derive(Debug)]
pub(crate) struct Readings {
    /// Text of all readings.
    certain: String,
    /// The likeliest reading is the first; there is at least one.
    open: Vec<Reading>,
}

#[derive(Debug, Clone, Default)]
struct Reading {
    /// Text after the certain text.
    rest: String,
    /// Alternatives that the arguments fit, by number.
    fitting: Vec<usize>,
}

/// Value of an argument by one alternative, and true if it fits; `None` if the alternative does not describe
/// the argument.
type ByAlternative = Option<(Value, bool)>;

impl Default for Readings {
    fn default() -> Self {
        Self { certain: String::new(), open: vec![Reading::default()] }
    }
}

impl Readings {
    /// Creates the readings of a call without arguments; `schema` is that of the arguments.
    pub(crate) fn of(schema: Option<Schema<'_>>) -> Self {
        let alternatives = schema.map_or(0, |schema| schema.alternatives().len());
        let reading = Reading { rest: String::new(), fitting: (0..alternatives).collect() };
        Self { certain: String::new(), open: vec![reading] }
    }

    /// The JSON text that is certain.
    pub(crate) fn certain(&self) -> &str {
        &self.certain
    }

    /// Appends the text that `write` appends.
    pub(crate) fn write(&mut self, write: impl Fn(&mut String)) {
        match &mut self.open[..] {
            [_] => write(&mut self.certain),
            several => several.iter_mut().for_each(|reading| write(&mut reading.rest)),
        }
    }

    /// Schemas that the argument `key` may have.
    pub(crate) fn schemas<'a>(&self, schema: Option<Schema<'a>>, key: &str) -> Vec<Schema<'a>> {
        let described: Vec<Schema<'a>> = self.arguments(schema, key).into_iter().flatten().collect();
        if described.is_empty() {
            schema.and_then(|schema| schema.property(key)).into_iter().collect()
        } else {
            described
        }
    }

    /// Types that the argument `key` may have; `None` without a schema of it.
    pub(crate) fn types(&self, schema: Option<Schema<'_>>, key: &str) -> Option<Types> {
        let described = self.arguments(schema, key).into_iter().filter(|schemas| !schemas.is_empty());
        let types = described.map(|schemas| common_types(&schemas)).reduce(Types::or);
        types.or_else(|| Some(schema?.property(key)?.types()))
    }

    /// Schemas of the argument `key` by each alternative with a matching reading.
    fn arguments<'a>(&self, schema: Option<Schema<'a>>, key: &str) -> Vec<Vec<Schema<'a>>> {
        let alternatives = schema.map(Schema::alternatives).unwrap_or_default();
        let fits = |at: usize| self.open.iter().any(|reading| reading.fitting.contains(&at));
        let alternatives = alternatives.iter().enumerate();
        alternatives.map(|(at, one)| if fits(at) { one.properties(key) } else { Vec::new() }).collect()
    }

    /// Appends the value of the argument `key`; `read` returns its value by one schema.
    ///
    /// # Errors
    /// Same errors as `read`.
    pub(crate) fn value<'a, E>(
        &mut self,
        schema: Option<Schema<'a>>,
        key: &str,
        read: impl Fn(Option<Schema<'a>>) -> Result<Value, E>,
    ) -> Result<(), E> {
        let arguments = self.arguments(schema, key);
        let mut values: Vec<ByAlternative> = Vec::new();
        for (at, schemas) in arguments.iter().enumerate() {
            let known = arguments[..at].iter().position(|other| same(other, schemas));
            values.push(match known {
                Some(known) => values[known].clone(),
                None if schemas.is_empty() => None,
                None => Some(self.value_of(schemas, &read)?),
            });
        }
        let first = values.iter().flatten().map(|(value, _)| value).min_by_key(|value| value.is_string());
        let first = match first {
            Some(value) => value.clone(),
            None => read(schema.and_then(|schema| schema.property(key)))?,
        };
        self.take(&values, &first, |value| guarded(&json_text(value)).into_owned());
        Ok(())
    }

    /// Value by schemas that all apply, and true if it fits them or is the only one.
    fn value_of<'a, E>(
        &self,
        schemas: &[Schema<'a>],
        read: impl Fn(Option<Schema<'a>>) -> Result<Value, E>,
    ) -> Result<(Value, bool), E> {
        let mut values: Vec<Value> =
            schemas.iter().map(|schema| read(Some(*schema))).collect::<Result<_, E>>()?;
        if values.len() == 1 && !self.decides() {
            return Ok((values.swap_remove(0), true));
        }
        let fitting = values.iter().position(|value| schemas.iter().all(|schema| schema.fits(value)));
        Ok((values.swap_remove(fitting.unwrap_or_default()), fitting.is_some()))
    }

    /// Drops the alternatives that the argument `key` does not fit with this value, which is written.
    pub(crate) fn narrow(&mut self, schema: Option<Schema<'_>>, key: &str, value: &Value) {
        if !self.decides() {
            return;
        }
        let by_schemas = |schemas: &Vec<Schema<'_>>| {
            let fits = || schemas.iter().all(|schema| schema.fits(value));
            (!schemas.is_empty()).then(|| (value.clone(), fits()))
        };
        let values: Vec<ByAlternative> = self.arguments(schema, key).iter().map(by_schemas).collect();
        self.take(&values, value, |_| String::new());
    }

    /// Returns true if there are several readings or alternatives.
    fn decides(&self) -> bool {
        self.open.len() > 1 || self.open.iter().any(|reading| reading.fitting.len() > 1)
    }

    /// Continues every reading by the values that fit its alternatives; those without such a value are
    /// dropped if others have one.
    fn take(&mut self, values: &[ByAlternative], first: &Value, text: impl Fn(&Value) -> String) {
        let mut found: Vec<(bool, Reading)> =
            self.open.iter().flat_map(|reading| reading.continued(values, first, &text)).collect();
        let some_fit = found.iter().any(|(fits, _)| *fits);
        found.retain(|(fits, _)| *fits || !some_fit);
        self.open = found.into_iter().map(|(_, reading)| reading).take(MAX_READINGS).collect();
        self.settle();
    }

    /// Makes the text of a single reading certain.
    fn settle(&mut self) {
        if let [reading] = &mut self.open[..] {
            self.certain.push_str(&std::mem::take(&mut reading.rest));
        }
    }

    /// Ends the call: of several readings, the first one that fits `schema` as a whole is the call.
    pub(crate) fn end(&mut self, schema: Option<Schema<'_>>) {
        let fits = |reading: &Reading| {
            let value = serde_json::from_str(&unguarded(&format!("{}{}", self.certain, reading.rest)));
            value.is_ok_and(|value| schema.is_none_or(|schema| schema.fits(&value)))
        };
        if self.open.len() > 1 {
            let first = self.open.iter().position(fits).unwrap_or_default();
            self.open = vec![self.open.swap_remove(first)];
            self.settle();
        }
    }
}

impl Reading {
    /// The reading with each value that fits its alternatives, strings last; with `first` if none does. The
    /// second part of each pair has the alternatives with this value, and those that do not describe it.
    fn continued(
        &self,
        values: &[ByAlternative],
        first: &Value,
        text: impl Fn(&Value) -> String,
    ) -> Vec<(bool, Self)> {
        let by = |at: &usize| values.get(*at).and_then(Option::as_ref);
        let silent: Vec<usize> = self.fitting.iter().copied().filter(|at| by(at).is_none()).collect();
        let mut found: Vec<(&Value, Vec<usize>)> = Vec::new();
        for at in &self.fitting {
            let Some((value, true)) = by(at) else { continue };
            match found.iter_mut().find(|(known, _)| known == &value) {
                Some((_, alternatives)) => alternatives.push(*at),
                None => found.push((value, [&[*at], &silent[..]].concat())),
            }
        }
        let with = |value: &Value, fitting| Self { rest: format!("{}{}", self.rest, text(value)), fitting };
        if found.is_empty() {
            let left = if silent.is_empty() { self.fitting.clone() } else { silent };
            return vec![(false, with(first, left))];
        }
        found.sort_by_key(|(value, _)| value.is_string());
        found.into_iter().map(|(value, fitting)| (true, with(value, fitting))).collect()
    }
}

/// Types that all schemas allow; all if they have none in common.
fn common_types(schemas: &[Schema<'_>]) -> Types {
    let common = schemas.iter().fold(Types::ANY, |types, schema| types.and(schema.types()));
    if common == Types::NONE { Types::ANY } else { common }
}

/// Returns true if both are the same parts of one document.
fn same(these: &[Schema<'_>], those: &[Schema<'_>]) -> bool {
    these.len() == those.len() && these.iter().zip(those).all(|(one, other)| one.is(*other))
}

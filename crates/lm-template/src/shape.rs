//! The layout of a JSON object that was read: its key order and the keys nobody here knows.

use serde_json::{Map, Value};

/// A JSON object with the values of its known keys taken out (null stands in their place).
///
/// Writing fills the known keys in again, so that order and unknown keys survive the way through a typed value.
/// Two shapes are equal when their unknown keys are: layout is not part of a message's meaning.
#[derive(Debug, Clone, Default)]
pub(crate) struct Shape {
    object: Map<String, Value>,
    known: &'static [&'static str],
}

impl Shape {
    /// A shape without a layout of its own.
    pub(crate) fn new(known: &'static [&'static str]) -> Self {
        Self { object: Map::new(), known }
    }

    /// Keeps the layout of `object`, and hands out the values of the `known` keys it has, in the order of `known`.
    pub(crate) fn split<const N: usize>(
        mut object: Map<String, Value>,
        known: &'static [&'static str; N],
    ) -> (Self, [Option<Value>; N]) {
        let values = known.map(|key| object.get_mut(key).map(Value::take));
        (Self { object, known }, values)
    }

    /// Whether the object that was read had this key.
    pub(crate) fn has(&self, key: &str) -> bool {
        self.object.contains_key(key)
    }

    /// The object again: `fields` at the places their keys had, those that are new at the end, absent ones left out.
    pub(crate) fn fill<const N: usize>(
        &self,
        fields: [(&'static str, Option<Value>); N],
    ) -> Map<String, Value> {
        let mut object = self.object.clone();
        for (key, value) in fields {
            match value {
                Some(value) => drop(object.insert(key.to_owned(), value)),
                None => drop(object.shift_remove(key)),
            }
        }
        object
    }

    /// An unknown key's value.
    pub(crate) fn get(&self, key: &str) -> Option<&Value> {
        if self.known.contains(&key) { None } else { self.object.get(key) }
    }

    /// Sets an unknown key; known keys are the business of their typed field.
    pub(crate) fn set(&mut self, key: String, value: Value) {
        if !self.known.contains(&key.as_str()) {
            self.object.insert(key, value);
        }
    }

    /// The unknown keys, in order.
    pub(crate) fn unknown(&self) -> impl Iterator<Item = (&String, &Value)> {
        self.object.iter().filter(|(key, _)| !self.known.contains(&key.as_str()))
    }
}

impl PartialEq for Shape {
    fn eq(&self, other: &Self) -> bool {
        self.unknown().count() == other.unknown().count()
            && self.unknown().all(|(key, value)| other.get(key) == Some(value))
    }
}

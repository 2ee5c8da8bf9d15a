//! Layout of a JSON object that was read: key order and unknown keys.

use serde_json::{Map, Value};
use std::fmt;

/// A JSON object whose known keys have null for their values.
///
/// Writing fills the known keys in again, so that order and unknown keys survive a round trip through a typed
/// value. Two layouts are equal if their unknown keys are: layout is not part of a message's meaning.
#[derive(Clone, Default)]
pub(crate) struct JsonLayout {
    object: Map<String, Value>,
    known: &'static [&'static str],
}

impl JsonLayout {
    /// Creates an empty layout.
    pub(crate) fn new(known: &'static [&'static str]) -> Self {
        Self { object: Map::new(), known }
    }

    /// Keeps the layout of `object` and returns the values of its `known` keys, in the order of `known`.
    pub(crate) fn split<const N: usize>(
        mut object: Map<String, Value>,
        known: &'static [&'static str; N],
    ) -> (Self, [Option<Value>; N]) {
        let values = known.map(|key| object.get_mut(key).map(Value::take));
        (Self { object, known }, values)
    }

    /// Returns true if the object had this key when read.
    pub(crate) fn has(&self, key: &str) -> bool {
        self.object.contains_key(key)
    }

    /// Rebuilds the object: `fields` at the positions of their keys, new ones at the end, absent ones
    /// omitted.
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

    /// The value of an unknown key.
    pub(crate) fn get(&self, key: &str) -> Option<&Value> {
        if self.known.contains(&key) { None } else { self.object.get(key) }
    }

    /// Sets an unknown key; known keys are ignored, since they have typed fields.
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

/// The unknown keys.
impl fmt::Debug for JsonLayout {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_map().entries(self.unknown()).finish()
    }
}

impl PartialEq for JsonLayout {
    fn eq(&self, other: &Self) -> bool {
        self.unknown().count() == other.unknown().count()
            && self.unknown().all(|(key, value)| other.get(key) == Some(value))
    }
}

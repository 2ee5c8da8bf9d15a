//! Python's dicts: any hashable key, in order of insertion.

use std::collections::HashMap;
use std::collections::hash_map::Entry;

use super::error::{Error, Result};
use super::limits::Limits;
use super::text::Text;
use super::value::{Value, check_depth};

/// What an entry costs in memory, about.
pub(super) const ENTRY_BYTES: usize = 320;

/// A dict.
#[derive(Debug, Default)]
pub(crate) struct Dict {
    entries: Vec<(Value, Value)>,
    places: HashMap<Key, usize>,
    depth: usize,
}

/// A key as it is compared: numbers of one value are one key, and the origin of text does not matter.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) enum Key {
    Undefined,
    None,
    Int(i128),
    /// The bits of a float that is not an integer.
    Float(u64),
    Text(TextKey),
    Tuple(Vec<Key>),
}

/// A text that is compared by its characters.
#[derive(Debug, Clone)]
pub(crate) struct TextKey(Text);

impl Eq for TextKey {}

impl PartialEq for TextKey {
    fn eq(&self, other: &Self) -> bool {
        self.0.as_str() == other.0.as_str()
    }
}

impl std::hash::Hash for TextKey {
    fn hash<H: std::hash::Hasher>(&self, state: &mut H) {
        self.0.as_str().hash(state);
    }
}

impl Key {
    /// The key of a value; lists and dicts have none.
    pub(crate) fn of(value: &Value, limits: &Limits) -> Result<Self> {
        limits.step()?;
        Ok(match value {
            Value::Undefined(_) => Key::Undefined,
            Value::None => Key::None,
            Value::Bool(value) => Key::Int(i128::from(*value)),
            Value::Int(value) => Key::Int(*value),
            Value::Float(value) if value.fract() == 0.0 && value.abs() < 1e38 => Key::Int(*value as i128),
            Value::Float(value) => Key::Float(value.to_bits()),
            Value::Text(text) => {
                limits.read(text.len())?;
                Key::Text(TextKey(text.clone()))
            }
            Value::Tuple(items) => {
                limits.build(items.values.len() * size_of::<Key>())?;
                Key::Tuple(items.values.iter().map(|item| Key::of(item, limits)).collect::<Result<_>>()?)
            }
            other => return Err(Error::runtime(format!("unhashable type: '{}'", other.type_name()))),
        })
    }
}

impl Dict {
    /// Adds an entry; one with an equal key keeps that key and its place.
    pub(crate) fn insert(&mut self, key: Value, value: Value, limits: &Limits) -> Result<()> {
        let depth = 1 + key.depth().max(value.depth());
        check_depth(depth)?;
        limits.build(ENTRY_BYTES)?;
        self.depth = self.depth.max(depth);
        match self.places.entry(Key::of(&key, limits)?) {
            Entry::Occupied(place) => self.entries[*place.get()].1 = value,
            Entry::Vacant(place) => {
                place.insert(self.entries.len());
                self.entries.push((key, value));
            }
        }
        Ok(())
    }

    /// The value under a key that can be one.
    pub(crate) fn get(&self, key: &Value, limits: &Limits) -> Result<Option<&Value>> {
        let place = self.places.get(&Key::of(key, limits)?);
        Ok(place.map(|place| &self.entries[*place].1))
    }

    /// The entries in their order.
    pub(crate) fn entries(&self) -> &[(Value, Value)] {
        &self.entries
    }

    pub(crate) fn len(&self) -> usize {
        self.entries.len()
    }

    pub(crate) fn depth(&self) -> usize {
        self.depth.max(1)
    }
}

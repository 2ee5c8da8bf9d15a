//! Python's dicts: any hashable key, in insertion order.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::rc::Rc;
use std::sync::Arc;

use super::function::Function;
use super::ids::ObjectId;
use super::value::{Value, check_depth};
use crate::budget::Budget;
use crate::error::{BoxedResult as Result, Error};
use crate::text::Text;

/// Approximate memory of an entry.
pub(crate) const ENTRY_BYTES: usize = 320;

/// A Python dict.
#[derive(Debug, Default)]
pub(crate) struct Dict {
    entries: Vec<(Value, Value)>,
    indices: HashMap<Key, usize>,
    depth: usize,
}

/// A key under Python's equality: equal numbers are one key, and the origin of text is ignored.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) enum Key {
    Undefined,
    None,
    Int(i128),
    /// Bits of a float that is not an integer.
    Float(u64),
    Text(TextKey),
    Tuple(Vec<Key>),
    /// Length, first item and step; `None` where Python ignores them.
    Range(usize, Option<i128>, Option<i64>),
    Function(Function),
    Object(ObjectId),
    /// Address of a macro or generator, which are equal only to themselves.
    Address(usize),
}

/// A text compared by its characters.
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
    /// The key of a value; an error for unhashable values, such as lists and dicts.
    pub(crate) fn of(value: &Value, budget: &Budget) -> Result<Self> {
        budget.step()?;
        Ok(match value {
            Value::Undefined(_) => Key::Undefined,
            Value::None => Key::None,
            Value::Bool(value) => Key::Int(i128::from(*value)),
            Value::Int(value) => Key::Int(*value),
            Value::Float(value) if value.fract() == 0.0 && value.abs() < 1e38 => Key::Int(*value as i128),
            Value::Float(value) => Key::Float(value.to_bits()),
            Value::Text(text) => {
                budget.read(text.len())?;
                Key::Text(TextKey(text.clone()))
            }
            Value::Tuple(items) => {
                budget.build(items.values.len() * size_of::<Key>())?;
                Key::Tuple(items.values.iter().map(|item| Key::of(item, budget)).collect::<Result<_>>()?)
            }
            Value::Range(range) => {
                let len = range.len();
                Key::Range(len, (len > 0).then(|| range.get(0)), (len > 1).then_some(range.step))
            }
            Value::Function(function) => Key::Function(*function),
            Value::Object(id) => Key::Object(*id),
            Value::Macro(definition) => Key::Address(Rc::as_ptr(definition).addr()),
            Value::Block(block) => Key::Address(Arc::as_ptr(block).addr()),
            Value::Generator(generator) => Key::Address(Rc::as_ptr(generator).addr()),
            Value::View(view) if view.name == "dict_values" => Key::Address(Rc::as_ptr(view).addr()),
            other => return Err(Error::runtime(format!("unhashable type: '{}'", other.type_name()))),
        })
    }
}

impl Dict {
    /// Inserts an entry. An entry with an equal key is overwritten: its key and position stay.
    pub(crate) fn insert(&mut self, key: Value, value: Value, budget: &Budget) -> Result<()> {
        let depth = 1 + key.depth().max(value.depth());
        check_depth(depth)?;
        budget.build(ENTRY_BYTES)?;
        self.depth = self.depth.max(depth);
        match self.indices.entry(Key::of(&key, budget)?) {
            Entry::Occupied(index) => self.entries[*index.get()].1 = value,
            Entry::Vacant(index) => {
                index.insert(self.entries.len());
                self.entries.push((key, value));
            }
        }
        Ok(())
    }

    /// The value of a key; an error if the key is unhashable.
    pub(crate) fn get(&self, key: &Value, budget: &Budget) -> Result<Option<&Value>> {
        let index = self.indices.get(&Key::of(key, budget)?);
        Ok(index.map(|index| &self.entries[*index].1))
    }

    /// The entries in insertion order.
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

//! JSON objects as templates see them.

use std::collections::HashMap;
use std::sync::Arc;

use minijinja::Value;
use minijinja::value::{Enumerator, Object, ObjectRepr};

use super::marked::unmark;

/// An object in its own key order. A key is found by its own name and by the marked one that templates see.
#[derive(Debug)]
pub(crate) struct Dict {
    entries: Vec<(Value, Value)>,
    places: HashMap<String, usize>,
}

impl Dict {
    /// An object with these keys, each as it is named and as templates see it, and their values.
    pub(crate) fn new(entries: impl IntoIterator<Item = (String, String, Value)>) -> Self {
        let mut this = Self { entries: Vec::new(), places: HashMap::new() };
        for (name, shown, value) in entries {
            this.places.insert(name, this.entries.len());
            this.places.entry(unmark(&shown)).or_insert(this.entries.len());
            this.entries.push((Value::from(shown), value));
        }
        this
    }
}

impl Object for Dict {
    fn repr(self: &Arc<Self>) -> ObjectRepr {
        ObjectRepr::Map
    }

    fn get_value(self: &Arc<Self>, key: &Value) -> Option<Value> {
        let place = self.places.get(&unmark(key.as_str()?))?;
        Some(self.entries[*place].1.clone())
    }

    fn enumerate(self: &Arc<Self>) -> Enumerator {
        Enumerator::Values(self.entries.iter().map(|(key, _)| key.clone()).collect())
    }
}

//! Mutable objects. They live as long as the rendering, so that reference cycles are harmless.

use super::Interpreter;
use super::loops::Loop;
use crate::dict::Dict;
use crate::error::BoxedResult as Result;
use crate::text::Text;
use crate::value::Value;

/// Approximate memory of an object.
const OBJECT_BYTES: usize = 768;

/// Index of an object.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct ObjectId(usize);

/// A mutable object.
#[derive(Debug)]
pub(crate) enum Object {
    Namespace(Dict),
    Cycler { items: Vec<Value>, at: usize },
    Joiner { separator: Text, used: bool },
    Loop(Box<Loop>),
}

impl Interpreter<'_> {
    /// Adds an object.
    pub(crate) fn add_object(&mut self, object: Object) -> Result<ObjectId> {
        self.budget.build(OBJECT_BYTES)?;
        self.objects.push(object);
        Ok(ObjectId(self.objects.len() - 1))
    }

    pub(crate) fn object(&self, id: ObjectId) -> &Object {
        &self.objects[id.0]
    }

    pub(crate) fn object_mut(&mut self, id: ObjectId) -> &mut Object {
        &mut self.objects[id.0]
    }

    /// Returns the current item of a cycler, then advances it.
    pub(super) fn next_of_cycler(&mut self, id: ObjectId) -> Value {
        match self.object_mut(id) {
            Object::Cycler { items, at } => {
                let item = items[*at % items.len()].clone();
                *at = (*at + 1) % items.len();
                item
            }
            _ => Value::None,
        }
    }

    /// Calls a joiner: empty the first time, then its separator.
    pub(super) fn next_of_joiner(&mut self, id: ObjectId) -> Value {
        match self.object_mut(id) {
            Object::Joiner { separator, used } => {
                let first = !std::mem::replace(used, true);
                if first { Value::text("") } else { Value::Text(separator.clone()) }
            }
            _ => Value::None,
        }
    }
}

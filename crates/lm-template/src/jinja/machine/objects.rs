//! What changes while a template runs. Objects live as long as the rendering, so that cycles of them are harmless.

use super::Machine;
use super::loops::Loop;
use crate::jinja::dict::Dict;
use crate::jinja::error::Result;
use crate::jinja::text::Text;
use crate::jinja::value::Value;

/// What an object costs in memory, about.
const OBJECT_BYTES: usize = 768;

/// The place of an object.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct ObjectId(usize);

/// Something that changes.
#[derive(Debug)]
pub(crate) enum Object {
    Namespace(Dict),
    Cycler { items: Vec<Value>, at: usize },
    Joiner { separator: Text, used: bool },
    Loop(Box<Loop>),
}

impl Machine<'_> {
    /// Puts an object among the others.
    pub(crate) fn add_object(&mut self, object: Object) -> Result<ObjectId> {
        self.limits.build(OBJECT_BYTES)?;
        self.objects.push(object);
        Ok(ObjectId(self.objects.len() - 1))
    }

    pub(crate) fn object(&self, id: ObjectId) -> &Object {
        &self.objects[id.0]
    }

    pub(crate) fn object_mut(&mut self, id: ObjectId) -> &mut Object {
        &mut self.objects[id.0]
    }

    /// The item of a cycler that is current, after which it goes on.
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

    /// What a joiner gives: nothing the first time, then its separator.
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

//! Mutable objects. They live as long as the rendering, so that reference cycles are harmless.

use std::sync::Arc;

use super::Interpreter;
use crate::error::BoxedResult as Result;
use crate::syntax::ast::For;
use crate::text::Text;
use crate::values::{Cursor, Dict, ObjectId, ScopeId, Value};

/// Approximate memory of an object.
const OBJECT_BYTES: usize = 768;

/// A mutable object.
#[derive(Debug)]
pub(crate) enum Object {
    Namespace(Dict),
    Cycler { items: Vec<Value>, at: usize },
    Joiner { separator: Text, used: bool },
    Loop(Box<Loop>),
}

/// A running loop.
#[derive(Debug)]
pub(crate) struct Loop {
    pub(crate) node: Arc<For>,
    /// Scope of the loop.
    pub(crate) scope: ScopeId,
    pub(crate) cursor: Cursor,
    /// True if the items ahead have passed the loop's test already.
    pub(crate) tested: bool,
    /// Total number of items, if known.
    pub(crate) length: Option<usize>,
    /// Number of iterations started.
    pub(crate) index: usize,
    pub(crate) depth: usize,
    pub(crate) before: Option<Value>,
    pub(crate) current: Option<Value>,
    /// The next item, if it was fetched ahead.
    pub(crate) after: Option<Option<Value>>,
    /// Last arguments of `loop.changed`.
    pub(crate) last_changed: Option<Vec<Value>>,
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
    pub(crate) fn next_of_cycler(&mut self, id: ObjectId) -> Value {
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
    pub(crate) fn next_of_joiner(&mut self, id: ObjectId) -> Value {
        match self.object_mut(id) {
            Object::Joiner { separator, used } => {
                let first = !std::mem::replace(used, true);
                if first { Value::text("") } else { Value::Text(separator.clone()) }
            }
            _ => Value::None,
        }
    }
}

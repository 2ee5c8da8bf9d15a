//! Lazy results of `map`, `select` and similar filters: items are produced on demand, once.

use std::cell::RefCell;
use std::rc::Rc;

use super::args::Args;
use super::path::Path;
use super::value::{Items, Range, Value};
use crate::builtins::{FilterId, TestId};
use crate::text::Text;

/// An iterator's position.
#[derive(Debug)]
pub(crate) enum Cursor {
    Items(Rc<Items>, usize),
    Values(std::vec::IntoIter<Value>),
    Range(Range, usize),
    /// Characters, from a byte offset on.
    Text(Text, usize),
    Generator(Rc<Generator>),
}

impl Cursor {
    /// A cursor over owned values.
    pub(crate) fn values(values: Vec<Value>) -> Self {
        Cursor::Values(values.into_iter())
    }

    /// Nesting depth of the items.
    pub(crate) fn depth(&self) -> usize {
        match self {
            Cursor::Items(items, _) => items.inner_depth(),
            Cursor::Values(values) => values.as_slice().iter().map(Value::depth).max().unwrap_or(0),
            Cursor::Generator(generator) => generator.depth(),
            Cursor::Range(..) | Cursor::Text(..) => 0,
        }
    }
}

/// A lazy sequence of items.
#[derive(Debug)]
pub(crate) struct Generator {
    pub(crate) source: RefCell<Cursor>,
    pub(crate) operation: Operation,
    depth: usize,
}

/// Operation on each item of the source.
#[derive(Debug)]
pub(crate) enum Operation {
    /// Passes the item through.
    Pass,
    Filter(FilterId, Args),
    /// The item's attribute at the path, with a default for a missing one.
    Attribute(Path, Option<Value>),
    /// Keeps the item if it (or its attribute) passes the test, or is true without a test; `keep` = false
    /// inverts this.
    Select {
        attribute: Option<Path>,
        test: Option<(TestId, Args)>,
        keep: bool,
    },
}

impl Generator {
    pub(crate) fn new(source: Cursor, operation: Operation) -> Self {
        let given = match &operation {
            Operation::Filter(_, args) | Operation::Select { test: Some((_, args)), .. } => args.depth(),
            Operation::Attribute(_, Some(default)) => default.depth(),
            _ => 0,
        };
        let depth = 1 + source.depth().max(given);
        Self { source: RefCell::new(source), operation, depth }
    }

    /// Creates a generator that yields `values` in order.
    pub(crate) fn of(values: Vec<Value>) -> Self {
        Self::new(Cursor::values(values), Operation::Pass)
    }

    pub(crate) fn depth(&self) -> usize {
        self.depth
    }
}

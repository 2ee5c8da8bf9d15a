//! Lazy results of `map`, `select` and similar filters: items are produced on demand, once.

use std::cell::RefCell;

use super::args::Args;
use super::error::{BoxedResult as Result, Error};
use super::filters::{Filter, Path};
use super::interpreter::{Cursor, Interpreter};
use super::tests::Test;
use super::value::Value;

/// A lazy sequence of items.
#[derive(Debug)]
pub(crate) struct Generator {
    source: RefCell<Cursor>,
    operation: Operation,
    depth: usize,
}

/// Operation on each item of the source.
#[derive(Debug)]
pub(crate) enum Operation {
    /// Passes the item through.
    Pass,
    Filter(Filter, Args),
    /// The item's attribute at the path, with a default for a missing one.
    Attribute(Path, Option<Value>),
    /// Keeps the item if it (or its attribute) passes the test, or is true without a test; `keep` = false inverts this.
    Select {
        attribute: Option<Path>,
        test: Option<(Test, Args)>,
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

    /// A generator of existing items.
    pub(crate) fn of(values: Vec<Value>) -> Self {
        Self::new(Cursor::values(values), Operation::Pass)
    }

    pub(crate) fn depth(&self) -> usize {
        self.depth
    }

    /// Produces the next item.
    pub(crate) fn next(&self, interpreter: &mut Interpreter<'_>) -> Result<Option<Value>> {
        interpreter.budget.enter()?;
        let next = self.next_inner(interpreter);
        interpreter.budget.leave();
        next
    }

    fn next_inner(&self, interpreter: &mut Interpreter<'_>) -> Result<Option<Value>> {
        let mut source =
            self.source.try_borrow_mut().map_err(|_| Error::runtime("generator already executing"))?;
        while let Some(item) = interpreter.next(&mut source)? {
            if let Some(item) = self.operation.apply(interpreter, item)? {
                return Ok(Some(item));
            }
        }
        Ok(None)
    }
}

/// Copies the arguments, after counting the cost.
fn copied(args: &Args, interpreter: &Interpreter<'_>) -> Result<Args> {
    interpreter.budget.read(args.read_cost())?;
    Ok(args.clone())
}

impl Operation {
    fn apply(&self, interpreter: &mut Interpreter<'_>, item: Value) -> Result<Option<Value>> {
        Ok(match self {
            Operation::Pass => Some(item),
            Operation::Filter(filter, args) => {
                Some(interpreter.apply_filter(*filter, item, copied(args, interpreter)?)?)
            }
            Operation::Attribute(path, default) => Some(path.follow(interpreter, &item, default.as_ref())?),
            Operation::Select { attribute, test, keep } => {
                let subject = match attribute {
                    Some(path) => path.follow(interpreter, &item, None)?,
                    None => item.clone(),
                };
                let passes = match test {
                    Some((test, args)) => {
                        let args = copied(args, interpreter)?;
                        interpreter.apply_test(*test, &subject, args)?
                    }
                    None => interpreter.is_true(&subject),
                };
                (passes == *keep).then_some(item)
            }
        })
    }
}

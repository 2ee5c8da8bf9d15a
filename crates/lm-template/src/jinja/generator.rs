//! What `map`, `select` and their like give: items made when they are asked for, once.

use super::args::Args;
use super::error::{Error, Result};
use super::filters::{Filter, Path};
use super::machine::{Cursor, Machine};
use super::tests::Test;
use super::value::{Changing, Value};

/// Items on their way.
#[derive(Debug)]
pub(crate) struct Generator {
    source: Changing<Cursor>,
    operation: Operation,
    depth: usize,
}

/// What is done to each item of the source.
#[derive(Debug)]
pub(crate) enum Operation {
    /// Nothing.
    Pass,
    Filter(Filter, Args),
    /// Its attribute, with the value of one that is not there.
    Attribute(Path, Option<Value>),
    /// It passes when it, or its attribute, passes the test (or is true), or does not.
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
        Self { source: Changing::new(source), operation, depth }
    }

    /// Items that are made already.
    pub(crate) fn of(values: Vec<Value>) -> Self {
        Self::new(Cursor::values(values), Operation::Pass)
    }

    pub(crate) fn depth(&self) -> usize {
        self.depth
    }

    /// The next item.
    pub(crate) fn next(&self, machine: &mut Machine<'_>) -> Result<Option<Value>> {
        machine.limits.deeper()?;
        let next = self.next_inner(machine);
        machine.limits.back();
        next
    }

    fn next_inner(&self, machine: &mut Machine<'_>) -> Result<Option<Value>> {
        let mut source =
            self.source.try_borrow_mut().map_err(|_| Error::runtime("generator already executing"))?;
        while let Some(item) = machine.next(&mut source)? {
            if let Some(item) = self.operation.apply(machine, item)? {
                return Ok(Some(item));
            }
        }
        Ok(None)
    }
}

/// The arguments once more, counted before they are copied.
fn copied(args: &Args, machine: &Machine<'_>) -> Result<Args> {
    machine.limits.read(args.work())?;
    Ok(args.clone())
}

impl Operation {
    fn apply(&self, machine: &mut Machine<'_>, item: Value) -> Result<Option<Value>> {
        Ok(match self {
            Operation::Pass => Some(item),
            Operation::Filter(filter, args) => {
                Some(machine.apply_filter(*filter, item, copied(args, machine)?)?)
            }
            Operation::Attribute(path, default) => Some(path.follow(machine, &item, default.as_ref())?),
            Operation::Select { attribute, test, keep } => {
                let subject = match attribute {
                    Some(path) => path.follow(machine, &item, None)?,
                    None => item.clone(),
                };
                let passes = match test {
                    Some((test, args)) => {
                        let args = copied(args, machine)?;
                        machine.apply_test(*test, &subject, args)?
                    }
                    None => machine.is_true(&subject),
                };
                (passes == *keep).then_some(item)
            }
        })
    }
}

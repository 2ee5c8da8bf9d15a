//! Steps of lazy filters.

use crate::error::{BoxedResult as Result, Error};
use crate::interpreter::Interpreter;
use crate::values::{Args, Generator, Operation, Value};

impl Interpreter<'_> {
    /// Produces the next item of a generator.
    pub(crate) fn next_of_generator(&mut self, generator: &Generator) -> Result<Option<Value>> {
        self.budget.enter()?;
        let next = self.next_of_source(generator);
        self.budget.leave();
        next
    }

    fn next_of_source(&mut self, generator: &Generator) -> Result<Option<Value>> {
        let source = generator.source.try_borrow_mut();
        let mut source = source.map_err(|_| Error::runtime("generator already executing"))?;
        while let Some(item) = self.next(&mut source)? {
            if let Some(item) = self.apply(&generator.operation, item)? {
                return Ok(Some(item));
            }
        }
        Ok(None)
    }

    /// Applies the operation of a generator to an item; `None` if the item is filtered out.
    fn apply(&mut self, operation: &Operation, item: Value) -> Result<Option<Value>> {
        Ok(match operation {
            Operation::Pass => Some(item),
            Operation::Filter(filter, args) => {
                let args = self.copied(args)?;
                Some(self.apply_filter(*filter, item, args)?)
            }
            Operation::Attribute(path, default) => Some(self.follow(path, &item, default.as_ref())?),
            Operation::Select { attribute, test, keep } => {
                let subject = match attribute {
                    Some(path) => self.follow(path, &item, None)?,
                    None => item.clone(),
                };
                let passes = match test {
                    Some((test, args)) => {
                        let args = self.copied(args)?;
                        self.apply_test(*test, &subject, args)?
                    }
                    None => subject.is_true(),
                };
                (passes == *keep).then_some(item)
            }
        })
    }

    /// Copies the arguments, after counting the cost.
    fn copied(&self, args: &Args) -> Result<Args> {
        self.budget.read(args.read_cost())?;
        Ok(args.clone())
    }
}

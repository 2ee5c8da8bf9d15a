//! Calls of functions, methods, macros, filters and tests.

use crate::builtins::{FilterId, TestId};
use crate::error::{BoxedResult as Result, Error};
use crate::interpreter::{Interpreter, Object};
use crate::values::{Args, ObjectId, Value, required};
use crate::{filters, functions, methods, predicates};

impl Interpreter<'_> {
    /// Calls a value.
    pub(crate) fn call(&mut self, callee: &Value, args: Args) -> Result<Value> {
        let receiver = if let Value::Method(method) = callee { &method.receiver } else { callee };
        self.meter(receiver, &args)?;
        match callee {
            Value::Undefined(undefined) => Err(undefined.error()),
            Value::Function(function) => functions::call(*function, self, args),
            Value::Method(method) => methods::call(self, &method.receiver, method.name, args),
            Value::Macro(definition) => self.call_macro(&definition.clone(), args),
            Value::Object(id) => self.call_object(*id, args),
            Value::Block(block) => {
                args.bind_positional::<0>()?;
                Ok(Value::Text(self.capture(|interpreter, out| interpreter.run_block(block, out))?.0))
            }
            other => Err(Error::runtime(format!("'{}' object is not callable", other.type_name()))),
        }
    }

    /// Applies a filter.
    pub(crate) fn apply_filter(&mut self, filter: FilterId, value: Value, args: Args) -> Result<Value> {
        self.meter(&value, &args)?;
        filters::apply(filter, self, value, args)
    }

    /// Applies a test.
    pub(crate) fn apply_test(&mut self, test: TestId, value: &Value, args: Args) -> Result<bool> {
        self.meter(value, &args)?;
        predicates::apply(test, self, value, args)
    }

    /// Counts the basic cost of any function: one read of all texts. A function that does more counts that
    /// itself.
    fn meter(&self, value: &Value, args: &Args) -> Result<()> {
        self.budget.step()?;
        self.budget.read(value.read_cost().saturating_add(args.read_cost()))
    }

    fn call_object(&mut self, id: ObjectId, args: Args) -> Result<Value> {
        match self.object(id) {
            Object::Joiner { .. } => {
                args.bind_positional::<0>()?;
                Ok(self.next_of_joiner(id))
            }
            Object::Loop(_) => {
                let [items] = args.bind(["iterable"])?;
                self.call_loop(id, &required(items, "iterable")?)
            }
            _ => Err(Error::runtime("'object' is not callable")),
        }
    }

    /// Calls a method of an object; the names are in `methods`.
    pub(crate) fn call_object_method(&mut self, id: ObjectId, name: &str, args: Args) -> Result<Value> {
        match name {
            "next" => Ok(self.next_of_cycler(id)),
            "reset" => {
                if let Object::Cycler { at, .. } = self.object_mut(id) {
                    *at = 0;
                }
                Ok(Value::None)
            }
            "cycle" => self.cycle(id, args),
            _ => self.changed(id, args),
        }
    }
}

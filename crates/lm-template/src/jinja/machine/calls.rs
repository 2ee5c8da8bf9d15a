//! Calls of whatever can be called.

use super::Machine;
use super::objects::{Object, ObjectId};
use crate::jinja::args::{Args, required};
use crate::jinja::error::{Error, Result};
use crate::jinja::methods;
use crate::jinja::value::Value;

impl Machine<'_> {
    /// Calls a value.
    pub(crate) fn call(&mut self, callee: &Value, args: Args) -> Result<Value> {
        match callee {
            Value::Undefined(missing) => Err(missing.error()),
            Value::Function(function) => function.call(self, args),
            Value::Method(method) => methods::call(self, &method.receiver, method.name, args),
            Value::Macro(definition) => self.call_macro(&definition.clone(), args),
            Value::Object(id) => self.call_object(*id, args),
            other => Err(Error::runtime(format!("'{}' object is not callable", other.type_name()))),
        }
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

    /// A method of an object; `methods` knows their names.
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

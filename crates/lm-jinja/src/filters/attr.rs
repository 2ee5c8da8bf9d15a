//! The filter `attr`.

use crate::error::{BoxedResult as Result, Error};
use crate::interpreter::Interpreter;
use crate::values::{Args, Value, required, truncated};

/// `value | attr(name)`: looks up an attribute only, never an item.
pub(super) fn attr(interpreter: &mut Interpreter<'_>, value: Value, args: Args) -> Result<Value> {
    let [name] = args.bind(["name"])?;
    let name = required(name, "name")?;
    let Value::Text(name) = &name else {
        return Err(Error::runtime(format!("attribute name must be string, not '{}'", name.type_name())));
    };
    let found = interpreter.attribute_only(&value, name)?;
    Ok(found.unwrap_or_else(|| {
        Value::undefined(format!(
            "'{} object' has no attribute '{}'",
            value.type_name(),
            truncated(name.as_str())
        ))
    }))
}

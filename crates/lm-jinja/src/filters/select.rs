//! Lazy filters, which process items one by one on demand.

use crate::error::{BoxedResult as Result, Error};
use crate::interpreter::Interpreter;
use crate::values::{Args, Cursor, Generator, Operation, Path, Value, required};

/// Cursor over the value; empty if the value is falsy.
fn source(interpreter: &Interpreter<'_>, value: &Value) -> Result<Cursor> {
    if value.is_true() { interpreter.iterate(value) } else { Ok(Cursor::values(Vec::new())) }
}

/// `map(filter, …)` and `map(attribute=…, default=…)`.
pub(super) fn map(interpreter: &mut Interpreter<'_>, value: Value, mut args: Args) -> Result<Value> {
    let attribute = if args.positional.is_empty() { args.take("attribute") } else { None };
    let operation = match attribute {
        Some(attribute) => {
            let default = args.take("default").and_then(Value::some);
            args.bind_positional::<0>()?;
            Operation::Attribute(Path::new(&attribute, interpreter.budget)?, default)
        }
        None if args.positional.is_empty() => return Err(Error::runtime("map requires a filter argument")),
        None => {
            let name = args.positional.remove(0);
            let filter = interpreter.builtins.filter(name.expect_text()?.as_str()).map_err(Error::runtime)?;
            Operation::Filter(filter, args)
        }
    };
    Value::generator(Generator::new(source(interpreter, &value)?, operation), interpreter.budget)
}

pub(super) fn select(interpreter: &mut Interpreter<'_>, value: Value, args: Args) -> Result<Value> {
    choose(interpreter, value, args, None, true)
}

pub(super) fn reject(interpreter: &mut Interpreter<'_>, value: Value, args: Args) -> Result<Value> {
    choose(interpreter, value, args, None, false)
}

pub(super) fn selectattr(interpreter: &mut Interpreter<'_>, value: Value, args: Args) -> Result<Value> {
    choose_by_attribute(interpreter, value, args, true)
}

pub(super) fn rejectattr(interpreter: &mut Interpreter<'_>, value: Value, args: Args) -> Result<Value> {
    choose_by_attribute(interpreter, value, args, false)
}

fn choose_by_attribute(
    interpreter: &mut Interpreter<'_>,
    value: Value,
    mut args: Args,
    keep: bool,
) -> Result<Value> {
    let attribute = if args.positional.is_empty() { None } else { Some(args.positional.remove(0)) };
    let attribute = Path::new(&required(attribute, "attribute")?, interpreter.budget)?;
    choose(interpreter, value, args, Some(attribute), keep)
}

fn choose(
    interpreter: &mut Interpreter<'_>,
    value: Value,
    mut args: Args,
    attribute: Option<Path>,
    keep: bool,
) -> Result<Value> {
    let test = if args.positional.is_empty() {
        None
    } else {
        let name = args.positional.remove(0);
        let test = interpreter.builtins.test(name.expect_text()?.as_str());
        Some((test.map_err(Error::runtime)?, args))
    };
    let operation = Operation::Select { attribute, test, keep };
    Value::generator(Generator::new(source(interpreter, &value)?, operation), interpreter.budget)
}

//! Lazy filters, which process items one by one on demand.

use super::{Path, find};
use crate::jinja::args::{Args, required};
use crate::jinja::error::{Error, Result};
use crate::jinja::generator::{Generator, Operation};
use crate::jinja::machine::{Cursor, Machine};
use crate::jinja::tests;
use crate::jinja::value::Value;

/// Cursor over the value; empty if the value is falsy.
fn source(machine: &Machine<'_>, value: &Value) -> Result<Cursor> {
    if value.is_true() { machine.iterate(value) } else { Ok(Cursor::values(Vec::new())) }
}

/// `map(filter, …)` and `map(attribute=…, default=…)`.
pub(super) fn map(machine: &mut Machine<'_>, value: Value, mut args: Args) -> Result<Value> {
    let attribute = if args.positional.is_empty() { args.take("attribute") } else { None };
    let operation = match attribute {
        Some(attribute) => {
            let default = args.take("default").and_then(Value::some);
            args.bind_positional::<0>()?;
            Operation::Attribute(Path::new(&attribute, machine.limits)?, default)
        }
        None if args.positional.is_empty() => return Err(Error::runtime("map requires a filter argument")),
        None => {
            let name = args.positional.remove(0);
            let name = name.expect_text()?.as_str();
            let filter = find(name).ok_or_else(|| Error::runtime(format!("No filter named '{name}'.")))?;
            Operation::Filter(filter, args)
        }
    };
    Value::generator(Generator::new(source(machine, &value)?, operation))
}

pub(super) fn select(machine: &mut Machine<'_>, value: Value, args: Args) -> Result<Value> {
    choose(machine, value, args, None, true)
}

pub(super) fn reject(machine: &mut Machine<'_>, value: Value, args: Args) -> Result<Value> {
    choose(machine, value, args, None, false)
}

pub(super) fn selectattr(machine: &mut Machine<'_>, value: Value, args: Args) -> Result<Value> {
    choose_by_attribute(machine, value, args, true)
}

pub(super) fn rejectattr(machine: &mut Machine<'_>, value: Value, args: Args) -> Result<Value> {
    choose_by_attribute(machine, value, args, false)
}

fn choose_by_attribute(machine: &mut Machine<'_>, value: Value, mut args: Args, keep: bool) -> Result<Value> {
    let attribute = if args.positional.is_empty() { None } else { Some(args.positional.remove(0)) };
    let attribute = Path::new(&required(attribute, "attribute")?, machine.limits)?;
    choose(machine, value, args, Some(attribute), keep)
}

fn choose(
    machine: &mut Machine<'_>,
    value: Value,
    mut args: Args,
    attribute: Option<Path>,
    keep: bool,
) -> Result<Value> {
    let test = if args.positional.is_empty() {
        None
    } else {
        let name = args.positional.remove(0);
        let name = name.expect_text()?.as_str();
        Some((tests::find(name).ok_or_else(|| Error::runtime(format!("No test named '{name}'.")))?, args))
    };
    Value::generator(Generator::new(source(machine, &value)?, Operation::Select { attribute, test, keep }))
}

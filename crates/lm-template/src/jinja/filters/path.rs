//! Dotted attribute paths: `a.b.0`.

use crate::jinja::args::{Args, required};
use crate::jinja::error::Result;
use crate::jinja::limits::{Limits, TEXT_BYTES};
use crate::jinja::machine::Machine;
use crate::jinja::python_text;
use crate::jinja::text::Text;
use crate::jinja::value::{Value, shown};

/// The path from an item to a value in it.
#[derive(Debug, Clone)]
pub(crate) struct Path(Vec<Value>);

impl Path {
    /// Parses a path: text with dots between names, a number, or none for the item itself.
    pub(in crate::jinja) fn new(attribute: &Value, limits: &Limits) -> Result<Self> {
        match attribute {
            Value::None => Ok(Self(Vec::new())),
            Value::Text(path) => Self::parse(path.as_str(), limits),
            other => Ok(Self(vec![other.clone()])),
        }
    }

    fn parse(path: &str, limits: &Limits) -> Result<Self> {
        let step = |step: &str| {
            limits.build(TEXT_BYTES + step.len())?;
            Ok(match step.parse::<i128>() {
                Ok(index) if step.bytes().all(|byte| byte.is_ascii_digit()) => Value::Int(index),
                _ => Value::text(step),
            })
        };
        path.split('.').map(step).collect::<Result<_>>().map(Self)
    }

    /// Parses an argument that may list several paths, separated by commas.
    pub(in crate::jinja) fn several(attribute: &Value, limits: &Limits) -> Result<Vec<Self>> {
        match attribute {
            Value::Text(paths) => paths.as_str().split(',').map(|path| Self::parse(path, limits)).collect(),
            other => Ok(vec![Self::new(other, limits)?]),
        }
    }

    /// Resolves the path; `default` replaces a missing value on the way.
    pub(in crate::jinja) fn follow(
        &self,
        machine: &mut Machine<'_>,
        item: &Value,
        default: Option<&Value>,
    ) -> Result<Value> {
        let mut value = item.clone();
        for step in &self.0 {
            machine.limits.step()?;
            value = machine.item(&value, step)?;
            if let (true, Some(default)) = (value.is_undefined(), default) {
                value = default.clone();
            }
        }
        Ok(value)
    }
}

/// `value | attr(name)`: looks up an attribute only, never an item.
pub(super) fn attr(machine: &mut Machine<'_>, value: Value, args: Args) -> Result<Value> {
    let [name] = args.bind(["name"])?;
    let name: Text = python_text::str(machine, &required(name, "name")?)?;
    let found = machine.attribute_only(&value, &name)?;
    Ok(found.unwrap_or_else(|| {
        Value::missing(format!("'{} object' has no attribute '{}'", value.type_name(), shown(name.as_str())))
    }))
}

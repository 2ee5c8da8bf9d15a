//! Dotted attribute paths: `a.b.0`.

use crate::args::{Args, required};
use crate::budget::{Budget, TEXT_BYTES};
use crate::error::{BoxedResult as Result, Error};
use crate::interpreter::Interpreter;
use crate::value::{Value, truncated};

/// The path from an item to a value in it.
#[derive(Debug, Clone)]
pub(crate) struct Path(Vec<Value>);

impl Path {
    /// Parses a path: text with dots between names, a number, or none for the item itself.
    pub(crate) fn new(attribute: &Value, budget: &Budget) -> Result<Self> {
        match attribute {
            Value::None => Ok(Self(Vec::new())),
            Value::Text(path) => Self::parse(path.as_str(), budget),
            other => Ok(Self(vec![other.clone()])),
        }
    }

    fn parse(path: &str, budget: &Budget) -> Result<Self> {
        let step = |step: &str| {
            budget.build(TEXT_BYTES + step.len())?;
            Ok(match step.parse::<i128>() {
                Ok(index) if step.bytes().all(|byte| byte.is_ascii_digit()) => Value::Int(index),
                _ => Value::text(step),
            })
        };
        path.split('.').map(step).collect::<Result<_>>().map(Self)
    }

    /// Parses an argument that may list several paths, separated by commas.
    pub(crate) fn several(attribute: &Value, budget: &Budget) -> Result<Vec<Self>> {
        match attribute {
            Value::Text(paths) => paths.as_str().split(',').map(|path| Self::parse(path, budget)).collect(),
            other => Ok(vec![Self::new(other, budget)?]),
        }
    }

    /// Resolves the path; `default` replaces a missing value on the way.
    pub(crate) fn follow(
        &self,
        interpreter: &mut Interpreter<'_>,
        item: &Value,
        default: Option<&Value>,
    ) -> Result<Value> {
        let mut value = item.clone();
        for step in &self.0 {
            interpreter.budget.step()?;
            value = interpreter.item(&value, step)?;
            if let (true, Some(default)) = (value.is_undefined(), default) {
                value = default.clone();
            }
        }
        Ok(value)
    }
}

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

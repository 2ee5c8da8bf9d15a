//! Dotted attribute paths: `a.b.0`.

use super::value::Value;
use crate::budget::{Budget, TEXT_BYTES};
use crate::error::BoxedResult as Result;

/// The path from an item to a value in it.
#[derive(Debug, Clone)]
pub(crate) struct Path(pub(crate) Vec<Value>);

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
}

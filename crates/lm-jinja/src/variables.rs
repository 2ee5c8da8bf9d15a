//! Variables of a rendering: JSON to template values.

use serde_json::{Map, Value as Json};

use crate::budget::Budget;
use crate::error::BoxedResult as Result;
use crate::origin::Origin;
use crate::text::Text;
use crate::values::{Dict, Value, check_depth};

/// A text in a variable, for [`RenderOptions::origin`](crate::RenderOptions::origin).
#[derive(Debug, Clone, Copy)]
pub struct VariableText<'a> {
    /// Name of the variable.
    pub variable: &'a str,
    /// Key of the object entry whose value is this text; `None` for list items, for keys, and for a variable
    /// that is a text.
    pub key: Option<&'a str>,
    /// The text.
    pub text: &'a str,
}

/// Function that gives the origin of a text.
pub(crate) type OriginOf<'a> = &'a dyn Fn(VariableText<'_>) -> Origin;

/// Converts the variables of a rendering.
pub(crate) fn convert(
    variables: &Map<String, Json>,
    origin: OriginOf<'_>,
    budget: &Budget,
) -> Result<Vec<(String, Value)>> {
    let convert = |(variable, value): (&String, &Json)| {
        let converter = Converter { variable, origin, budget };
        Ok((variable.clone(), converter.convert(None, value, 0)?))
    };
    variables.iter().map(convert).collect()
}

struct Converter<'a> {
    variable: &'a str,
    origin: OriginOf<'a>,
    budget: &'a Budget,
}

impl Converter<'_> {
    fn text(&self, key: Option<&str>, text: &str) -> Value {
        let origin = (self.origin)(VariableText { variable: self.variable, key, text });
        Value::Text(Text::new(text, origin))
    }

    fn convert(&self, key: Option<&str>, value: &Json, depth: usize) -> Result<Value> {
        check_depth(depth)?;
        Ok(match value {
            Json::Null => Value::None,
            Json::Bool(value) => Value::Bool(*value),
            Json::Number(number) => match (number.as_i64(), number.as_u64()) {
                (Some(number), _) => Value::Int(number.into()),
                (_, Some(number)) => Value::Int(number.into()),
                _ => Value::Float(number.as_f64().unwrap_or(f64::NAN)),
            },
            Json::String(text) => self.text(key, text),
            Json::Array(items) => {
                let items = items.iter().map(|item| self.convert(None, item, depth + 1));
                Value::list(items.collect::<Result<_>>()?, self.budget)?
            }
            Json::Object(object) => {
                let mut dict = Dict::default();
                for (name, value) in object {
                    let value = self.convert(Some(name), value, depth + 1)?;
                    dict.insert(self.text(None, name), value, self.budget)?;
                }
                Value::Dict(dict.into())
            }
        })
    }
}

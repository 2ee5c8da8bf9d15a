//! Iteration over values.

use std::rc::Rc;

use super::Interpreter;
use crate::error::{BoxedResult as Result, Error};
use crate::values::{Cursor, Items, Value};

impl Interpreter<'_> {
    /// Starts an iteration over a value.
    pub(crate) fn iterate(&self, value: &Value) -> Result<Cursor> {
        Ok(match value {
            Value::Undefined(_) => Cursor::values(Vec::new()),
            Value::List(items) | Value::Tuple(items) => Cursor::Items(items.clone(), 0),
            Value::View(view) => Cursor::Items(view.items.clone(), 0),
            Value::Dict(dict) => {
                let keys: Vec<Value> = dict.entries().iter().map(|(key, _)| key.clone()).collect();
                Cursor::Items(Rc::new(Items::new(keys, &[], self.budget)?), 0)
            }
            Value::Range(range) => Cursor::Range(**range, 0),
            Value::Text(text) => Cursor::Text(text.clone(), 0),
            Value::Generator(generator) => Cursor::Generator(generator.clone()),
            other => return Err(Error::runtime(format!("'{}' object is not iterable", other.type_name()))),
        })
    }

    /// Returns the next item.
    pub(crate) fn next(&mut self, cursor: &mut Cursor) -> Result<Option<Value>> {
        self.budget.step()?;
        Ok(match cursor {
            Cursor::Items(items, at) => {
                *at += 1;
                items.values.get(*at - 1).cloned()
            }
            Cursor::Values(values) => values.next(),
            Cursor::Range(range, at) => {
                *at += 1;
                (*at <= range.len()).then(|| Value::Int(range.get(*at - 1)))
            }
            Cursor::Text(text, at) => match text.as_str()[*at..].chars().next() {
                Some(c) => {
                    let start = *at;
                    *at += c.len_utf8();
                    Some(Value::Text(text.slice(start..*at, self.budget)?.with_markup(false)))
                }
                None => None,
            },
            Cursor::Generator(generator) => self.next_of_generator(&generator.clone())?,
        })
    }

    /// Collects the remaining items.
    pub(crate) fn rest(&mut self, cursor: &mut Cursor) -> Result<Vec<Value>> {
        let mut values = Vec::new();
        while let Some(value) = self.next(cursor)? {
            self.budget.build(size_of::<Value>())?;
            values.push(value);
        }
        Ok(values)
    }

    /// Collects the items of a value.
    pub(crate) fn collect(&mut self, value: &Value) -> Result<Vec<Value>> {
        let mut cursor = self.iterate(value)?;
        self.rest(&mut cursor)
    }
}

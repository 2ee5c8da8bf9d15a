//! Attribute and item look-up, as in Jinja2's immutable sandbox.

use super::macros::macro_attribute;
use crate::error::BoxedResult as Result;
use crate::interpreter::{Interpreter, Object};
use crate::methods;
use crate::text::Text;
use crate::values::{Function, Items, ObjectId, Path, SHARED_BYTES, Value, truncated};

impl Interpreter<'_> {
    /// `value.name`: a Python attribute, else an item.
    pub(crate) fn attribute(&mut self, value: &Value, name: &Text) -> Result<Value> {
        if let Value::Undefined(undefined) = value {
            return Err(undefined.error());
        }
        if let Some(found) = self.python_attribute(value, name)? {
            return Ok(found);
        }
        let key = Value::Text(name.clone());
        match self.python_item(value, &key)? {
            Some(found) => Ok(found),
            None => self.undefined_item(value, &key),
        }
    }

    /// `value[key]`: an item, else a Python attribute.
    pub(crate) fn item(&mut self, value: &Value, key: &Value) -> Result<Value> {
        if let Value::Undefined(undefined) = value {
            return Err(undefined.error());
        }
        if let Some(found) = self.python_item(value, key)? {
            return Ok(found);
        }
        if let Value::Text(name) = key
            && let Some(found) = self.python_attribute(value, name)?
        {
            return Ok(found);
        }
        self.undefined_item(value, key)
    }

    /// Looks up a Python attribute only; an error for undefined values.
    pub(crate) fn attribute_only(&mut self, value: &Value, name: &Text) -> Result<Option<Value>> {
        match value {
            Value::Undefined(undefined) => Err(undefined.error()),
            value => self.python_attribute(value, name),
        }
    }

    /// Resolves a path; `default` replaces a missing value on the way.
    pub(crate) fn follow(&mut self, path: &Path, item: &Value, default: Option<&Value>) -> Result<Value> {
        let mut value = item.clone();
        for step in &path.0 {
            self.budget.step()?;
            value = self.item(&value, step)?;
            if let (true, Some(default)) = (value.is_undefined(), default) {
                value = default.clone();
            }
        }
        Ok(value)
    }

    fn python_attribute(&mut self, value: &Value, name: &Text) -> Result<Option<Value>> {
        let text = name.as_str();
        if text.starts_with("__") && text.ends_with("__") && text.len() > 4 {
            return Ok(Some(unsafe_attribute(value, text)));
        }
        let is_method = !matches!(value, Value::Object(id) if !methods::object_has(self.object(*id), text));
        if let Some(method) = methods::find(value, text).filter(|_| is_method) {
            let method = if method.changes {
                unsafe_attribute(value, text)
            } else {
                Value::method(value.clone(), method.name, self.budget)?
            };
            return Ok(Some(method));
        }
        match value {
            Value::Object(id) => self.object_attribute(*id, name),
            Value::Tuple(items) => Ok(field(items, text)),
            Value::Range(range) => Ok(match text {
                "start" => Some(Value::Int(range.start.into())),
                "stop" => Some(Value::Int(range.stop.into())),
                "step" => Some(Value::Int(range.step.into())),
                _ => None,
            }),
            Value::Function(Function::Dict) if text == "fromkeys" => {
                Ok(Some(Value::Function(Function::DictFromKeys)))
            }
            Value::Function(Function::SelfReference) => Ok(self.blocks.get(text).cloned().map(Value::Block)),
            Value::Macro(definition) => macro_attribute(definition, text, self.budget),
            _ => Ok(None),
        }
    }

    fn object_attribute(&mut self, id: ObjectId, name: &Text) -> Result<Option<Value>> {
        match self.object(id) {
            Object::Namespace(attributes) => {
                Ok(attributes.get(&Value::Text(name.clone()), self.budget)?.cloned())
            }
            Object::Cycler { items, at } if name.as_str() == "current" => Ok(Some(items[*at].clone())),
            Object::Loop(_) => self.loop_attribute(id, name.as_str()),
            _ => Ok(None),
        }
    }

    fn python_item(&mut self, value: &Value, key: &Value) -> Result<Option<Value>> {
        Ok(match (value, key.as_int()) {
            (Value::Dict(dict), _) if is_hashable(key) => dict.get(key, self.budget)?.cloned(),
            (Value::List(items) | Value::Tuple(items), Some(index)) => {
                resolve_index(index, items.values.len()).map(|index| items.values[index].clone())
            }
            (Value::Range(range), Some(index)) => {
                resolve_index(index, range.len()).map(|index| Value::Int(range.get(index)))
            }
            (Value::Text(text), Some(index)) => self.character(text, index)?,
            _ => None,
        })
    }

    fn undefined_item(&self, value: &Value, key: &Value) -> Result<Value> {
        self.budget.build(SHARED_BYTES)?;
        let kind = value.type_name();
        Ok(Value::undefined(match key {
            Value::Text(name) => format!("'{kind} object' has no attribute '{}'", truncated(name.as_str())),
            _ => format!("{kind} object has no such element"),
        }))
    }

    fn character(&self, text: &Text, index: i128) -> Result<Option<Value>> {
        self.budget.read(text.len())?;
        let Some(index) = resolve_index(index, text.count()) else { return Ok(None) };
        let Some((start, c)) = text.as_str().char_indices().nth(index) else { return Ok(None) };
        Ok(Some(Value::Text(text.slice(start..start + c.len_utf8(), self.budget)?)))
    }
}

/// An item of a named tuple, by field name.
fn field(items: &Items, name: &str) -> Option<Value> {
    let index = items.fields.iter().position(|field| *field == name)?;
    items.values.get(index).cloned()
}

/// Resolves an index; negative ones count from the end.
fn resolve_index(index: i128, len: usize) -> Option<usize> {
    let index = if index < 0 { index.checked_add(len as i128)? } else { index };
    usize::try_from(index).ok().filter(|index| *index < len)
}

fn is_hashable(key: &Value) -> bool {
    match key {
        Value::Tuple(items) => items.values.iter().all(is_hashable),
        Value::List(_) | Value::Dict(_) | Value::View(_) | Value::Method(_) => false,
        _ => true,
    }
}

fn unsafe_attribute(value: &Value, name: &str) -> Value {
    let (name, kind) = (truncated(name), value.type_name());
    Value::undefined(format!("access to attribute '{name}' of '{kind}' object is unsafe."))
}

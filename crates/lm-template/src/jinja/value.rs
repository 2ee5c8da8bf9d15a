//! The values of a template, which are Python's.

use std::cell::RefCell;
use std::rc::Rc;

use super::dict::Dict;
use super::error::{Error, Result};
use super::functions::Function;
use super::generator::Generator;
use super::limits::{Limits, MAX_VALUE_DEPTH};
use super::machine::{Macro, ObjectId};
use super::text::Text;

/// How much of a name an error tells.
const SHOWN_CHARACTERS: usize = 100;

/// What an item of a list costs in memory, about.
const ITEM_BYTES: usize = 64;

/// A value. Values never change; what does (namespaces, loops) is an object of the machine.
#[derive(Debug, Clone)]
pub(crate) enum Value {
    /// What is not there: prints as nothing, is false, and fails when something is done with it.
    Undefined(Rc<Missing>),
    None,
    Bool(bool),
    Int(i128),
    Float(f64),
    Text(Text),
    List(Rc<Items>),
    Tuple(Rc<Items>),
    Dict(Rc<Dict>),
    Range(Rc<Range>),
    /// What `keys()`, `values()` and `items()` of a dict give.
    View(Rc<View>),
    /// What `map`, `select` and their like give; it can be gone through once.
    Generator(Rc<Generator>),
    /// A namespace, a loop, a cycler or a joiner.
    Object(ObjectId),
    Macro(Rc<Macro>),
    Function(Function),
    /// A method of a value, not called yet.
    Method(Rc<Method>),
}

/// Why a value is not there.
#[derive(Debug)]
pub(crate) struct Missing(pub(crate) String);

/// The items of a list or tuple.
#[derive(Debug)]
pub(crate) struct Items {
    pub(crate) values: Vec<Value>,
    /// Names of the items, which a group of `groupby` has.
    pub(crate) fields: &'static [&'static str],
    depth: usize,
}

/// Python's `range`.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Range {
    pub(crate) start: i64,
    pub(crate) stop: i64,
    pub(crate) step: i64,
}

/// A dict's keys, values or items.
#[derive(Debug)]
pub(crate) struct View {
    /// `dict_keys`, `dict_values` or `dict_items`.
    pub(crate) name: &'static str,
    pub(crate) items: Rc<Items>,
}

/// A method with the value it belongs to.
#[derive(Debug)]
pub(crate) struct Method {
    pub(crate) receiver: Value,
    pub(crate) name: &'static str,
}

impl Value {
    /// Text of the template.
    pub(crate) fn text(text: impl Into<String>) -> Self {
        Value::Text(Text::template(text))
    }

    /// What is not there, with the reason that is told when something is done with it.
    pub(crate) fn missing(reason: impl Into<String>) -> Self {
        Value::Undefined(Rc::new(Missing(reason.into())))
    }

    pub(crate) fn list(values: Vec<Value>, limits: &Limits) -> Result<Self> {
        Ok(Value::List(Rc::new(Items::new(values, &[], limits)?)))
    }

    pub(crate) fn tuple(values: Vec<Value>, limits: &Limits) -> Result<Self> {
        Ok(Value::Tuple(Rc::new(Items::new(values, &[], limits)?)))
    }

    /// A view of a dict.
    pub(crate) fn view(name: &'static str, values: Vec<Value>, limits: &Limits) -> Result<Self> {
        Ok(Value::View(Rc::new(View { name, items: Rc::new(Items::new(values, &[], limits)?) })))
    }

    /// A generator over `source`.
    pub(crate) fn generator(generator: Generator) -> Result<Self> {
        check_depth(generator.depth())?;
        Ok(Value::Generator(Rc::new(generator)))
    }

    pub(crate) fn method(receiver: Value, name: &'static str) -> Result<Self> {
        check_depth(receiver.depth() + 1)?;
        Ok(Value::Method(Rc::new(Method { receiver, name })))
    }

    pub(crate) fn is_undefined(&self) -> bool {
        matches!(self, Value::Undefined(_))
    }

    pub(crate) fn is_none(&self) -> bool {
        matches!(self, Value::None)
    }

    /// The value, unless it is undefined or none.
    pub(crate) fn some(self) -> Option<Self> {
        if self.is_none() { None } else { Some(self) }
    }

    /// What Python's `type(value).__name__` says.
    pub(crate) fn type_name(&self) -> &'static str {
        match self {
            Value::Undefined(_) => "Undefined",
            Value::None => "NoneType",
            Value::Bool(_) => "bool",
            Value::Int(_) => "int",
            Value::Float(_) => "float",
            Value::Text(text) if text.is_markup() => "Markup",
            Value::Text(_) => "str",
            Value::List(_) => "list",
            Value::Tuple(_) => "tuple",
            Value::Dict(_) => "dict",
            Value::Range(_) => "range",
            Value::View(view) => view.name,
            Value::Generator(_) => "generator",
            Value::Object(_) => "object",
            Value::Macro(_) => "Macro",
            Value::Function(_) => "function",
            Value::Method(_) => "builtin_function_or_method",
        }
    }

    /// Whether it counts as true. (Objects of the machine do, but for an exhausted loop, which nobody asks.)
    pub(crate) fn is_true(&self) -> bool {
        match self {
            Value::Undefined(_) | Value::None => false,
            Value::Bool(value) => *value,
            Value::Int(value) => *value != 0,
            Value::Float(value) => *value != 0.0,
            Value::Text(text) => !text.is_empty(),
            _ => self.len().is_none_or(|len| len > 0),
        }
    }

    /// Python's `len`, where there is one.
    pub(crate) fn len(&self) -> Option<usize> {
        Some(match self {
            Value::Undefined(_) => 0,
            Value::Text(text) if text.is_empty() => 0,
            Value::Text(text) => text.count(),
            Value::List(items) | Value::Tuple(items) => items.values.len(),
            Value::Dict(dict) => dict.len(),
            Value::Range(range) => range.len(),
            Value::View(view) => view.items.values.len(),
            _ => return None,
        })
    }

    /// A number that may stand where Python wants an integer.
    pub(crate) fn as_int(&self) -> Option<i128> {
        match self {
            Value::Bool(value) => Some(i128::from(*value)),
            Value::Int(value) => Some(*value),
            _ => None,
        }
    }

    pub(crate) fn as_float(&self) -> Option<f64> {
        match self {
            Value::Float(value) => Some(*value),
            _ => self.as_int().map(|value| value as f64),
        }
    }

    /// The text, or the error that Python raises where it wants one.
    pub(crate) fn expect_text(&self) -> Result<&Text> {
        match self {
            Value::Text(text) => Ok(text),
            Value::Undefined(missing) => Err(missing.error()),
            other => Err(Error::runtime(format!("expected str, got {}", other.type_name()))),
        }
    }

    /// The integer, or the error that Python raises where it wants one.
    pub(crate) fn expect_int(&self) -> Result<i128> {
        self.as_int().ok_or_else(|| Error::runtime(format!("expected int, got {}", self.type_name())))
    }

    /// Bytes that a function looks through which is given the value.
    pub(crate) fn work(&self) -> usize {
        if let Value::Text(text) = self { text.len() } else { 0 }
    }

    /// How deeply it is nested.
    pub(crate) fn depth(&self) -> usize {
        match self {
            Value::List(items) | Value::Tuple(items) => items.depth,
            Value::Dict(dict) => dict.depth(),
            Value::View(view) => view.items.depth,
            Value::Generator(generator) => generator.depth(),
            Value::Method(method) => method.receiver.depth() + 1,
            _ => 0,
        }
    }
}

impl Missing {
    /// The error of doing something with it.
    pub(crate) fn error(&self) -> Error {
        Error::runtime(self.0.clone())
    }
}

impl Items {
    /// How deeply the items are nested.
    pub(crate) fn inner_depth(&self) -> usize {
        self.depth - 1
    }

    /// Items with names.
    pub(crate) fn new(values: Vec<Value>, fields: &'static [&'static str], limits: &Limits) -> Result<Self> {
        limits.build(ITEM_BYTES * (values.len() + 1))?;
        limits.read(values.len())?;
        let depth = 1 + values.iter().map(Value::depth).max().unwrap_or(0);
        check_depth(depth)?;
        Ok(Self { values, fields, depth })
    }
}

impl Range {
    pub(crate) fn len(&self) -> usize {
        let (start, stop, step) = (i128::from(self.start), i128::from(self.stop), i128::from(self.step));
        let span = if step > 0 { stop - start } else { start - stop };
        usize::try_from((span + step.abs() - 1).max(0) / step.abs()).unwrap_or(usize::MAX)
    }

    pub(crate) fn get(&self, index: usize) -> i128 {
        i128::from(self.start) + i128::from(self.step) * index as i128
    }
}

/// A name as it is told in an error: cut when it is long.
pub(crate) fn shown(name: &str) -> &str {
    name.char_indices().nth(SHOWN_CHARACTERS).map_or(name, |(end, _)| &name[..end])
}

/// Refuses values that are nested too deeply to be walked through, or dropped, on the stack.
pub(crate) fn check_depth(depth: usize) -> Result<()> {
    if depth > MAX_VALUE_DEPTH {
        return Err(Error::runtime(format!("a value is nested deeper than {MAX_VALUE_DEPTH} levels")));
    }
    Ok(())
}

/// A place that changes: the source of a generator.
pub(crate) type Changing<T> = RefCell<T>;

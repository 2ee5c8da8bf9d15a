//! Template values, which are Python's.

use std::rc::Rc;
use std::sync::Arc;

use super::dict::Dict;
use super::function::Function;
use super::generator::Generator;
use super::ids::ObjectId;
use super::macros::Macro;
use crate::budget::{Budget, MAX_VALUE_DEPTH};
use crate::error::{BoxedResult as Result, Error};
use crate::syntax::ast::Block;
use crate::text::Text;

/// Maximum length of a name in an error message.
const MAX_NAME_CHARACTERS: usize = 100;

/// Approximate memory of a list item.
const ITEM_BYTES: usize = 64;
/// Approximate memory of a generator.
const GENERATOR_BYTES: usize = 512;
/// Approximate memory of a bound method, a macro, or an undefined value with its message.
pub(crate) const SHARED_BYTES: usize = 256;

/// A value. Values are immutable; mutable state (namespaces, loops) is an object of the interpreter.
#[derive(Debug, Clone)]
pub(crate) enum Value {
    /// A missing value: prints as empty, is false, and fails in other operations.
    Undefined(Rc<Undefined>),
    None,
    Bool(bool),
    Int(i128),
    Float(f64),
    Text(Text),
    List(Rc<Items>),
    Tuple(Rc<Items>),
    Dict(Rc<Dict>),
    Range(Rc<Range>),
    /// Result of a dict's `keys()`, `values()` or `items()`.
    View(Rc<View>),
    /// Result of `map`, `select` and similar filters; it can be iterated once.
    Generator(Rc<Generator>),
    /// A namespace, a loop, a cycler or a joiner.
    Object(ObjectId),
    Macro(Rc<Macro>),
    Function(Function),
    /// A block of the template (`self.name`).
    Block(Arc<Block>),
    /// A bound method.
    Method(Rc<Method>),
}

/// Reason for a missing value, the message of its errors.
#[derive(Debug)]
pub(crate) struct Undefined(pub(crate) String);

/// The items of a list or tuple.
#[derive(Debug)]
pub(crate) struct Items {
    pub(crate) values: Vec<Value>,
    /// Field names of a named tuple (the groups of `groupby`).
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

/// A view of a dict's keys, values or items.
#[derive(Debug)]
pub(crate) struct View {
    /// `dict_keys`, `dict_values` or `dict_items`.
    pub(crate) name: &'static str,
    pub(crate) items: Rc<Items>,
}

/// A bound method: receiver and name.
#[derive(Debug)]
pub(crate) struct Method {
    pub(crate) receiver: Value,
    pub(crate) name: &'static str,
}

impl Value {
    /// Creates template text.
    pub(crate) fn text(text: impl Into<String>) -> Self {
        Value::Text(Text::template(text))
    }

    /// Creates a missing value with the message of its errors.
    pub(crate) fn undefined(reason: impl Into<String>) -> Self {
        Value::Undefined(Rc::new(Undefined(reason.into())))
    }

    pub(crate) fn list(values: Vec<Value>, budget: &Budget) -> Result<Self> {
        Ok(Value::List(Rc::new(Items::new(values, &[], budget)?)))
    }

    pub(crate) fn tuple(values: Vec<Value>, budget: &Budget) -> Result<Self> {
        Ok(Value::Tuple(Rc::new(Items::new(values, &[], budget)?)))
    }

    /// Creates a view of a dict.
    pub(crate) fn view(name: &'static str, values: Vec<Value>, budget: &Budget) -> Result<Self> {
        Ok(Value::View(Rc::new(View { name, items: Rc::new(Items::new(values, &[], budget)?) })))
    }

    /// Creates a generator value.
    pub(crate) fn generator(generator: Generator, budget: &Budget) -> Result<Self> {
        budget.build(GENERATOR_BYTES)?;
        check_depth(generator.depth())?;
        Ok(Value::Generator(Rc::new(generator)))
    }

    pub(crate) fn method(receiver: Value, name: &'static str, budget: &Budget) -> Result<Self> {
        budget.build(SHARED_BYTES)?;
        check_depth(receiver.depth() + 1)?;
        Ok(Value::Method(Rc::new(Method { receiver, name })))
    }

    pub(crate) fn is_undefined(&self) -> bool {
        matches!(self, Value::Undefined(_))
    }

    pub(crate) fn is_none(&self) -> bool {
        matches!(self, Value::None)
    }

    /// The value, or `None` if it is Python's `None`.
    pub(crate) fn some(self) -> Option<Self> {
        if self.is_none() { None } else { Some(self) }
    }

    /// Python's `type(value).__name__`.
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
            Value::Function(Function::SelfReference) => "TemplateReference",
            Value::Function(_) => "function",
            Value::Block(_) => "BlockReference",
            Value::Method(_) => "builtin_function_or_method",
        }
    }

    /// Python's truth value. (Objects of the interpreter are true, which is wrong only for an exhausted
    /// loop.)
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

    /// Python's `len`, if supported.
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

    /// Number of an integer or boolean.
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

    /// The text, or Python's error for another type.
    pub(crate) fn expect_text(&self) -> Result<&Text> {
        match self {
            Value::Text(text) => Ok(text),
            Value::Undefined(undefined) => Err(undefined.error()),
            other => Err(Error::runtime(format!("expected str, got {}", other.type_name()))),
        }
    }

    /// The integer, or Python's error for another type.
    pub(crate) fn expect_int(&self) -> Result<i128> {
        self.as_int().ok_or_else(|| Error::runtime(format!("expected int, got {}", self.type_name())))
    }

    /// The integer as an index or count, or Python's error for another type or more than 63 bits.
    pub(crate) fn expect_index(&self) -> Result<i64> {
        let index = i64::try_from(self.expect_int()?);
        index.map_err(|_| Error::runtime("Python int too large to convert to C ssize_t"))
    }

    /// Bytes that a function reads of an argument.
    pub(crate) fn read_cost(&self) -> usize {
        if let Value::Text(text) = self { text.len() } else { 0 }
    }

    /// Nesting depth.
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

impl Undefined {
    /// Error of an operation on the missing value.
    pub(crate) fn error(&self) -> Box<Error> {
        Error::runtime(self.0.clone())
    }
}

impl Items {
    /// Nesting depth of the items.
    pub(crate) fn inner_depth(&self) -> usize {
        self.depth - 1
    }

    /// Creates items, with field names if they form a named tuple.
    pub(crate) fn new(values: Vec<Value>, fields: &'static [&'static str], budget: &Budget) -> Result<Self> {
        budget.build(ITEM_BYTES * (values.len() + 1))?;
        budget.read(values.len())?;
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

/// A name for an error message, truncated if long.
pub(crate) fn truncated(name: &str) -> &str {
    name.char_indices().nth(MAX_NAME_CHARACTERS).map_or(name, |(end, _)| &name[..end])
}

/// Refuses values nested too deeply to be traversed, or dropped, on the stack.
pub(crate) fn check_depth(depth: usize) -> Result<()> {
    if depth > MAX_VALUE_DEPTH {
        return Err(Error::runtime(format!("a value is nested deeper than {MAX_VALUE_DEPTH} levels")));
    }
    Ok(())
}

//! Methods of Python values that templates may call.

mod case;
mod character_classes;
mod collections;
mod search;
mod split;
mod strip;
mod width;

use crate::budget::Budget;
use crate::error::{BoxedResult as Result, Error};
use crate::formatting;
use crate::interpreter::{Interpreter, Object};
use crate::text::Text;
use crate::text::html::{unescape, without_tags};
use crate::values::{Args, Value};

pub(super) use case::{capitalize, lower, title_word, upper};
pub(super) use character_classes::{decimal_value, predicate};
pub(super) use collections::items;
pub(super) use split::{lines, replace};
pub(super) use strip::strip;
pub(super) use width::center;

/// Name of a method.
#[derive(Debug, Clone, Copy)]
pub(super) struct MethodName {
    pub(super) name: &'static str,
    /// True if the method mutates its value, which the sandbox refuses.
    pub(super) changes: bool,
}

const TEXT: &[&str] = &[
    "capitalize",
    "casefold",
    "center",
    "count",
    "endswith",
    "expandtabs",
    "find",
    "format",
    "format_map",
    "index",
    "isalnum",
    "isalpha",
    "isascii",
    "isdecimal",
    "isdigit",
    "isidentifier",
    "islower",
    "isnumeric",
    "isprintable",
    "isspace",
    "istitle",
    "isupper",
    "join",
    "ljust",
    "lower",
    "lstrip",
    "partition",
    "removeprefix",
    "removesuffix",
    "replace",
    "rfind",
    "rindex",
    "rjust",
    "rpartition",
    "rsplit",
    "rstrip",
    "split",
    "splitlines",
    "startswith",
    "strip",
    "swapcase",
    "title",
    "upper",
    "zfill",
];
const DICT: &[&str] = &["copy", "fromkeys", "get", "items", "keys", "values"];
const DICT_CHANGING: &[&str] = &["clear", "pop", "popitem", "setdefault", "update"];
const LIST: &[&str] = &["copy", "count", "index"];
const LIST_CHANGING: &[&str] = &["append", "clear", "extend", "insert", "pop", "remove", "reverse", "sort"];
const TUPLE: &[&str] = &["count", "index"];
const FLOAT: &[&str] = &["is_integer"];
const MARKUP: &[&str] = &["striptags", "unescape"];
/// Methods of loops and cyclers.
const OBJECT: &[&str] = &["changed", "cycle", "next", "reset"];

/// Looks up a method of a value by name.
pub(super) fn find(value: &Value, name: &str) -> Option<MethodName> {
    let (fixed, changing): (&[&'static str], &[&'static str]) = match value {
        Value::Text(text) if text.is_markup() && MARKUP.contains(&name) => (MARKUP, &[]),
        Value::Text(_) => (TEXT, &[]),
        Value::Dict(_) => (DICT, DICT_CHANGING),
        Value::List(_) => (LIST, LIST_CHANGING),
        Value::Tuple(_) | Value::Range(_) => (TUPLE, &[]),
        Value::Float(_) => (FLOAT, &[]),
        Value::Object(_) => (OBJECT, &[]),
        _ => return None,
    };
    let found = |names: &[&'static str]| names.iter().find(|found| **found == name).copied();
    match found(fixed) {
        Some(name) => Some(MethodName { name, changes: false }),
        None => found(changing).map(|name| MethodName { name, changes: true }),
    }
}

/// Calls a method found by [`find`].
pub(super) fn call(
    interpreter: &mut Interpreter<'_>,
    receiver: &Value,
    name: &str,
    args: Args,
) -> Result<Value> {
    match receiver {
        Value::Text(text) => text_method(interpreter, text, name, args),
        Value::Dict(dict) => collections::dict_method(interpreter, dict, name, args),
        Value::List(items) | Value::Tuple(items) => {
            collections::list_method(interpreter, receiver, &items.values, name, args)
        }
        Value::Range(_) => {
            let items = interpreter.collect(receiver)?;
            collections::list_method(interpreter, receiver, &items, name, args)
        }
        Value::Float(float) => Ok(Value::Bool(float.fract() == 0.0)),
        Value::Object(id) => interpreter.call_object_method(*id, name, args),
        other => Err(Error::runtime(format!("'{}' object has no method '{name}'", other.type_name()))),
    }
}

/// Returns true if an object has a method with this name.
pub(super) fn object_has(object: &Object, name: &str) -> bool {
    match object {
        Object::Loop(_) => matches!(name, "changed" | "cycle"),
        Object::Cycler { .. } => matches!(name, "next" | "reset"),
        _ => false,
    }
}

fn text_method(interpreter: &mut Interpreter<'_>, text: &Text, name: &str, args: Args) -> Result<Value> {
    let budget = interpreter.budget;
    budget.read(text.len())?;
    match name {
        "strip" | "lstrip" | "rstrip" => strip(budget, text, name, args),
        "removeprefix" | "removesuffix" => strip::remove_affix(budget, text, name, args),
        "split" | "rsplit" => split::split(budget, text, name, args),
        "splitlines" => split::splitlines(budget, text, args),
        "partition" | "rpartition" => split::partition(budget, text, name, args),
        "replace" => split::replace_method(budget, text, args),
        "join" => split::join(interpreter, text, args),
        "startswith" | "endswith" => search::affix(interpreter, text, name, args),
        "find" | "rfind" | "index" | "rindex" | "count" => search::find(text, name, args),
        "lower" | "casefold" | "upper" | "title" | "capitalize" | "swapcase" => {
            args.bind_positional::<0>()?;
            case::change(budget, text, name).map(Value::Text)
        }
        "ljust" | "rjust" | "center" | "zfill" => width::pad(budget, text, name, args),
        "expandtabs" => width::expand_tabs(budget, text, args),
        "format" => formatting::format(interpreter, text, &args).map(Value::Text),
        "format_map" => collections::format_map(interpreter, text, args),
        "striptags" | "unescape" => markup_method(budget, text, name),
        _ => {
            args.bind_positional::<0>()?;
            Ok(Value::Bool(character_classes::predicate(text.as_str(), name)))
        }
    }
}

fn markup_method(budget: &Budget, text: &Text, name: &str) -> Result<Value> {
    match name {
        "striptags" => without_tags(budget, text).map(Value::Text),
        _ => unescape(budget, text).map(Value::Text),
    }
}

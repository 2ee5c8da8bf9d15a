//! Jinja2's tests.

use crate::builtins::TestId;
use crate::error::BoxedResult as Result;
use crate::interpreter::{Interpreter, Object};
use crate::methods::predicate;
use crate::operators::{arithmetic, compare, same};
use crate::python_text;
use crate::syntax::ast::{Arithmetic, Comparison};
use crate::values::{Args, Function, Key, Value, required};

/// A test: receives the value and the arguments.
type Test = fn(&mut Interpreter<'_>, &Value, Args) -> Result<bool>;

/// Tests by name.
const ALL: &[(&str, Test)] = &[
    ("!=", |m, v, a| compared(m, v, a, Comparison::NotEqual)),
    ("<", |m, v, a| compared(m, v, a, Comparison::Less)),
    ("<=", |m, v, a| compared(m, v, a, Comparison::LessOrEqual)),
    ("==", |m, v, a| compared(m, v, a, Comparison::Equal)),
    (">", |m, v, a| compared(m, v, a, Comparison::Greater)),
    (">=", |m, v, a| compared(m, v, a, Comparison::GreaterOrEqual)),
    ("boolean", |_, v, a| plain(a, matches!(v, Value::Bool(_)))),
    ("callable", |m, v, a| plain(a, is_callable(m, v))),
    ("defined", |_, v, a| plain(a, !v.is_undefined())),
    ("divisibleby", |m, v, a| {
        let [divisor] = a.bind(["num"])?;
        has_remainder(m, v, &required(divisor, "num")?, 0)
    }),
    ("eq", |m, v, a| compared(m, v, a, Comparison::Equal)),
    ("equalto", |m, v, a| compared(m, v, a, Comparison::Equal)),
    ("escaped", |_, v, a| plain(a, matches!(v, Value::Text(text) if text.is_markup()))),
    ("even", |m, v, a| plain(a, has_remainder(m, v, &Value::Int(2), 0)?)),
    ("false", |_, v, a| plain(a, matches!(v, Value::Bool(false)))),
    ("filter", |m, v, a| plain(a, is_among(m, v, |m, name| m.builtins.filter(name).is_ok())?)),
    ("float", |_, v, a| plain(a, matches!(v, Value::Float(_)))),
    ("ge", |m, v, a| compared(m, v, a, Comparison::GreaterOrEqual)),
    ("greaterthan", |m, v, a| compared(m, v, a, Comparison::Greater)),
    ("gt", |m, v, a| compared(m, v, a, Comparison::Greater)),
    ("in", |m, v, a| compared(m, v, a, Comparison::In)),
    ("integer", |_, v, a| plain(a, matches!(v, Value::Int(_)))),
    ("iterable", |m, v, a| plain(a, m.iterate(v).is_ok())),
    ("le", |m, v, a| compared(m, v, a, Comparison::LessOrEqual)),
    ("lessthan", |m, v, a| compared(m, v, a, Comparison::Less)),
    ("lower", |m, v, a| plain(a, predicate(python_text::str(m, v)?.as_str(), "islower"))),
    ("lt", |m, v, a| compared(m, v, a, Comparison::Less)),
    ("mapping", |_, v, a| plain(a, matches!(v, Value::Dict(_)))),
    ("ne", |m, v, a| compared(m, v, a, Comparison::NotEqual)),
    ("none", |_, v, a| plain(a, v.is_none())),
    ("number", |_, v, a| plain(a, v.as_float().is_some())),
    ("odd", |m, v, a| plain(a, has_remainder(m, v, &Value::Int(2), 1)?)),
    ("sameas", |m, v, a| {
        let [other] = a.bind(["other"])?;
        is_same(m, v, &required(other, "other")?)
    }),
    ("sequence", |_, v, a| plain(a, is_sequence(v))),
    ("string", |_, v, a| plain(a, matches!(v, Value::Text(_)))),
    ("test", |m, v, a| plain(a, is_among(m, v, |m, name| m.builtins.test(name).is_ok())?)),
    ("true", |_, v, a| plain(a, matches!(v, Value::Bool(true)))),
    ("undefined", |_, v, a| plain(a, v.is_undefined())),
    ("upper", |m, v, a| plain(a, predicate(python_text::str(m, v)?.as_str(), "isupper"))),
];

/// Looks up a test by name.
pub(crate) fn find(name: &str) -> Option<TestId> {
    ALL.binary_search_by(|(found, _)| (*found).cmp(name)).ok().map(TestId)
}

/// Applies a test.
pub(crate) fn apply(
    test: TestId,
    interpreter: &mut Interpreter<'_>,
    value: &Value,
    args: Args,
) -> Result<bool> {
    (ALL[test.0].1)(interpreter, value, args)
}

/// Result of a test without arguments.
fn plain(args: Args, answer: bool) -> Result<bool> {
    args.bind_positional::<0>().map(|_| answer)
}

fn compared(
    interpreter: &mut Interpreter<'_>,
    value: &Value,
    args: Args,
    comparison: Comparison,
) -> Result<bool> {
    let [other] = args.bind_positional()?;
    compare(interpreter, comparison, value, &required(other, "other")?)
}

fn has_remainder(
    interpreter: &mut Interpreter<'_>,
    value: &Value,
    divisor: &Value,
    rest: i128,
) -> Result<bool> {
    let found = arithmetic(interpreter, Arithmetic::Modulo, value, divisor)?;
    compare(interpreter, Comparison::Equal, &found, &Value::Int(rest))
}

/// Returns true if a name is in a table. Python looks it up in a dict, which refuses unhashable values.
fn is_among(
    interpreter: &Interpreter<'_>,
    value: &Value,
    is_known: fn(&Interpreter<'_>, &str) -> bool,
) -> Result<bool> {
    Key::of(value, interpreter.budget)?;
    Ok(matches!(value, Value::Text(name) if is_known(interpreter, name.as_str())))
}

fn is_callable(interpreter: &Interpreter<'_>, value: &Value) -> bool {
    match value {
        Value::Function(Function::SelfReference) => false,
        // Python's `Undefined` has a `__call__`, which raises.
        Value::Undefined(_) | Value::Macro(_) | Value::Function(_) | Value::Method(_) | Value::Block(_) => {
            true
        }
        Value::Object(id) => matches!(interpreter.object(*id), Object::Joiner { .. } | Object::Loop(_)),
        _ => false,
    }
}

/// Returns true for values with a length and items. Python tests for `__getitem__`, which dicts have and
/// views do not.
fn is_sequence(value: &Value) -> bool {
    value.len().is_some() && !matches!(value, Value::View(_))
}

/// `is`: small values are the same if they are equal and of one type, others if they are one object.
fn is_same(interpreter: &mut Interpreter<'_>, value: &Value, other: &Value) -> Result<bool> {
    let scalar =
        matches!(value, Value::None | Value::Bool(_) | Value::Int(_) | Value::Float(_) | Value::Text(_));
    if scalar {
        return Ok(
            value.type_name() == other.type_name() && compare(interpreter, Comparison::Equal, value, other)?
        );
    }
    Ok(same(value, other))
}

#[cfg(test)]
mod tests {
    #[test]
    fn tests_are_sorted() {
        assert!(super::ALL.is_sorted_by(|a, b| a.0 < b.0));
    }
}

//! Equality, ordering and membership.

use std::cmp::Ordering;
use std::rc::Rc;

use crate::budget::Budget;
use crate::error::{BoxedResult as Result, Error};
use crate::interpreter::Interpreter;
use crate::syntax::ast::Comparison;
use crate::values::{Items, Key, Value};

/// `left comparison right`.
pub(crate) fn compare(
    interpreter: &mut Interpreter<'_>,
    comparison: Comparison,
    left: &Value,
    right: &Value,
) -> Result<bool> {
    let budget = interpreter.budget;
    let ordered = |wanted: fn(Ordering) -> bool| Ok(order(budget, left, right)?.is_some_and(wanted));
    match comparison {
        Comparison::Equal => equal(budget, left, right),
        Comparison::NotEqual => Ok(!equal(budget, left, right)?),
        Comparison::Less => ordered(Ordering::is_lt),
        Comparison::LessOrEqual => ordered(Ordering::is_le),
        Comparison::Greater => ordered(Ordering::is_gt),
        Comparison::GreaterOrEqual => ordered(Ordering::is_ge),
        Comparison::In => contains(interpreter, right, left),
        Comparison::NotIn => Ok(!contains(interpreter, right, left)?),
    }
}

/// `left == right`; the origin of text is ignored.
pub(crate) fn equal(budget: &Budget, left: &Value, right: &Value) -> Result<bool> {
    budget.step()?;
    Ok(match (left, right) {
        (Value::Undefined(_), Value::Undefined(_)) | (Value::None, Value::None) => true,
        (Value::Text(left), Value::Text(right)) => {
            budget.read(left.len().min(right.len()))?;
            left == right
        }
        (Value::List(left), Value::List(right)) | (Value::Tuple(left), Value::Tuple(right)) => {
            equal_items(budget, left, right)?
        }
        (Value::View(left), Value::View(right)) if left.name == right.name && left.name != "dict_values" => {
            equal_items(budget, &left.items, &right.items)?
        }
        (Value::Dict(left), Value::Dict(right)) => {
            if left.len() != right.len() {
                return Ok(false);
            }
            for (key, value) in left.entries() {
                match right.get(key, budget)? {
                    Some(other) if equal(budget, value, other)? => {}
                    _ => return Ok(false),
                }
            }
            true
        }
        (Value::Range(left), Value::Range(right)) => {
            left.len() == right.len() && (0..left.len().min(2)).all(|at| left.get(at) == right.get(at))
        }
        _ => match numbers(left, right) {
            Some(order) => order == Some(Ordering::Equal),
            None => same(left, right),
        },
    })
}

fn equal_items(budget: &Budget, left: &Items, right: &Items) -> Result<bool> {
    if left.values.len() != right.values.len() {
        return Ok(false);
    }
    for (left, right) in left.values.iter().zip(&right.values) {
        if !equal(budget, left, right)? {
            return Ok(false);
        }
    }
    Ok(true)
}

/// `left is right`, for values with an identity.
pub(crate) fn same(left: &Value, right: &Value) -> bool {
    match (left, right) {
        (Value::List(left), Value::List(right)) | (Value::Tuple(left), Value::Tuple(right)) => {
            Rc::ptr_eq(left, right)
        }
        (Value::Dict(left), Value::Dict(right)) => Rc::ptr_eq(left, right),
        (Value::View(left), Value::View(right)) => Rc::ptr_eq(left, right),
        (Value::Generator(left), Value::Generator(right)) => Rc::ptr_eq(left, right),
        (Value::Object(left), Value::Object(right)) => left == right,
        (Value::Macro(left), Value::Macro(right)) => Rc::ptr_eq(left, right),
        (Value::Function(left), Value::Function(right)) => left == right,
        (Value::Method(left), Value::Method(right)) => {
            left.name == right.name && same(&left.receiver, &right.receiver)
        }
        _ => false,
    }
}

/// Orders two numbers; `None` if one is not a number.
fn numbers(left: &Value, right: &Value) -> Option<Option<Ordering>> {
    match (left.as_int(), right.as_int()) {
        (Some(left), Some(right)) => Some(Some(left.cmp(&right))),
        (Some(left), None) => Some(order_mixed(left, right.as_float()?)),
        (None, Some(right)) => Some(order_mixed(right, left.as_float()?).map(Ordering::reverse)),
        (None, None) => Some(left.as_float()?.partial_cmp(&right.as_float()?)),
    }
}

/// Orders an integer and a float, without rounding.
fn order_mixed(integer: i128, float: f64) -> Option<Ordering> {
    if float.is_nan() {
        return None;
    }
    if float.abs() >= 1.7e38 {
        return Some(if float > 0.0 { Ordering::Less } else { Ordering::Greater });
    }
    let whole = float.trunc();
    let by_whole = integer.cmp(&(whole as i128));
    Some(by_whole.then_with(|| whole.partial_cmp(&float).unwrap_or(Ordering::Equal)))
}

/// Orders two values; `None` for NaN.
///
/// # Errors
/// If Python does not order them.
pub(crate) fn order(budget: &Budget, left: &Value, right: &Value) -> Result<Option<Ordering>> {
    budget.step()?;
    match (left, right) {
        (Value::Undefined(undefined), _) | (_, Value::Undefined(undefined)) => Err(undefined.error()),
        (Value::Text(left), Value::Text(right)) => {
            budget.read(left.len().min(right.len()))?;
            Ok(Some(left.as_str().cmp(right.as_str())))
        }
        (Value::List(left), Value::List(right)) | (Value::Tuple(left), Value::Tuple(right)) => {
            for (left, right) in left.values.iter().zip(&right.values) {
                if !equal(budget, left, right)? {
                    return order(budget, left, right);
                }
            }
            Ok(Some(left.values.len().cmp(&right.values.len())))
        }
        _ => numbers(left, right).ok_or_else(|| {
            let (left, right) = (left.type_name(), right.type_name());
            Error::runtime(format!("'<' not supported between instances of '{left}' and '{right}'"))
        }),
    }
}

/// `item in container`.
fn contains(interpreter: &mut Interpreter<'_>, container: &Value, item: &Value) -> Result<bool> {
    let budget = interpreter.budget;
    match container {
        Value::Text(text) => {
            let item = match item {
                Value::Text(item) => item,
                Value::Undefined(undefined) => return Err(undefined.error()),
                other => {
                    let kind = other.type_name();
                    let message = format!("'in <string>' requires string as left operand, not {kind}");
                    return Err(Error::runtime(message));
                }
            };
            budget.read(text.len())?;
            Ok(text.as_str().contains(item.as_str()))
        }
        Value::Dict(dict) => Ok(dict.get(item, budget)?.is_some()),
        Value::View(view) if view.name == "dict_keys" => {
            let wanted = Key::of(item, budget)?;
            for key in &view.items.values {
                if Key::of(key, budget)? == wanted {
                    return Ok(true);
                }
            }
            Ok(false)
        }
        _ => {
            let mut cursor = interpreter.iterate(container)?;
            while let Some(found) = interpreter.next(&mut cursor)? {
                if equal(budget, &found, item)? {
                    return Ok(true);
                }
            }
            Ok(false)
        }
    }
}

/// Stable sort by the first value of each pair. (The sort of the standard library may panic on an
/// inconsistent order, which a template can cause.)
pub(crate) fn sort<T>(budget: &Budget, mut items: Vec<(Value, T)>) -> Result<Vec<(Value, T)>> {
    if items.len() < 2 {
        return Ok(items);
    }
    budget.build(items.len() * size_of::<(Value, T)>())?;
    let right = items.split_off(items.len() / 2);
    let mut left = sort(budget, items)?.into_iter().peekable();
    let mut right = sort(budget, right)?.into_iter().peekable();
    let mut sorted = Vec::with_capacity(left.len() + right.len());
    while let (Some(first), Some(second)) = (left.peek(), right.peek()) {
        let takes_right = order(budget, &second.0, &first.0)? == Some(Ordering::Less);
        sorted.extend(if takes_right { right.next() } else { left.next() });
    }
    sorted.extend(left);
    sorted.extend(right);
    Ok(sorted)
}

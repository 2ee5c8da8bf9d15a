//! Python's operators.

mod compare;

use crate::budget::Budget;
use crate::error::{BoxedResult as Result, Error};
use crate::formatting::percent;
use crate::interpreter::Interpreter;
use crate::syntax::ast::Arithmetic;
use crate::text::html::escape;
use crate::text::{Text, TextWriter};
use crate::values::Value;

pub(super) use compare::{compare, equal, order, same, sort};

/// `left operator right`.
pub(super) fn arithmetic(
    interpreter: &mut Interpreter<'_>,
    operator: Arithmetic,
    left: &Value,
    right: &Value,
) -> Result<Value> {
    if let Value::Undefined(undefined) = left {
        return Err(undefined.error());
    }
    let budget = interpreter.budget;
    match (operator, left, right) {
        (Arithmetic::Modulo, Value::Text(format), _) => percent(interpreter, format, right).map(Value::Text),
        (_, _, Value::Undefined(undefined)) => Err(undefined.error()),
        (Arithmetic::Add, Value::Text(left), Value::Text(right)) => {
            add_texts(budget, left, right).map(Value::Text)
        }
        (Arithmetic::Add, Value::List(left), Value::List(right)) => {
            Value::list(joined(budget, &left.values, &right.values)?, budget)
        }
        (Arithmetic::Add, Value::Tuple(left), Value::Tuple(right)) => {
            Value::tuple(joined(budget, &left.values, &right.values)?, budget)
        }
        (Arithmetic::Multiply, Value::Text(_) | Value::List(_) | Value::Tuple(_), count) => {
            repeat(budget, left, count)
        }
        (Arithmetic::Multiply, count, Value::Text(_) | Value::List(_) | Value::Tuple(_)) => {
            repeat(budget, right, count)
        }
        _ => numbers(operator, left, right),
    }
}

fn joined(budget: &Budget, left: &[Value], right: &[Value]) -> Result<Vec<Value>> {
    budget.build((left.len() + right.len()) * size_of::<Value>())?;
    Ok([left, right].concat())
}

/// `left + right`; if one is markup, the other is escaped.
fn add_texts(budget: &Budget, left: &Text, right: &Text) -> Result<Text> {
    let markup = left.is_markup() || right.is_markup();
    let mut writer = TextWriter::new(budget);
    for side in [left, right] {
        if markup { writer.text(&escape(budget, side)?)? } else { writer.text(side)? }
    }
    Ok(writer.finish().with_markup(markup))
}

fn repeat(budget: &Budget, value: &Value, count: &Value) -> Result<Value> {
    let Some(count) = count.as_int() else { return Err(unsupported("*", value, count)) };
    let count = usize::try_from(count.max(0)).unwrap_or(usize::MAX);
    match value {
        Value::Text(text) => {
            let mut writer = TextWriter::new(budget);
            writer.repeat(text, count)?;
            Ok(Value::Text(writer.finish().with_markup(text.is_markup())))
        }
        Value::List(items) | Value::Tuple(items) => {
            let length = items.values.len().saturating_mul(count);
            budget.build(length.saturating_mul(size_of::<Value>()))?;
            let values = items.values.iter().cycle().take(length).cloned().collect();
            if matches!(value, Value::List(_)) {
                Value::list(values, budget)
            } else {
                Value::tuple(values, budget)
            }
        }
        _ => Ok(Value::None),
    }
}

fn numbers(operator: Arithmetic, left: &Value, right: &Value) -> Result<Value> {
    let symbol = symbol(operator);
    if let (Some(a), Some(b)) = (left.as_int(), right.as_int()) {
        return integers(operator, a, b);
    }
    let (Some(a), Some(b)) = (left.as_float(), right.as_float()) else {
        return Err(match (operator, left, right) {
            (Arithmetic::Add, Value::Text(_), _) => {
                Error::runtime(format!("can only concatenate str (not \"{}\") to str", right.type_name()))
            }
            _ => unsupported(symbol, left, right),
        });
    };
    if b == 0.0 && matches!(operator, Arithmetic::Divide | Arithmetic::FloorDivide | Arithmetic::Modulo) {
        return Err(Error::runtime("division by zero"));
    }
    Ok(Value::Float(match operator {
        Arithmetic::Add => a + b,
        Arithmetic::Subtract => a - b,
        Arithmetic::Multiply => a * b,
        Arithmetic::Divide => a / b,
        Arithmetic::FloorDivide => floor_divide(a, b),
        Arithmetic::Modulo => modulo(a, b),
        Arithmetic::Power => return float_power(a, b),
    }))
}

/// Remainder with the sign of the divisor.
fn modulo(a: f64, b: f64) -> f64 {
    let remainder = a % b;
    if remainder == 0.0 {
        0.0_f64.copysign(b)
    } else if (remainder < 0.0) != (b < 0.0) {
        remainder + b
    } else {
        remainder
    }
}

fn floor_divide(a: f64, b: f64) -> f64 {
    let quotient = (a - modulo(a, b)) / b;
    let floor = quotient.floor();
    if quotient == 0.0 {
        0.0_f64.copysign(a / b)
    } else if quotient - floor > 0.5 {
        floor + 1.0
    } else {
        floor
    }
}

fn float_power(a: f64, b: f64) -> Result<Value> {
    if a == 0.0 && b < 0.0 {
        return Err(Error::runtime("0.0 cannot be raised to a negative power"));
    }
    let power = a.powf(b);
    if power.is_nan() && !a.is_nan() && !b.is_nan() {
        return Err(Error::runtime("complex numbers are not offered"));
    }
    if power.is_infinite() && a.is_finite() && b.is_finite() {
        return Err(Error::runtime("Result too large"));
    }
    Ok(Value::Float(power))
}

fn integers(operator: Arithmetic, a: i128, b: i128) -> Result<Value> {
    if b == 0 && matches!(operator, Arithmetic::Divide | Arithmetic::FloorDivide | Arithmetic::Modulo) {
        return Err(Error::runtime("division by zero"));
    }
    let result = match operator {
        Arithmetic::Add => a.checked_add(b),
        Arithmetic::Subtract => a.checked_sub(b),
        Arithmetic::Multiply => a.checked_mul(b),
        Arithmetic::Divide => return Ok(Value::Float(a as f64 / b as f64)),
        Arithmetic::FloorDivide => a.checked_div_euclid(b).map(|quotient| {
            // Euclid's remainder is never negative; Python's has the sign of the divisor.
            if b < 0 && a.rem_euclid(b) != 0 { quotient - 1 } else { quotient }
        }),
        Arithmetic::Modulo => {
            a.checked_rem_euclid(b).map(|rest| if b < 0 && rest != 0 { rest + b } else { rest })
        }
        Arithmetic::Power if b < 0 => return float_power(a as f64, b as f64),
        Arithmetic::Power => u32::try_from(b).ok().and_then(|b| a.checked_pow(b)).or(match a {
            0 | 1 => Some(a),
            -1 => Some(if b % 2 == 0 { 1 } else { -1 }),
            _ => None,
        }),
    };
    result.map(Value::Int).ok_or_else(too_large)
}

fn too_large() -> Box<Error> {
    Error::runtime("integers have at most 127 bits")
}

/// `-value`.
pub(super) fn negative(value: &Value) -> Result<Value> {
    match (value, value.as_int()) {
        (Value::Undefined(undefined), _) => Err(undefined.error()),
        (Value::Float(value), _) => Ok(Value::Float(-value)),
        (_, Some(value)) => value.checked_neg().map(Value::Int).ok_or_else(too_large),
        _ => Err(Error::runtime(format!("bad operand type for unary -: '{}'", value.type_name()))),
    }
}

/// `+value`.
pub(super) fn positive(value: &Value) -> Result<Value> {
    match (value, value.as_int()) {
        (Value::Undefined(undefined), _) => Err(undefined.error()),
        (Value::Float(value), _) => Ok(Value::Float(*value)),
        (_, Some(value)) => Ok(Value::Int(value)),
        _ => Err(Error::runtime(format!("bad operand type for unary +: '{}'", value.type_name()))),
    }
}

fn symbol(operator: Arithmetic) -> &'static str {
    match operator {
        Arithmetic::Add => "+",
        Arithmetic::Subtract => "-",
        Arithmetic::Multiply => "*",
        Arithmetic::Divide => "/",
        Arithmetic::FloorDivide => "//",
        Arithmetic::Modulo => "%",
        Arithmetic::Power => "**",
    }
}

fn unsupported(symbol: &str, left: &Value, right: &Value) -> Box<Error> {
    let (left, right) = (left.type_name(), right.type_name());
    Error::runtime(format!("unsupported operand type(s) for {symbol}: '{left}' and '{right}'"))
}

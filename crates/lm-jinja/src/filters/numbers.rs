//! Filters on numbers.

use crate::error::{BoxedResult as Result, Error};
use crate::interpreter::Interpreter;
use crate::methods::decimal_value;
use crate::operators::{arithmetic, negative};
use crate::syntax::ast::Arithmetic;
use crate::values::{Args, Path, Value, flag};

/// Decimals from which a float is its own rounded value, and powers of ten from which it is rounded to 0.
const MAX_PRECISION: i128 = 400;
/// Maximum precision of rounding up or down, which multiplies by a power of ten.
const MAX_SCALE: i32 = 300;

pub(super) fn abs(_: &mut Interpreter<'_>, value: Value, args: Args) -> Result<Value> {
    args.bind_positional::<0>()?;
    match (&value, value.as_int()) {
        (Value::Undefined(undefined), _) => Err(undefined.error()),
        (Value::Float(float), _) => Ok(Value::Float(float.abs())),
        (_, Some(int)) if int < 0 => negative(&value),
        (_, Some(int)) => Ok(Value::Int(int)),
        _ => Err(Error::runtime(format!("bad operand type for abs(): '{}'", value.type_name()))),
    }
}

/// Python's `int(value)`, or the default if that fails.
pub(super) fn int(interpreter: &mut Interpreter<'_>, value: Value, args: Args) -> Result<Value> {
    let [default, base] = args.bind(["default", "base"])?;
    let base = base.map_or(Ok(10), |base| base.expect_int())?;
    interpreter.budget.read(value.read_cost().saturating_mul(4))?;
    let number = match &value {
        Value::Undefined(undefined) => return Err(undefined.error()),
        Value::Text(text) => {
            parse_int(text.as_str(), base).or_else(|| parse_float(text.as_str()).and_then(whole))
        }
        Value::Float(float) if float.is_infinite() => {
            return Err(Error::runtime("cannot convert float infinity to integer"));
        }
        Value::Float(float) => whole(*float),
        other => other.as_int(),
    };
    Ok(number.map(Value::Int).or(default).unwrap_or(Value::Int(0)))
}

fn whole(float: f64) -> Option<i128> {
    (float.is_finite() && float.abs() < 1.7e38).then_some(float as i128)
}

/// Python's `int(text, base)`: surrounding blanks, a sign, the base's prefix, single underscores between
/// digits, digits of any script.
fn parse_int(text: &str, base: i128) -> Option<i128> {
    let text = ascii_digits(text.trim());
    let (sign, digits) = match text.strip_prefix(['+', '-']) {
        Some(digits) => (&text[..1], digits),
        None => ("", &*text),
    };
    let prefixed = |prefixes: [&str; 2]| {
        let digits = prefixes.iter().find_map(|prefix| digits.strip_prefix(prefix))?;
        Some(digits.strip_prefix('_').unwrap_or(digits))
    };
    let (digits, base) = match base {
        16 | 0 if prefixed(["0x", "0X"]).is_some() => (prefixed(["0x", "0X"])?, 16),
        8 | 0 if prefixed(["0o", "0O"]).is_some() => (prefixed(["0o", "0O"])?, 8),
        2 | 0 if prefixed(["0b", "0B"]).is_some() => (prefixed(["0b", "0B"])?, 2),
        0 => (digits, 10),
        2..=36 => (digits, base as u32),
        _ => return None,
    };
    if digits.starts_with(['+', '-']) {
        return None;
    }
    let digits = without_underscores(digits, |c| c.is_ascii_alphanumeric())?;
    i128::from_str_radix(&format!("{sign}{digits}"), base).ok()
}

/// Converts the decimal digits of all scripts to ASCII.
fn ascii_digits(text: &str) -> String {
    let ascii = |c: char| decimal_value(c).and_then(|value| char::from_digit(value, 10)).unwrap_or(c);
    text.chars().map(ascii).collect()
}

/// Removes underscores; `None` if one is not between two digits.
fn without_underscores(text: &str, is_digit: fn(&char) -> bool) -> Option<String> {
    let mut out = String::with_capacity(text.len());
    let mut chars = text.chars().peekable();
    while let Some(c) = chars.next() {
        if c != '_' {
            out.push(c);
        } else if !out.ends_with(|c| is_digit(&c)) || !chars.peek().is_some_and(is_digit) {
            return None;
        }
    }
    Some(out)
}

fn parse_float(text: &str) -> Option<f64> {
    without_underscores(&ascii_digits(text.trim()), char::is_ascii_digit)?.parse().ok()
}

/// Python's `float(value)`, or the default if that fails.
pub(super) fn float(_: &mut Interpreter<'_>, value: Value, args: Args) -> Result<Value> {
    let [default] = args.bind(["default"])?;
    let number = match &value {
        Value::Undefined(undefined) => return Err(undefined.error()),
        Value::Text(text) => parse_float(text.as_str()),
        other => other.as_float(),
    };
    Ok(number.map(Value::Float).or(default).unwrap_or(Value::Float(0.0)))
}

pub(super) fn round(interpreter: &mut Interpreter<'_>, value: Value, args: Args) -> Result<Value> {
    let [precision, method] = args.bind(["precision", "method"])?;
    let precision = precision.map_or(Ok(0), |precision| precision.expect_int())?;
    let number = match &value {
        Value::Undefined(undefined) => return Err(undefined.error()),
        other => other.as_float().ok_or_else(|| {
            Error::runtime(format!("type {} doesn't define __round__ method", other.type_name()))
        })?,
    };
    let method = method.as_ref().map(Value::expect_text).transpose()?;
    let method = method.map_or("common", |method| method.as_str());
    let exact = precision.clamp(-MAX_PRECISION, MAX_PRECISION) as i32;
    interpreter.budget.read(16 * exact.unsigned_abs() as usize)?;
    if method == "common" {
        return Ok(match value.as_int() {
            Some(int) if precision >= 0 => Value::Int(int),
            Some(int) => Value::Int(round_integer(int, exact.unsigned_abs())),
            None if number.is_finite() => {
                let rounded = Some(round_float(number, exact)).filter(|rounded| rounded.is_finite());
                Value::Float(rounded.ok_or_else(|| Error::runtime("rounded value too large to represent"))?)
            }
            None => Value::Float(number),
        });
    }
    if exact.abs() > MAX_SCALE {
        return Err(Error::runtime(format!("round: a precision of up to {MAX_SCALE}")));
    }
    let scale = 10_f64.powi(exact);
    match method {
        "ceil" => Ok(Value::Float((number * scale).ceil() / scale)),
        "floor" => Ok(Value::Float((number * scale).floor() / scale)),
        _ => Err(Error::runtime("method must be common, ceil or floor")),
    }
}

/// Rounds to the nearest multiple of a power of ten, ties to even.
fn round_integer(value: i128, digits: u32) -> i128 {
    let Some(unit) = 10_i128.checked_pow(digits) else { return 0 };
    let (quotient, rest) = (value.div_euclid(unit), value.rem_euclid(unit));
    let up = rest > unit - rest || (rest == unit - rest && quotient % 2 != 0);
    (quotient + i128::from(up)).saturating_mul(unit)
}

/// Python's `round(value, precision)`: the exact value, correctly rounded to decimal digits.
fn round_float(value: f64, precision: i32) -> f64 {
    if let Ok(digits) = usize::try_from(precision) {
        return format!("{value:.digits$}").parse().unwrap_or(value);
    }
    let exponent = |text: &str| text.rsplit_once('e').and_then(|(_, exponent)| exponent.parse::<i32>().ok());
    let digits = exponent(&format!("{value:e}")).unwrap_or(0) + precision;
    match usize::try_from(digits) {
        Ok(digits) => format!("{value:.digits$e}").parse().unwrap_or(value),
        // Half of the unit is rounded to 0, which is even.
        Err(_)
            if digits == -1
                && value.abs() > parse_float(&format!("5e{}", -precision - 1)).unwrap_or(f64::MAX) =>
        {
            format!("{}1e{}", if value < 0.0 { "-" } else { "" }, -precision).parse().unwrap_or(value)
        }
        Err(_) => 0.0 * value,
    }
}

pub(super) fn sum(interpreter: &mut Interpreter<'_>, value: Value, args: Args) -> Result<Value> {
    let [attribute, start] = args.bind(["attribute", "start"])?;
    let path = Path::new(&attribute.unwrap_or(Value::None), interpreter.budget)?;
    let mut sum = start.unwrap_or(Value::Int(0));
    if matches!(sum, Value::Text(_)) {
        return Err(Error::runtime("sum() can't sum strings"));
    }
    for item in interpreter.collect(&value)? {
        let item = interpreter.follow(&path, &item, None)?;
        sum = arithmetic(interpreter, Arithmetic::Add, &sum, &item)?;
    }
    Ok(sum)
}

pub(super) fn filesizeformat(interpreter: &mut Interpreter<'_>, value: Value, args: Args) -> Result<Value> {
    let [binary] = args.bind(["binary"])?;
    let Value::Float(bytes) = float(interpreter, value, Args::of(vec![Value::None]))? else {
        return Err(Error::runtime("filesizeformat: not a number"));
    };
    let (base, prefixes) = if flag(binary) {
        (1024.0, ["KiB", "MiB", "GiB", "TiB", "PiB", "EiB", "ZiB", "YiB"])
    } else {
        (1000.0, ["kB", "MB", "GB", "TB", "PB", "EB", "ZB", "YB"])
    };
    if bytes == 1.0 {
        return Ok(Value::text("1 Byte"));
    }
    if bytes < base {
        return Ok(Value::text(format!("{} Bytes", bytes as i128)));
    }
    let (mut shown, mut prefix) = (bytes, "");
    for name in prefixes {
        (shown, prefix) = (shown / base, name);
        if shown < base {
            break;
        }
    }
    Ok(Value::text(format!("{shown:.1} {prefix}")))
}

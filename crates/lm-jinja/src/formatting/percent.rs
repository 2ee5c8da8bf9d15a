//! `format % values`.

use super::numbers::{FloatStyle, float, integer};
use super::{Align, leading_number, meter, pad, too_wide};
use crate::error::{BoxedResult as Result, Error};
use crate::interpreter::Interpreter;
use crate::origin::Origin;
use crate::python_text;
use crate::text::html::escape;
use crate::text::{Text, TextWriter};
use crate::values::Value;

/// One conversion specifier (`%…`).
#[derive(Default)]
struct Field<'f> {
    key: Option<&'f str>,
    left: bool,
    zero: bool,
    plus: bool,
    blank: bool,
    alternate: bool,
    width: Option<usize>,
    precision: Option<usize>,
}

/// The remaining values.
struct Values<'v> {
    all: &'v Value,
    index: usize,
}

/// `format % values`, with several values as a tuple and named ones as a dict.
pub(crate) fn percent(interpreter: &mut Interpreter<'_>, format: &Text, values: &Value) -> Result<Text> {
    let mut out = TextWriter::new(interpreter.budget);
    let mut values = Values { all: values, index: 0 };
    let text = format.as_str();
    let mut at = 0;
    while let Some(found) = text[at..].find('%') {
        interpreter.budget.step()?;
        out.slice(format, at..at + found)?;
        let field = &text[at + found + 1..];
        if field.starts_with('%') {
            out.slice(format, at + found..at + found + 1)?;
            at += found + 2;
            continue;
        }
        let rest = fill(interpreter, &mut out, field, &mut values, format.is_markup())?;
        at = text.len() - rest.len();
    }
    out.slice(format, at..text.len())?;
    if values.are_left() {
        return Err(Error::runtime("not all arguments converted during string formatting"));
    }
    Ok(out.finish().with_markup(format.is_markup()))
}

impl Values<'_> {
    fn next(&mut self) -> Result<Value> {
        self.index += 1;
        let value = match self.all {
            Value::Tuple(items) => items.values.get(self.index - 1),
            single => Some(single).filter(|_| self.index == 1),
        };
        value.cloned().ok_or_else(|| Error::runtime("not enough arguments for format string"))
    }

    fn width(&mut self) -> Result<i128> {
        let width = self.next()?.expect_int()?;
        if width.unsigned_abs() > super::MAX_WIDTH as u128 { Err(too_wide()) } else { Ok(width) }
    }

    fn are_left(&self) -> bool {
        match self.all {
            Value::Tuple(items) => self.index < items.values.len(),
            // Any subscriptable value may be a mapping with unused keys.
            Value::Dict(_) | Value::List(_) | Value::Range(_) | Value::Undefined(_) => false,
            _ => self.index == 0,
        }
    }
}

/// Writes one field; returns the rest of the text.
fn fill<'f>(
    interpreter: &mut Interpreter<'_>,
    out: &mut TextWriter<'_>,
    text: &'f str,
    values: &mut Values<'_>,
    markup: bool,
) -> Result<&'f str> {
    let (field, rest) = Field::parse(text, values)?;
    let kind = rest.chars().next().ok_or_else(|| Error::runtime("incomplete format"))?;
    let rest = &rest[kind.len_utf8()..];
    if kind == '%' {
        out.template("%")?;
        return Ok(rest);
    }
    let value = match (field.key, values.all) {
        (Some(key), Value::Dict(dict)) => {
            values.index = 1;
            let found = dict.get(&Value::text(key), interpreter.budget)?;
            found.cloned().ok_or_else(|| Error::runtime(format!("no key '{key}'")))?
        }
        (Some(_), _) => return Err(Error::runtime("format requires a mapping")),
        (None, _) => values.next()?,
    };
    let shown = field.shown(interpreter, kind, &value)?;
    let shown = if markup && !matches!(value, Value::Int(_) | Value::Float(_)) {
        escape(interpreter.budget, &shown)?
    } else {
        shown
    };
    let is_number = matches!(kind, 'd' | 'i' | 'u' | 'x' | 'X' | 'o' | 'e' | 'E' | 'f' | 'F' | 'g' | 'G');
    let align = match (field.left, field.zero && is_number) {
        (true, _) => Align::Left,
        (false, true) => Align::AfterSign,
        (false, false) => Align::Right,
    };
    let fill = Text::template(if align == Align::AfterSign { "0" } else { " " });
    pad(out, &shown, &fill, align, field.width.unwrap_or(0))?;
    Ok(rest)
}

impl<'f> Field<'f> {
    fn parse(mut text: &'f str, values: &mut Values<'_>) -> Result<(Self, &'f str)> {
        let mut field = Field::default();
        if let Some(named) = text.strip_prefix('(') {
            let end = key_end(named).ok_or_else(|| Error::runtime("incomplete format key"))?;
            field.key = Some(&named[..end]);
            text = &named[end + 1..];
        }
        while let Some(flag) = text.chars().next().filter(|c| "-+ 0#".contains(*c)) {
            match flag {
                '-' => field.left = true,
                '+' => field.plus = true,
                ' ' => field.blank = true,
                '0' => field.zero = true,
                _ => field.alternate = true,
            }
            text = &text[1..];
        }
        if let Some(rest) = text.strip_prefix('*') {
            let width = values.width()?;
            field.left |= width < 0;
            field.width = usize::try_from(width.unsigned_abs()).ok();
            text = rest;
        } else {
            (field.width, text) = leading_number(text)?;
        }
        if let Some(rest) = text.strip_prefix('.') {
            if let Some(rest) = rest.strip_prefix('*') {
                field.precision = Some(usize::try_from(values.width()?).unwrap_or(0));
                text = rest;
            } else {
                let (precision, rest) = leading_number(rest)?;
                field.precision = Some(precision.unwrap_or(0));
                text = rest;
            }
        }
        Ok((field, text.strip_prefix(['h', 'l', 'L']).unwrap_or(text)))
    }

    fn shown(&self, interpreter: &mut Interpreter<'_>, kind: char, value: &Value) -> Result<Text> {
        meter(interpreter, self.precision)?;
        match kind {
            's' => python_text::str(interpreter, value).and_then(|text| self.cut(interpreter, text)),
            'r' | 'a' => python_text::repr(interpreter, value).and_then(|text| self.cut(interpreter, text)),
            'c' => character(interpreter, value),
            'd' | 'i' | 'u' => {
                let number = match value {
                    Value::Float(float) if float.is_finite() => *float as i128,
                    other => other.as_int().ok_or_else(|| wants_number(kind, other))?,
                };
                Ok(self.signed(number < 0, self.filled(integer(number, 'd')), ""))
            }
            'x' | 'X' | 'o' => {
                let number = value.as_int().ok_or_else(|| wants_number(kind, value))?;
                let prefix = match kind {
                    _ if !self.alternate => "",
                    'x' => "0x",
                    'X' => "0X",
                    _ => "0o",
                };
                Ok(self.signed(number < 0, self.filled(integer(number, kind)), prefix))
            }
            'e' | 'E' | 'f' | 'F' | 'g' | 'G' => {
                let number = value.as_float().ok_or_else(|| wants_number(kind, value))?;
                let style = match kind.to_ascii_lowercase() {
                    'e' => FloatStyle::Exponent,
                    'f' => FloatStyle::Fixed,
                    _ => FloatStyle::General,
                };
                let digits = float(number, style, self.precision.unwrap_or(6), self.alternate);
                let digits = if kind.is_ascii_uppercase() { digits.to_uppercase() } else { digits };
                Ok(self.signed(number.is_sign_negative() && !number.is_nan(), digits, ""))
            }
            kind => Err(Error::runtime(format!("unsupported format character '{kind}'"))),
        }
    }

    /// Pads an integer with zeros to the precision.
    fn filled(&self, digits: String) -> String {
        "0".repeat(self.precision.unwrap_or(0).saturating_sub(digits.len())) + &digits
    }

    fn signed(&self, negative: bool, digits: String, prefix: &str) -> Text {
        let sign = match (negative, self.plus, self.blank) {
            (true, _, _) => "-",
            (false, true, _) => "+",
            (false, false, true) => " ",
            _ => "",
        };
        Text::template(format!("{sign}{prefix}{digits}"))
    }

    /// Truncates a text to as many characters as the precision.
    fn cut(&self, interpreter: &Interpreter<'_>, text: Text) -> Result<Text> {
        let Some(precision) = self.precision else { return Ok(text) };
        let end = text.as_str().char_indices().nth(precision).map_or(text.len(), |(at, _)| at);
        text.slice(0..end, interpreter.budget)
    }
}

/// End of the key in parentheses; parentheses inside it are balanced.
fn key_end(text: &str) -> Option<usize> {
    let mut depth = 1;
    text.char_indices().find_map(|(at, c)| {
        match c {
            '(' => depth += 1,
            ')' => depth -= 1,
            _ => {}
        }
        (depth == 0).then_some(at)
    })
}

/// `%c`: a character, or the character of a code point. A code point counts as content, since the number's
/// origin is unknown.
fn character(interpreter: &Interpreter<'_>, value: &Value) -> Result<Text> {
    if let Value::Text(text) = value
        && text.as_str().chars().nth(1).is_none()
        && !text.is_empty()
    {
        return python_text::str(interpreter, value);
    }
    let code = value.as_int().and_then(|code| u32::try_from(code).ok()).and_then(char::from_u32);
    let code = code.ok_or_else(|| Error::runtime("%c requires int or char"))?;
    Ok(Text::new(code, Origin::Content))
}

fn wants_number(kind: char, value: &Value) -> Box<Error> {
    Error::runtime(format!("%{kind} format: a number is required, not {}", value.type_name()))
}

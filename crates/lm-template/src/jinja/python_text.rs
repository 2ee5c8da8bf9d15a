//! Values as Python prints them: `str` and `repr`.

use std::fmt::Write;

use minijinja::value::ValueKind;
use minijinja::{Error, ErrorKind, Value};

use super::marked::MARKS;

/// How deeply values may be nested where this crate walks them.
pub(super) const MAX_DEPTH: usize = 200;

/// `str(value)`, as `{{ value }}` prints it; undefined is nothing.
pub(super) fn str(value: &Value) -> Result<String, Error> {
    match value.kind() {
        ValueKind::Undefined => Ok(String::new()),
        ValueKind::String => Ok(value.as_str().unwrap_or_default().to_owned()),
        _ => {
            let mut text = String::new();
            write_repr(&mut text, value, 0)?;
            Ok(text)
        }
    }
}

fn write_repr(out: &mut String, value: &Value, depth: usize) -> Result<(), Error> {
    if depth > MAX_DEPTH {
        return Err(too_deep());
    }
    match value.kind() {
        ValueKind::Undefined => out.push_str("Undefined"),
        ValueKind::None => out.push_str("None"),
        ValueKind::Bool => out.push_str(if value.is_true() { "True" } else { "False" }),
        ValueKind::Number => out.push_str(&number(value)),
        ValueKind::String => write_string_repr(out, value.as_str().unwrap_or_default()),
        ValueKind::Seq => {
            let (open, close) = if value.is_tuple() { ('(', ')') } else { ('[', ']') };
            out.push(open);
            for (i, item) in value.try_iter()?.enumerate() {
                out.push_str(if i > 0 { ", " } else { "" });
                write_repr(out, &item, depth + 1)?;
            }
            out.push_str(if value.is_tuple() && value.len() == Some(1) { "," } else { "" });
            out.push(close);
        }
        ValueKind::Map => {
            out.push('{');
            for (i, key) in value.try_iter()?.enumerate() {
                out.push_str(if i > 0 { ", " } else { "" });
                write_repr(out, &key, depth + 1)?;
                out.push_str(": ");
                write_repr(out, &value.get_item(&key)?, depth + 1)?;
            }
            out.push('}');
        }
        _ => write!(out, "{value}").map_err(Error::from)?,
    }
    Ok(())
}

pub(super) fn too_deep() -> Error {
    Error::new(ErrorKind::InvalidOperation, format!("a value is nested deeper than {MAX_DEPTH} levels"))
}

/// A number as Python prints it.
pub(super) fn number(value: &Value) -> String {
    match f64::try_from(value.clone()) {
        Ok(float) if !value.is_integer() => float_repr(float),
        _ => value.to_string(),
    }
}

/// `repr(float)`: the shortest digits that read back the same, with an exponent below 1e-4 and from 1e16 on.
fn float_repr(float: f64) -> String {
    if float.is_nan() {
        return "nan".to_owned();
    }
    if float.is_infinite() {
        return if float > 0.0 { "inf" } else { "-inf" }.to_owned();
    }
    let scientific = format!("{float:e}");
    let Some((digits, exponent)) = scientific.split_once('e') else { return scientific };
    match exponent.parse::<i32>() {
        Ok(exponent) if !(-4..16).contains(&exponent) => {
            let sign = if exponent < 0 { '-' } else { '+' };
            format!("{digits}e{sign}{:02}", exponent.abs())
        }
        _ => format!("{float:?}"),
    }
}

/// `repr(str)`: in single quotes, unless only those are inside.
fn write_string_repr(out: &mut String, text: &str) {
    let quote = if text.contains('\'') && !text.contains('"') { '"' } else { '\'' };
    out.push(quote);
    for c in text.chars() {
        match c {
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '\t' => out.push_str("\\t"),
            '\\' => out.push_str("\\\\"),
            c if c == quote => out.extend(['\\', c]),
            c if is_printable(c) => out.push(c),
            c => out.push_str(&escape(c as u32)),
        }
    }
    out.push(quote);
}

fn escape(code: u32) -> String {
    match code {
        ..0x100 => format!("\\x{code:02x}"),
        0x100..0x10000 => format!("\\u{code:04x}"),
        _ => format!("\\U{code:08x}"),
    }
}

/// Python's `str.isprintable`, for what text holds: no control, format or separator characters but the blank.
fn is_printable(c: char) -> bool {
    let invisible = c.is_control() || (c.is_whitespace() && c != ' ');
    let format = matches!(c as u32,
        0xAD | 0x600..=0x605 | 0x61C | 0x6DD | 0x70F | 0x180E | 0x200B..=0x200F | 0x202A..=0x202E
        | 0x2060..=0x206F | 0xE000..=0xF8FF | 0xFEFF | 0xFFF0..=0xFFFB | 0xE0001..=0xE007F);
    !invisible && !format || MARKS.contains(&c)
}

//! Python's `str` and `repr` of values.

use crate::budget::MAX_VALUE_DEPTH;
use crate::error::{BoxedResult as Result, Error};
use crate::interpreter::{Interpreter, Object};
use crate::text::{Text, TextWriter};
use crate::values::{Function, Items, ObjectId, Value};

/// `str(value)`, as `{{ value }}` prints it; empty for undefined.
pub(super) fn str(interpreter: &Interpreter<'_>, value: &Value) -> Result<Text> {
    match value {
        Value::Text(text) => Ok(text.clone().with_markup(false)),
        Value::Undefined(_) => Ok(Text::default()),
        _ => repr(interpreter, value),
    }
}

/// `repr(value)`.
pub(super) fn repr(interpreter: &Interpreter<'_>, value: &Value) -> Result<Text> {
    let mut writer = TextWriter::new(interpreter.budget);
    write_repr(interpreter, &mut writer, value, 0)?;
    Ok(writer.finish())
}

fn write_repr(
    interpreter: &Interpreter<'_>,
    out: &mut TextWriter<'_>,
    value: &Value,
    depth: usize,
) -> Result<()> {
    interpreter.budget.step()?;
    // A namespace may contain itself, so the depth of values is not enough.
    if depth > MAX_VALUE_DEPTH {
        return Err(Error::runtime(format!("a value is nested deeper than {MAX_VALUE_DEPTH} levels")));
    }
    match value {
        Value::Undefined(_) => out.template("Undefined"),
        Value::None => out.template("None"),
        Value::Bool(value) => out.template(if *value { "True" } else { "False" }),
        Value::Int(value) => out.template(&value.to_string()),
        Value::Float(value) => out.template(&float(*value)),
        Value::Text(text) if text.is_markup() => {
            out.template("Markup(")?;
            write_text(out, text)?;
            out.template(")")
        }
        Value::Text(text) => write_text(out, text),
        Value::List(items) => write_items(interpreter, out, items, ["[", "]"], depth),
        Value::Tuple(items) => {
            let close = if items.values.len() == 1 { ",)" } else { ")" };
            write_items(interpreter, out, items, ["(", close], depth)
        }
        Value::View(view) => {
            out.template(view.name)?;
            write_items(interpreter, out, &view.items, ["([", "])"], depth)
        }
        Value::Dict(dict) => write_entries(interpreter, out, dict.entries(), depth),
        Value::Range(range) if range.step == 1 => {
            out.template(&format!("range({}, {})", range.start, range.stop))
        }
        Value::Range(range) => {
            out.template(&format!("range({}, {}, {})", range.start, range.stop, range.step))
        }
        Value::Object(id) => write_object(interpreter, out, *id, depth),
        // Python adds an address, which differs each time.
        Value::Generator(_) => out.template("<generator object>"),
        Value::Function(Function::SelfReference) => out.template("<TemplateReference None>"),
        Value::Block(_) => out.template("<jinja2.runtime.BlockReference object>"),
        Value::Function(function) => out.template(&format!("<function {function:?}>")),
        Value::Macro(definition) => match definition.name() {
            Some(name) => out.template(&format!("<Macro '{name}'>")),
            None => out.template("<Macro anonymous>"),
        },
        Value::Method(method) => {
            let receiver = method.receiver.type_name();
            out.template(&format!("<built-in method {} of {receiver} object>", method.name))
        }
    }
}

fn write_items(
    interpreter: &Interpreter<'_>,
    out: &mut TextWriter<'_>,
    items: &Items,
    [open, close]: [&str; 2],
    depth: usize,
) -> Result<()> {
    out.template(open)?;
    for (i, item) in items.values.iter().enumerate() {
        out.template(if i > 0 { ", " } else { "" })?;
        write_repr(interpreter, out, item, depth + 1)?;
    }
    out.template(close)
}

fn write_entries(
    interpreter: &Interpreter<'_>,
    out: &mut TextWriter<'_>,
    entries: &[(Value, Value)],
    depth: usize,
) -> Result<()> {
    out.template("{")?;
    for (i, (key, value)) in entries.iter().enumerate() {
        out.template(if i > 0 { ", " } else { "" })?;
        write_repr(interpreter, out, key, depth + 1)?;
        out.template(": ")?;
        write_repr(interpreter, out, value, depth + 1)?;
    }
    out.template("}")
}

fn write_object(
    interpreter: &Interpreter<'_>,
    out: &mut TextWriter<'_>,
    id: ObjectId,
    depth: usize,
) -> Result<()> {
    match interpreter.object(id) {
        Object::Namespace(attributes) => {
            out.template("<Namespace ")?;
            write_entries(interpreter, out, attributes.entries(), depth + 1)?;
            out.template(">")
        }
        Object::Cycler { .. } => out.template("<Cycler>"),
        Object::Joiner { .. } => out.template("<Joiner>"),
        Object::Loop(_) => out.template("<LoopContext>"),
    }
}

/// `repr(float)`: the shortest digits that round-trip, with an exponent below 1e-4 and from 1e16 on.
pub(super) fn float(float: f64) -> String {
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

/// `repr(str)`: in single quotes, or in double quotes if the text contains single quotes only.
fn write_text(out: &mut TextWriter<'_>, text: &Text) -> Result<()> {
    let quote = if text.as_str().contains('\'') && !text.as_str().contains('"') { '"' } else { '\'' };
    let quoted = text.map(out.budget(), |c, out| match c {
        '\n' => out.push_str("\\n"),
        '\r' => out.push_str("\\r"),
        '\t' => out.push_str("\\t"),
        '\\' => out.push_str("\\\\"),
        c if c == quote => out.extend(['\\', c]),
        c if is_printable(c) => out.push(c),
        c => out.push_str(&escape(c as u32)),
    })?;
    let quote = quote.to_string();
    out.template(&quote)?;
    out.text(&quoted)?;
    out.template(&quote)
}

fn escape(code: u32) -> String {
    match code {
        ..0x100 => format!("\\x{code:02x}"),
        0x100..0x10000 => format!("\\u{code:04x}"),
        _ => format!("\\U{code:08x}"),
    }
}

/// Python's `str.isprintable`, for the characters of real text: no control, format or separator characters
/// except the blank, no private-use characters, no noncharacters.
pub(super) fn is_printable(c: char) -> bool {
    let invisible = c.is_control() || (c.is_whitespace() && c != ' ');
    let code = c as u32;
    let format = matches!(code,
        0xAD | 0x600..=0x605 | 0x61C | 0x6DD | 0x70F | 0x890..=0x891 | 0x8E2 | 0x180E | 0x200B..=0x200F
        | 0x202A..=0x202E | 0x2060..=0x206F | 0xE000..=0xF8FF | 0xFDD0..=0xFDEF | 0xFEFF | 0xFFF0..=0xFFFB
        | 0x110BD | 0x110CD | 0x13430..=0x1343F | 0x1BCA0..=0x1BCA3 | 0x1D173..=0x1D17A | 0xE0001..=0xE007F
        | 0xF0000..);
    !invisible && !format && code & 0xFFFE != 0xFFFE
}

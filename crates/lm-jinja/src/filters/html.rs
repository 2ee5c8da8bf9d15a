//! Filters for HTML and URLs.

use super::texts::soft_text;
use crate::error::{BoxedResult as Result, Error};
use crate::interpreter::Interpreter;
use crate::python_text;
use crate::text::html::{escape, without_tags};
use crate::text::{Text, TextWriter};
use crate::values::{Args, Value};

pub(super) fn escape_filter(interpreter: &mut Interpreter<'_>, value: Value, args: Args) -> Result<Value> {
    args.bind_positional::<0>()?;
    escape(interpreter.budget, &soft_text(interpreter, &value)?).map(Value::Text)
}

pub(super) fn forceescape(interpreter: &mut Interpreter<'_>, value: Value, args: Args) -> Result<Value> {
    args.bind_positional::<0>()?;
    escape(interpreter.budget, &python_text::str(interpreter, &value)?).map(Value::Text)
}

pub(super) fn safe(interpreter: &mut Interpreter<'_>, value: Value, args: Args) -> Result<Value> {
    args.bind_positional::<0>()?;
    Ok(Value::Text(soft_text(interpreter, &value)?.with_markup(true)))
}

pub(super) fn striptags(interpreter: &mut Interpreter<'_>, value: Value, args: Args) -> Result<Value> {
    args.bind_positional::<0>()?;
    let text = python_text::str(interpreter, &value)?;
    without_tags(interpreter.budget, &text).map(Value::Text)
}

/// Formats a dict as attributes of a tag.
pub(super) fn xmlattr(interpreter: &mut Interpreter<'_>, value: Value, args: Args) -> Result<Value> {
    let [space] = args.bind(["autospace"])?;
    let Value::Dict(dict) = &value else {
        return Err(Error::runtime(format!("'{} object' has no attribute 'items'", value.type_name())));
    };
    let mut out = TextWriter::new(interpreter.budget);
    let mut first = true;
    for (key, value) in dict.entries().iter().filter(|(_, value)| !value.is_none() && !value.is_undefined()) {
        let key = key.expect_text()?;
        if key.as_str().contains([' ', '\t', '\n', '\r', '\x0b', '\x0c', '/', '>', '=']) {
            return Err(Error::runtime("invalid character in attribute name"));
        }
        let spaced = !std::mem::replace(&mut first, false) || space.as_ref().is_none_or(Value::is_true);
        out.template(if spaced { " " } else { "" })?;
        out.text(&escape(interpreter.budget, key)?)?;
        out.template("=\"")?;
        out.text(&escape(interpreter.budget, &soft_text(interpreter, value)?)?)?;
        out.template("\"")?;
    }
    Ok(Value::Text(out.finish()))
}

/// Percent-encodes a text for a URL, or pairs as a query string.
pub(super) fn urlencode(interpreter: &mut Interpreter<'_>, value: Value, args: Args) -> Result<Value> {
    args.bind_positional::<0>()?;
    let pairs = match &value {
        Value::Dict(dict) => crate::methods::items(interpreter, dict)?,
        Value::Text(_) => return quote(interpreter, &value, false).map(Value::Text),
        other if interpreter.iterate(other).is_err() => {
            return quote(interpreter, other, false).map(Value::Text);
        }
        other => interpreter.collect(other)?,
    };
    let mut out = TextWriter::new(interpreter.budget);
    for (index, pair) in pairs.iter().enumerate() {
        let pair = interpreter.collect(pair)?;
        let [key, value] = pair.as_slice() else { return Err(Error::runtime("urlencode expects pairs")) };
        out.template(if index > 0 { "&" } else { "" })?;
        out.text(&quote(interpreter, key, true)?)?;
        out.template("=")?;
        out.text(&quote(interpreter, value, true)?)?;
    }
    Ok(Value::Text(out.finish()))
}

fn quote(interpreter: &Interpreter<'_>, value: &Value, in_query: bool) -> Result<Text> {
    python_text::str(interpreter, value)?.map(interpreter.budget, |c, out| match c {
        ' ' if in_query => out.push('+'),
        '/' if !in_query => out.push('/'),
        '_' | '.' | '-' | '~' => out.push(c),
        c if c.is_ascii_alphanumeric() => out.push(c),
        c => c.encode_utf8(&mut [0; 4]).bytes().for_each(|byte| out.push_str(&format!("%{byte:02X}"))),
    })
}

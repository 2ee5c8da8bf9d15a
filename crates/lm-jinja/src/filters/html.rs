//! Filters for HTML and URLs.

use super::texts::soft_text;
use crate::args::Args;
use crate::budget::Budget;
use crate::error::{BoxedResult as Result, Error};
use crate::interpreter::Interpreter;
use crate::operators::escape;
use crate::origin::Origin;
use crate::python_text;
use crate::text::{Text, TextWriter};
use crate::value::Value;

/// Decoded entities. (Python knows some two thousand.)
const ENTITIES: &[(&str, &str)] =
    &[("amp", "&"), ("lt", "<"), ("gt", ">"), ("quot", "\""), ("apos", "'"), ("nbsp", "\u{a0}")];

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

/// The methods `striptags` and `unescape` of markup.
pub(crate) fn markup_method(interpreter: &Interpreter<'_>, text: &Text, name: &str) -> Result<Value> {
    match name {
        "striptags" => without_tags(interpreter.budget, text).map(Value::Text),
        _ => unescape(interpreter.budget, text).map(Value::Text),
    }
}

/// Removes comments and tags, joins the words with single blanks, and decodes entities.
fn without_tags(budget: &Budget, text: &Text) -> Result<Text> {
    let text = without(budget, text, "<!--", "-->")?;
    let text = without(budget, &text, "<", ">")?;
    let mut out = TextWriter::new(budget);
    let string = text.as_str();
    for (index, word) in string.split_whitespace().enumerate() {
        let at = word.as_ptr() as usize - string.as_ptr() as usize;
        out.template(if index > 0 { " " } else { "" })?;
        out.slice(&text, at..at + word.len())?;
    }
    unescape(budget, &out.finish())
}

/// Removes every `open`…`close` section.
fn without(budget: &Budget, text: &Text, open: &str, close: &str) -> Result<Text> {
    let mut out = TextWriter::new(budget);
    let string = text.as_str();
    let mut at = 0;
    while let Some(start) = string[at..].find(open).map(|start| start + at) {
        let Some(end) = string[start..].find(close) else { break };
        out.slice(text, at..start)?;
        at = start + end + close.len();
    }
    out.slice(text, at..string.len())?;
    Ok(out.finish())
}

/// Decodes entities. A decoded character is content if any part of its entity is.
fn unescape(budget: &Budget, text: &Text) -> Result<Text> {
    let mut out = TextWriter::new(budget);
    let string = text.as_str();
    let mut at = 0;
    while let Some(start) = string[at..].find('&').map(|start| start + at) {
        out.slice(text, at..start)?;
        at = start;
        let end = string[start..].bytes().take(12).position(|byte| byte == b';').map(|end| start + end);
        match end.and_then(|end| Some((end, entity(&string[start + 1..end])?))) {
            Some((end, character)) => {
                let is_content =
                    text.segments_in(start..end + 1).any(|(origin, _)| origin == Origin::Content);
                out.push(&character, if is_content { Origin::Content } else { Origin::Template })?;
                at = end + 1;
            }
            None => {
                out.slice(text, at..at + 1)?;
                at += 1;
            }
        }
    }
    out.slice(text, at..string.len())?;
    Ok(out.finish())
}

fn entity(name: &str) -> Option<String> {
    let code = match name.strip_prefix('#') {
        Some(digits) => match digits.strip_prefix(['x', 'X']) {
            Some(digits) => u32::from_str_radix(digits, 16).ok(),
            None => digits.parse().ok(),
        },
        None => return ENTITIES.iter().find(|(found, _)| *found == name).map(|(_, text)| (*text).to_owned()),
    };
    char::from_u32(code?).map(String::from)
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn entities_spelled_by_content_stay_content() {
        let budget = Budget::new(crate::Limits::default());
        let text = Text::new("&lt;b&#62; &zz; &", Origin::Content);
        let undone = unescape(&budget, &text).unwrap();
        assert_eq!(undone.as_str(), "<b> &zz; &");
        assert!(undone.segments().all(|(origin, _)| origin == Origin::Content));
    }
}

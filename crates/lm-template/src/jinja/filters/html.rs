//! Filters for HTML and URLs.

use super::texts::soft_text;
use crate::jinja::args::Args;
use crate::jinja::error::{Error, Result};
use crate::jinja::limits::Limits;
use crate::jinja::machine::Machine;
use crate::jinja::operators::escape;
use crate::jinja::python_text;
use crate::jinja::text::{Text, TextWriter};
use crate::jinja::value::Value;
use crate::prompt::SegmentKind;

/// Decoded entities. (Python knows some two thousand.)
const ENTITIES: &[(&str, &str)] =
    &[("amp", "&"), ("lt", "<"), ("gt", ">"), ("quot", "\""), ("apos", "'"), ("nbsp", "\u{a0}")];

pub(super) fn escape_filter(machine: &mut Machine<'_>, value: Value, args: Args) -> Result<Value> {
    args.bind_positional::<0>()?;
    escape(machine.limits, &soft_text(machine, &value)?).map(Value::Text)
}

pub(super) fn forceescape(machine: &mut Machine<'_>, value: Value, args: Args) -> Result<Value> {
    args.bind_positional::<0>()?;
    escape(machine.limits, &python_text::str(machine, &value)?).map(Value::Text)
}

pub(super) fn safe(machine: &mut Machine<'_>, value: Value, args: Args) -> Result<Value> {
    args.bind_positional::<0>()?;
    Ok(Value::Text(soft_text(machine, &value)?.with_markup(true)))
}

pub(super) fn striptags(machine: &mut Machine<'_>, value: Value, args: Args) -> Result<Value> {
    args.bind_positional::<0>()?;
    let text = python_text::str(machine, &value)?;
    without_tags(machine.limits, &text).map(Value::Text)
}

/// The methods `striptags` and `unescape` of markup.
pub(in crate::jinja) fn markup_method(machine: &Machine<'_>, text: &Text, name: &str) -> Result<Value> {
    match name {
        "striptags" => without_tags(machine.limits, text).map(Value::Text),
        _ => unescape(machine.limits, text).map(Value::Text),
    }
}

/// Removes comments and tags, joins the words with single blanks, and decodes entities.
fn without_tags(limits: &Limits, text: &Text) -> Result<Text> {
    let text = without(limits, text, "<!--", "-->")?;
    let text = without(limits, &text, "<", ">")?;
    let mut out = TextWriter::new(limits);
    let string = text.as_str();
    for (place, word) in string.split_whitespace().enumerate() {
        let at = word.as_ptr() as usize - string.as_ptr() as usize;
        out.template(if place > 0 { " " } else { "" })?;
        out.slice(&text, at..at + word.len())?;
    }
    unescape(limits, &out.finish())
}

/// Removes every `open`…`close` section.
fn without(limits: &Limits, text: &Text, open: &str, close: &str) -> Result<Text> {
    let mut out = TextWriter::new(limits);
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
fn unescape(limits: &Limits, text: &Text) -> Result<Text> {
    let mut out = TextWriter::new(limits);
    let string = text.as_str();
    let mut at = 0;
    while let Some(start) = string[at..].find('&').map(|start| start + at) {
        out.slice(text, at..start)?;
        at = start;
        let end = string[start..].bytes().take(12).position(|byte| byte == b';').map(|end| start + end);
        match end.and_then(|end| Some((end, entity(&string[start + 1..end])?))) {
            Some((end, character)) => {
                let is_content = text.pieces(start..end + 1).any(|(kind, _)| kind == SegmentKind::Content);
                out.push(&character, if is_content { SegmentKind::Content } else { SegmentKind::Template })?;
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
pub(super) fn xmlattr(machine: &mut Machine<'_>, value: Value, args: Args) -> Result<Value> {
    let [space] = args.bind(["autospace"])?;
    let Value::Dict(dict) = &value else {
        return Err(Error::runtime(format!("'{} object' has no attribute 'items'", value.type_name())));
    };
    let mut out = TextWriter::new(machine.limits);
    let mut first = true;
    for (key, value) in dict.entries().iter().filter(|(_, value)| !value.is_none() && !value.is_undefined()) {
        let key = key.expect_text()?;
        if key.as_str().contains([' ', '\t', '\n', '\r', '\x0b', '\x0c', '/', '>', '=']) {
            return Err(Error::runtime("invalid character in attribute name"));
        }
        let spaced = !std::mem::replace(&mut first, false) || space.as_ref().is_none_or(Value::is_true);
        out.template(if spaced { " " } else { "" })?;
        out.text(&escape(machine.limits, key)?)?;
        out.template("=\"")?;
        out.text(&escape(machine.limits, &soft_text(machine, value)?)?)?;
        out.template("\"")?;
    }
    Ok(Value::Text(out.finish()))
}

/// Percent-encodes a text for a URL, or pairs as a query string.
pub(super) fn urlencode(machine: &mut Machine<'_>, value: Value, args: Args) -> Result<Value> {
    args.bind_positional::<0>()?;
    let pairs = match &value {
        Value::Dict(dict) => crate::jinja::methods::items(machine, dict)?,
        Value::Text(_) => return quote(machine, &value, false).map(Value::Text),
        other if machine.iterate(other).is_err() => return quote(machine, other, false).map(Value::Text),
        other => machine.collect(other)?,
    };
    let mut out = TextWriter::new(machine.limits);
    for (place, pair) in pairs.iter().enumerate() {
        let pair = machine.collect(pair)?;
        let [key, value] = pair.as_slice() else { return Err(Error::runtime("urlencode expects pairs")) };
        out.template(if place > 0 { "&" } else { "" })?;
        out.text(&quote(machine, key, true)?)?;
        out.template("=")?;
        out.text(&quote(machine, value, true)?)?;
    }
    Ok(Value::Text(out.finish()))
}

fn quote(machine: &Machine<'_>, value: &Value, in_query: bool) -> Result<Text> {
    python_text::str(machine, value)?.map(machine.limits, |c, out| match c {
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
        let limits = Limits::new();
        let text = Text::new("&lt;b&#62; &zz; &", SegmentKind::Content);
        let undone = unescape(&limits, &text).unwrap();
        assert_eq!(undone.as_str(), "<b> &zz; &");
        assert!(undone.all_pieces().all(|(kind, _)| kind == SegmentKind::Content));
    }
}

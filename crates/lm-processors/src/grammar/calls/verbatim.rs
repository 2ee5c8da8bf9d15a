//! Texts and listed values between the markers of a parameter.

use lm_template::Value;
use serde_json::Map;

use super::super::lark::{literal, sequence};
use super::super::values::{Escapes, Values};
use super::parameters::{Beside, Body, ValueTags};
use super::space;
use crate::dialect::ValueText;
use crate::layout::Layout;
use crate::parsers::{CDATA_CLOSE, CDATA_OPEN};

/// A listed value: a text verbatim, another value as JSON; `None` if it contains the end of the value.
pub(super) fn constant(
    values: &mut Values<'_>,
    tags: &ValueTags<'_>,
    value: &Value,
    beside: &Beside,
) -> Option<Body> {
    let text = match value {
        Value::String(text) => text.clone(),
        other => values.written(other),
    };
    let spelled = |marker: &&str| !values.lark.protects(marker);
    let ends =
        |text: &str| tags.excluded().into_iter().filter(spelled).any(|excluded| text.contains(excluded));
    let cdata = tags.call.written == ValueText::VerbatimOrCdata && value.is_string();
    if cdata && (ends(&text) || text.trim_start().starts_with(CDATA_OPEN)) {
        let protected = format!("{CDATA_OPEN}{text}{CDATA_CLOSE}");
        let close = values.lark.marker(&tags.close);
        let body = || Body::Closed(sequence([&*literal(&protected), &close]));
        return (!text.contains(CDATA_CLOSE)).then(body);
    }
    if values.excluded().iter().any(|excluded| text.contains(excluded.as_str()))
        || value.is_string() && ends(&text)
    {
        return None;
    }
    let structure = matches!(value, Value::Array(_) | Value::Object(_));
    // A text of a structure's beginning, beside structures, is in their lexemes.
    let like_structure = value.is_string() && beside.structures && text.starts_with(['[', '{']);
    let joined = match value.is_string() {
        true => beside.free_text || !like_structure,
        false => beside.texts && (beside.free_text || !structure),
    };
    if joined && !text.is_empty() {
        return Some(Body::Content(literal(&text)));
    }
    if !value.is_string() {
        let body = values.constant(value);
        return Some(Body::Closed(enclosed(values, tags, &body)));
    }
    let mut lexemes: Vec<&str> = values.spelling.lexemes(&text).collect();
    // An unterminated string continues in the lexemes of lists: the end of the value ends it.
    let open = lexemes.pop_if(|last| values.spelling.is_open(last));
    let body = sequence(lexemes.into_iter().map(literal).collect::<Vec<_>>().iter().map(String::as_str));
    let Some(open) = open else { return Some(Body::Closed(enclosed(values, tags, &body))) };
    let after = space(values.lark, tags.after_open, values.layout);
    let rest = ended(values, tags, &literal(open));
    Some(Body::Closed(sequence([&*after, &body, &rest])))
}

pub(super) fn enclosed(values: &mut Values<'_>, tags: &ValueTags<'_>, body: &str) -> String {
    let layout = values.layout;
    let after = space(values.lark, tags.after_open, layout);
    let before = space(values.lark, tags.before_close, layout);
    sequence([&*after, body, &before, &values.lark.marker(&tags.close)])
}

/// A terminal expression for verbatim texts; `None` without any.
pub(super) fn text(
    values: &mut Values<'_>,
    tags: &ValueTags<'_>,
    schema: &Map<String, Value>,
    path: &str,
) -> Option<String> {
    let cdata = (tags.call.written == ValueText::VerbatimOrCdata).then_some(CDATA_OPEN);
    let excluded: Vec<String> =
        values.lark.spelled(tags.excluded()).chain(values.excluded().to_vec()).collect();
    Some(values.text_rules(schema, path, Escapes::None, &excluded)?.raw(&excluded, cdata))
}

/// A text with what closes it, after its beginning `held`. Any layout around a free text reads as a part of
/// it, or is taken off.
pub(super) fn closed_text(
    values: &mut Values<'_>,
    tags: &ValueTags<'_>,
    (held, content): (&str, &str),
    free: bool,
) -> String {
    match values.layout {
        Layout::Any if free => sequence([held, &values.lark.up_to(content, "", &tags.close)]),
        layout => {
            let after = space(values.lark, tags.after_open, layout);
            let rest = ended(values, tags, content);
            sequence([&*after, held, &rest])
        }
    }
}

/// The terminal expression `content` with the layout and the marker that close it.
fn ended(values: &mut Values<'_>, tags: &ValueTags<'_>, content: &str) -> String {
    match values.layout {
        Layout::Exact => values.lark.up_to(content, tags.before_close, &tags.close),
        Layout::Any => {
            let before = space(values.lark, tags.before_close, Layout::Any);
            values.lark.up_to(&sequence([content, &before]), "", &tags.close)
        }
    }
}

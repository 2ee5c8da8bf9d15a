//! Keys of arguments, and the types stated between a key and its value.

use super::state::Form;
use crate::declared_names::{Declared, declared};
use crate::dialect::TypeAttribute;
use crate::parsers::fault::Fault;
use crate::parsers::recovery::{Departure, Tolerance};
use crate::parsers::tag::{Tag, end_of_name, match_tag, unquoted};
use crate::parsers::tools::MAX_NAME_BYTES;

/// Maximum length of keys in replies without departures, as under a grammar, which writes keys of any length
/// where a pattern of names allows them.
const MAX_GRAMMAR_KEY_BYTES: usize = 1 << 16;

/// A key, and its length with its end marker.
pub(super) struct FoundKey<'t> {
    pub(super) key: &'t str,
    pub(super) len: usize,
    pub(super) is_declared: bool,
}

/// Finds the key at the start of `rest`, whose marker ended with `quote`. `None` if more text is needed.
pub(super) fn find<'t>(
    rest: &'t str,
    quote: Option<char>,
    form: Form,
    declared_keys: &[String],
) -> Result<Option<FoundKey<'t>>, Fault> {
    let close = form.syntax.key.close;
    match declared(rest, declared_keys.iter().map(String::as_str), &[close]) {
        Declared::Found(key) => {
            let (key, len) = (&rest[..key.len()], key.len() + close.len());
            return Ok(Some(FoundKey { key, len, is_declared: true }));
        }
        Declared::Open => return Ok(None),
        Declared::Absent => {}
    }
    let limit = if form.tolerance == Tolerance::NONE { MAX_GRAMMAR_KEY_BYTES } else { MAX_NAME_BYTES };
    match end_of_key(rest, quote, form, limit) {
        Some((end, len)) => {
            let key = rest[..end].trim();
            let key = if form.tolerance.accepts(Departure::QuotedName) { unquoted(key) } else { key };
            Ok(Some(FoundKey { key, len, is_declared: false }))
        }
        None if rest.len() > limit => Err(Fault::malformed(format!("`{close}` is missing"))),
        None => Ok(None),
    }
}

/// End of the key at the start of `rest`, and the position after it; the value's opening marker also ends it.
fn end_of_key(rest: &str, quote: Option<char>, form: Form, limit: usize) -> Option<(usize, usize)> {
    let (close, open) = (form.syntax.key.close, form.syntax.value.open);
    let ended = end_of_name(rest, quote, close, limit + close.len());
    let window = &rest[..rest.floor_char_boundary(ended.map_or(limit, |(end, _)| end))];
    let opened = if open.is_empty() { None } else { window.find(open) };
    opened.map(|start| (start, start)).or(ended)
}

/// Type of a value that an attribute states.
pub(super) enum StatedType {
    /// No attribute: the schema determines the type.
    Absent,
    Text,
    Other,
}

/// Reads the type at the start of `rest`, and its length. `None` if more text is needed.
pub(super) fn stated_type(
    rest: &str,
    attribute: &TypeAttribute,
) -> Result<Option<(StatedType, usize)>, Fault> {
    let missing = |marker| Err(Fault::malformed(format!("`{marker}` is missing")));
    let end = attribute.close.trim_start_matches('"');
    if rest.starts_with(end) {
        return Ok(Some((StatedType::Absent, end.len())));
    }
    let (len, quote) = match match_tag(rest, attribute.open.trim_start()) {
        Tag::Match { len, quote } => (len, quote),
        Tag::NoMatch if !end.starts_with(rest) => return missing(attribute.open),
        Tag::Partial | Tag::NoMatch => return Ok(None),
    };
    match end_of_name(&rest[len..], quote, attribute.close, MAX_NAME_BYTES) {
        Some((word, behind)) => {
            let is_text = rest[len..len + word].trim() == attribute.text;
            Ok(Some((if is_text { StatedType::Text } else { StatedType::Other }, len + behind)))
        }
        None if rest.len() > len + MAX_NAME_BYTES => missing(attribute.close),
        None => Ok(None),
    }
}

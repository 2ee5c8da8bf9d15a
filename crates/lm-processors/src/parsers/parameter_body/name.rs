//! Name of a call whose arguments are markup.

use super::state::{Form, State};
use super::{MAX_LAYOUT_BYTES, name_ends};
use crate::declared_names::Declared;
use crate::dialect::Tags;
use crate::parsers::fault::Fault;
use crate::parsers::recovery::Departure;
use crate::parsers::tag::{Tag, end_of_name, match_tag, unquoted};
use crate::parsers::tools::{MAX_NAME_BYTES, Tools, is_name};

/// Reads the name's marker at the start of `rest`, or a text before it: its length and the next state. `None`
/// if more text is needed.
pub(super) fn opening(rest: &str, form: Form) -> Result<Option<(usize, State)>, Fault> {
    let (before, open) = (form.syntax.before_name, form.syntax.name.open.trim_start());
    if !before.is_empty() && rest.starts_with(before) {
        return Ok(Some((before.len(), State::NameOpen)));
    }
    match match_tag(rest, open) {
        Tag::Match { len, quote } => return Ok(Some((len, State::Name(quote)))),
        Tag::Partial => return Ok(None),
        Tag::NoMatch if before.starts_with(rest) => return Ok(None),
        Tag::NoMatch => {}
    }
    // An unrelated word before the marker.
    let word = &rest[..rest.find('<').unwrap_or(rest.len())];
    if !open.starts_with('<') || word.len() > MAX_LAYOUT_BYTES || !is_name(word.trim_end()) {
        return Err(Fault::malformed(format!("`{open}` is missing")));
    }
    Ok((word.len() < rest.len()).then_some((word.len(), State::NameOpen)))
}

/// Finds the name at the start of `rest`, whose marker ended with `quote`, and the length of the name with
/// its end marker. `None` if more text is needed.
pub(super) fn find<'t>(
    rest: &'t str,
    quote: Option<char>,
    form: Form,
    tools: &Tools,
) -> Result<Option<(&'t str, usize)>, Fault> {
    let close = form.syntax.name.close;
    match tools.match_name(rest, &name_ends(form.syntax, form.around.call.close)) {
        Declared::Found(found) => {
            let (name, behind) = rest.split_at(found.len());
            return Ok(Some((name, name.len() + if behind.starts_with(close) { close.len() } else { 0 })));
        }
        Declared::Open => return Ok(None),
        Declared::Absent => {}
    }
    let ended = match form.syntax.name.open {
        "" => end_of_bare_name(rest, form),
        _ => end_of_name(rest, quote, close, MAX_NAME_BYTES),
    };
    let Some((end, behind)) = ended else {
        return match rest.len() > MAX_NAME_BYTES {
            true => Err(Fault::malformed("its name has no end")),
            false => Ok(None),
        };
    };
    let name = plain_name(rest[..end].trim_end(), form, tools);
    match is_name(name) {
        true => Ok(Some((name, behind))),
        false => Err(Fault::malformed(format!("`{name}` is no name"))),
    }
}

/// A name without the quotes of an attribute, and without the slash of an empty element of a declared tool.
fn plain_name<'t>(found: &'t str, form: Form, tools: &Tools) -> &'t str {
    if !form.tolerance.accepts(Departure::QuotedName) {
        return found;
    }
    let name = unquoted(found);
    let element = name.strip_suffix('/').map(str::trim_end);
    element.filter(|element| !tools.declares(name) && tools.declares(element)).unwrap_or(name)
}

/// End of a name without an opening marker, and the position after it.
fn end_of_bare_name(rest: &str, form: Form) -> Option<(usize, usize)> {
    let ends = name_ends(form.syntax, form.around.call.close);
    let window = &rest[..rest.floor_char_boundary(MAX_NAME_BYTES)];
    let marked = ends.iter().filter_map(|end| Some((window.find(end)?, *end))).min();
    let blank = window.find(char::is_whitespace);
    match marked {
        Some((end, close)) if blank.is_none_or(|blank| end < blank) => {
            Some((end, end + if close == form.syntax.name.close { close.len() } else { 0 }))
        }
        _ => blank.map(|blank| (blank, blank)),
    }
}

/// The call's number with its opening marker, at the start of `rest`, and the length with the closing one.
/// `None` if more text is needed.
pub(super) fn number(rest: &str, Tags { close, .. }: Tags) -> Result<Option<(&str, usize)>, Fault> {
    let rest = &rest[..rest.floor_char_boundary(MAX_NAME_BYTES + close.len())];
    match rest.find(close) {
        Some(end) => Ok(Some((&rest[..end], end + close.len()))),
        None if rest.len() > MAX_NAME_BYTES => Err(Fault::malformed(format!("`{close}` is missing"))),
        None => Ok(None),
    }
}

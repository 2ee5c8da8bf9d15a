//! Search for the end of a value, whose closing marker may be missing.

use super::between::{self, Between};
use super::call::Call;
use super::state::Form;
use super::value::ValueReader;
use super::{MAX_LAYOUT_BYTES, name_ends};
use crate::declared_names::Declared;
use crate::dialect::{CallSyntax, ParameterCall};
use crate::parsers::marker_scan::{Prefix, Scan, prefix, scan};
use crate::parsers::recovery::Departure;
use crate::parsers::tag::{Tag, end_of_name, match_tag, trim_blanks};
use crate::parsers::tools::is_name;

/// Marker that may end a value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum End {
    /// The value's own.
    Value,
    /// The next key's.
    NextKey,
    /// The one after the last parameter, or the call's.
    Call,
    /// The next call's.
    NextCall,
}

/// Finds the end of the value, and the length of its closing marker, 0 if that is missing. `None` if more
/// text is needed.
///
/// A closing marker that no other marker of the syntax follows is a part of a text. If the text has no other
/// end, it is the end, so that the text after it is not read as a value.
pub(super) fn find(text: &str, reader: &mut ValueReader, form: Form, call: &Call) -> Option<(usize, usize)> {
    if !reader.skip_json(text) {
        return None;
    }
    loop {
        let (marker, found, len) = match scan(&text[reader.searched..], &markers(reader, form), false) {
            Scan::Clear { until } => {
                reader.searched += until;
                return None;
            }
            Scan::Found { marker, start, len } => (marker, reader.searched + start, len),
        };
        let (behind, mut end) = (&text[found..], found);
        let ends = match marker {
            End::Value => match closes(&behind[len..], reader, form, call) {
                Some(true) => return Some((found, len)),
                open => {
                    reader.closed.get_or_insert((found, len));
                    open
                }
            },
            End::NextKey => is_next_parameter(&text[reader.start..found], behind, form, call),
            End::NextCall => is_next_call(behind, form, call),
            End::Call => {
                end = *reader.held.get_or_insert(found);
                is_end_of_call(behind, form, call)
            }
        };
        match ends {
            Some(true) => return Some(reader.closed.unwrap_or((end, 0))),
            Some(false) => reader.searched = found + len,
            None => {
                reader.searched = found;
                return None;
            }
        }
    }
}

/// Returns true if the closing marker before `rest` ends the value: the value cannot be text, or a marker
/// that may follow a value does. `None` if more text is needed to decide.
fn closes(rest: &str, reader: &ValueReader, form: Form, call: &Call) -> Option<bool> {
    let ParameterCall { key, value, end, .. } = *form.syntax;
    if !reader.is_text || key.open.is_empty() {
        return Some(true);
    }
    let behind = trim_blanks(rest);
    if reader.protected {
        return is_found(prefix(behind, value.close.trim()));
    }
    match between::read(behind, form, call) {
        Ok(Between::Partial) => None,
        Ok(Between::End(len)) if len > 0 && len == end.len() => ends_call(&behind[len..], form),
        Ok(Between::Marker(..) | Between::End(_)) => Some(true),
        Ok(Between::Object) | Err(_) => Some(false),
    }
}

/// Returns true if the end of the call, another call or the end of the section follows the end of the
/// parameters. `None` if more text is needed to decide.
fn ends_call(rest: &str, form: Form) -> Option<bool> {
    let CallSyntax { section, call, .. } = *form.around;
    let behind = trim_blanks(rest);
    let name = form.syntax.name.open.trim_start();
    let follow = [call.close, call.open, section.close, name].map(|marker| is_found(prefix(behind, marker)));
    any(&follow)
}

/// Returns true if one of the answers is; `None` if that is still open.
fn any(answers: &[Option<bool>]) -> Option<bool> {
    match answers.contains(&Some(true)) {
        true => Some(true),
        false => (!answers.contains(&None)).then_some(false),
    }
}

fn is_found(prefix: Prefix) -> Option<bool> {
    match prefix {
        Prefix::Found => Some(true),
        Prefix::Partial => None,
        Prefix::Absent => Some(false),
    }
}

/// Markers that may end a value.
fn markers(reader: &ValueReader, form: Form) -> Vec<(End, &str)> {
    let mut markers = vec![(End::Value, &*reader.close)];
    if !reader.protected && form.tolerance.accepts(Departure::ParameterMarkers) {
        let (ParameterCall { key, end, .. }, call) = (form.syntax, form.around.call);
        markers.extend([(End::NextKey, key.open), (End::Call, *end), (End::Call, call.close)]);
        markers.push((End::NextCall, call.open));
    }
    markers
}

/// Returns true if the key marker at the start of `text` is a real one: it names a declared parameter not
/// given yet, on a line of its own if the syntax has it there, or starts a line if the declaration is
/// unknown. `None` if more text is needed to decide.
fn is_next_parameter(before: &str, text: &str, form: Form, call: &Call) -> Option<bool> {
    let ParameterCall { key, value, .. } = *form.syntax;
    let rest = &text[key.open.len()..];
    let quote = key.open.ends_with('"').then_some('"');
    let ended = end_of_name(rest, quote, key.close, MAX_LAYOUT_BYTES);
    let closed = if value.close.is_empty() { None } else { rest.find(value.close) };
    if closed.is_some_and(|closed| ended.is_none_or(|(end, _)| closed < end)) {
        return Some(false); // The value ends first: it quotes a key's marker.
    }
    let Some((end, _)) = ended else {
        return (rest.len() > MAX_LAYOUT_BYTES).then_some(false);
    };
    let starts_line = before.is_empty() || before.ends_with('\n');
    if value.after_open == "\n" && !starts_line {
        return Some(false);
    }
    let name = rest[..end].trim();
    Some(call.lacks(name).unwrap_or_else(|| is_name(name) && starts_line && !call.has(name)))
}

/// Returns true if the opening marker at the start of `text` begins a call of a declared tool. `None` if more
/// text is needed to decide.
fn is_next_call(text: &str, form: Form, call: &Call) -> Option<bool> {
    let rest = text[form.around.call.open.len()..].trim_start();
    let name = match match_tag(rest, form.syntax.name.open.trim_start()) {
        Tag::Match { len, .. } => &rest[len..],
        Tag::Partial => return None,
        Tag::NoMatch => return Some(false),
    };
    let mut ends = name_ends(form.syntax, form.around.call.close);
    ends.push("\n");
    match call.tools().match_name(name, &ends) {
        Declared::Found(_) => Some(true),
        Declared::Open => None,
        Declared::Absent => Some(false),
    }
}

/// Returns true if the marker at the start of `text` ends the call: a call of a declared tool or the
/// section's end follows. `None` if more text is needed to decide.
fn is_end_of_call(text: &str, form: Form, this: &Call) -> Option<bool> {
    let CallSyntax { section, call, .. } = *form.around;
    let mut rest = text;
    for marker in [form.syntax.end, call.close] {
        let behind = rest.trim_start();
        if prefix(behind, marker) == Prefix::Found {
            rest = &behind[marker.len()..];
        }
    }
    let behind = rest.trim_start();
    if rest.len() - behind.len() > MAX_LAYOUT_BYTES {
        return Some(false);
    }
    let [end, start, close] =
        [section.close, section.open, call.close].map(|marker| is_found(prefix(behind, marker)));
    let next = match is_found(prefix(behind, call.open)) {
        Some(true) => is_next_call(behind, form, this),
        other => other,
    };
    any(&[end, start, close, next])
}

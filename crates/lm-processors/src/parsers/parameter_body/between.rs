//! Text between the parameters of a call.

use super::call::Call;
use super::state::{Form, State};
use crate::dialect::{CallSyntax, ParameterCall, ValueText};
use crate::parsers::fault::Fault;
use crate::parsers::marker_scan::{Prefix, prefix};
use crate::parsers::tag::{Tag, match_tag, trim_blanks};

/// Text between two parameters, or after the last one.
pub(super) enum Between {
    /// A marker of this length, and the state after it.
    Marker(usize, State),
    /// A JSON object of all arguments.
    Object,
    /// Undecided until more text arrives.
    Partial,
    /// End of the parameters, with a marker of this length, 0 if that is missing.
    End(usize),
}

/// Reads the text at the start of `rest`.
pub(super) fn read(rest: &str, form: Form, parameters: &Call) -> Result<Between, Fault> {
    let CallSyntax { section, call, .. } = *form.around;
    let ParameterCall { key, end, .. } = *form.syntax;
    let last = if end.is_empty() { call.close } else { end };
    if rest.starts_with(last) {
        return Ok(Between::End(end.len()));
    }
    let optional = optional_markers(form, parameters);
    if let Some(marker) = optional.iter().find(|marker| prefix(rest, marker) == Prefix::Found) {
        return Ok(Between::Marker(marker.len(), State::Parameter));
    }
    // The end marker is missing if the call's or section's follows, or another call.
    let others = [call.close, call.open, section.close];
    if others.iter().any(|marker| whole_marker(rest, marker) == Prefix::Found) {
        return Ok(Between::End(0));
    }
    let mut possible = [last].into_iter().chain(others).chain(optional);
    if possible.any(|marker| whole_marker(rest, marker) == Prefix::Partial) {
        return Ok(Between::Partial);
    }
    match match_tag(rest, key.open) {
        Tag::Match { len, quote } => Ok(Between::Marker(len, State::Key(quote))),
        Tag::Partial => Ok(Between::Partial),
        Tag::NoMatch if rest.starts_with('{') && parameters.may_be_json() => Ok(Between::Object),
        Tag::NoMatch => Err(Fault::malformed("unexpected text between the parameters")),
    }
}

/// Markers that may precede a parameter: the optional one after the name, and the closing one of a value,
/// repeated.
fn optional_markers(form: Form, parameters: &Call) -> [&'static str; 2] {
    let ParameterCall { name, value, written, .. } = *form.syntax;
    let after_name = parameters.is_empty() && name.open.is_empty();
    let repeated = written != ValueText::Elements && !value.close.trim().is_empty();
    [if after_name { name.close } else { "" }, if repeated { value.close } else { "" }]
}

/// Like [`prefix`], but a blank must follow a marker that ends with a letter.
fn whole_marker(text: &str, marker: &str) -> Prefix {
    let is_word = marker.ends_with(char::is_alphanumeric);
    match prefix(text, marker) {
        Prefix::Found if is_word && text.len() == marker.len() => Prefix::Partial,
        Prefix::Found if is_word && trim_blanks(&text[marker.len()..]) == &text[marker.len()..] => {
            Prefix::Absent
        }
        found => found,
    }
}

//! Characters that could make a text look unlike it is.

use std::borrow::Cow;

/// Replaces control characters, and those that embed, isolate or override a direction, by U+FFFD; line breaks
/// and tabs stay.
pub(crate) fn visible(text: &str) -> Cow<'_, str> {
    match text.contains(is_deceptive) {
        true => text.replace(is_deceptive, "\u{fffd}").into(),
        false => text.into(),
    }
}

fn is_deceptive(c: char) -> bool {
    (c.is_control() && !matches!(c, '\n' | '\t'))
        || matches!(c, '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

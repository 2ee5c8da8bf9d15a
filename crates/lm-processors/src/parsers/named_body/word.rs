//! Names and ids: text up to a marker.

use crate::parsers::code_fence::{FENCE, fence};
use crate::parsers::fault::Fault;
use crate::parsers::marker_scan::{Scan, scan};

/// Maximum length of a name or id.
pub(super) const MAX_WORD_BYTES: usize = 256;

/// Characters that are invalid in names.
const ODD: &str = "[]{}<>()\"'";

/// End of a name or id.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum WordEnd {
    /// Its end marker.
    Marker,
    /// The id's marker.
    Id,
    /// The text that follows, which is read next: the arguments or the closing marker.
    Next,
}

/// A name or id.
pub(super) struct Word<'t> {
    pub(super) text: &'t str,
    pub(super) end: WordEnd,
    /// Length of the end marker; 0 if that is read next.
    pub(super) marker: usize,
    /// True if a code block starts at its end.
    pub(super) fenced: bool,
}

/// Finds the word that starts at `start`, and moves `at`, the end of the searched text, to the word's end.
/// `None` if more text is needed.
pub(super) fn find<'t>(
    text: &'t str,
    start: usize,
    at: &mut usize,
    ends: &[(WordEnd, &str)],
) -> Result<Option<Word<'t>>, Fault> {
    check_word(&text[start..])?;
    let (found, until) = match scan(&text[*at..], ends, false) {
        Scan::Clear { until } => (None, *at + until),
        Scan::Found { marker, start, len } => (Some((marker, len)), *at + start),
    };
    let limit = start + MAX_WORD_BYTES;
    let odd = |c: char| c.is_control() && !c.is_whitespace() || ODD.contains(c);
    if let Some(odd) = text[*at..until].find(odd).filter(|odd| *at + odd < limit) {
        *at += odd;
        return Err(Fault::malformed("its name has an invalid character"));
    }
    if until > limit {
        *at = text.floor_char_boundary(limit);
        return Err(Fault::malformed("its name is too long"));
    }
    *at = until;
    let Some((end, len)) = found else { return Ok(None) };
    let word = text[start..until].trim();
    // A code block may start at the end of the word.
    let fence = word.rfind(FENCE).filter(|at| fence(&word[*at..]).is_none_or(|len| at + len == word.len()));
    Ok(Some(Word {
        text: fence.map_or(word, |at| word[..at].trim_end()),
        end,
        marker: if end == WordEnd::Next { 0 } else { len },
        fenced: fence.is_some(),
    }))
}

/// Checks that the text from the start of a word on is not blank.
pub(super) fn check_word(text: &str) -> Result<(), Fault> {
    let is_blank = text.len() > MAX_WORD_BYTES && text.trim_start().is_empty();
    if is_blank { Err(Fault::malformed("it has no name")) } else { Ok(()) }
}

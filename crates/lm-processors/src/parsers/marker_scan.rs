//! Marker search in streamed text.

/// Result of a search.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Scan<M> {
    /// This marker, of length `len`, starts at byte `start`.
    Found { marker: M, start: usize, len: usize },
    /// No marker starts before this byte; a marker may start there, or the text ends.
    Clear { until: usize },
}

/// Finds the first of `markers`, names with texts, in `text`: the longest one if several start at the same
/// position, the first one of several with the same text.
///
/// `ended` is true if no more text follows. One pass over the text. Any split of the text finds the same
/// markers, as long as none contains another. Empty markers are never found.
pub(crate) fn scan<M: Copy, T: AsRef<str>>(text: &str, markers: &[(M, T)], ended: bool) -> Scan<M> {
    let markers = || markers.iter().map(|(name, text)| (*name, text.as_ref().as_bytes()));
    let mut first_bytes = [false; 256];
    for byte in markers().filter_map(|(_, marker)| marker.first()) {
        first_bytes[usize::from(*byte)] = true;
    }
    for (start, _) in text.bytes().enumerate().filter(|(_, byte)| first_bytes[usize::from(*byte)]) {
        let rest = &text.as_bytes()[start..];
        if !ended && markers().any(|(_, marker)| marker.len() > rest.len() && marker.starts_with(rest)) {
            return Scan::Clear { until: start };
        }
        let found = markers().filter(|(_, marker)| !marker.is_empty() && rest.starts_with(marker));
        if let Some((name, marker)) = found.rev().max_by_key(|(_, marker)| marker.len()) {
            return Scan::Found { marker: name, start, len: marker.len() };
        }
    }
    Scan::Clear { until: text.len() }
}

/// Result of a comparison of a text's start with a marker.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Prefix {
    /// The text starts with the marker.
    Found,
    /// The text ends inside the marker, or is empty.
    Partial,
    /// Other text.
    Absent,
}

/// Compares the start of `text` with `marker`. An empty marker is never found.
pub(crate) fn prefix(text: impl AsRef<[u8]>, marker: &str) -> Prefix {
    let (text, marker) = (text.as_ref(), marker.as_bytes());
    match () {
        () if marker.is_empty() => Prefix::Absent,
        () if text.starts_with(marker) => Prefix::Found,
        () if marker.starts_with(text) => Prefix::Partial,
        () => Prefix::Absent,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn first_marker_is_found_and_possible_ones_held_back() {
        let markers = [("think", "<think>"), ("tool", "<tool>"), ("set", "<tool>set")];
        let found = |marker, start, len| Scan::Found { marker, start, len };
        let cases = [
            ("plain", Scan::Clear { until: 5 }),
            ("a <", Scan::Clear { until: 2 }),
            ("a <<thi", Scan::Clear { until: 3 }),
            ("ä</t", Scan::Clear { until: 5 }),
            ("a <tool>b<think>", found("tool", 2, 6)),
            ("<think><tool>", found("think", 0, 7)),
            ("<tool>s", found("tool", 0, 6)),
            ("<tool>se", Scan::Clear { until: 0 }),
            ("<tool>sets", found("set", 0, 9)),
        ];
        for (text, expected) in cases {
            let count = if text.contains("se") { 3 } else { 2 };
            assert_eq!(scan(text, &markers[..count], false), expected, "{text}");
        }
    }
}

//! Marker search in streamed text.

/// Result of a search.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Scan {
    /// The marker with this index starts at this byte.
    Found { start: usize, marker: usize },
    /// No marker starts before this byte; a marker may start there, or the text ends.
    Clear { until: usize },
}

/// Finds the first of `markers` in `text`, the longest one if several start at the same position.
///
/// `ended` is true if no more text follows. One pass over the text. Any split of the text finds the same
/// markers, as long as none contains another. Empty markers are never found.
pub(crate) fn scan<M: AsRef<str>>(text: &str, markers: &[M], ended: bool) -> Scan {
    let mut first_bytes = [false; 256];
    for marker in markers {
        if let Some(&byte) = marker.as_ref().as_bytes().first() {
            first_bytes[usize::from(byte)] = true;
        }
    }
    for (start, _) in text.bytes().enumerate().filter(|(_, byte)| first_bytes[usize::from(*byte)]) {
        let rest = &text.as_bytes()[start..];
        let markers = || markers.iter().map(|marker| marker.as_ref().as_bytes()).enumerate();
        if !ended && markers().any(|(_, marker)| marker.len() > rest.len() && marker.starts_with(rest)) {
            return Scan::Clear { until: start };
        }
        let found = markers().filter(|(_, marker)| !marker.is_empty() && rest.starts_with(marker));
        if let Some((marker, _)) = found.max_by_key(|(number, marker)| (marker.len(), usize::MAX - number)) {
            return Scan::Found { start, marker };
        }
    }
    Scan::Clear { until: text.len() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn first_marker_is_found_and_possible_ones_held_back() {
        let cases: &[(&str, Scan)] = &[
            ("plain", Scan::Clear { until: 5 }),
            ("a <", Scan::Clear { until: 2 }),
            ("a <<thi", Scan::Clear { until: 3 }),
            ("ä</t", Scan::Clear { until: 5 }),
            ("a <tool>b<think>", Scan::Found { start: 2, marker: 1 }),
            ("<think><tool>", Scan::Found { start: 0, marker: 0 }),
            ("<tool>s", Scan::Found { start: 0, marker: 1 }),
            ("<tool>se", Scan::Clear { until: 0 }),
            ("<tool>sets", Scan::Found { start: 0, marker: 2 }),
        ];
        for (text, expected) in cases {
            let markers = if text.contains("se") { 3 } else { 2 };
            assert_eq!(
                scan(text, &["<think>", "<tool>", "<tool>set"][..markers], false),
                *expected,
                "{text}"
            );
        }
    }
}

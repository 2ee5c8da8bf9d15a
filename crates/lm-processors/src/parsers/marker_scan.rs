//! Finding markers in text that arrives in pieces.

/// What stands at the front of a buffer, as far as can be said.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Scan {
    /// The marker with this number begins at this byte.
    Found { start: usize, marker: usize },
    /// No marker begins before this byte; from there on one may, or nothing is left.
    Clear { until: usize },
}

/// Finds the first of `markers` in `text`; of two at one place, the first in the list.
///
/// Any piecewise feeding finds the same markers as long as no marker is a part of another.
pub(crate) fn scan(text: &str, markers: &[&str]) -> Scan {
    let first =
        markers.iter().enumerate().filter_map(|(marker, m)| text.find(m).map(|start| (start, marker))).min();
    match first {
        Some((start, marker)) => Scan::Found { start, marker },
        None => Scan::Clear { until: text.len() - longest_partial(text, markers) },
    }
}

/// The length of the longest end of `text` that a marker begins with.
fn longest_partial(text: &str, markers: &[&str]) -> usize {
    let partial = |marker: &&str| {
        let longest = (marker.len() - 1).min(text.len());
        (1..=longest).rev().find(|&len| {
            text.is_char_boundary(text.len() - len) && marker.starts_with(&text[text.len() - len..])
        })
    };
    markers.iter().filter_map(partial).max().unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn finds_the_first_marker_and_holds_back_what_may_become_one() {
        let cases: &[(&str, Scan)] = &[
            ("plain", Scan::Clear { until: 5 }),
            ("a <", Scan::Clear { until: 2 }),
            ("a <<thi", Scan::Clear { until: 3 }),
            ("ä</t", Scan::Clear { until: 5 }),
            ("a <tool>b<think>", Scan::Found { start: 2, marker: 1 }),
            ("<think><tool>", Scan::Found { start: 0, marker: 0 }),
        ];
        for (text, expected) in cases {
            assert_eq!(scan(text, &["<think>", "<tool>"]), *expected, "{text}");
        }
    }
}

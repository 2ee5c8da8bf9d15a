//! Parts of documents that commands write, each between two marker comments.

use anyhow::{Context, Result};

/// Returns the text before the line `begin`, between it and `end`, and after `end`.
///
/// # Errors
/// When a marker is missing.
pub fn parts<'t>(text: &'t str, begin: &str, end: &str) -> Result<[&'t str; 3]> {
    let (before, rest) =
        text.split_once(begin).with_context(|| format!("the document has no line {begin}"))?;
    let (part, after) = rest.split_once(end).with_context(|| format!("the document has no line {end}"))?;
    Ok([before, part, after])
}

/// Returns the text with another part between the markers.
///
/// # Errors
/// When a marker is missing.
pub fn replaced(text: &str, begin: &str, end: &str, part: &str) -> Result<String> {
    let [before, _, after] = parts(text, begin, end)?;
    Ok(format!("{before}{begin}\n\n{part}\n{end}{after}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn part_is_replaced() {
        let text = "Text.\n<!-- a -->\nold\n<!-- b -->\nMore.\n";
        let new = replaced(text, "<!-- a -->", "<!-- b -->", "new").expect("both markers are there");
        assert_eq!(new, "Text.\n<!-- a -->\n\nnew\n<!-- b -->\nMore.\n");
        assert_eq!(replaced(&new, "<!-- a -->", "<!-- b -->", "new").expect("the same"), new);
        assert!(replaced("none", "<!-- a -->", "<!-- b -->", "new").is_err());
    }
}

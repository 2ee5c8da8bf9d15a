//! Doc comments open with a noun phrase or a verb, not with a question word.

use super::{Check, Finding};
use crate::tree::Tree;

pub(super) const CHECK: Check = Check {
    name: "doc-openings",
    rule: "a doc comment opens with a noun phrase or a verb in the third person (CONTRIBUTING.md, Words)",
    run,
};

const QUESTION_WORDS: &[&str] =
    &["What", "Where", "How", "Whether", "Who", "Whose", "Whom", "Which", "Why", "When"];
/// Sentences may begin with these further down, after a paragraph break too; only openings are looked at.
const MARKERS: &[&str] = &["/// ", "//! "];

fn run(tree: &Tree) -> Vec<Finding> {
    tree.texts(".rs").flat_map(|(path, text)| openings(text).map(move |line| finding(path, line))).collect()
}

/// Numbers of the lines that open a doc comment with a question word.
fn openings(text: &str) -> impl Iterator<Item = usize> {
    let mut inside = false;
    text.lines().enumerate().filter_map(move |(index, line)| {
        let line = line.trim_start();
        let is_doc = line.starts_with("///") || line.starts_with("//!");
        let opens = is_doc && !inside;
        inside = is_doc;
        let words = MARKERS.iter().find_map(|marker| line.strip_prefix(marker))?;
        let first = words.split(|c: char| !c.is_alphabetic()).next()?;
        (opens && QUESTION_WORDS.contains(&first)).then_some(index + 1)
    })
}

fn finding(path: &str, line: usize) -> Finding {
    Finding::error(format!("{path}:{line}"), "opens with a question word")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_first_line_of_a_comment_counts() {
        let text = "//! What this is.\n\n/// Page table.\n///\n/// Where it lies.\nfn a() {}\n    /// Whatever.\n    /// How\n/// x\n\n/// Whether.\n// Why\n";
        assert_eq!(openings(text).collect::<Vec<_>>(), [1, 11]);
    }
}

//! No file contains the markers of an unfinished merge.

use super::{Check, Finding};
use crate::tree::Tree;

pub(super) const CHECK: Check =
    Check { name: "merge-markers", rule: "a merge is finished before it is committed", run };

/// Beginnings of the lines that git puts around the two sides; the line between them is also a heading in
/// Markdown.
const MARKERS: &[&str] = &["<<<<<<< ", ">>>>>>> "];

fn run(tree: &Tree) -> Vec<Finding> {
    let mut findings = Vec::new();
    for (path, text) in tree.texts("") {
        for (number, line) in text.lines().enumerate() {
            if MARKERS.iter().any(|marker| line.starts_with(marker)) {
                findings.push(Finding::error(format!("{path}:{}", number + 1), format!("has `{line}`")));
            }
        }
    }
    findings
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_sides_are_found() {
        let text = ["a = 1", "<<<<<<< HEAD", "b = 2", "=======", "b = 3", ">>>>>>> other"].join("\n");
        let places: Vec<_> =
            run(&Tree::of(&[("a.py", &text)])).into_iter().map(|found| found.place).collect();
        assert_eq!(places, ["a.py:2", "a.py:6"]);
        assert_eq!(run(&Tree::of(&[("a.py", "print(1 <<<<<<< 2)")])), []);
    }
}

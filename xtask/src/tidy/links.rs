//! Relative links in Markdown files point to existing files, folders and headings.

use super::{Check, Finding};
use crate::tree::Tree;

pub(super) const CHECK: Check =
    Check { name: "links", rule: "relative links in Markdown files resolve", run };

fn run(tree: &Tree) -> Vec<Finding> {
    let mut findings = Vec::new();
    for (path, text) in tree.texts(".md") {
        for (line, target) in links(text) {
            if let Some(problem) = problem(tree, path, target) {
                findings.push(Finding::error(format!("{path}:{line}"), format!("`{target}` {problem}")));
            }
        }
    }
    findings
}

/// Finds the targets of inline links and images outside code, with their lines from one.
fn links(text: &str) -> Vec<(usize, &str)> {
    let mut found = Vec::new();
    let mut in_fence = false;
    for (number, line) in text.lines().enumerate() {
        if line.trim_start().starts_with("```") {
            in_fence = !in_fence;
        } else if !in_fence {
            // Every second piece of a line split at backticks is inline code; a link's text may contain code.
            let mut rest = line;
            while let Some((before, after)) = rest.split_once("](") {
                let Some((target, tail)) = after.split_once(')') else { break };
                if before.matches('`').count() % 2 == 0 {
                    found.push((number + 1, target.split_whitespace().next().unwrap_or_default()));
                }
                rest = tail;
            }
        }
    }
    found
}

fn problem(tree: &Tree, from: &str, target: &str) -> Option<&'static str> {
    if target.contains("://") || target.starts_with("mailto:") {
        return None;
    }
    let (path, anchor) = target.split_once('#').map_or((target, None), |(path, anchor)| (path, Some(anchor)));
    let path = if path.is_empty() { from.to_owned() } else { resolve(from, path)? };
    if !tree.exists(&path) {
        return Some("does not exist");
    }
    let text = tree.text(&path).filter(|_| path.ends_with(".md"));
    let missing = anchor.zip(text).is_some_and(|(anchor, text)| !anchors(text).any(|known| known == anchor));
    missing.then_some("names a heading that does not exist")
}

/// Resolves a link of `from` to a path from the root; `None` if it leaves the repository.
fn resolve(from: &str, link: &str) -> Option<String> {
    let mut parts: Vec<&str> = from.split('/').collect();
    parts.pop();
    for part in link.split('/') {
        match part {
            "" | "." => {}
            ".." => {
                parts.pop()?;
            }
            part => parts.push(part),
        }
    }
    Some(parts.join("/"))
}

/// Anchors of a file's headings: lower case, spaces to dashes, punctuation dropped.
fn anchors(text: &str) -> impl Iterator<Item = String> {
    text.lines().filter(|line| line.starts_with('#')).map(|line| {
        let title = line.trim_start_matches('#').trim().to_lowercase();
        let kept = title.chars().filter(|c| c.is_alphanumeric() || matches!(c, ' ' | '-' | '_'));
        kept.map(|c| if c == ' ' { '-' } else { c }).collect()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(text: &str) -> Vec<String> {
        let tree = Tree::of(&[("docs/a.md", text), ("docs/b.md", "# Two words\n"), ("src/lib.rs", "")]);
        run(&tree).into_iter().map(|finding| format!("{} {}", finding.place, finding.text)).collect()
    }

    #[test]
    fn valid_links_pass() {
        let text = "[b](b.md) [w](b.md#two-words) [`c`](../src/lib.rs) [f](../src/) [h](https://x.y/z)\n\n# Here\n[me](#here)\n";
        assert_eq!(check(text), Vec::<String>::new());
    }

    #[test]
    fn dead_link_is_found_with_its_line() {
        assert_eq!(check("x\n[b](c.md)"), ["docs/a.md:2 `c.md` does not exist"]);
        assert_eq!(check("[b](b.md#one)"), ["docs/a.md:1 `b.md#one` names a heading that does not exist"]);
    }

    #[test]
    fn code_is_not_a_link() {
        assert_eq!(check("`a[i](x)`\n```\n[b](c.md)\n```\n"), Vec::<String>::new());
    }
}

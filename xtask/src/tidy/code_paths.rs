//! Paths in code spans of Markdown files exist.
//!
//! A path begins with a folder of the repository's root or with the name of a package, whose folder it stands
//! for (`lm-media/src/lib.rs` is `crates/lm-media/src/lib.rs`). `:12` or `::item` may follow it, and the
//! first word of a command counts.

use super::{Check, Finding};
use crate::tree::{Package, Tree};

pub(super) const CHECK: Check =
    Check { name: "code-paths", rule: "paths in code spans of Markdown files exist", run };

/// Characters of a placeholder or a pattern: the path is checked up to the component that has one.
const PLACEHOLDERS: &[char] = &['*', '<', '{', '[', '$', '…'];

fn run(tree: &Tree) -> Vec<Finding> {
    let packages = tree.packages();
    let mut findings = Vec::new();
    for (file, text) in tree.texts(".md") {
        for (line, span) in code_spans(text) {
            if path(span).is_some_and(|path| is_missing(tree, &packages, file, path)) {
                findings.push(Finding::error(format!("{file}:{line}"), format!("`{span}` does not exist")));
            }
        }
    }
    findings
}

/// Finds code spans outside code blocks, with their lines from one.
fn code_spans(text: &str) -> Vec<(usize, &str)> {
    let mut found = Vec::new();
    let mut in_fence = false;
    for (number, line) in text.lines().enumerate() {
        if line.trim_start().starts_with("```") {
            in_fence = !in_fence;
        } else if !in_fence {
            found.extend(line.split('`').skip(1).step_by(2).map(|span| (number + 1, span)));
        }
    }
    found
}

/// Cuts a span to the path that it begins with.
fn path(span: &str) -> Option<&str> {
    let word = span.split_whitespace().next()?;
    let path = word.split([':', '#']).next()?;
    let fixed = match path.find(PLACEHOLDERS) {
        Some(placeholder) => &path[..path[..placeholder].rfind('/')?],
        None => path.trim_end_matches('/'),
    };
    (path.contains('/') && !fixed.is_empty()).then_some(fixed)
}

/// Returns true if `path` begins with a folder or a package of the repository, and neither exists there nor
/// beside `file`.
fn is_missing(tree: &Tree, packages: &[Package], file: &str, path: &str) -> bool {
    let (first, rest) = path.split_once('/').unwrap_or((path, ""));
    let package = packages.iter().find(|package| package.name == first);
    let beside = file.rsplit_once('/').map_or(String::new(), |(folder, _)| format!("{folder}/"));
    let known = match package {
        Some(package) => is_feature(package, rest) || tree.exists(&join(&package.folder, rest)),
        None if tree.below(first).next().is_none() => true,
        None => tree.exists(path),
    };
    !known && !tree.exists(&format!("{beside}{path}"))
}

fn join(folder: &str, rest: &str) -> String {
    if rest.is_empty() { folder.to_owned() } else { format!("{folder}/{rest}") }
}

/// Returns true for the rest of a feature of a package, `package/feature` in cargo's flags.
fn is_feature(package: &Package, name: &str) -> bool {
    package.manifest.get("features").is_some_and(|features| features.get(name).is_some())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(text: &str) -> Vec<String> {
        let manifest = "[package]\nname = \"lm-media\"\n[features]\nfast = []\n";
        let tree = Tree::of(&[
            ("docs/a.md", text),
            ("docs/examples/here.rs", ""),
            ("examples/chat/main.rs", ""),
            ("crates/lm-media/Cargo.toml", manifest),
            ("crates/lm-media/src/lib.rs", ""),
        ]);
        run(&tree).into_iter().map(|finding| format!("{} {}", finding.place, finding.text)).collect()
    }

    #[test]
    fn files_and_folders_of_the_root_of_a_package_and_beside_the_document_pass() {
        let text = "`docs/a.md` `examples/chat/` `lm-media/src/lib.rs` `crates/lm-media` `examples/here.rs`";
        assert_eq!(check(text), Vec::<String>::new());
    }

    #[test]
    fn a_missing_path_is_found_with_its_line() {
        assert_eq!(check("x\n`docs/b.md`"), ["docs/a.md:2 `docs/b.md` does not exist"]);
        assert_eq!(check("`lm-media/src/a.rs`"), ["docs/a.md:1 `lm-media/src/a.rs` does not exist"]);
    }

    #[test]
    fn items_lines_and_arguments_after_a_path_are_no_part_of_it() {
        let passes = "`lm-media/src/lib.rs::decode` `docs/a.md:3` `examples/chat/main.rs --help`";
        assert_eq!(check(passes), Vec::<String>::new());
        let fails = "`lm-media/src/a.rs::decode` `docs/b.md:3` `examples/run.sh --help`";
        assert_eq!(check(fails).len(), 3);
    }

    #[test]
    fn a_pattern_is_checked_up_to_its_first_placeholder() {
        assert_eq!(check("`lm-media/src/<name>.rs` `examples/*/main.rs`"), Vec::<String>::new());
        assert_eq!(check("`lm-media/tests/{a,b}.rs`").len(), 1);
    }

    #[test]
    fn other_code_is_no_path() {
        let text =
            "`a/b` `lm-media/fast` `docs` `https://x.y/docs` `Qwen/Qwen3`\n```\ndocs/b.md `docs/b.md`\n```\n";
        assert_eq!(check(text), Vec::<String>::new());
    }
}

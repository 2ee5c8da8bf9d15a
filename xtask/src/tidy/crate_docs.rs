//! Every crate is documented: a README.md next to its manifest and a doc header at its root.

use super::{Check, Finding};
use crate::tree::Tree;

pub(super) const CHECK: Check =
    Check { name: "crate-docs", rule: "each crate has a README.md and a doc header at its root", run };

fn run(tree: &Tree) -> Vec<Finding> {
    let mut findings = Vec::new();
    for package in tree.packages() {
        if package.is_published() && tree.text(&format!("{}/README.md", package.folder)).is_none() {
            findings.push(Finding::error(&package.folder, "README.md is missing"));
        }
        let Some(root) = package.crate_root(tree) else { continue };
        let has_header = tree.text(&root).is_some_and(|text| {
            text.lines().any(|line| line.starts_with("//!") || line.starts_with("#![doc = include_str!("))
        });
        if !has_header {
            findings.push(Finding::error(root, "no `//!` header and no included README.md"));
        }
    }
    findings
}

#[cfg(test)]
mod tests {
    use super::*;

    const MANIFEST: (&str, &str) = ("crates/a/Cargo.toml", "[package]\nname = \"a\"\n");

    #[test]
    fn missing_readme_and_header_are_two_findings() {
        assert_eq!(run(&Tree::of(&[MANIFEST, ("crates/a/src/lib.rs", "mod b;\n")])).len(), 2);
    }

    #[test]
    fn either_kind_of_header_passes() {
        for root in ["//! A crate.\n", "#![doc = include_str!(\"../README.md\")]\n"] {
            let tree = Tree::of(&[MANIFEST, ("crates/a/README.md", "# a"), ("crates/a/src/lib.rs", root)]);
            assert_eq!(run(&tree), []);
        }
    }
}

//! Only `lm-kernels` uses `unsafe`: every other crate forbids it at its root, and no target overrides the
//! lint.

use super::{Check, Finding};
use crate::rust_source::code_only;
use crate::tree::Tree;

pub(super) const CHECK: Check =
    Check { name: "unsafe-code", rule: "`unsafe` stays in lm-kernels, every other crate forbids it", run };

const HOME: &str = "crates/lm-kernels/";

fn run(tree: &Tree) -> Vec<Finding> {
    let mut findings = Vec::new();
    for (path, text) in tree.texts(".rs").filter(|(path, _)| !path.starts_with(HOME)) {
        for (number, line) in code_only(text).lines().enumerate() {
            if line.contains("(unsafe_code") && !line.contains("forbid(") {
                let text = "lifts the lint that keeps `unsafe` out";
                findings.push(Finding::error(format!("{path}:{}", number + 1), text));
            }
        }
    }
    for root in tree.packages().iter().filter_map(|package| package.crate_root(tree)) {
        let forbids =
            tree.text(&root).is_some_and(|text| code_only(text).contains("#![forbid(unsafe_code)]"));
        if !forbids && !root.starts_with(HOME) {
            findings.push(Finding::error(root, "does not say `#![forbid(unsafe_code)]`"));
        }
    }
    findings
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(folder: &str, source: &str) -> usize {
        let manifest = format!("{folder}/Cargo.toml");
        let lib = format!("{folder}/src/lib.rs");
        run(&Tree::of(&[(&manifest, "[package]\nname = \"a\"\n"), (&lib, source)])).len()
    }

    #[test]
    fn lint_exception_is_found_outside_its_home() {
        let source = "#![forbid(unsafe_code)]\n#[allow(unsafe_code)]\nmod b;\n";
        assert_eq!(check("crates/a", source), 1);
        assert_eq!(check("crates/lm-kernels", source), 0);
    }

    #[test]
    fn comments_and_strings_are_not_code() {
        let source =
            "#![forbid(unsafe_code)]\n// unsafe\nconst A: &str = \"unsafe {\";\nfn unsafe_name() {}\n";
        assert_eq!(check("crates/a", source), 0);
    }

    #[test]
    fn crate_without_forbid_is_found() {
        assert_eq!(check("crates/a", "mod b;\n"), 1);
    }
}

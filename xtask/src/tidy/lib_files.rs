//! `lib.rs` is a table of contents: doc, attributes, `mod` and `use`, nothing else.

use super::{Check, Finding};
use crate::rust_source::code_only;
use crate::tree::{Package, Tree};

pub(super) const CHECK: Check =
    Check { name: "lib-files", rule: "lib.rs holds doc, attributes, `mod` and `use` lines only", run };

/// Crates whose root contains items.
const EXEMPT: &[&str] = &[
    "models/pocket", // one list of embedded files
];

fn run(tree: &Tree) -> Vec<Finding> {
    let mut findings = Vec::new();
    // The entry points of a procedural macro must be at the crate root.
    for package in tree.packages().iter().filter(|package| !is_proc_macro(package)) {
        if EXEMPT.contains(&package.folder.as_str()) {
            continue;
        }
        let path = format!("{}/src/lib.rs", package.folder);
        let Some(text) = tree.text(&path) else { continue };
        if let Some(item) = first_other_item(&code_only(text)) {
            findings.push(Finding::error(path, format!("holds `{item}`: move it to a module")));
        }
    }
    findings
}

fn is_proc_macro(package: &Package) -> bool {
    let flag = package.manifest.get("lib").and_then(|lib| lib.get("proc-macro"));
    flag.and_then(toml::Value::as_bool) == Some(true)
}

/// Returns the first line of the first item other than `mod …;` and `use …;`.
fn first_other_item(code: &str) -> Option<String> {
    let mut rest = code.trim_start();
    while !rest.is_empty() {
        if rest.starts_with('#') {
            rest = rest[attribute_length(rest)..].trim_start();
            continue;
        }
        let item = rest.trim_start_matches("pub(crate)").trim_start_matches("pub").trim_start();
        let is_entry = ["mod ", "use ", "extern crate "].iter().any(|word| item.starts_with(word));
        // `mod tests { … }` has a brace before its first semicolon.
        let ends = |&n: &usize| item.starts_with("use ") || !rest[..n].contains('{');
        let Some(length) = rest.find(';').filter(|_| is_entry).filter(ends) else {
            return Some(rest.lines().next().unwrap_or_default().trim_end().to_owned());
        };
        rest = rest[length + 1..].trim_start();
    }
    None
}

fn attribute_length(code: &str) -> usize {
    let mut depth = 0;
    for (at, byte) in code.bytes().enumerate() {
        match byte {
            b'[' => depth += 1,
            b']' if depth == 1 => return at + 1,
            b']' => depth -= 1,
            _ => {}
        }
    }
    code.len()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn table_of_contents_passes() {
        let text = "//! Doc.\n#![forbid(unsafe_code)]\n#![cfg_attr(docsrs, feature(doc_cfg))]\n\nmod a;\n#[cfg(feature = \"x\")]\npub mod b;\npub use a::{One,\n    Two};\npub(crate) use b::Three;\nextern crate self as a;\n";
        assert_eq!(first_other_item(&code_only(text)), None);
    }

    #[test]
    fn item_is_reported_at_its_first_line() {
        for (text, item) in [
            ("mod a;\npub fn f() {}\n", "pub fn f() {}"),
            ("mod a;\n#[cfg(test)]\nmod tests {\n    use super::*;\n}\n", "mod tests {"),
            ("pub const A: u8 = 1;\n", "pub const A: u8 = 1;"),
        ] {
            assert_eq!(first_other_item(&code_only(text)).as_deref(), Some(item));
        }
    }

    #[test]
    fn procedural_macro_crate_is_exempt() {
        let manifest = "[package]\nname = \"m\"\n[lib]\nproc-macro = true\n";
        let lib = ("crates/m/src/lib.rs", "pub fn f() {}\n");
        assert_eq!(run(&Tree::of(&[("crates/m/Cargo.toml", manifest), lib])), []);
        assert_eq!(run(&Tree::of(&[("crates/m/Cargo.toml", "[package]\nname = \"m\"\n"), lib])).len(), 1);
    }
}

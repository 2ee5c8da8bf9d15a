//! Every Rust file is compiled: it is a crate root or named by a `mod` line.

use std::collections::{BTreeSet, VecDeque};

use super::{Check, Finding};
use crate::rust_source::code_only;
use crate::tree::Tree;

pub(super) const CHECK: Check =
    Check { name: "modules", rule: "every .rs file is a crate root or named by a `mod` line", run };

/// Manifest tables whose entries name the files of their targets.
const TARGETS: &[&str] = &["bin", "bench", "test", "example"];
/// Folders whose files, and whose subfolders' `main.rs`, are separate targets.
const TARGET_FOLDERS: &[&str] = &["src/bin", "tests", "benches", "examples"];
/// Folder of files that a test of the same name passes to rustc.
const CASES: &str = "/tests/compile_errors/";

fn run(tree: &Tree) -> Vec<Finding> {
    let roots = roots(tree);
    let mut compiled: BTreeSet<String> = roots.iter().cloned().collect();
    let mut waiting: VecDeque<String> = compiled.iter().cloned().collect();
    while let Some(path) = waiting.pop_front() {
        let found = modules_of(tree, &path, roots.contains(&path));
        waiting.extend(found.into_iter().filter(|file| compiled.insert(file.clone())));
    }
    let lost = tree.texts(".rs").map(|(path, _)| path).filter(|path| !compiled.contains(*path));
    let lost = lost.filter(|path| !path.contains(CASES));
    lost.map(|path| Finding::error(path, "is compiled by nobody: name it in a `mod` line or delete it"))
        .collect()
}

/// Files that cargo compiles as crate roots.
fn roots(tree: &Tree) -> BTreeSet<String> {
    let mut roots = BTreeSet::new();
    for (path, text) in tree.texts("Cargo.toml") {
        let Ok(manifest) = text.parse::<toml::Table>() else { continue };
        let Some(package) = manifest.get("package") else { continue };
        let lists_tests = package.get("autotests").and_then(toml::Value::as_bool) == Some(false);
        let folder = path.strip_suffix("Cargo.toml").unwrap_or_default();
        roots.extend(["src/lib.rs", "src/main.rs", "build.rs"].map(|file| format!("{folder}{file}")));
        let targets = TARGETS.iter().filter_map(|name| manifest.get(*name)?.as_array()).flatten();
        let named = targets.chain(manifest.get("lib")).filter_map(|target| target.get("path")?.as_str());
        roots.extend(named.map(|file| format!("{folder}{file}")));
        for targets in TARGET_FOLDERS.iter().filter(|folder| !(lists_tests && **folder == "tests")) {
            let place = format!("{folder}{targets}");
            let files = tree.below(&place).filter(|file| match file.split_once('/') {
                None => file.ends_with(".rs"),
                Some((_, rest)) => rest == "main.rs",
            });
            roots.extend(files.map(|file| format!("{place}/{file}")));
        }
    }
    roots.retain(|path| tree.text(path).is_some());
    roots
}

/// Files of the modules declared in a file.
fn modules_of(tree: &Tree, path: &str, is_root: bool) -> Vec<String> {
    let Some(source) = tree.text(path) else { return Vec::new() };
    let (folder, file) = path.rsplit_once('/').unwrap_or(("", path));
    let inside = if is_root || file == "mod.rs" {
        folder.to_owned()
    } else {
        format!("{folder}/{}", file.trim_end_matches(".rs"))
    };
    let code = code_only(source);
    let mut found = Vec::new();
    let mut path_attribute = None;
    for (line, text) in code.lines().zip(source.lines()) {
        if line.trim_start().starts_with("#[path") {
            path_attribute = text.split('"').nth(1);
        }
        let Some(name) = module_name(line) else { continue };
        let candidates = match path_attribute.take() {
            Some(named) => vec![joined(folder, named)],
            None => vec![format!("{inside}/{name}.rs"), format!("{inside}/{name}/mod.rs")],
        };
        found.extend(candidates.into_iter().filter(|file| tree.text(file).is_some()));
    }
    if code.contains("mod $") {
        // A macro of this file declares modules: their names appear at its use.
        let words: BTreeSet<&str> = code.split(|c: char| !c.is_alphanumeric() && c != '_').collect();
        let named = tree.below(&inside).filter(|file| words.contains(file.trim_end_matches(".rs")));
        found.extend(named.map(|file| format!("{inside}/{file}")));
    }
    found
}

/// Parses the name in a line `mod name;`.
fn module_name(line: &str) -> Option<&str> {
    let item = line.trim().strip_suffix(';')?;
    let (visibility, name) = item.rsplit_once("mod ").unwrap_or_default();
    let visible = visibility.trim().is_empty() || visibility.trim_start().starts_with("pub");
    (visible && !name.is_empty()).then_some(name.trim())
}

/// Joins `path` to `folder`, resolving `..`.
fn joined(folder: &str, path: &str) -> String {
    let mut parts: Vec<&str> = folder.split('/').collect();
    for part in path.split('/') {
        match part {
            ".." => drop(parts.pop()),
            part => parts.push(part),
        }
    }
    parts.join("/")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn orphan_file_is_found() {
        let package = "[package]\nname = \"a\"\n[[bin]]\nname = \"b\"\npath = \"targets/b.rs\"";
        let tree = Tree::of(&[
            ("c/Cargo.toml", package),
            ("c/src/lib.rs", "mod x;\npub(crate) mod y;\n// mod lost;\n"),
            ("c/src/x.rs", "mod rows;\n#[cfg(test)]\nmod tests;\n"),
            ("c/src/x/tests.rs", "let mod_ = \"mod lost;\";"),
            ("c/src/y/mod.rs", "mod z;"),
            ("c/src/y/z.rs", ""),
            ("c/src/lost.rs", ""),
            ("c/src/tests.rs", ""),
            ("c/targets/b.rs", ""),
            ("c/tests/one.rs", "#[path = \"../common/mod.rs\"]\nmod common;"),
            ("c/tests/more/main.rs", "mod part;"),
            ("c/tests/more/part.rs", ""),
            ("c/tests/more/other.rs", ""),
            ("c/common/mod.rs", ""),
            (
                "c/src/x/rows.rs",
                "macro_rules! rows { ($($name:ident)*) => { $(mod $name;)* } }\nrows! { a b }",
            ),
            ("c/src/x/rows/a.rs", ""),
            ("c/src/x/rows/c.rs", ""),
            (
                "d/Cargo.toml",
                "[package]\nname = \"d\"\nautotests = false\n[[test]]\nname = \"t\"\npath = \"tests/main.rs\"",
            ),
            ("d/tests/main.rs", "mod named;"),
            ("d/tests/named.rs", ""),
            ("d/tests/unnamed.rs", ""),
        ]);
        let lost: Vec<String> = run(&tree).into_iter().map(|finding| finding.place).collect();
        let expected = [
            "c/src/lost.rs",
            "c/src/tests.rs",
            "c/src/x/rows/c.rs",
            "c/tests/more/other.rs",
            "d/tests/unnamed.rs",
        ];
        assert_eq!(lost, expected);
    }
}

//! Tests that documents cite exist.
//!
//! A table whose last column is `test` cites by `file::function` or `file`; a table whose first column is
//! `file` says where these are, with `name/…` for all files of a folder. Commands cite test programs by
//! `--test NAME`.

use super::{Check, Finding};
use crate::tree::Tree;

pub(super) const CHECK: Check =
    Check { name: "cited-tests", rule: "tests that Markdown files cite exist", run };

fn run(tree: &Tree) -> Vec<Finding> {
    let mut findings = Vec::new();
    for (path, text) in tree.texts(".md") {
        let names = file_names(text);
        for (line, cited) in cited(text) {
            if !exists(tree, &names, cited) {
                findings.push(Finding::error(format!("{path}:{line}"), format!("no test `{cited}`")));
            }
        }
        for (line, program) in programs(text) {
            if !program_exists(tree, program) {
                findings.push(Finding::error(format!("{path}:{line}"), format!("no `--test {program}`")));
            }
        }
    }
    findings
}

/// Rows of the tables whose header is wanted: lines from one, and cells.
fn rows(text: &str, is_header: fn(&[&str]) -> bool) -> Vec<(usize, Vec<&str>)> {
    let (mut found, mut in_table, mut wanted) = (Vec::new(), false, false);
    for (number, line) in text.lines().enumerate() {
        let Some(line) = line.trim().strip_prefix('|').and_then(|line| line.strip_suffix('|')) else {
            in_table = false;
            continue;
        };
        let cells: Vec<&str> = line.split('|').map(str::trim).collect();
        if !in_table {
            (in_table, wanted) = (true, is_header(&cells));
        } else if wanted {
            found.push((number + 1, cells));
        }
    }
    found
}

/// Short names of test files, with their paths below `crates/`.
fn file_names(text: &str) -> Vec<(&str, &str)> {
    let rows = rows(text, |cells| cells.first() == Some(&"file"));
    rows.iter()
        .filter_map(|(_, cells)| Some((cells.first()?, cells.get(1)?)))
        .flat_map(|(names, paths)| {
            code(names).zip(code(paths)).map(|(name, path)| (name.trim_end_matches('…'), path))
        })
        .collect()
}

/// Tests cited in tables, with their lines; documentation tests are not.
fn cited(text: &str) -> Vec<(usize, &str)> {
    let rows = rows(text, |cells| cells.last() == Some(&"test"));
    let cells = rows.iter().filter_map(|(line, cells)| Some((*line, *cells.last()?)));
    let tests = cells.filter(|(_, cell)| !cell.starts_with("doc test"));
    let lower = |span: &&str| !span.contains(char::is_uppercase);
    tests.flat_map(|(line, cell)| code(cell).filter(lower).map(move |span| (line, span))).collect()
}

/// Inline code of a text.
fn code(text: &str) -> impl Iterator<Item = &str> {
    text.split('`').skip(1).step_by(2)
}

fn exists(tree: &Tree, names: &[(&str, &str)], cited: &str) -> bool {
    let (file, function) = cited.split_once("::").map_or((cited, None), |(file, name)| (file, Some(name)));
    let path = names.iter().find_map(|(name, path)| match name.strip_suffix('/') {
        Some(folder) => Some(format!("{path}{}", file.strip_prefix(folder)?.strip_prefix('/')?)),
        None => (*name == file).then(|| (*path).to_owned()),
    });
    let path = format!("crates/{}", path.as_deref().unwrap_or(file));
    let module = path.strip_suffix(".rs").unwrap_or(&path);
    let below =
        tree.below(module).filter(|file| file.ends_with(".rs")).map(|file| format!("{module}/{file}"));
    let mut files = std::iter::once(format!("{module}.rs")).chain(below).filter_map(|file| tree.text(&file));
    match function {
        None => files.next().is_some(),
        Some(function) => files.any(|text| text.contains(&format!("fn {function}("))),
    }
}

/// Arguments of `--test`, with their lines.
fn programs(text: &str) -> Vec<(usize, &str)> {
    let is_name = |c: char| c.is_ascii_alphanumeric() || c == '_';
    let lines = text.lines().enumerate();
    let after =
        lines.flat_map(|(line, text)| text.split("--test ").skip(1).map(move |after| (line + 1, after)));
    after
        .map(|(line, after)| (line, &after[..after.find(|c| !is_name(c)).unwrap_or(after.len())]))
        .filter(|(_, name)| !name.is_empty())
        .collect()
}

/// Returns true if a package has a test target of this name: in its manifest, or as a file that cargo finds
/// by itself.
fn program_exists(tree: &Tree, name: &str) -> bool {
    let is_file = |folder: &str| {
        [format!("{folder}/tests/{name}.rs"), format!("{folder}/tests/{name}/main.rs")]
            .iter()
            .any(|path| tree.text(path).is_some())
    };
    tree.packages().iter().any(|package| {
        let listed = package.manifest.get("test").and_then(toml::Value::as_array).into_iter().flatten();
        let is_listed = listed.filter_map(|target| target.get("name")?.as_str()).any(|listed| listed == name);
        is_listed || (package.finds_tests() && is_file(&package.folder))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const FILES: &str = "| file | in `crates/` |\n|---|---|\n| `flow`, `lib` | `a/tests/flow.rs`, `a/src/b/tests.rs` |\n\
        | `all/…` | `a/tests/all/` |\n\n";

    fn check(rows: &str, rest: &str) -> Vec<String> {
        let text = format!("{FILES}| here | test |\n|---|---|\n{rows}\n\n{rest}\n");
        let tree = Tree::of(&[
            ("crates/a/Cargo.toml", "[package]\nname = \"a\"\n"),
            ("crates/a/tests/flow.rs", "#[test]\nfn it_flows() {}\n"),
            ("crates/a/src/b/tests.rs", "fn it_works() {}\n"),
            ("crates/a/tests/all/main.rs", ""),
            ("crates/a/tests/all/one.rs", "fn first() {}"),
            (
                "crates/b/Cargo.toml",
                "[package]\nname = \"b\"\nautotests = false\n[[test]]\nname = \"together\"\npath = \"tests/main.rs\"",
            ),
            ("crates/b/tests/main.rs", "mod part;"),
            ("crates/b/tests/part.rs", ""),
            ("docs/a.md", &text),
        ]);
        run(&tree).into_iter().map(|finding| finding.text).collect()
    }

    #[test]
    fn tests_are_found_by_short_names_folders_and_paths() {
        let rows = "| x | `flow::it_flows`, `lib::it_works` |\n| y | `all/one::first`, `all/one`, all of `flow` |\n\
            | z | `a/tests/flow.rs::it_flows`, `a/tests/all` |\n| `gone::x` | – |\n\
            | w | doc test of `gone::x` |\n| v | all over `a::ALL` |";
        assert_eq!(check(rows, "`cargo test --test all -- first`, `--test together`"), Vec::<String>::new());
    }

    #[test]
    fn missing_test_file_or_program_is_found() {
        let rows = "| x | `flow::it_flowed` |\n| y | `all/two` |\n| z | `other::it_flows` |";
        let missing = [
            "no test `flow::it_flowed`",
            "no test `all/two`",
            "no test `other::it_flows`",
            "no `--test none`",
            "no `--test part`",
        ];
        assert_eq!(
            check(rows, "cargo test -p a --test none\ncargo test --test flow\ncargo test --test part"),
            missing
        );
    }
}

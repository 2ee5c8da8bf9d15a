//! The modules of a crate import only modules above them in the crate's table in `docs/modules.md`.

use std::collections::{BTreeMap, BTreeSet};

use super::{Check, Finding};
use crate::imports::{CrateSource, Module, ReExports};
use crate::tree::Tree;

pub(super) const CHECK: Check = Check {
    name: "module-layers",
    rule: "a module imports only modules above it in its crate's table in docs/modules.md",
    run,
};

const DOCUMENT: &str = "docs/modules.md";
const SECTION: &str = "\n## Modules\n";

/// Rows of one crate, bottom layer first: a module, or a module inside one (`host/lanes`).
struct Layers<'a> {
    krate: &'a str,
    rows: Vec<&'a str>,
}

/// Import of one row by another.
struct Import {
    from: String,
    /// A row, or the first segment of a path that leads to none.
    to: String,
    /// File and line.
    place: String,
}

fn run(tree: &Tree) -> Vec<Finding> {
    let Some(tables) = tree.text(DOCUMENT).and_then(read_tables) else {
        return vec![Finding::error(DOCUMENT, "no tables of modules under a heading `## Modules`")];
    };
    tables.iter().flat_map(|layers| check(tree, layers)).collect()
}

/// Prints the import graph of each crate that has a table: a module and the modules it imports, bottom layer
/// first.
pub(super) fn print(tree: &Tree) {
    for layers in tree.text(DOCUMENT).and_then(read_tables).unwrap_or_default() {
        let mut graph: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
        let imports = imports(&CrateSource::read(tree, layers.krate), &layers);
        for import in &imports {
            graph.entry(import.from.clone()).or_default().insert(import.to.clone());
        }
        println!("{}: {} imports between {} modules", layers.krate, imports.len(), layers.rows.len());
        for module in &layers.rows {
            let mut below: Vec<_> = graph.get(*module).into_iter().flatten().map(String::as_str).collect();
            below.sort_by_key(|name| layers.position(name));
            println!("  {module:14} {}", if below.is_empty() { "–".to_owned() } else { below.join(" ") });
        }
    }
}

/// Parses the tables: a heading ``### `crate` ``, then rows whose first cell is a module.
fn read_tables(text: &str) -> Option<Vec<Layers<'_>>> {
    let section = text.split_once(SECTION)?.1;
    let section = section.split_once("\n## ").map_or(section, |(section, _)| section);
    let mut tables: Vec<Layers<'_>> = Vec::new();
    for line in section.lines() {
        let name = || line.split('`').nth(1);
        if line.starts_with("### ") {
            tables.extend(name().map(|krate| Layers { krate, rows: Vec::new() }));
        } else if line.starts_with("| `")
            && let (Some(table), Some(module)) = (tables.last_mut(), name())
        {
            table.rows.push(module);
        }
    }
    (!tables.is_empty()).then_some(tables)
}

impl Layers<'_> {
    /// Place of a row, from the bottom; that of a folder whose modules have rows is the highest of theirs.
    fn position(&self, row: &str) -> Option<usize> {
        let inside = format!("{row}/");
        self.rows.iter().rposition(|name| *name == row || name.starts_with(&inside))
    }

    /// The row of a module: the longest one that its path begins with.
    fn row(&self, module: &Module) -> Option<&str> {
        let path = module.join("/");
        let rows = self.rows.iter().filter(|row| path == **row || path.starts_with(&format!("{row}/")));
        rows.max_by_key(|row| row.len()).copied()
    }

    /// Returns true for a folder whose modules have separate rows; its `mod.rs` re-exports them.
    fn is_split(&self, module: &Module) -> bool {
        let prefix = module.join("/") + "/";
        self.rows.iter().any(|row| row.starts_with(&prefix))
    }
}

fn check(tree: &Tree, layers: &Layers<'_>) -> Vec<Finding> {
    let mut findings = Vec::new();
    let source = CrateSource::read(tree, layers.krate);
    for module in
        source.files.keys().filter(|module| layers.row(module).is_none() && !layers.is_split(module))
    {
        let text = format!("the table of `{}` has no row for `{}`", layers.krate, module.join("/"));
        findings.push(Finding::error(DOCUMENT, text));
    }
    let is_module =
        |row: &str| source.files.keys().any(|module| layers.row(module).is_some_and(|found| found == row));
    for row in layers.rows.iter().filter(|row| !is_module(row)) {
        findings.push(Finding::error(
            DOCUMENT,
            format!("the table of `{}` has `{row}`, which is not a module", layers.krate),
        ));
    }
    for Import { from, to, place } in imports(&source, layers) {
        let text = match (layers.position(&from), layers.position(&to)) {
            (Some(from), Some(to)) if to < from => continue,
            (_, None) => format!("`{from}` imports `crate::{to}` from the crate root: name its module"),
            _ => format!("`{from}` imports `{to}`, which is not below it"),
        };
        findings.push(Finding::error(place, text));
    }
    findings
}

/// Imports between the rows of a crate outside tests, re-exports included.
fn imports(source: &CrateSource, layers: &Layers<'_>) -> Vec<Import> {
    let mut found = Vec::new();
    for (module, file) in &source.files {
        let Some(from) = layers.row(module) else { continue };
        for import in source.imports(module, ReExports::Counted) {
            let Some(first) = import.path.first() else { continue };
            let is_module = source.files.keys().any(|module| module[0] == *first);
            let owner = if is_module { source.owner(&import.path) } else { None };
            let to = owner.map_or(first.as_str(), |owner| layers.row(&owner).unwrap_or(first)).to_owned();
            if to != from {
                found.push(Import { from: from.to_owned(), to, place: format!("{file}:{}", import.line) });
            }
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    const MAP: &str = "# Map\n\n## Modules\n\n### `a`\n\n| module | owns |\n|---|---|\n| `low` | x |\n| `high` | y |\n\n## Next\n| `other` |\n";

    fn check(files: &[(&str, &str)]) -> Vec<String> {
        let all = [&[(DOCUMENT, MAP), ("crates/a/src/lib.rs", "mod low;\nmod high;")], files].concat();
        run(&Tree::of(&all)).into_iter().map(|finding| finding.text).collect()
    }

    fn both(low: &str, high: &str) -> Vec<String> {
        check(&[("crates/a/src/low.rs", low), ("crates/a/src/high/mod.rs", high)])
    }

    #[test]
    fn downward_and_internal_imports_pass() {
        let high = "use crate::low::{A, B};\nuse crate::high::C;\nfn f() { crate::low::g() }";
        assert_eq!(both("", high), Vec::<String>::new());
    }

    #[test]
    fn upward_import_is_found_in_every_form() {
        for up in [
            "use crate::high::A;",
            "use crate::{high::A};",
            "use super::high::A;",
            "fn f() { crate::high::g() }",
            "pub(crate) use crate::high::A;",
        ] {
            assert_eq!(both(up, ""), ["`low` imports `high`, which is not below it"], "{up}");
        }
        let deep = ("crates/a/src/low/deep.rs", "use super::super::high::A;\nuse super::B;");
        let found = check(&[deep, ("crates/a/src/high.rs", "")]);
        assert_eq!(found, ["`low` imports `high`, which is not below it"]);
    }

    #[test]
    fn crate_root_import_is_found() {
        assert_eq!(
            both("", "use crate::{Error, low::A};"),
            ["`high` imports `crate::Error` from the crate root: name its module"]
        );
    }

    #[test]
    fn comments_strings_and_tests_are_ignored() {
        let low = "// use crate::high::A;\nconst A: &str = \"crate::high::A\";\n#[cfg(test)]\nmod tests { use crate::high::A; }";
        assert_eq!(both(low, ""), Vec::<String>::new());
        let tests = ("crates/a/src/low/tests.rs", "use crate::high::A;");
        assert_eq!(check(&[tests, ("crates/a/src/low.rs", ""), ("crates/a/src/high.rs", "")]).len(), 0);
    }

    #[test]
    fn rows_without_module_and_modules_without_row_are_found() {
        let found = check(&[("crates/a/src/low.rs", ""), ("crates/a/src/new.rs", "")]);
        assert_eq!(
            found,
            ["the table of `a` has no row for `new`", "the table of `a` has `high`, which is not a module"]
        );
        assert_eq!(run(&Tree::of(&[])).len(), 1);
    }
}

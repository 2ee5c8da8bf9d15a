//! A crate depends only on crates above it in the table of `docs/ARCHITECTURE.md` (the lowest layer is
//! first), and its row lists the crates of the workspace that it depends on.

use std::collections::{BTreeSet, HashMap};

use super::{Check, Finding};
use crate::tree::{Package, Tree};

pub(super) const CHECK: Check = Check {
    name: "layers",
    rule: "a crate depends only on crates above it in docs/ARCHITECTURE.md, which lists its dependencies",
    run,
};

const TABLE: &str = "docs/ARCHITECTURE.md";

/// Column of the crate's name, and of its dependencies, after the border at the left.
const NAME_CELL: usize = 1;
const DEPENDENCIES_CELL: usize = 3;

/// Crates with stricter rules than the order: all workspace crates they may depend on.
const ONLY: &[(&str, &[&str])] = &[
    ("lm-kernels", &[]),
    ("lm-formats", &["lm-kernels"]),
    ("lm-tokenizer", &["lm-formats"]),
    ("lm-media", &[]),
    ("lm-jinja", &[]),
    ("lm-template", &["lm-jinja"]),
    ("lm-processors", &["lm-template"]),
    ("xtask", &[]),
];

/// A row of the table.
struct Row<'a> {
    layer: usize,
    dependencies: BTreeSet<&'a str>,
}

fn run(tree: &Tree) -> Vec<Finding> {
    let Some(rows) = tree.text(TABLE).and_then(read_table) else {
        return vec![Finding::error(TABLE, "no table of crates under a heading `## Layers`")];
    };
    let packages = tree.packages();
    let mut findings = Vec::new();
    for name in rows.keys().filter(|name| !packages.iter().any(|package| package.name == **name)) {
        findings.push(Finding::error(TABLE, format!("`{name}` is in the table and not in the workspace")));
    }
    for package in &packages {
        match rows.get(package.name.as_str()) {
            Some(row) => findings.extend(wrong_list(package, &packages, row)),
            None if package.is_published() => {
                findings.push(Finding::error(TABLE, format!("`{}` is missing from the table", package.name)));
            }
            None => {}
        }
        findings.extend(upward_edges(package, &packages, &rows));
    }
    findings
}

/// Parses crate name → row.
fn read_table(text: &str) -> Option<HashMap<&str, Row<'_>>> {
    let section = text.split_once("\n## Layers\n")?.1;
    let section = section.split_once("\n## ").map_or(section, |(section, _)| section);
    let mut rows = HashMap::new();
    for (layer, line) in section.lines().filter(|line| line.starts_with('|')).enumerate() {
        let cells: Vec<_> = line.split('|').collect();
        let Some(name) = code_spans(cells.get(NAME_CELL)?).next() else { continue };
        let dependencies =
            cells.get(DEPENDENCIES_CELL).into_iter().flat_map(|cell| code_spans(cell)).collect();
        rows.insert(name, Row { layer, dependencies });
    }
    (!rows.is_empty()).then_some(rows)
}

fn code_spans(cell: &str) -> impl Iterator<Item = &str> {
    cell.split('`').skip(1).step_by(2)
}

/// Dependencies of `package` in a table of its manifest that are packages of the workspace, by the names of
/// the packages.
fn of_workspace<'a>(
    package: &'a Package,
    packages: &'a [Package],
    table: &'a str,
) -> impl Iterator<Item = &'a str> {
    package
        .dependencies(table)
        .map(|(key, value)| value.get("package").and_then(toml::Value::as_str).unwrap_or(key))
        .filter(|name| *name != package.name && packages.iter().any(|other| other.name == *name))
}

/// Compares the row of `package` with `[dependencies]` of its manifest.
fn wrong_list(package: &Package, packages: &[Package], row: &Row<'_>) -> Option<Finding> {
    let actual: BTreeSet<_> = of_workspace(package, packages, "dependencies").collect();
    let missing: Vec<_> = actual.difference(&row.dependencies).copied().collect();
    let extra: Vec<_> = row.dependencies.difference(&actual).copied().collect();
    let (name, mut problems) = (&package.name, Vec::new());
    if !missing.is_empty() {
        problems.push(format!("lacks {}", missing.join(", ")));
    }
    if !extra.is_empty() {
        problems.push(format!("lists {}, which its manifest lacks", extra.join(", ")));
    }
    let text = format!("the dependencies in the row of `{name}`: {}", problems.join("; "));
    (!problems.is_empty()).then(|| Finding::error(TABLE, text))
}

fn upward_edges(package: &Package, packages: &[Package], rows: &HashMap<&str, Row<'_>>) -> Vec<Finding> {
    let manifest = format!("{}/Cargo.toml", package.folder);
    // A package outside the table (benches, xtask) is above all layers: nothing may depend on it.
    let layer_of = |name: &str| rows.get(name).map_or(usize::MAX, |row| row.layer);
    let only = ONLY.iter().find(|(name, _)| *name == package.name).map(|(_, allowed)| *allowed);
    let mut findings = Vec::new();
    for table in ["dependencies", "build-dependencies", "dev-dependencies"] {
        for name in of_workspace(package, packages, table) {
            let upward = layer_of(name) > layer_of(&package.name) || layer_of(name) == usize::MAX;
            if upward {
                findings.push(Finding::error(
                    &manifest,
                    format!("[{table}] has `{name}`, which is not below it"),
                ));
            }
            if let Some(allowed) =
                only.filter(|allowed| table != "dev-dependencies" && !allowed.contains(&name))
            {
                let text = format!("[{table}] has `{name}`; of our crates it may use only {allowed:?}");
                findings.push(Finding::error(&manifest, text));
            }
        }
    }
    findings
}

#[cfg(test)]
mod tests {
    use super::*;

    const MAP: &str = "# Map\n\n## Layers\n\n| crate | owns | depends on |\n|---|---|---|\n| `low` | `a` | – |\n| `high` | b | `low` |\n\n## Next\n| `other` |\n";

    fn package(name: &str, dependencies: &str) -> String {
        format!("[package]\nname = \"{name}\"\n{dependencies}")
    }

    fn check(low: &str, high: &str) -> Vec<String> {
        let files = [
            ("docs/ARCHITECTURE.md", MAP.to_owned()),
            ("crates/low/Cargo.toml", package("low", low)),
            ("crates/high/Cargo.toml", package("high", high)),
        ];
        let files: Vec<_> = files.iter().map(|(path, text)| (*path, text.as_str())).collect();
        run(&Tree::of(&files)).into_iter().map(|finding| finding.text).collect()
    }

    const DOWN: &str = "[dependencies]\nlow.workspace = true\nserde = \"1\"";

    #[test]
    fn downward_edge_passes() {
        assert_eq!(check("", DOWN), Vec::<String>::new());
    }

    #[test]
    fn upward_edge_fails_in_every_table_and_alias() {
        for edge in [
            "[dependencies]\nhigh = { workspace = true }",
            "[dev-dependencies]\nhigh.workspace = true",
            "[build-dependencies]\nrenamed = { package = \"high\", path = \"../high\" }",
            "[target.'cfg(unix)'.dependencies]\nhigh.workspace = true",
        ] {
            let found = check(edge, DOWN);
            let upward = found.iter().filter(|text| text.contains("not below it"));
            assert_eq!(upward.count(), 1, "{edge}: {found:?}");
        }
    }

    #[test]
    fn missing_and_extra_dependencies_in_a_row_are_findings() {
        let found = check("[dependencies]\nrenamed = { package = \"high\" }", "");
        assert!(found.contains(&"the dependencies in the row of `low`: lacks high".to_owned()), "{found:?}");
        let extra = "the dependencies in the row of `high`: lists low, which its manifest lacks";
        assert!(found.contains(&extra.to_owned()), "{found:?}");
        // Dependencies of tests are no edge of the map.
        assert_eq!(check("", "[dev-dependencies]\nlow.workspace = true"), [extra]);
    }

    #[test]
    fn missing_crate_and_missing_table_are_findings() {
        let extra = package("extra", "");
        let tree = Tree::of(&[("docs/ARCHITECTURE.md", MAP), ("crates/extra/Cargo.toml", &extra)]);
        assert_eq!(run(&tree).len(), 3, "two unknown rows and one crate without a row");
        assert_eq!(run(&Tree::of(&[])).len(), 1);
    }

    #[test]
    fn crate_with_closed_list_uses_no_other_workspace_crate() {
        let map = "\n## Layers\n| `low` |\n| `lm-template` |\n| `lm-processors` | | `low`, `lm-template` |\n";
        let low = package("low", "");
        let template = package("lm-template", "");
        let processors = package("lm-processors", "[dependencies]\nlow = {}\nlm-template = {}");
        let tree = Tree::of(&[
            ("docs/ARCHITECTURE.md", map),
            ("crates/low/Cargo.toml", &low),
            ("crates/lm-template/Cargo.toml", &template),
            ("crates/lm-processors/Cargo.toml", &processors),
        ]);
        assert_eq!(run(&tree).len(), 1);
    }
}

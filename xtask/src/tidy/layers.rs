//! A crate depends only on crates above it in the table of `docs/ARCHITECTURE.md` (the bottom layer is first).

use std::collections::HashMap;

use super::{Check, Finding};
use crate::tree::{Package, Tree};

pub(super) const CHECK: Check =
    Check { name: "layers", rule: "a crate depends only on crates above it in docs/ARCHITECTURE.md", run };

const TABLE: &str = "docs/ARCHITECTURE.md";

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

fn run(tree: &Tree) -> Vec<Finding> {
    let Some(layers) = tree.text(TABLE).and_then(read_table) else {
        return vec![Finding::error(TABLE, "no table of crates under a heading `## Layers`")];
    };
    let packages = tree.packages();
    let mut findings = Vec::new();
    for name in layers.keys().filter(|name| !packages.iter().any(|package| package.name == **name)) {
        findings.push(Finding::error(TABLE, format!("`{name}` is in the table and not in the workspace")));
    }
    for package in &packages {
        if package.is_published() && !layers.contains_key(package.name.as_str()) {
            findings.push(Finding::error(TABLE, format!("`{}` is missing from the table", package.name)));
        }
        findings.extend(upward_edges(package, &packages, &layers));
    }
    findings
}

/// Parses crate name → row. Crates in one cell share a layer.
fn read_table(text: &str) -> Option<HashMap<&str, usize>> {
    let section = text.split_once("\n## Layers\n")?.1;
    let section = section.split_once("\n## ").map_or(section, |(section, _)| section);
    let mut layers = HashMap::new();
    for (row, line) in section.lines().filter(|line| line.starts_with('|')).enumerate() {
        let cell = line.split('|').nth(1)?;
        layers.extend(cell.split('`').skip(1).step_by(2).map(|name| (name, row)));
    }
    (!layers.is_empty()).then_some(layers)
}

fn upward_edges(package: &Package, packages: &[Package], layers: &HashMap<&str, usize>) -> Vec<Finding> {
    let manifest = format!("{}/Cargo.toml", package.folder);
    // A package outside the table (benches, xtask) is above all layers: nothing may depend on it.
    let layer_of = |name: &str| layers.get(name).copied().unwrap_or(usize::MAX);
    let only = ONLY.iter().find(|(name, _)| *name == package.name).map(|(_, allowed)| *allowed);
    let mut findings = Vec::new();
    for table in ["dependencies", "build-dependencies", "dev-dependencies"] {
        for (key, value) in package.dependencies(table) {
            let name = value.get("package").and_then(toml::Value::as_str).unwrap_or(key);
            if name == package.name || !packages.iter().any(|other| other.name == name) {
                continue;
            }
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

    const MAP: &str = "# Map\n\n## Layers\n\n| crate | owns |\n|---|---|\n| `low` | a |\n| `high` (+ `high-macros`) | b |\n\n## Next\n| `other` |\n";

    fn package(name: &str, dependencies: &str) -> String {
        format!("[package]\nname = \"{name}\"\n{dependencies}")
    }

    fn check(low: &str, high: &str) -> Vec<String> {
        let files = [
            ("docs/ARCHITECTURE.md", MAP.to_owned()),
            ("crates/low/Cargo.toml", package("low", low)),
            ("crates/high/Cargo.toml", package("high", high)),
            ("crates/high-macros/Cargo.toml", package("high-macros", "")),
        ];
        let files: Vec<_> = files.iter().map(|(path, text)| (*path, text.as_str())).collect();
        run(&Tree::of(&files)).into_iter().map(|finding| finding.text).collect()
    }

    #[test]
    fn downward_and_same_row_edges_pass() {
        let found = check("", "[dependencies]\nlow.workspace = true\nhigh-macros.workspace = true");
        assert_eq!(found, Vec::<String>::new());
    }

    #[test]
    fn upward_edge_fails_in_every_table_and_alias() {
        for edge in [
            "[dependencies]\nhigh = { workspace = true }",
            "[dev-dependencies]\nhigh.workspace = true",
            "[build-dependencies]\nrenamed = { package = \"high\", path = \"../high\" }",
            "[target.'cfg(unix)'.dependencies]\nhigh.workspace = true",
        ] {
            assert_eq!(check(edge, "").len(), 1, "{edge}");
        }
    }

    #[test]
    fn missing_crate_and_missing_table_are_findings() {
        let extra = package("extra", "");
        let tree = Tree::of(&[("docs/ARCHITECTURE.md", MAP), ("crates/extra/Cargo.toml", &extra)]);
        assert_eq!(run(&tree).len(), 4, "three unknown rows and one crate without a row");
        assert_eq!(run(&Tree::of(&[])).len(), 1);
    }

    #[test]
    fn crate_with_closed_list_uses_no_other_workspace_crate() {
        let map = "\n## Layers\n| `low` |\n| `lm-template` |\n| `lm-processors` |\n";
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

//! A registry lists its folder: one `mod` line, one row in `const ALL`, in alphabetical order.

use std::collections::BTreeSet;

use super::{Check, Finding};
use crate::rust_source::code_only;
use crate::tree::Tree;

pub(super) const CHECK: Check = Check {
    name: "registries",
    rule: "each module of a registry folder has its row in `const ALL`, each architecture its golden folders and its line in docs/models.md",
    run,
};

/// A folder whose `mod.rs` lists its modules in `const ALL`.
struct Registry {
    folder: &'static str,
    /// Modules shared by the rows, without a row themselves.
    shared: &'static [&'static str],
}

const REGISTRIES: &[Registry] = &[
    Registry {
        folder: "crates/lm-kernels/src/ops",
        shared: &[
            "backend",
            "bias",
            "buffer_pool",
            "device",
            "host_tensor",
            "input_sums",
            "kv_pool",
            "states",
            "transfer",
            "weight",
        ],
    },
    Registry { folder: "crates/lm-model/src/architectures", shared: &[] },
    Registry { folder: "crates/lm-processors/src/families", shared: &["tagged"] },
    Registry { folder: "xtask/src/tidy", shared: &[] },
];

const ARCHITECTURES: &str = "crates/lm-model/src/architectures";
const GOLDENS: &str = "testdata/models";
const MODELS: &str = "docs/models.md";

fn run(tree: &Tree) -> Vec<Finding> {
    let mut findings: Vec<_> = REGISTRIES.iter().flat_map(|registry| compare(tree, registry)).collect();
    for (path, text) in tree.texts(".rs").filter(|(path, _)| path.starts_with(ARCHITECTURES)) {
        for name in names(text, "model_types") {
            if !tree.text(MODELS).is_some_and(|models| models.contains(&format!("| `{name}` |"))) {
                findings.push(Finding::error(path, format!("{MODELS} has no row for `{name}`")));
            }
        }
        for name in names(text, "goldens") {
            if !tree.exists(&format!("{GOLDENS}/{name}")) {
                findings
                    .push(Finding::error(path, format!("the golden folder {GOLDENS}/{name} does not exist")));
            }
        }
    }
    findings
}

/// Names listed as `key: &["…", …]` in an architecture's file.
fn names<'a>(text: &'a str, key: &str) -> Vec<&'a str> {
    let opening = format!("{key}: &[");
    let lists: Vec<_> = text.split(&opening).skip(1).filter_map(|rest| rest.split(']').next()).collect();
    lists.into_iter().flat_map(|list| list.split('"').skip(1).step_by(2)).collect()
}

fn compare(tree: &Tree, registry: &Registry) -> Vec<Finding> {
    let path = format!("{}/mod.rs", registry.folder);
    let Some(source) = tree.text(&path) else {
        return vec![Finding::error(&path, "the registry's mod.rs does not exist")];
    };
    let code = code_only(source);
    let Some(rows) = rows(&code) else {
        return vec![Finding::error(&path, "no `const ALL` beside the `mod` lines")];
    };
    let mut findings = Vec::new();
    let mods = mods(&code);
    for module in mods.iter().filter(|module| !registry.shared.contains(module)) {
        if !rows.contains(module) {
            findings.push(Finding::error(&path, format!("`mod {module}` has no row in `const ALL`")));
        }
    }
    for file in modules_on_disk(tree, registry.folder).iter().filter(|file| !mods.contains(&file.as_str())) {
        findings.push(Finding::error(&path, format!("`{file}` lies in the folder and has no `mod` line")));
    }
    if !rows.is_sorted() {
        findings.push(Finding::error(&path, "the rows of `const ALL` are not in alphabetical order"));
    }
    findings
}

/// Modules named in `const ALL…: … = &[…];`, in the order of its rows.
fn rows(code: &str) -> Option<Vec<&str>> {
    let body = code.split_once("const ALL")?.1.split_once('=')?.1;
    let body = body.trim_start().strip_prefix("&[")?.split_once("];")?.0;
    let row = |row: &'_ str| -> Option<(usize, usize)> {
        let start = row.find(|c: char| c.is_alphanumeric())?;
        Some((start, row[start..].find("::").map(|n| start + n)?))
    };
    Some(body.split(',').filter_map(|text| row(text).map(|(start, end)| &text[start..end])).collect())
}

fn mods(code: &str) -> Vec<&str> {
    let lines =
        code.lines().map(|line| line.trim_start_matches("pub(crate) ").trim_start_matches("pub(super) "));
    let lines = lines.map(|line| line.trim_start_matches("pub "));
    let names = lines.filter_map(|line| line.strip_prefix("mod ")?.strip_suffix(';'));
    names.filter(|name| *name != "tests").collect()
}

fn modules_on_disk(tree: &Tree, folder: &str) -> BTreeSet<String> {
    tree.below(folder)
        .filter_map(|path| match path.split_once('/') {
            Some((module, "mod.rs")) => Some(module),
            Some(_) => None,
            None => path.strip_suffix(".rs"),
        })
        .filter(|name| !matches!(*name, "mod" | "tests"))
        .map(str::to_owned)
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const GOOD: &str = "mod a;\nmod b;\npub(crate) mod core;\n\npub const ALL: &[&T] = &[\n    // why\n    &a::ROW,\n    &b::ROW,\n];\n";

    fn check(module: &str, files: &[&str]) -> Vec<String> {
        let paths: Vec<_> = files.iter().map(|file| format!("r/{file}")).collect();
        let mut files: Vec<_> = paths.iter().map(|path| (path.as_str(), "")).collect();
        files.push(("r/mod.rs", module));
        let registry = Registry { folder: "r", shared: &["core"] };
        compare(&Tree::of(&files), &registry).into_iter().map(|finding| finding.text).collect()
    }

    #[test]
    fn registry_matching_its_folder_passes() {
        assert_eq!(check(GOOD, &["a.rs", "b/mod.rs", "b/scalar.rs", "core.rs"]), Vec::<String>::new());
    }

    #[test]
    fn missing_row_missing_mod_and_wrong_order_are_found() {
        assert_eq!(check(&GOOD.replace("    &b::ROW,\n", ""), &[]), ["`mod b` has no row in `const ALL`"]);
        assert_eq!(check(GOOD, &["d.rs"]), ["`d` lies in the folder and has no `mod` line"]);
        let swapped =
            GOOD.replace("&a::ROW", "&x::ROW").replace("&b::ROW", "&a::ROW").replace("&x::ROW", "&b::ROW");
        assert_eq!(check(&swapped, &[]), ["the rows of `const ALL` are not in alphabetical order"]);
        assert_eq!(check("mod a;\n", &[]), ["no `const ALL` beside the `mod` lines"]);
    }

    #[test]
    fn missing_golden_folder_or_line_is_found() {
        let path = format!("{ARCHITECTURES}/llama.rs");
        let row = "Architecture { model_types: &[\"llama\"], goldens: &[\"llama-tiny\"] };";
        let golden = format!("{GOLDENS}/llama-tiny/config.json");
        let missing = |tree: &Tree| run(tree).iter().filter(|finding| finding.place == path).count();
        assert_eq!(missing(&Tree::of(&[(&path, row)])), 2);
        assert_eq!(missing(&Tree::of(&[(&path, row), (&golden, "{}")])), 1);
        let models = (MODELS, "| `llama` | Llama | |");
        assert_eq!(missing(&Tree::of(&[(&path, row), (&golden, "{}"), models])), 0);
    }
}

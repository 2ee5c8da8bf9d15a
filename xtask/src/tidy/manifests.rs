//! Manifests: registry metadata, shared lints, versions declared once, no `anyhow` in libraries.

use super::{Check, Finding};
use crate::tree::{Package, Tree};

pub(super) const CHECK: Check = Check {
    name: "manifests",
    rule: "crates have description, keywords, licence, shared lints and shared versions",
    run,
};

fn run(tree: &Tree) -> Vec<Finding> {
    let packages = tree.packages();
    packages
        .iter()
        .flat_map(|package| {
            let place = format!("{}/Cargo.toml", package.folder);
            problems(package, tree).into_iter().map(move |text| Finding::error(&place, text))
        })
        .collect()
}

fn problems(package: &Package, tree: &Tree) -> Vec<String> {
    let mut problems = Vec::new();
    if package.manifest.get("lints").and_then(|lints| lints.get("workspace")).is_none() {
        problems.push("[lints] does not say `workspace = true`".to_owned());
    }
    for key in ["description", "license"] {
        if package.field(key).is_none() {
            problems.push(format!("[package] has no `{key}`"));
        }
    }
    if package.is_published() {
        problems.extend(registry_problems(package, tree));
    }
    for table in ["dependencies", "build-dependencies", "dev-dependencies"] {
        for (name, value) in package.dependencies(table) {
            // A crate that tests itself with another feature depends on its own folder.
            if value.get("workspace").is_none() && name != package.name {
                problems.push(format!("[{table}] `{name}` does not take its version from the workspace"));
            }
        }
    }
    problems
}

/// Requirements of the package registry (at most five keywords), and of this workspace for libraries.
fn registry_problems(package: &Package, tree: &Tree) -> Vec<String> {
    let mut problems = Vec::new();
    let keywords = package.field("keywords").and_then(toml::Value::as_array).map_or(0, Vec::len);
    if !(1..=5).contains(&keywords) {
        problems.push(format!("[package] has {keywords} keywords, expected one to five"));
    }
    if package.field("readme").is_none() {
        problems.push("[package] has no `readme`".to_owned());
    }
    let is_library = tree.text(&format!("{}/src/lib.rs", package.folder)).is_some();
    if is_library && package.dependencies("dependencies").any(|(name, _)| name == "anyhow") {
        problems.push("a library returns typed errors: `anyhow` is for binaries and tests".to_owned());
    }
    problems
}

#[cfg(test)]
mod tests {
    use super::*;

    const GOOD: &str = "[package]\nname = \"a\"\ndescription = \"d\"\nlicense.workspace = true\nkeywords = [\"k\"]\nreadme = \"README.md\"\n[lints]\nworkspace = true\n[dependencies]\nserde.workspace = true\n";

    fn check(manifest: &str) -> usize {
        run(&Tree::of(&[("crates/a/Cargo.toml", manifest), ("crates/a/src/lib.rs", "")])).len()
    }

    #[test]
    fn complete_manifest_passes() {
        assert_eq!(check(GOOD), 0);
    }

    #[test]
    fn each_missing_field_is_one_finding() {
        for (piece, instead) in [
            ("description = \"d\"\n", ""),
            ("license.workspace = true\n", ""),
            ("keywords = [\"k\"]\n", ""),
            ("readme = \"README.md\"\n", ""),
            ("[lints]\nworkspace = true\n", ""),
            ("serde.workspace = true", "serde = \"1\""),
            ("serde.workspace = true", "anyhow.workspace = true"),
        ] {
            assert_eq!(check(&GOOD.replace(piece, instead)), 1, "without {piece:?}");
        }
    }
}

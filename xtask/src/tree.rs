//! The repository for the checks: every file that git tracks or would add, by its path from the root.

use std::collections::BTreeMap;
use std::process::Command;

use anyhow::{Context, Result};

use crate::process;

/// Maps paths from the root, with `/`, to the file's text; `None` for a file that is not UTF-8.
pub struct Tree {
    files: BTreeMap<String, Option<String>>,
}

/// A package of the workspace.
pub struct Package {
    pub name: String,
    /// The package's folder from the root, without a trailing `/`.
    pub folder: String,
    pub manifest: toml::Table,
}

impl Tree {
    /// Reads the checkout: tracked files and new ones that are not ignored.
    pub fn read() -> Result<Self> {
        let mut git = Command::new("git");
        git.args(["ls-files", "-z", "--cached", "--others", "--exclude-standard"])
            .current_dir(process::root());
        let listing = process::output(&mut git).context("the checks read the file list from git")?;
        let mut files = BTreeMap::new();
        for path in listing.split('\0').filter(|path| !path.is_empty()) {
            // A file deleted but not yet committed is still listed.
            if let Ok(bytes) = std::fs::read(process::root().join(path)) {
                files.insert(path.to_owned(), String::from_utf8(bytes).ok());
            }
        }
        Ok(Self { files })
    }

    /// Creates a tree of given files, for the tests of the checks.
    #[cfg(test)]
    pub fn of(files: &[(&str, &str)]) -> Self {
        let files = files.iter().map(|&(path, text)| (path.to_owned(), Some(text.to_owned()))).collect();
        Self { files }
    }

    pub fn text(&self, path: &str) -> Option<&str> {
        self.files.get(path)?.as_deref()
    }

    /// Returns true if `path` is a file, or a folder with a file below it; the root is a folder.
    pub fn exists(&self, path: &str) -> bool {
        self.files.contains_key(path) || path.is_empty() || self.below(path).next().is_some()
    }

    /// Text files whose names end in `suffix`, in path order.
    pub fn texts<'a>(&'a self, suffix: &'a str) -> impl Iterator<Item = (&'a str, &'a str)> {
        self.files
            .iter()
            .filter(move |(path, _)| path.ends_with(suffix))
            .filter_map(|(path, text)| Some((path.as_str(), text.as_deref()?)))
    }

    /// Files below a folder, recursively, as paths from that folder.
    pub fn below<'a>(&'a self, folder: &str) -> impl Iterator<Item = &'a str> {
        let prefix = format!("{folder}/");
        self.files.keys().filter_map(move |path| path.strip_prefix(&prefix))
    }

    /// The packages of the workspace; invalid TOML is left to cargo, and a manifest that is a workspace of
    /// its own is skipped.
    pub fn packages(&self) -> Vec<Package> {
        self.texts("/Cargo.toml")
            .filter_map(|(path, text)| {
                let manifest: toml::Table =
                    text.parse().ok().filter(|table: &toml::Table| !table.contains_key("workspace"))?;
                let name = manifest.get("package")?.get("name")?.as_str()?.to_owned();
                Some(Package { name, folder: path.strip_suffix("/Cargo.toml")?.to_owned(), manifest })
            })
            .collect()
    }
}

impl Package {
    /// A value of the manifest's `[package]` table.
    pub fn field(&self, key: &str) -> Option<&toml::Value> {
        self.manifest.get("package")?.get(key)
    }

    /// Returns true if the package may be published.
    pub fn is_published(&self) -> bool {
        self.field("publish").and_then(toml::Value::as_bool) != Some(false)
    }

    /// Returns true if each file and folder of `tests/` is a test target, cargo's default; false if the
    /// manifest lists them.
    pub fn finds_tests(&self) -> bool {
        self.field("autotests").and_then(toml::Value::as_bool) != Some(false)
    }

    /// Path of the crate root, `src/lib.rs` before `src/main.rs`.
    pub fn crate_root(&self, tree: &Tree) -> Option<String> {
        ["src/lib.rs", "src/main.rs"]
            .map(|file| format!("{}/{file}", self.folder))
            .into_iter()
            .find(|path| tree.text(path).is_some())
    }

    /// Dependency tables of this name, including those of targets: dependency key and its value.
    pub fn dependencies<'a>(&'a self, table: &'a str) -> impl Iterator<Item = (&'a str, &'a toml::Value)> {
        let own = self.manifest.get(table);
        let targets = self.manifest.get("target").and_then(toml::Value::as_table).into_iter().flatten();
        let of_targets = targets.filter_map(move |(_, target)| target.get(table));
        own.into_iter()
            .chain(of_targets)
            .filter_map(toml::Value::as_table)
            .flatten()
            .map(|(key, value)| (key.as_str(), value))
    }
}

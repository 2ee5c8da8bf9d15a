//! `cargo xtask devices`: runs the tests that loop over the compiled devices, with all portable devices compiled in.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;

use anyhow::{Result, bail};

use crate::process;
use crate::tree::Tree;

/// Packages with such tests, and the features that compile in every portable device: lm-tools forwards them down to the kernels, so that all
/// tests are of one build.
const PACKAGES: &[&str] = &["lm-kernels", "lm-model", "lm-tools"];
const FEATURES: &str = "lm-tools/ndarray,lm-tools/wgpu";

/// Texts of a test that loops over devices.
const LOOPS: &[&str] = &["Device::available()", "for_each_device("];

/// Folder of code that test targets share.
const SHARED: &str = "common";

#[derive(clap::Args)]
pub struct Args {
    /// Arguments of the test programs, such as `--show-output`
    #[arg(last = true)]
    arguments: Vec<String>,
}

pub fn run(args: &Args) -> Result<()> {
    let tree = Tree::read()?;
    let targets = targets(&tree)?;
    let mut command = process::cargo(&["test", "--features", FEATURES, "--lib"]);
    command.args(PACKAGES.iter().flat_map(|package| ["--package", package]));
    command.args(targets.iter().flat_map(|target| ["--test", target]));
    process::run(command.arg("--").args(&args.arguments))
}

/// Names of the test targets that loop over devices, in alphabetical order.
///
/// # Errors
/// A test outside [`PACKAGES`] that does, and two targets of one name, which cargo could not tell apart.
fn targets(tree: &Tree) -> Result<Vec<&str>> {
    let mut packages = BTreeMap::new();
    for (path, text) in tree.texts(".rs") {
        let Some((package, target)) = test_target(path) else { continue };
        if target == SHARED || !LOOPS.iter().any(|found| text.contains(found)) {
            continue;
        }
        if !PACKAGES.contains(&package) {
            bail!(
                "{path} loops over devices, and {package} is not among the packages of `cargo xtask devices`"
            );
        }
        match packages.entry(target) {
            Entry::Vacant(entry) => _ = entry.insert(package),
            Entry::Occupied(entry) if *entry.get() == package => {}
            Entry::Occupied(entry) => bail!("{} and {package} both have a test `{target}`", entry.get()),
        }
    }
    Ok(packages.into_keys().collect())
}

/// The package and the test target of a file: `crates/lm-model/tests/vision/main.rs` is part of `vision`.
fn test_target(path: &str) -> Option<(&str, &str)> {
    let (package, file) = path.strip_prefix("crates/")?.split_once('/')?;
    let file = file.strip_prefix("tests/")?;
    let target = file.split_once('/').map_or(file, |(folder, _)| folder);
    Some((package, target.strip_suffix(".rs").unwrap_or(target)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn targets_are_found_by_their_loops() {
        let tree = Tree::of(&[
            ("crates/lm-model/tests/common/mod.rs", "fn for_each_device(test: impl Fn(Device)) {"),
            ("crates/lm-model/tests/forward.rs", "for_each_device(|device| {});"),
            ("crates/lm-model/tests/goldens/tiny.rs", "for device in Device::available() {"),
            ("crates/lm-model/tests/goldens/main.rs", "mod tiny;"),
            ("crates/lm-model/tests/memory.rs", "Device::Cpu"),
            // Part of the library.
            ("crates/lm-model/src/ops/tests/all.rs", "for_each_device(|device| {});"),
        ]);
        assert_eq!(targets(&tree).unwrap(), ["forward", "goldens"]);
    }

    #[test]
    fn a_test_that_would_not_run_is_an_error() {
        let elsewhere = Tree::of(&[("crates/lm-api/tests/a.rs", "for_each_device(|_| {});")]);
        assert!(targets(&elsewhere).unwrap_err().to_string().contains("lm-api"));
        let twice = Tree::of(&[
            ("crates/lm-model/tests/a.rs", "for_each_device(|_| {});"),
            ("crates/lm-tools/tests/a.rs", "for_each_device(|_| {});"),
        ]);
        assert!(targets(&twice).unwrap_err().to_string().contains("both have a test `a`"));
    }

    #[test]
    fn the_repository_has_such_tests() {
        let tree = Tree::read().unwrap();
        assert!(targets(&tree).unwrap().contains(&"goldens"));
    }
}

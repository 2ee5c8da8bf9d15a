//! Checks that crates below the tensor library do not depend on it.

use anyhow::{Result, bail};

use super::{Args, Outcome};
use crate::process::{self, cargo};

const CRATES: &[&str] = &[
    "lm-formats",
    "lm-jinja",
    "lm-template",
    "lm-tokenizer",
    "lm-processors",
    "lm-media",
    "lm-documents",
    "lm-markdown",
    "lm-hub",
];

pub fn run(_: &Args) -> Result<Outcome> {
    for name in CRATES {
        let tree = ["tree", "--package", name, "--edges", "normal", "--prefix", "none"];
        if let Some(dependency) = burn(&process::output(&mut cargo(&tree))?) {
            bail!("{name} depends on {dependency}");
        }
    }
    Ok(Outcome::Passed)
}

/// Returns the first package of burn in a list of dependencies.
fn burn(tree: &str) -> Option<&str> {
    tree.lines().find(|line| line.starts_with("burn"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn burn_packages_are_found_by_name() {
        assert_eq!(
            burn("lm-formats v0.1.0\nserde v1.0.0\nburn-tensor v0.22.1\n"),
            Some("burn-tensor v0.22.1")
        );
        assert_eq!(burn("lm-formats v0.1.0\nlm-kernels v0.1.0\n"), None);
    }
}

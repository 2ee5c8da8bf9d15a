//! Checks that the publishable crates can be packaged together, with the required files.

use anyhow::{Result, bail};

use super::{Args, Outcome};
use crate::process::{self, cargo};
use crate::tree::Tree;

const REQUIRED: &[&str] = &["Cargo.toml", "README.md"];

pub fn run(_: &Args) -> Result<Outcome> {
    let packages = Tree::read()?.packages();
    let published: Vec<_> = packages.iter().filter(|package| package.is_published()).collect();
    for package in &published {
        let listing =
            process::output(&mut cargo(&["package", "--list", "--allow-dirty", "--package", &package.name]))?;
        let files: Vec<&str> = listing.lines().collect();
        if let Some(missing) = REQUIRED.iter().find(|file| !files.contains(file)) {
            bail!("the package {} would lack {missing}", package.name);
        }
        eprintln!("{}: {} files", package.name, files.len());
    }
    // All at once, so that each finds the others, which no registry has yet.
    let mut package = cargo(&["package", "--quiet", "--no-verify", "--allow-dirty"]);
    package.args(published.iter().flat_map(|package| ["--package", &package.name]));
    process::run(&mut package)?;
    Ok(Outcome::Passed)
}

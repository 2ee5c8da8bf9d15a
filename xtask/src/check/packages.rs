//! Checks that each publishable crate can be packaged with the required files.

use anyhow::{Result, bail};

use super::Outcome;
use crate::process::{self, cargo};
use crate::tree::Tree;

const REQUIRED: &[&str] = &["Cargo.toml", "README.md"];

pub fn run() -> Result<Outcome> {
    for package in Tree::read()?.packages().iter().filter(|package| package.is_published()) {
        let listing =
            process::output(&mut cargo(&["package", "--list", "--allow-dirty", "--package", &package.name]))?;
        let files: Vec<&str> = listing.lines().collect();
        if let Some(missing) = REQUIRED.iter().find(|file| !files.contains(file)) {
            bail!("the package {} would lack {missing}", package.name);
        }
        eprintln!("{}: {} files", package.name, files.len());
    }
    Ok(Outcome::Passed)
}

//! `cargo xtask fuzz`: runs every fuzz target for a while, on the corpus of earlier runs and the committed
//! seeds.

use std::path::Path;
use std::process::Stdio;

use anyhow::{Context, Result, bail};

use crate::process;

#[derive(clap::Args)]
pub struct Args {
    /// Seconds that each target runs
    #[arg(long, default_value_t = 60)]
    seconds: u32,
    /// Run only these targets [default: all in `fuzz/fuzz_targets`]
    targets: Vec<String>,
}

pub fn run(args: &Args) -> Result<()> {
    let installed =
        process::cargo(&["fuzz", "--version"]).stdout(Stdio::null()).stderr(Stdio::null()).status()?;
    if !installed.success() {
        bail!("`cargo fuzz` is missing: `cargo install cargo-fuzz` brings it");
    }
    let folder = process::root().join("fuzz");
    let targets = if args.targets.is_empty() { all_targets(&folder)? } else { args.targets.clone() };
    for target in targets {
        let (corpus, seeds) = (format!("corpus/{target}"), format!("seeds/{target}"));
        std::fs::create_dir_all(folder.join(&corpus))?;
        std::fs::create_dir_all(folder.join(&seeds))?;
        let limit = format!("-max_total_time={}", args.seconds);
        // No sanitizer: they need a nightly compiler, and the crates under test have no unsafe code.
        let arguments = ["fuzz", "run", "--sanitizer", "none", &target, &corpus, &seeds, "--"];
        let limits = [limit.as_str(), "-timeout=30", "-rss_limit_mb=4096", "-print_final_stats=1"];
        process::run(process::cargo(&arguments).args(limits).current_dir(&folder))
            .with_context(|| format!("{target}: the input that failed is in fuzz/artifacts/{target}"))?;
    }
    Ok(())
}

/// Names of the targets: one file each.
fn all_targets(folder: &Path) -> Result<Vec<String>> {
    let mut names = Vec::new();
    for entry in std::fs::read_dir(folder.join("fuzz_targets"))? {
        let path = entry?.path();
        if let Some(name) = path.file_stem().filter(|_| path.extension().is_some_and(|end| end == "rs")) {
            names.push(name.to_string_lossy().into_owned());
        }
    }
    names.sort();
    Ok(names)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_target_is_declared() {
        let folder = process::root().join("fuzz");
        let manifest = std::fs::read_to_string(folder.join("Cargo.toml")).unwrap();
        let targets = all_targets(&folder).unwrap();
        assert!(!targets.is_empty());
        for target in targets {
            assert!(manifest.contains(&format!("path = \"fuzz_targets/{target}.rs\"")), "{target}");
        }
    }
}

//! `cargo xtask golden`: compares the committed goldens with our output, or regenerates the reference data of
//! the tests with the implementations that it comes from.

mod media;
mod models;
mod regenerate;
mod scripts;

use anyhow::{Result, bail};
use clap::builder::PossibleValuesParser;

use crate::test_programs::{self, INTEGRATION};

/// Integration tests that compare goldens with our output.
struct Comparison {
    package: &'static str,
    /// Filter of the tests' names.
    filter: &'static str,
}

/// The comparisons, in the order of the layers.
const COMPARISONS: &[Comparison] = &[
    Comparison { package: "lm-model", filter: "goldens::" },
    Comparison { package: "lm-template", filter: "pocket::" },
    Comparison { package: "lm-conversation", filter: "pocket::" },
];

/// Chat templates of the shared reference data (`LM_SHARED`), which are not in the repository.
const TEMPLATES: &[Comparison] = &[Comparison { package: "lm-template", filter: "templates::" }];

const EXAMPLES: &str = "\
Examples:
  cargo xtask golden --check
  cargo xtask golden --check --models
  python3 -m venv target/golden/venv
  target/golden/venv/bin/pip install $(cargo xtask golden --packages --only ggml,tools)
  PYTHON=target/golden/venv/bin/python cargo xtask golden --regenerate --only ggml,tools";

#[derive(clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Args {
    /// Compare the committed goldens with our output (in Rust, without Python)
    #[arg(long, required_unless_present_any = ["regenerate", "packages"])]
    check: bool,
    /// Run the scripts that generate reference data, and print which files then differ from the commit.
    /// Variables: `PYTHON`, the interpreter [default: python3]; `LM_SHARED`, the shared reference data
    /// [default: ../shared]; `LLAMA_CPP`, a folder with llama.cpp's converter [default: downloaded with pip]
    #[arg(long, conflicts_with = "check")]
    regenerate: bool,
    /// Print the Python packages of the scripts, as arguments of `pip install`
    #[arg(long, conflicts_with_all = ["check", "regenerate"])]
    packages: bool,
    /// Names of scripts, separated by commas [default: all]
    #[arg(long, value_name = "NAME", value_delimiter = ',', conflicts_with = "check", value_parser = PossibleValuesParser::new(regenerate::names()))]
    only: Vec<String>,
    /// Compare the renderings of the shared reference templates instead, and print a table
    #[arg(long, requires = "check", conflicts_with = "regenerate")]
    templates: bool,
    /// Compare only the tiny checkpoints of every architecture, and print a table (with `--features ndarray`
    /// unless others are named)
    #[arg(long, requires = "check", conflicts_with_all = ["regenerate", "templates"])]
    models: bool,
    /// Compare only images and audio, stage by stage from files to tokens, and print a table
    #[arg(long, requires = "check", conflicts_with_all = ["regenerate", "templates", "models"])]
    media: bool,
    /// Features of the crates under test, such as `lm-tools/ndarray,lm-tools/wgpu`, for more devices
    #[arg(long, requires = "check", conflicts_with = "regenerate")]
    features: Option<String>,
}

pub fn run(args: &Args) -> Result<()> {
    match args {
        Args { regenerate: true, only, .. } => regenerate::run(only),
        Args { packages: true, only, .. } => {
            regenerate::print_packages(only);
            Ok(())
        }
        Args { templates: true, .. } => check(TEMPLATES, ""),
        Args { media: true, .. } => media::check(),
        Args { models: true, features, .. } => models::check(features.as_deref().unwrap_or("ndarray")),
        Args { features, .. } => check(COMPARISONS, features.as_deref().unwrap_or_default()),
    }
}

/// Runs every comparison; one that is skipped for lack of a file or a device is a failure.
fn check(comparisons: &[Comparison], features: &str) -> Result<()> {
    let wanted: Vec<_> = comparisons.iter().map(|comparison| (comparison.package, INTEGRATION)).collect();
    for (Comparison { package, filter }, program) in
        comparisons.iter().zip(test_programs::build(features, &wanted)?)
    {
        let output = program.command().args([filter, "--nocapture"]).output()?;
        let printed = String::from_utf8_lossy(&output.stdout);
        print!("{printed}");
        if !output.status.success() {
            bail!("the goldens of {package} do not match:\n{}", String::from_utf8_lossy(&output.stderr));
        }
        if printed.contains("running 0 tests") {
            bail!("{package} has no test `{filter}`");
        }
        if let Some(line) = skipped(&printed) {
            bail!("a comparison of {package} was skipped: {line}");
        }
    }
    Ok(())
}

/// First line in which a test reports a skip.
fn skipped(printed: &str) -> Option<&str> {
    printed.lines().find(|line| line.contains("skipped: "))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn skip_is_found_anywhere_in_a_line() {
        assert_eq!(
            skipped("running 2 tests\ntest a ... skipped: gpu: no adapter\nok\n"),
            Some("test a ... skipped: gpu: no adapter")
        );
        assert_eq!(skipped("test result: ok. 1 passed\n"), None);
    }
}

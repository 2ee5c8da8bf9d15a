//! `cargo xtask golden`: compares the committed goldens with our output, or regenerates them with the reference
//! implementation.

mod media;
mod models;

use std::process::Command;

use anyhow::{Result, bail};

use crate::process;
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

/// Scripts that generate goldens: folder and command line, run with Python.
const SCRIPTS: &[(&str, &[&str])] = &[
    ("testdata/models", &["generate.py"]),
    ("testdata/imatrix", &["generate.py"]),
    ("testdata/media", &["generate.py"]),
    ("testdata/media/pillow", &["generate.py"]),
    ("testdata/sound", &["generate.py"]),
    ("testdata/sound/headers", &["generate.py"]),
    ("testdata/vision", &["generate.py"]),
    ("testdata/audio", &["generate.py"]),
    ("testdata/templates", &["generate.py"]),
    ("testdata/templates", &["generate_jinja.py"]),
    ("testdata/tools", &["generate.py"]),
    ("models/pocket/recipe", &["evaluate.py", "--write", "../eval"]),
];

#[derive(clap::Args)]
pub struct Args {
    /// Compare the committed goldens with our output (in Rust, without Python)
    #[arg(long, required_unless_present = "regenerate")]
    check: bool,
    /// Regenerate the goldens with transformers (models/pocket/recipe/requirements.txt; `PYTHON` names the interpreter)
    #[arg(long, conflicts_with = "check")]
    regenerate: bool,
    /// Compare the renderings of the shared reference templates instead, and print a table
    #[arg(long, requires = "check", conflicts_with = "regenerate")]
    templates: bool,
    /// Compare only the tiny checkpoints of every architecture, and print a table (with `--features ndarray` unless
    /// others are named)
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
        Args { regenerate: true, .. } => regenerate(),
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

fn regenerate() -> Result<()> {
    let python = std::env::var_os("PYTHON").unwrap_or_else(|| "python3".into());
    for (folder, arguments) in SCRIPTS {
        process::run(Command::new(&python).args(*arguments).current_dir(process::root().join(folder)))?;
    }
    Ok(())
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

    #[test]
    fn every_script_is_there() {
        for (folder, arguments) in SCRIPTS {
            assert!(process::root().join(folder).join(arguments[0]).exists(), "{folder}/{}", arguments[0]);
        }
    }
}

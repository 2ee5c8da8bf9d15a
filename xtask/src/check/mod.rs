//! `cargo xtask check`: named steps that must pass before a change lands.

mod burn_free;
mod licences;
mod packages;

use std::process::Command;
use std::time::{Duration, Instant};

use anyhow::{Result, bail};

use crate::cpu_paths;
use crate::process::{self, cargo};
use crate::test_programs::{self, INTEGRATION, TestProgram};

const ALL: &[Step] = &[
    Step { name: "fmt", run: fmt },
    Step { name: "clippy", run: clippy },
    Step { name: "docs", run: docs },
    Step { name: "burn-free", run: burn_free::run },
    Step { name: "features", run: features },
    Step { name: "cpu-paths", run: cpu_paths },
    Step { name: "licences", run: licences::run },
    Step { name: "deny", run: deny },
    Step { name: "packages", run: packages::run },
];

/// Tests that run on each CPU path, with filters of their names; the first of them is the library with the
/// probe for supported paths.
const CPU_TESTS: &[(&str, &str, &[&str])] = &[
    ("lm-kernels", "lm_kernels", &[]),
    ("lm-kernels", INTEGRATION, &["conformance::", "--skip", "ndarray_conforms", "--skip", "gpu_conforms"]),
    ("lm-model", "lm_model", &[]),
    // Without the tests that run the reference models again, in three quarters of the time.
    (
        "lm-model",
        INTEGRATION,
        &[
            "forward::",
            "goldens::",
            "--skip",
            "decode_logits_equal_prefill",
            "--skip",
            "documented_turns_equal",
            "--skip",
            "greedy_tokens_equal",
        ],
    ),
];

struct Step {
    name: &'static str,
    run: fn(&Args) -> Result<Outcome>,
}

/// Result of a step that did not fail.
enum Outcome {
    Passed,
    /// Skipped, with the reason.
    Skipped(&'static str),
}

/// Feature sets that must compile beside the default one, which clippy's step compiles, from the kernels
/// alone up to the binary. Devices are features of lm-kernels' code only; other crates pass them on.
///
/// `vulkan` and `metal` are omitted: they only select a shader compiler, and take many times longer to build.
const FEATURE_SETS: &[&[&str]] = &[
    &["--package", "lm-kernels", "--no-default-features"],
    &["--package", "lm-kernels", "--features", "ndarray"],
    &["--package", "lm-kernels", "--features", "wgpu"],
    &["--package", "lm-tokenizer"],
    &["--package", "lm-cli", "--no-default-features"],
];

#[derive(clap::Args)]
pub struct Args {
    /// Run only these steps [default: all]
    names: Vec<String>,
    /// Features of the last `cargo test --workspace`, whose test programs run on the CPU paths, and whose
    /// devices need not be compiled again
    #[arg(long, default_value = "")]
    features: String,
}

pub fn run(args: &Args) -> Result<()> {
    if let Some(unknown) = args.names.iter().find(|name| !ALL.iter().any(|step| step.name == **name)) {
        let known: Vec<_> = ALL.iter().map(|step| step.name).collect();
        bail!("no step is named `{unknown}`; known: {}", known.join(", "));
    }
    let mut summary = Vec::new();
    for step in ALL.iter().filter(|step| args.names.is_empty() || args.names.iter().any(|n| n == step.name)) {
        eprintln!("== {}", step.name);
        let start = Instant::now();
        let result = (step.run)(args);
        if let Err(error) = &result {
            eprintln!("error: {error:#}");
        }
        summary.push((step.name, result, start.elapsed()));
    }
    print_summary(&summary)
}

fn print_summary(summary: &[(&str, Result<Outcome>, Duration)]) -> Result<()> {
    println!();
    for (name, result, time) in summary {
        let outcome = match result {
            Ok(Outcome::Passed) => "ok".to_owned(),
            Ok(Outcome::Skipped(reason)) => format!("skipped: {reason}"),
            Err(_) => "FAILED".to_owned(),
        };
        println!("{name:10} {:6.1} s  {outcome}", time.as_secs_f64());
    }
    let failed: Vec<_> =
        summary.iter().filter(|(_, result, _)| result.is_err()).map(|(name, ..)| *name).collect();
    if !failed.is_empty() {
        bail!("failed: {}", failed.join(", "));
    }
    Ok(())
}

fn passed(command: &mut Command) -> Result<Outcome> {
    process::run(command).map(|()| Outcome::Passed)
}

fn fmt(_: &Args) -> Result<Outcome> {
    process::run(&mut cargo(&["fmt", "--all", "--check"]))?;
    // A separate workspace.
    passed(&mut cargo(&["fmt", "--manifest-path", "fuzz/Cargo.toml", "--check"]))
}

fn clippy(_: &Args) -> Result<Outcome> {
    passed(&mut cargo(&["clippy", "--workspace", "--all-targets", "--quiet", "--", "-D", "warnings"]))
}

fn docs(_: &Args) -> Result<Outcome> {
    // With examples, the libraries have the features that they have for clippy's step, and are not compiled
    // again.
    let targets = ["--lib", "--bins", "--examples"];
    let mut docs = cargo(&["doc", "--workspace", "--no-deps", "--quiet"]);
    passed(docs.args(targets).env("RUSTDOCFLAGS", "-D warnings"))
}

fn features(args: &Args) -> Result<Outcome> {
    let is_tested =
        |device: &str| args.features.split(',').any(|feature| feature.ends_with(&format!("/{device}")));
    for set in FEATURE_SETS {
        if let Some(device) = set.last().filter(|device| is_tested(device)) {
            println!("skipped: clippy with {device}: the tests are compiled with it");
            continue;
        }
        // clippy, not check: its warnings are errors without flags that would rebuild all dependencies.
        process::run(cargo(&["clippy", "--quiet"]).args(*set).args(["--", "-D", "warnings"]))?;
    }
    Ok(Outcome::Passed)
}

/// Runs the kernels' tests, and the goldens through them, on each CPU path of this machine but its own, on
/// which `cargo test` runs them.
fn cpu_paths(args: &Args) -> Result<Outcome> {
    let wanted: Vec<_> = CPU_TESTS.iter().map(|(package, target, _)| (*package, *target)).collect();
    let programs = test_programs::build(&args.features, &wanted)?;
    let quiet = |(program, (.., filters)): (&TestProgram, &(&str, &str, &[&str]))| {
        let mut tests = program.command();
        // Other devices do not run the kernels of a CPU path.
        tests.arg("--quiet").args(*filters).env("LM_TEST_DEVICES", "cpu");
        tests
    };
    let tests = || programs.iter().zip(CPU_TESTS).map(quiet).collect();
    let paths = cpu_paths::supported("tests", || programs[0].command())?;
    let Some((own, narrower)) = paths.split_last() else { return Ok(Outcome::Skipped("no CPU path")) };
    println!("skipped: tests, LM_CPU={own}: the processor's own path, on which `cargo test` runs them");
    cpu_paths::run("tests", narrower, tests)?;
    Ok(Outcome::Passed)
}

/// Checks licences, bans and sources with `deny.toml`; advisories only if their database is on the machine.
fn deny(_: &Args) -> Result<Outcome> {
    let installed = cargo(&["deny", "--version"]).output().is_ok_and(|output| output.status.success());
    if !installed {
        return Ok(Outcome::Skipped("cargo-deny is not installed"));
    }
    process::run(&mut cargo(&["deny", "--offline", "check", "licenses", "bans", "sources"]))?;
    let home = std::env::var_os("CARGO_HOME").map(std::path::PathBuf::from);
    let home = home.or_else(|| std::env::home_dir().map(|home| home.join(".cargo")));
    if !home.is_some_and(|home| home.join("advisory-dbs").is_dir()) {
        eprintln!("skipped: advisories, their database is not on this machine (`cargo deny fetch`)");
        return Ok(Outcome::Passed);
    }
    passed(&mut cargo(&["deny", "--offline", "check", "advisories"]))
}

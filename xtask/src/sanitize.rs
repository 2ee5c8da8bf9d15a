//! `cargo xtask sanitize`: runs the tests of the kernels under memory checkers, on each CPU path.

use std::path::Path;
use std::process::{Command, Stdio};

use anyhow::{Result, bail};

use crate::cpu_paths;
use crate::process::{self, cargo};

const TARGET: &str = "x86_64-unknown-linux-gnu";

const ALL: &[&Tool] = &[&ADDRESS, &VALGRIND];

struct Tool {
    name: &'static str,
    /// Returns the reason why the tool cannot run here, if any.
    unavailable: fn() -> Result<Option<String>>,
    /// Environment variables of `cargo test`.
    environment: &'static [(&'static str, &'static str)],
    /// Arguments of `cargo test`, for a separate build.
    arguments: &'static [&'static str],
    /// Tests to skip, with the reason.
    skipped: &'static [(&'static str, &'static str)],
}

/// Runs all tests. The standard library is not instrumented: errors inside it are not detected.
const ADDRESS: Tool = Tool {
    name: "address",
    unavailable: no_runtime,
    environment: &[
        // The pinned compiler has the sanitizer; the flag is only reserved for nightly compilers.
        ("RUSTC_BOOTSTRAP", "1"),
        ("RUSTFLAGS", "-Zsanitizer=address"),
        // A test requests more memory than there is and expects a failed allocation.
        ("ASAN_OPTIONS", "allocator_may_return_null=1"),
    ],
    arguments: &["--target", TARGET, "--target-dir", "target/sanitize"],
    skipped: &[],
};

/// Detects uninitialised reads too. Its emulated CPU supports at most AVX2, which also limits tests that
/// iterate over all paths.
const VALGRIND: Tool = Tool {
    name: "valgrind",
    unavailable: no_valgrind,
    environment: &[(
        "CARGO_TARGET_X86_64_UNKNOWN_LINUX_GNU_RUNNER",
        "valgrind --quiet --error-exitcode=1 --fair-sched=yes",
    )],
    arguments: &[],
    skipped: &[
        ("context_of_several_chunks_matches_the_reference", "it takes minutes"),
        ("random_ragged_batches_match_the_reference", "it takes half a minute"),
        ("row_does_not_depend_on_its_batch", "it takes half a minute"),
    ],
};

#[derive(clap::Args)]
pub struct Args {
    /// Run only these tools (address, valgrind) [default: all]
    names: Vec<String>,
}

pub fn run(args: &Args) -> Result<()> {
    if let Some(unknown) = args.names.iter().find(|name| !ALL.iter().any(|tool| tool.name == **name)) {
        let known: Vec<_> = ALL.iter().map(|tool| tool.name).collect();
        bail!("no tool is named `{unknown}`; known: {}", known.join(", "));
    }
    for tool in ALL.iter().filter(|tool| args.names.is_empty() || args.names.iter().any(|n| n == tool.name)) {
        match (tool.unavailable)()? {
            Some(reason) => println!("skipped: {}: {reason}", tool.name),
            None => tool.run()?,
        }
    }
    Ok(())
}

impl Tool {
    fn run(&self) -> Result<()> {
        for (test, reason) in self.skipped {
            println!("skipped: {}, {test}: {reason}", self.name);
        }
        process::run(self.library().arg("--no-run"))?;
        let library = || {
            let mut tests = self.library();
            tests.arg("--");
            tests
        };
        let paths = cpu_paths::supported(self.name, library)?;
        cpu_paths::run(self.name, &paths, || {
            let mut tests = library();
            self.skipped.iter().for_each(|(test, _)| _ = tests.args(["--skip", test]));
            vec![tests]
        })
    }

    /// Tests of lm-kernels without burn: all `unsafe` code.
    fn library(&self) -> Command {
        let mut command =
            cargo(&["test", "--quiet", "--package", "lm-kernels", "--no-default-features", "--lib"]);
        command.args(self.arguments).envs(self.environment.iter().copied());
        command
    }
}

fn no_runtime() -> Result<Option<String>> {
    if let Some(reason) = other_target() {
        return Ok(Some(reason));
    }
    let rustc = std::env::var_os("RUSTC").unwrap_or_else(|| "rustc".into());
    let mut folder = Command::new(rustc);
    folder.args(["--print", "target-libdir", "--target", TARGET]).current_dir(process::root());
    let folder = process::output(&mut folder)?;
    let files = std::fs::read_dir(Path::new(folder.trim()))?;
    let names = files.filter_map(|file| Some(file.ok()?.file_name().to_string_lossy().into_owned()));
    let found = names.into_iter().any(|name| name.ends_with("rt.asan.a"));
    Ok((!found).then(|| "this compiler comes without the run time of AddressSanitizer".to_owned()))
}

fn no_valgrind() -> Result<Option<String>> {
    let mut version = Command::new("valgrind");
    let started =
        version.arg("--version").stdout(Stdio::null()).status().is_ok_and(|status| status.success());
    Ok(other_target().or_else(|| (!started).then(|| "it is not installed".to_owned())))
}

fn other_target() -> Option<String> {
    let here = cfg!(all(target_arch = "x86_64", target_os = "linux", target_env = "gnu"));
    (!here).then(|| format!("it is set up for {TARGET}"))
}

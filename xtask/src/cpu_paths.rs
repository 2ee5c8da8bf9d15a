//! Runs tests once on each CPU path that the processor supports.

use std::process::Command;
use std::time::Instant;

use anyhow::{Result, bail};

use crate::process;

/// Values of `LM_CPU` on this architecture, narrowest first.
const ALL: &[&str] = if cfg!(target_arch = "aarch64") {
    &["scalar", "neon", "dotprod", "i8mm"]
} else {
    &["scalar", "avx2", "avxvnni", "avx512", "amx"]
};

/// Test of lm-kernels' library that fails if `LM_CPU` requests a path that the processor lacks.
const PROBE: &str = "host::cpu::tests::environment_variable_is_applied";

/// Returns the paths that the processor supports, narrowest first, and prints the skipped ones. The last one
/// runs without `LM_CPU`.
///
/// `library`, the tests of lm-kernels' library under the same tool, which must accept arguments, probes for
/// the paths: under a tool a program may see fewer features than the processor has.
///
/// # Errors
/// When there is none: the probe was renamed.
pub fn supported(tool: &str, library: impl Fn() -> Command) -> Result<Vec<&'static str>> {
    let mut paths = Vec::new();
    for path in ALL {
        // Checks for "1 passed" too: a renamed test would be filtered out without a failure.
        let probe = library().args(["--exact", PROBE]).env("LM_CPU", path).output()?;
        if probe.status.success() && String::from_utf8_lossy(&probe.stdout).contains("1 passed") {
            paths.push(*path);
        } else {
            println!(
                "skipped: {tool}, LM_CPU={path}: the processor, as a program sees it there, has no such path"
            );
        }
    }
    if paths.is_empty() {
        bail!("{tool}: `{PROBE}` passes on no path");
    }
    Ok(paths)
}

/// Runs `tests` on each of these paths.
pub fn run(tool: &str, paths: &[&str], tests: impl Fn() -> Vec<Command>) -> Result<()> {
    for path in paths {
        let start = Instant::now();
        for mut tests in tests() {
            process::run(tests.env("LM_CPU", path))?;
        }
        println!("{tool}, LM_CPU={path}: passed in {:.0} s", start.elapsed().as_secs_f64());
    }
    Ok(())
}

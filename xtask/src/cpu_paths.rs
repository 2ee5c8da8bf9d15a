//! Running tests once on each path of the kernels that the processor has.

use std::process::Command;
use std::time::Instant;

use anyhow::{Result, bail};

use crate::process;

/// As `LM_CPU` names them, narrowest first.
const ALL: [&str; 4] = ["scalar", "avx2", "avx512", "amx"];

/// Of the library of lm-kernels: fails where `LM_CPU` asks for a path that the processor lacks.
const PROBE: &str = "host::cpu::tests::the_environment_is_followed";

/// Runs `tests` on each path; one that is not there is named.
///
/// Which are there is asked of `library`, the tests of the library of lm-kernels under the same tool, which take arguments: under
/// it a program may see less than the processor has.
pub fn run(tool: &str, library: impl Fn() -> Command, tests: impl Fn() -> Vec<Command>) -> Result<()> {
    let mut passed = 0;
    for path in ALL {
        // That it passed is read, too: a test of another name would be filtered out, and nothing fail.
        let probe = library().args(["--exact", PROBE]).env("LM_CPU", path).output()?;
        if !probe.status.success() || !String::from_utf8_lossy(&probe.stdout).contains("1 passed") {
            println!(
                "skipped: {tool}, LM_CPU={path}: the processor, as a program sees it there, has no such path"
            );
            continue;
        }
        let start = Instant::now();
        for mut tests in tests() {
            process::run(tests.env("LM_CPU", path))?;
        }
        println!("{tool}, LM_CPU={path}: passed in {:.0} s", start.elapsed().as_secs_f64());
        passed += 1;
    }
    if passed == 0 {
        bail!("{tool}: `{PROBE}` passes on no path");
    }
    Ok(())
}

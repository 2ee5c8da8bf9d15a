//! `cargo xtask emulate`: runs the tests of the kernels for AArch64 under QEMU.

use std::path::Path;
use std::process::{Command, Stdio};

use anyhow::Result;

use crate::process::{self, cargo};

const TARGET: &str = "aarch64-unknown-linux-gnu";
const LINKER: &str = "aarch64-linux-gnu-gcc";
const EMULATOR: &str = "qemu-aarch64";
/// Folder of the target's shared libraries, as Debian's cross compiler has them.
const LIBRARIES: &str = "/usr/aarch64-linux-gnu";

/// Processor models: NEON alone, with dot products, with everything. The tests iterate over all paths of
/// each.
const PROCESSORS: [&str; 3] = ["cortex-a72", "neoverse-n1", "max"];

/// Test that starts itself: the system cannot start a program of another architecture.
const SKIPPED: &str = "unsupported_request_panics_for_every_caller";

/// Runs the tests on each processor model, or prints the reason why they cannot run here.
pub fn run() -> Result<()> {
    if let Some(reason) = unavailable()? {
        println!("skipped: {reason}");
        return Ok(());
    }
    for processor in PROCESSORS {
        println!("skipped: {processor}, {SKIPPED}: it starts a process");
        process::run(&mut tests(processor))?;
    }
    Ok(())
}

/// The tests of lm-kernels' library without burn on a processor model.
fn tests(processor: &str) -> Command {
    let mut tests = cargo(&["test", "--quiet", "--package", "lm-kernels", "--no-default-features", "--lib"]);
    tests.args(["--target", TARGET, "--", "--skip", SKIPPED]);
    tests.env("CARGO_TARGET_AARCH64_UNKNOWN_LINUX_GNU_LINKER", LINKER);
    let runner = format!("{EMULATOR} -L {LIBRARIES} -cpu {processor}");
    tests.env("CARGO_TARGET_AARCH64_UNKNOWN_LINUX_GNU_RUNNER", runner);
    tests
}

fn unavailable() -> Result<Option<String>> {
    let rustc = std::env::var_os("RUSTC").unwrap_or_else(|| "rustc".into());
    let mut folder = Command::new(rustc);
    folder.args(["--print", "target-libdir", "--target", TARGET]).current_dir(process::root());
    if !Path::new(process::output(&mut folder)?.trim()).exists() {
        return Ok(Some(format!("the target {TARGET} is not installed")));
    }
    let missing = [LINKER, EMULATOR].into_iter().find(|program| !starts(program));
    Ok(missing.map(|program| format!("{program} is not installed")))
}

fn starts(program: &str) -> bool {
    let mut version = Command::new(program);
    version.arg("--version").stdout(Stdio::null()).status().is_ok_and(|status| status.success())
}

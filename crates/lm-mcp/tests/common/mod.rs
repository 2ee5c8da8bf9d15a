//! Shared parts of the tests with reference implementations.
#![allow(dead_code, reason = "no test program uses all of it")]

pub mod authorization;
pub mod raw;
pub mod served;

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// Time that no test needs: a hang ends there.
pub const LONG: Duration = Duration::from_secs(60);

/// Folder of the reference implementations; `None`, and a line that says so, if they are not installed.
pub fn installed(part: &str) -> Option<PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../target/mcp-reference").join(part);
    if !folder.exists() {
        println!(
            "skipped: no {part} in target/mcp-reference; crates/lm-mcp/tests/reference/install installs it"
        );
        return None;
    }
    Some(folder)
}

pub fn script(name: &str) -> String {
    format!("{}/tests/reference/{name}", env!("CARGO_MANIFEST_DIR"))
}

pub fn shown(path: &Path) -> String {
    path.to_str().expect("a path of text").to_owned()
}

/// Waits for a condition.
pub fn wait_for(what: &str, mut holds: impl FnMut() -> bool) {
    let start = Instant::now();
    while !holds() {
        assert!(start.elapsed() < LONG, "{what}");
        std::thread::sleep(Duration::from_millis(5));
    }
}

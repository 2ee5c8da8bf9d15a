//! The Python SDK of MCP, and the scripts of `lm-mcp` for it.

use std::path::{Path, PathBuf};

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// Python with the SDK; `None`, and a line that says so, if it is not installed.
pub fn python() -> Option<PathBuf> {
    let python = root().join("target/mcp-reference/venv/bin/python");
    if !python.exists() {
        println!(
            "skipped: no venv in target/mcp-reference; crates/lm-mcp/tests/reference/install installs it"
        );
        return None;
    }
    Some(python)
}

/// Path of a script.
pub fn script(name: &str) -> PathBuf {
    root().join("crates/lm-mcp/tests/reference").join(name)
}

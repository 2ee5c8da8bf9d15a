//! Third-party reference data that is not in the repository, read in place. Test programs include this file by its path.
#![allow(dead_code, reason = "no test program uses all of it")]

use std::path::{Path, PathBuf};

use serde_json::Value;

/// Path of a part of the reference data, in the folder `LM_SHARED`, by default `shared` beside the checkout; `None` if it is absent
/// (prints one line that says so).
pub fn path(part: impl AsRef<Path>) -> Option<PathBuf> {
    let beside = || PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/../../../shared"));
    let path = std::env::var_os("LM_SHARED").map_or_else(beside, PathBuf::from).join(part);
    if path.exists() {
        return Some(path);
    }
    println!("skipped: {} not found", path.display());
    None
}

/// Reads a JSON file that must exist.
pub fn json(path: PathBuf) -> Value {
    let bytes = std::fs::read(&path).unwrap_or_else(|error| panic!("{path:?}: {error}"));
    serde_json::from_slice(&bytes).unwrap_or_else(|error| panic!("{path:?}: {error}"))
}

//! The reference data, read in place.

use std::path::PathBuf;

use serde_json::Value;

/// Path of a part of the third-party reference data; `None` if absent (prints one line that says so).
pub fn path(part: &str) -> Option<PathBuf> {
    let beside = || PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/../../../shared"));
    let path = std::env::var_os("LM_SHARED").map_or_else(beside, PathBuf::from).join(part);
    if !path.exists() {
        println!("skipped: {} not found", path.display());
        return None;
    }
    Some(path)
}

/// Reads a JSON file of the reference data that must exist.
pub fn json(path: PathBuf) -> Value {
    let bytes = std::fs::read(&path).unwrap_or_else(|error| panic!("{path:?}: {error}"));
    serde_json::from_slice(&bytes).unwrap_or_else(|error| panic!("{path:?}: {error}"))
}

//! JSON files that the user names.

use std::fs::File;
use std::io::Read;
use std::path::Path;

use anyhow::{Context, Result, ensure};
use serde_json::Value;

/// Byte order mark that some editors write at the start of a UTF-8 file.
pub const BOM: &str = "\u{feff}";

/// Maximum size of a file.
const MAX_BYTES: u64 = 64 << 20;

/// Reads a file; a byte order mark at its start is skipped.
///
/// # Errors
/// When it cannot be read, is larger than 64 MiB, no UTF-8 or no JSON. The caller adds the path.
pub fn read(path: &Path) -> Result<Value> {
    let mut text = String::new();
    File::open(path)?.take(MAX_BYTES + 1).read_to_string(&mut text)?;
    ensure!(text.len() as u64 <= MAX_BYTES, "it has more than {MAX_BYTES} bytes");
    serde_json::from_str(text.strip_prefix(BOM).unwrap_or(&text)).context("it is not JSON")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn byte_order_mark_is_skipped_once() {
        let file = tempfile::NamedTempFile::new().expect("a temporary file");
        std::fs::write(file.path(), "\u{feff}[1]").expect("can be written");
        assert_eq!(read(file.path()).expect("is JSON"), serde_json::json!([1]));
        std::fs::write(file.path(), "\u{feff}\u{feff}[1]").expect("can be written");
        assert!(read(file.path()).is_err_and(|error| error.to_string() == "it is not JSON"));
    }
}

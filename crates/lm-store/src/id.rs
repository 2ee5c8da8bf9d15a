//! Ids of conversations and messages.

use std::fmt::Write as _;

use serde_json::Value;

use crate::error::{Error, Result};
use crate::limits::Limits;

/// Creates a random id: the prefix and 24 hexadecimal digits.
///
/// ```
/// assert_eq!(lm_store::new_id("c").len(), 25);
/// ```
///
/// # Panics
/// When the system has no source of random bytes.
pub fn new_id(prefix: &str) -> String {
    let mut bytes = [0; 12];
    getrandom::fill(&mut bytes).expect("the system has random bytes");
    bytes.iter().fold(prefix.to_owned(), |mut id, byte| {
        let _ = write!(id, "{byte:02x}");
        id
    })
}

/// Checks an id from outside: 1 to 64 ASCII letters, digits, `-` and `_`.
pub(crate) fn check(id: &str, at: &str) -> Result<()> {
    let is_allowed = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'-' || byte == b'_';
    if (1..=Limits::ID).contains(&id.len()) && id.bytes().all(is_allowed) {
        return Ok(());
    }
    Err(Error::invalid(at, "an id of 1 to 64 ASCII letters, digits, `-` and `_`", &Value::from(id)))
}

//! Ids and times of responses.

use std::collections::hash_map::RandomState;
use std::hash::BuildHasher;
use std::time::{SystemTime, UNIX_EPOCH};

/// Creates a random id: the prefix and 32 hexadecimal digits.
pub fn random_id(prefix: &str) -> String {
    // Each `RandomState` has its own keys, the first ones from the system's random source.
    let random = || RandomState::new().hash_one(prefix);
    format!("{prefix}{:016x}{:016x}", random(), random())
}

/// Time in seconds since 1970.
pub(crate) fn seconds_since_1970() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs())
}

//! Memory use of a rejection.

use std::fs;

/// Limit of memory: more than the concurrent tests use together, less than any false size would.
const MAX_USED: usize = 256 << 20;
/// Limit of address space, which is reserved before use; the system's allocator reserves 64 MiB per thread.
const MAX_RESERVED: usize = 8 << 30;

/// Runs `work` and checks, where the system reports it, that the process did not grow by more than a small
/// file can require.
pub fn bounded<T>(what: &str, work: impl FnOnce() -> T) -> T {
    // Reset the peak memory counter, where the system allows it.
    let counted_anew = fs::write("/proc/self/clear_refs", "5").is_ok();
    let before = [status_bytes("VmRSS:"), status_bytes("VmPeak:")];
    let result = work();
    let after = [status_bytes("VmHWM:"), status_bytes("VmPeak:")];
    for ((before, after), most) in before.into_iter().zip(after).zip([MAX_USED, MAX_RESERVED]) {
        if let (true, Some(before), Some(after)) = (counted_anew, before, after) {
            let grown = after.saturating_sub(before);
            assert!(grown <= most, "{what}: the process grew by {grown} bytes");
        }
    }
    result
}

/// A line of the process's status, in bytes.
fn status_bytes(key: &str) -> Option<usize> {
    let status = fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find(|line| line.starts_with(key))?;
    line.split_whitespace().nth(1)?.parse::<usize>().ok().map(|kilobytes| kilobytes << 10)
}

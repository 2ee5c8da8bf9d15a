//! How fast this machine reads memory: the limit of a decode step, which reads every weight once.

use std::hint::black_box;
use std::num::NonZeroUsize;
use std::time::Instant;

/// Far more than the last cache of common machines.
pub const BUFFER_BYTES: usize = 512 << 20;
const PASSES: usize = 5;

/// Bytes a second that `threads` threads read together, the best of several passes over one buffer.
pub fn bytes_per_second(threads: NonZeroUsize) -> f64 {
    // Written once, so that every page is there.
    let buffer: Vec<u64> = (0..BUFFER_BYTES as u64 / 8).collect();
    let part = buffer.len().div_ceil(threads.get());
    let pass = || {
        let start = Instant::now();
        std::thread::scope(|scope| {
            for chunk in buffer.chunks(part) {
                scope.spawn(move || black_box(sum(chunk)));
            }
        });
        BUFFER_BYTES as f64 / start.elapsed().as_secs_f64()
    };
    (0..PASSES).map(|_| pass()).fold(0.0, f64::max)
}

/// Several sums side by side, so that the loads and not the additions are waited for.
fn sum(values: &[u64]) -> u64 {
    let mut sums = [0_u64; 32];
    for block in values.chunks_exact(sums.len()) {
        for (sum, value) in sums.iter_mut().zip(block) {
            *sum = sum.wrapping_add(*value);
        }
    }
    sums.iter().fold(0, |all, sum| all.wrapping_add(*sum))
}

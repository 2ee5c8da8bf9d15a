//! Measured hardware limits (memory bandwidth, peak operations), to compare kernels against.

#![allow(clippy::needless_range_loop, reason = "plain loops are compiled for the registers of the path")]

use std::hint::black_box;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

use super::isa::Isa;
use super::lanes::{Kernel, LANES, Lanes, Line, prefetch_ahead};
use super::matrix_unit::{MatrixUnit, SIDE, STEP};
use super::pack::Buffer;
use super::pool::Pool;
use crate::error::Result;

/// Divisor of the measured work: builds with debug assertions, whose rates are meaningless, measure less.
const SHORTER: usize = if cfg!(debug_assertions) { 16 } else { 1 };
/// Bytes read to measure memory bandwidth: far more than the last-level caches of most machines.
const READ_BYTES: usize = (1 << 30) / SHORTER;

/// Measures read bandwidth on a 1 GiB buffer of the memory that weights are kept in (64 MiB in builds with
/// debug assertions).
///
/// # Examples
/// ```no_run
/// use lm_kernels::{Pool, host::limits::BandwidthProbe};
/// let probe = BandwidthProbe::new()?;
/// println!("{:.1} GB/s", probe.read_bandwidth(Pool::global()) / 1e9);
/// # Ok::<(), lm_kernels::Error>(())
/// ```
#[derive(Debug)]
pub struct BandwidthProbe(Buffer);

impl BandwidthProbe {
    /// Allocates and touches the buffer.
    ///
    /// # Errors
    /// [`crate::Error::OutOfMemory`].
    pub fn new() -> Result<Self> {
        let mut buffer = Buffer::zeroed(READ_BYTES)?;
        buffer.bytes_mut().fill(1); // Memory never written to maps to one page of zeros.
        Ok(Self(buffer))
    }

    /// Bytes per second that the pool's threads read together: the best of sequential reads, sequential reads
    /// with prefetching, and four streams at a time. A cache of this size would be measured instead of the
    /// memory.
    pub fn read_bandwidth(&self, pool: &Pool) -> f64 {
        let lines: &[[u64; 8]] = bytemuck::cast_slice(self.0.bytes());
        let rate = |read: fn(&[[u64; 8]]) -> u64| {
            best_rate(2, READ_BYTES, || {
                let total = AtomicU64::new(0);
                let len = lines.len().div_ceil(8 * pool.threads());
                pool.run(lines.len().div_ceil(len), |part| {
                    let lines = &lines[part * len..((part + 1) * len).min(lines.len())];
                    total.fetch_xor(read(lines), Ordering::Relaxed);
                });
                black_box(total.into_inner());
            })
        };
        let plain = rate(|lines| Isa::current().run(Xor::<1, 0>(lines)));
        let prefetched = rate(|lines| Isa::current().run(Xor::<1, 4096>(lines)));
        let streams = rate(|lines| Isa::current().run(Xor::<4, 0>(lines)));
        plain.max(prefetched).max(streams)
    }
}

/// Peak floating-point operations per second of the pool's threads, in fused multiply-adds on registers.
pub fn multiply_add_rate(pool: &Pool) -> f64 {
    const ROUNDS: usize = (1 << 20) / SHORTER;
    let operations = pool.threads() * ROUNDS * CHAINS * LANES * 2;
    best_rate(20, operations, || {
        pool.run(pool.threads(), |_| {
            black_box(Isa::current().run(MultiplyAdds(black_box(0.5), ROUNDS)));
        });
    })
}

/// Peak 8-bit integer operations per second of the pool's threads (a multiply-add counts as two): with the
/// matrix unit if there is one, otherwise in registers; operands are in the L1 cache.
pub fn int8_rate(pool: &Pool) -> f64 {
    const ROUNDS: usize = (1 << 14) / SHORTER;
    let operations = Isa::current().run(ByteProducts(1));
    best_rate(20, pool.threads() * ROUNDS * operations, || {
        pool.run(pool.threads(), |_| {
            black_box(Isa::current().run(ByteProducts(black_box(ROUNDS))));
        });
    })
}

fn best_rate(times: usize, amount: usize, work: impl Fn()) -> f64 {
    let seconds = (0..times).map(|_| {
        let start = Instant::now();
        work();
        start.elapsed().as_secs_f64()
    });
    amount as f64 / seconds.fold(f64::INFINITY, f64::min)
}

/// Reads lines in `STREAMS` streams, prefetching `PREFETCH_DISTANCE` bytes ahead; 0 disables prefetching.
struct Xor<'a, const STREAMS: usize, const PREFETCH_DISTANCE: usize>(&'a [[u64; 8]]);

impl<const STREAMS: usize, const PREFETCH_DISTANCE: usize> Kernel for Xor<'_, STREAMS, PREFETCH_DISTANCE> {
    type Output = u64;
    const ONLY_FLOATS: bool = true;

    #[inline(always)]
    fn run<V: Lanes>(self) -> u64 {
        let len = self.0.len() / STREAMS;
        let mut sums = [[0_u64; 8]; STREAMS];
        for i in 0..len {
            for stream in 0..STREAMS {
                let line = &self.0[stream * len + i];
                if PREFETCH_DISTANCE > 0 {
                    prefetch_ahead(line, PREFETCH_DISTANCE);
                }
                for word in 0..8 {
                    sums[stream][word] ^= line[word];
                }
            }
        }
        sums.as_flattened().iter().fold(0, |a, b| a ^ b)
    }
}

/// Independent accumulators: enough for two units with a latency of four.
const CHAINS: usize = 10;

struct MultiplyAdds(f32, usize);

impl Kernel for MultiplyAdds {
    type Output = f32;
    const ONLY_FLOATS: bool = true;

    #[inline(always)]
    fn run<V: Lanes>(self) -> f32 {
        let factor = V::splat(self.0);
        let mut sums: [V; CHAINS] = std::array::from_fn(|chain| V::splat(chain as f32));
        for _ in 0..self.1 {
            for sum in &mut sums {
                *sum = sum.mul_add(factor, factor);
            }
        }
        sums.iter().map(|sum| sum.sum()).sum()
    }
}

/// Runs rounds of integer dot products; returns the operations of one round.
struct ByteProducts(usize);

impl Kernel for ByteProducts {
    type Output = usize;

    #[inline(always)]
    fn run<V: Lanes>(self) -> usize {
        if V::Unit::PRESENT { tile_products::<V::Unit>(self.0) } else { register_products::<V>(self.0) }
    }
}

#[inline(always)]
fn tile_products<U: MatrixUnit>(rounds: usize) -> usize {
    const STEPS: usize = 4;
    let (rows, weights) = (vec![1_i8; SIDE * STEPS * STEP], vec![1_u8; 2 * STEPS * 1024]);
    let mut products = [[0; SIDE]; SIDE];
    U::configure();
    for _ in 0..rounds {
        let (a, b) = weights.split_at(STEPS * 1024);
        // SAFETY: `SIDE` rows of `STEPS` steps, and as many tiles of 1,024 bytes in each half of the weights.
        unsafe {
            U::multiply(rows.as_ptr(), STEPS * STEP, [a.as_ptr(), b.as_ptr()], STEPS, &mut products);
        }
        black_box(&mut products);
    }
    U::release();
    2 * SIDE * SIDE * STEPS * STEP
}

#[inline(always)]
fn register_products<V: Lanes>(rounds: usize) -> usize {
    const LINES: usize = 16;
    let lines = black_box([[129_u8; size_of::<Line>()]; LINES]);
    let quad = V::quad(black_box([1, -1, 1, -1]));
    let mut sums = [V::start_bytes(0); CHAINS];
    for _ in 0..rounds {
        for line in &lines {
            let bytes = V::load_bytes(line);
            for chain in 0..CHAINS {
                sums[chain] = V::dot_bytes(sums[chain], bytes, quad);
            }
        }
    }
    for sum in sums {
        black_box(V::from_ints(sum).sum());
    }
    2 * size_of::<Line>() * LINES * CHAINS
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn multiply_add_counts_as_two_operations() {
        for &isa in Isa::supported().iter().filter(|&&isa| isa <= Isa::Avx512) {
            assert_eq!(isa.run(ByteProducts(1)), 2 * 16 * size_of::<Line>() * CHAINS, "{isa}");
        }
    }
}

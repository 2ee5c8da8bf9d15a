//! What the machine can do at most, measured, so that a kernel's figure can stand next to it.

use std::hint::black_box;
use std::sync::Mutex;
use std::time::Instant;

use super::cpu::{Isa, Kernel};
use super::lanes::Lanes;
use super::pool::Pool;

/// Bytes per second that the pool's threads read together from memory: the best of several passes over `data`, which should be
/// many times larger than the caches.
pub fn read_rate(pool: &Pool, data: &[u64]) -> f64 {
    best_rate(10, size_of_val(data), || {
        let total = Mutex::new(0_u64);
        let len = data.len().div_ceil(8 * pool.threads()).max(1);
        pool.run(data.len().div_ceil(len), |part| {
            let part = &data[part * len..((part + 1) * len).min(data.len())];
            let sum = Isa::current().run(Sum(part));
            *total.lock().unwrap_or_else(std::sync::PoisonError::into_inner) ^= sum;
        });
        black_box(total.into_inner().ok());
    })
}

/// Floating-point operations per second that the pool's threads do together in fused multiply-adds on registers.
pub fn multiply_add_rate(pool: &Pool) -> f64 {
    const ROUNDS: usize = 1 << 20;
    let operations = pool.threads() * ROUNDS * CHAINS * 16 * 2;
    best_rate(100, operations, || {
        pool.run(pool.threads(), |_| {
            black_box(Isa::current().run(MultiplyAdds(black_box(0.5), ROUNDS)));
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

struct Sum<'a>(&'a [u64]);

impl Kernel for Sum<'_> {
    type Output = u64;

    #[inline(always)]
    fn run<V: Lanes>(self) -> u64 {
        self.0.iter().fold(0, |sum, x| sum ^ x)
    }
}

/// Sums that do not wait for one another: enough for two units of a latency of four.
const CHAINS: usize = 10;

struct MultiplyAdds(f32, usize);

impl Kernel for MultiplyAdds {
    type Output = f32;

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

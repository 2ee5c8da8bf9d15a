//! Timing and formatting of measurements.

use std::time::{Duration, Instant};

/// Returns the median time of `work`, run for about `budget` after one warm-up run; at least five times.
pub fn median_time(budget: Duration, mut work: impl FnMut()) -> Duration {
    work();
    let begin = Instant::now();
    let mut times = Vec::new();
    while times.len() < 5 || begin.elapsed() < budget {
        let start = Instant::now();
        work();
        times.push(start.elapsed());
    }
    times.sort();
    times[times.len() / 2]
}

/// A hardware limit on a rate.
#[derive(Clone, Copy, Debug)]
pub struct Limit {
    /// Unit, such as `GB/s`.
    pub unit: &'static str,
    /// The rate in that unit.
    pub rate: f64,
}

impl Limit {
    /// Formats a line for one case that processed `amount` (bytes, operations) in `time`.
    pub fn line(&self, case: &str, amount: f64, time: Duration) -> String {
        let rate = amount / time.as_secs_f64() / 1e9;
        let (micros, share) = (time.as_secs_f64() * 1e6, 100.0 * rate / self.rate);
        format!("{case:<44} {micros:>10.1} µs {rate:>8.1} {} {share:>5.0} % of {:.0}", self.unit, self.rate)
    }
}

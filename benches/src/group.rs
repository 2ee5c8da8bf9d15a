//! Benchmark groups whose first members are the machine's own rates.

use std::time::Duration;

use criterion::measurement::WallTime;
use criterion::{BenchmarkGroup, Criterion, SamplingMode, Throughput};
use lm_kernels::{Pool, host::limits};

/// Bytes that exceed any cache: cases that are bound by memory go over copies of their operands of this size
/// together.
pub const COLD: usize = 256 << 20;

/// Work of one iteration.
#[derive(Clone, Copy, Debug)]
pub enum Amount {
    /// Bytes read from and written to memory.
    Bytes(usize),
    /// Arithmetic operations; a multiply-add counts as two.
    Operations(usize),
}

/// Criterion with short runs: kernels are checked against rates, not for changes of a percent. The usual
/// arguments of criterion override it.
pub fn criterion() -> Criterion {
    Criterion::default()
        .sample_size(10)
        .warm_up_time(Duration::from_millis(200))
        .measurement_time(Duration::from_millis(800))
        .without_plots()
        .configure_from_args()
}

/// Cases that are compared with the same limit of the machine.
pub struct Group<'a>(BenchmarkGroup<'a, WallTime>);

impl<'a> Group<'a> {
    /// Starts a group of cases that are bound by memory, with the rate at which the pool's threads read it
    /// together as the case `machine reads`.
    ///
    /// # Panics
    /// When the buffer cannot be allocated.
    pub fn of_bytes(criterion: &'a mut Criterion, name: &str) -> Self {
        let mut group = Self::new(criterion, name);
        let mut probe = None;
        group.rate("machine reads", Amount::Bytes(1 << 30), move |pool| {
            probe
                .get_or_insert_with(|| limits::BandwidthProbe::new().expect("memory for the probe"))
                .read_bandwidth(pool)
        });
        group
    }

    /// Starts a group of cases that are bound by arithmetic, with the machine's rates of byte products and of
    /// multiply-adds of floats as the cases `machine byte products` and `machine multiply-adds`.
    pub fn of_operations(criterion: &'a mut Criterion, name: &str) -> Self {
        let mut group = Self::new(criterion, name);
        group.rate("machine byte products", Amount::Operations(1 << 30), limits::int8_rate);
        group.rate("machine multiply-adds", Amount::Operations(1 << 30), limits::multiply_add_rate);
        group
    }

    fn new(criterion: &'a mut Criterion, name: &str) -> Self {
        let mut group = criterion.benchmark_group(name);
        group.sampling_mode(SamplingMode::Flat);
        Self(group)
    }

    /// Adds a rate that is measured as a whole, once for each sample.
    fn rate(&mut self, case: &str, amount: Amount, mut rate: impl FnMut(&Pool) -> f64) {
        self.0.throughput(amount.throughput());
        self.0.bench_function(case, |bencher| {
            bencher.iter_custom(|iterations| {
                let work = iterations as f64 * amount.count() as f64;
                Duration::from_secs_f64(work / rate(Pool::global()))
            });
        });
    }

    /// Adds a case. `setup` runs once, and only if the filter of the command line selects the case: it
    /// creates the operands and checks the result.
    pub fn case<S>(
        &mut self,
        case: &str,
        amount: Amount,
        setup: impl Fn() -> lm_kernels::Result<S>,
        mut run: impl FnMut(&Pool, &mut S),
    ) {
        let mut operands = None;
        self.0.throughput(amount.throughput());
        self.0.bench_function(case, |bencher| {
            let operands = operands.get_or_insert_with(|| setup().expect("operands of a benchmark"));
            bencher.iter(|| run(Pool::global(), operands));
        });
    }
}

impl Amount {
    fn count(self) -> usize {
        match self {
            Amount::Bytes(count) | Amount::Operations(count) => count,
        }
    }

    fn throughput(self) -> Throughput {
        match self {
            Amount::Bytes(bytes) => Throughput::BytesDecimal(bytes as u64),
            Amount::Operations(operations) => Throughput::Elements(operations as u64),
        }
    }
}

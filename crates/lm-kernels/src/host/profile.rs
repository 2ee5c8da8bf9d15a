//! Time spent in each kind of kernel, for `lm bench --profile`.
//!
//! A span sets the kind of its thread's time, and resets it at the end, so that nested spans are not
//! counted twice. Without [`start`] a span costs one load.

use std::cell::Cell;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

/// Kind of work on the thread that calls the kernels. The threads of the pool are not counted by themselves:
/// while they work, that thread does so too, or waits for them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Work {
    /// Products with weights, norm and gate included, without rounding.
    Linear,
    /// Activations rounded to bytes, the norm before them included.
    Rounding,
    /// Attention to the cached keys and values.
    Attention,
    /// New keys and values written to their pages.
    CacheWrite,
    /// Norms, rotations and gates that are kernels of their own.
    Rows,
    /// Short convolutions and delta nets.
    States,
    /// A forward pass between its kernels.
    Between,
}

impl Work {
    /// Every kind, in the order of their declaration.
    pub const ALL: [Work; 7] = [
        Work::Linear,
        Work::Rounding,
        Work::Attention,
        Work::CacheWrite,
        Work::Rows,
        Work::States,
        Work::Between,
    ];
}

/// Work from [`start`] to [`stop`], summed over all threads that called kernels.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Profile([(Duration, u64); Work::ALL.len()]);

impl Profile {
    /// Time of one kind of work.
    pub fn time(&self, work: Work) -> Duration {
        self.0[work as usize].0
    }

    /// Number of spans of one kind of work; those of [`Work::Between`] are forward passes.
    pub fn spans(&self, work: Work) -> u64 {
        self.0[work as usize].1
    }
}

static RUNS: AtomicBool = AtomicBool::new(false);
static NANOSECONDS: [AtomicU64; Work::ALL.len()] = [const { AtomicU64::new(0) }; Work::ALL.len()];
static SPANS: [AtomicU64; Work::ALL.len()] = [const { AtomicU64::new(0) }; Work::ALL.len()];

thread_local! {
    /// Kind of the current work, and its start.
    static CURRENT: Cell<Option<(Work, Instant)>> = const { Cell::new(None) };
}

/// Starts measuring from zero. A process has one measurement: a running one is restarted.
pub fn start() {
    NANOSECONDS.iter().chain(&SPANS).for_each(|total| total.store(0, Ordering::Relaxed));
    RUNS.store(true, Ordering::Relaxed);
}

/// Ends the measurement; spans that have not ended yet are omitted.
pub fn stop() -> Profile {
    RUNS.store(false, Ordering::Relaxed);
    let load = |totals: &[AtomicU64], work: usize| totals[work].load(Ordering::Relaxed);
    let of = |work| (Duration::from_nanos(load(&NANOSECONDS, work)), load(&SPANS, work));
    Profile(std::array::from_fn(of))
}

/// Counts the time until the result is dropped for `work`, except nested spans.
///
/// ```
/// use lm_kernels::host::profile::{self, Work};
/// profile::start();
/// drop(profile::span(Work::Rows));
/// let profile = profile::stop();
/// assert_eq!((profile.spans(Work::Rows), profile.spans(Work::Linear)), (1, 0));
/// ```
#[must_use = "the span ends when it is dropped"]
pub fn span(work: Work) -> Span {
    if !RUNS.load(Ordering::Relaxed) {
        return Span { outer: None };
    }
    SPANS[work as usize].fetch_add(1, Ordering::Relaxed);
    Span { outer: Some(switch(Some(work))) }
}

/// A span of [`span`].
#[derive(Debug)]
pub struct Span {
    /// Enclosing kind of work; the outer `None` if no measurement was running at the start.
    outer: Option<Option<Work>>,
}

impl Drop for Span {
    fn drop(&mut self) {
        if let Some(outer) = self.outer {
            switch(outer);
        }
    }
}

/// Counts the time so far for the current kind, makes `next` the current one, and returns the previous one.
fn switch(next: Option<Work>) -> Option<Work> {
    let now = Instant::now();
    let before = CURRENT.replace(next.map(|work| (work, now)));
    before.map(|(work, since)| {
        let nanoseconds = (now - since).as_nanos() as u64;
        NANOSECONDS[work as usize].fetch_add(nanoseconds, Ordering::Relaxed);
        work
    })
}

#[cfg(test)]
mod tests {
    use std::thread::sleep;

    use super::*;

    #[test]
    fn time_belongs_to_the_innermost_span() {
        let (part, began) = (Duration::from_millis(5), Instant::now());
        drop(span(Work::States)); // Not measured yet.
        start();
        let outer = span(Work::Between);
        sleep(part);
        let inner = span(Work::States);
        sleep(part);
        drop(inner);
        sleep(part);
        drop(outer);
        let profile = stop();
        drop(span(Work::Between));
        assert!(profile.time(Work::Between) >= 2 * part, "{profile:?}");
        assert!(profile.time(Work::States) >= part, "{profile:?}");
        assert_eq!(profile.spans(Work::Between), 1);
        // Kernels of other tests, which run at the same time, have no spans of this kind.
        assert!(profile.time(Work::Between) + part <= began.elapsed(), "{profile:?}");
        assert_eq!(Work::ALL.map(|work| work as usize), [0, 1, 2, 3, 4, 5, 6]);
    }
}

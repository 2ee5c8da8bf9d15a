//! Admission control of waiting requests: bounds on their number and size, and the estimated time to the next
//! admission.

use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use crate::error::{Error, Result};
use crate::params::EngineSettings;

/// Range of [`Error::Busy::retry_after`].
const MIN_RETRY: Duration = Duration::from_millis(100);
const MAX_RETRY: Duration = Duration::from_secs(60);
/// Weight of the newest interval in the moving average.
const NEWEST: f64 = 0.2;

/// Counts of the waiting requests of an engine; clones share them.
#[derive(Clone, Debug)]
pub(crate) struct Admission {
    shared: Arc<Shared>,
}

#[derive(Debug)]
struct Shared {
    max_requests: usize,
    max_tokens: usize,
    max_grammar_bytes: usize,
    requests: AtomicUsize,
    tokens: AtomicUsize,
    grammar_bytes: AtomicUsize,
    /// Microseconds between two admissions while requests wait, as a moving average.
    interval: AtomicU64,
    last: Mutex<Option<Instant>>,
}

/// Place of one waiting request; dropped when the request runs or ends.
#[derive(Debug)]
pub(crate) struct Waiting {
    shared: Arc<Shared>,
    size: RequestSize,
}

/// Memory of a waiting request.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct RequestSize {
    pub tokens: usize,
    /// Bytes of its constraint's state.
    pub grammar_bytes: usize,
}

impl Admission {
    pub fn new(settings: &EngineSettings) -> Self {
        let &EngineSettings { max_waiting_requests, max_waiting_tokens, max_waiting_grammar_bytes, .. } =
            settings;
        Self {
            shared: Arc::new(Shared {
                max_requests: max_waiting_requests,
                max_tokens: max_waiting_tokens,
                max_grammar_bytes: max_waiting_grammar_bytes,
                requests: AtomicUsize::new(0),
                tokens: AtomicUsize::new(0),
                grammar_bytes: AtomicUsize::new(0),
                interval: AtomicU64::new(0),
                last: Mutex::new(None),
            }),
        }
    }

    /// Number of waiting requests.
    pub fn waiting(&self) -> usize {
        self.shared.requests.load(Ordering::Relaxed)
    }

    /// Takes a place for a request of this size. An engine without waiting requests accepts any size.
    ///
    /// # Errors
    /// [`Error::Busy`] when the bounds are reached.
    pub fn wait(&self, size: RequestSize) -> Result<Waiting> {
        let shared = &self.shared;
        let requests = shared.requests.fetch_add(1, Ordering::AcqRel);
        let tokens = shared.tokens.fetch_add(size.tokens, Ordering::AcqRel);
        let grammar_bytes = shared.grammar_bytes.fetch_add(size.grammar_bytes, Ordering::AcqRel);
        let place = Waiting { shared: shared.clone(), size };
        let is_full = requests >= shared.max_requests
            || exceeds(tokens, size.tokens, shared.max_tokens)
            || exceeds(grammar_bytes, size.grammar_bytes, shared.max_grammar_bytes);
        if requests > 0 && is_full {
            return Err(Error::Busy { waiting: requests, retry_after: shared.retry_after() });
        }
        Ok(place)
    }
}

impl Waiting {
    /// Records that the request runs.
    pub fn admit(self) {
        let others_wait = self.shared.requests.load(Ordering::Acquire) > 1;
        let mut last = self.shared.last.lock().unwrap_or_else(PoisonError::into_inner);
        let now = Instant::now();
        // The time to the next admission measures the load only while others wait.
        if let Some(last) = std::mem::replace(&mut *last, others_wait.then_some(now)) {
            let newest = (now - last).as_micros() as f64;
            let mean = self.shared.interval.load(Ordering::Relaxed) as f64;
            let mean = if mean == 0.0 { newest } else { mean + NEWEST * (newest - mean) };
            self.shared.interval.store(mean as u64, Ordering::Relaxed);
        }
    }
}

impl Drop for Waiting {
    fn drop(&mut self) {
        self.shared.requests.fetch_sub(1, Ordering::AcqRel);
        self.shared.tokens.fetch_sub(self.size.tokens, Ordering::AcqRel);
        self.shared.grammar_bytes.fetch_sub(self.size.grammar_bytes, Ordering::AcqRel);
    }
}

impl Shared {
    /// Time after which a place is expected to be free.
    fn retry_after(&self) -> Duration {
        Duration::from_micros(self.interval.load(Ordering::Relaxed)).clamp(MIN_RETRY, MAX_RETRY)
    }
}

/// Returns true if `more` exceeds the bound minus `taken`. Zero more always fits.
fn exceeds(taken: usize, more: usize, bound: usize) -> bool {
    more > 0 && taken.saturating_add(more) > bound
}

#[cfg(test)]
mod tests {
    use super::*;

    fn admission(max_waiting_requests: usize, max_waiting_tokens: usize) -> Admission {
        Admission::new(&EngineSettings {
            max_waiting_requests,
            max_waiting_tokens,
            max_waiting_grammar_bytes: 1000,
            ..Default::default()
        })
    }

    fn tokens(tokens: usize) -> RequestSize {
        RequestSize { tokens, grammar_bytes: 0 }
    }

    fn grammar(grammar_bytes: usize) -> RequestSize {
        RequestSize { tokens: 1, grammar_bytes }
    }

    #[test]
    fn places_are_bounded_by_requests_and_tokens() {
        let admission = admission(2, 100);
        let first = admission.wait(tokens(60)).expect("a place");
        assert!(matches!(admission.wait(tokens(41)), Err(Error::Busy { waiting: 1, .. })));
        let second = admission.wait(tokens(40)).expect("a place");
        assert!(matches!(admission.wait(tokens(0)), Err(Error::Busy { waiting: 2, .. })));
        first.admit();
        admission.wait(tokens(60)).expect("a place");
        drop(second);
    }

    #[test]
    fn single_request_may_have_any_size() {
        let admission = admission(0, 0);
        let alone = admission.wait(RequestSize { tokens: 1000, grammar_bytes: 2000 }).expect("nothing waits");
        assert!(admission.wait(tokens(1)).is_err());
        drop(alone);
        assert!(admission.wait(tokens(1)).is_ok());
    }

    #[test]
    fn places_are_bounded_by_grammar_state() {
        let admission = admission(9, 100);
        let first = admission.wait(grammar(600)).expect("a place");
        assert!(matches!(admission.wait(grammar(401)), Err(Error::Busy { waiting: 1, .. })));
        assert!(matches!(admission.wait(grammar(usize::MAX)), Err(Error::Busy { waiting: 1, .. })));
        let second = admission.wait(grammar(400)).expect("a place");
        assert!(admission.wait(grammar(1)).is_err());
        let free = admission.wait(tokens(1)).expect("it has no grammar");
        first.admit();
        admission.wait(grammar(600)).expect("a place");
        drop((second, free));
    }

    #[test]
    fn rejected_request_gets_a_bounded_retry_time() {
        let admission = admission(1, 100);
        let place = admission.wait(tokens(1)).expect("a place");
        let Err(Error::Busy { retry_after, .. }) = admission.wait(tokens(1)) else { panic!("it is full") };
        assert_eq!(retry_after, MIN_RETRY);
        drop(place);
    }

    #[test]
    fn idle_time_does_not_change_the_estimate() {
        let admission = admission(1, 100);
        for _ in 0..2 {
            admission.wait(tokens(1)).expect("a place").admit();
            std::thread::sleep(3 * MIN_RETRY);
        }
        let _place = admission.wait(tokens(1)).expect("a place");
        let Err(Error::Busy { retry_after, .. }) = admission.wait(tokens(1)) else { panic!("it is full") };
        assert_eq!(retry_after, MIN_RETRY);
    }
}

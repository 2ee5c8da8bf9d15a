//! Admission of requests: bounds on those that wait, and an estimate of when the next one can be taken.

use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use crate::{EngineSettings, Error, Result};

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
    requests: AtomicUsize,
    tokens: AtomicUsize,
    /// Microseconds between two admissions while requests wait, as a moving average.
    interval: AtomicU64,
    last: Mutex<Option<Instant>>,
}

/// Place of one waiting request; dropped when the request runs or ends.
#[derive(Debug)]
pub(crate) struct Waiting {
    shared: Arc<Shared>,
    tokens: usize,
}

impl Admission {
    pub fn new(settings: &EngineSettings) -> Self {
        let &EngineSettings { max_waiting_requests, max_waiting_tokens, .. } = settings;
        Self {
            shared: Arc::new(Shared {
                max_requests: max_waiting_requests,
                max_tokens: max_waiting_tokens,
                requests: AtomicUsize::new(0),
                tokens: AtomicUsize::new(0),
                interval: AtomicU64::new(0),
                last: Mutex::new(None),
            }),
        }
    }

    /// Takes a place for a request of `tokens` tokens. An engine without waiting requests takes one of any length.
    ///
    /// # Errors
    /// [`Error::Busy`] when the bounds are reached.
    pub fn wait(&self, tokens: usize) -> Result<Waiting> {
        let shared = &self.shared;
        let requests = shared.requests.fetch_add(1, Ordering::AcqRel);
        let before = shared.tokens.fetch_add(tokens, Ordering::AcqRel);
        let place = Waiting { shared: shared.clone(), tokens };
        if requests > 0 && (requests >= shared.max_requests || before + tokens > shared.max_tokens) {
            return Err(Error::Busy { waiting: requests, retry_after: shared.retry_after() });
        }
        Ok(place)
    }
}

impl Waiting {
    /// Notes that the request runs now.
    pub fn admit(self) {
        let others_wait = self.shared.requests.load(Ordering::Acquire) > 1;
        let mut last = self.shared.last.lock().unwrap_or_else(PoisonError::into_inner);
        let now = Instant::now();
        // Only while others wait does the time to the next admission tell how busy the engine is.
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
        self.shared.tokens.fetch_sub(self.tokens, Ordering::AcqRel);
    }
}

impl Shared {
    /// Time after which a place is expected to be free.
    fn retry_after(&self) -> Duration {
        Duration::from_micros(self.interval.load(Ordering::Relaxed)).clamp(MIN_RETRY, MAX_RETRY)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn admission(max_waiting_requests: usize, max_waiting_tokens: usize) -> Admission {
        Admission::new(&EngineSettings { max_waiting_requests, max_waiting_tokens, ..Default::default() })
    }

    #[test]
    fn places_are_bounded_by_requests_and_tokens_and_come_back() {
        let admission = admission(2, 100);
        let first = admission.wait(60).expect("a place");
        assert!(matches!(admission.wait(41), Err(Error::Busy { waiting: 1, .. })));
        let second = admission.wait(40).expect("a place");
        assert!(matches!(admission.wait(0), Err(Error::Busy { waiting: 2, .. })));
        first.admit();
        admission.wait(60).expect("a place");
        drop(second);
    }

    #[test]
    fn a_lone_request_may_have_any_length() {
        let admission = admission(0, 0);
        let alone = admission.wait(1000).expect("nothing waits");
        assert!(admission.wait(1).is_err());
        drop(alone);
        assert!(admission.wait(1).is_ok());
    }

    #[test]
    fn a_refused_request_is_told_a_time_within_bounds() {
        let admission = admission(1, 100);
        let place = admission.wait(1).expect("a place");
        let Err(Error::Busy { retry_after, .. }) = admission.wait(1) else { panic!("it is full") };
        assert_eq!(retry_after, MIN_RETRY);
        drop(place);
    }
}

//! Cancelling a request from anywhere.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// A flag that ends a prefill or a generation within one step of the engine; clones share it.
///
/// ```
/// let cancel = lm_session::CancelHandle::default();
/// let other_thread = cancel.clone();
/// other_thread.cancel();
/// assert!(cancel.is_cancelled());
/// cancel.reset(); // ready for the next request
/// assert!(!cancel.is_cancelled());
/// ```
#[derive(Clone, Debug, Default)]
pub struct CancelHandle {
    cancelled: Arc<AtomicBool>,
}

impl CancelHandle {
    /// A handle that is not cancelled.
    pub fn new() -> Self {
        Self::default()
    }

    /// Asks every request that holds a clone to end. Stays set until [`CancelHandle::reset`].
    pub fn cancel(&self) {
        self.cancelled.store(true, Ordering::Release);
    }

    /// Whether [`CancelHandle::cancel`] was called since the last reset.
    pub fn is_cancelled(&self) -> bool {
        self.cancelled.load(Ordering::Acquire)
    }

    /// Clears the flag. A request that has not seen it yet goes on.
    pub fn reset(&self) {
        self.cancelled.store(false, Ordering::Release);
    }
}

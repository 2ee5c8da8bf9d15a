//! Cancellation of requests from any thread.

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
    /// Creates a handle that is not cancelled.
    pub fn new() -> Self {
        Self::default()
    }

    /// Cancels every request that holds a clone. The flag stays set until [`CancelHandle::reset`].
    pub fn cancel(&self) {
        self.cancelled.store(true, Ordering::Release);
    }

    /// Returns true if [`CancelHandle::cancel`] was called since the last reset.
    pub fn is_cancelled(&self) -> bool {
        self.cancelled.load(Ordering::Acquire)
    }

    /// Clears the flag. A request that has not seen it yet continues.
    pub fn reset(&self) {
        self.cancelled.store(false, Ordering::Release);
    }
}

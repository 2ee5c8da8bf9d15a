//! Policy of retries.

use crate::annotations::ToolAnnotations;
use crate::tool_error::{Retry, ToolError};
use std::time::Duration;

/// Retries of a failed call, within its time limit and until its turn is cancelled.
///
/// Only errors that [allow it](Retry) are retried, and unless such an error says that the attempt had no
/// effect, only calls of tools that are [idempotent](ToolAnnotations::is_idempotent). A call that panics or
/// that is abandoned is never run again.
///
/// ```
/// use lm_tools::RetryPolicy;
/// use std::time::Duration;
///
/// let policy = RetryPolicy { max_retries: 5, ..RetryPolicy::default() };
/// let delays: Vec<_> = (1..=5).map(|retry| policy.delay(retry).as_millis()).collect();
/// assert_eq!(delays, [200, 400, 800, 1600, 3200]);
/// assert_eq!(policy.delay(u32::MAX), policy.max_backoff);
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RetryPolicy {
    /// Maximum number of retries. Default 2.
    pub max_retries: u32,
    /// Delay before the first retry; each further one has twice the delay. Default 200 ms.
    pub backoff: Duration,
    /// Maximum delay. Default 5 s.
    pub max_backoff: Duration,
}

impl RetryPolicy {
    /// No retries.
    pub const NONE: Self = Self { max_retries: 0, backoff: Duration::ZERO, max_backoff: Duration::ZERO };

    /// Delay before a retry; the first one has the number 1.
    pub fn delay(&self, retry: u32) -> Duration {
        let factor = 1_u32.checked_shl(retry.saturating_sub(1)).unwrap_or(u32::MAX);
        self.backoff.saturating_mul(factor).min(self.max_backoff)
    }

    /// Delay before the attempt that follows the failed one; `None` if there is none.
    pub(crate) fn after(&self, attempt: u32, error: &ToolError, tool: &ToolAnnotations) -> Option<Duration> {
        let is_allowed = match error.retry() {
            Retry::Never => false,
            Retry::IfIdempotent => tool.is_idempotent(),
            Retry::Always => true,
        };
        (is_allowed && attempt <= self.max_retries).then(|| self.delay(attempt))
    }
}

impl Default for RetryPolicy {
    fn default() -> Self {
        let backoff = Duration::from_millis(200);
        Self { max_retries: 2, backoff, max_backoff: Duration::from_secs(5) }
    }
}

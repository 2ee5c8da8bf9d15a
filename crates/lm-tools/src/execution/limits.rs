//! Limits of calls.

use super::content::MaxBytes;
use super::retry_policy::RetryPolicy;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

/// Function that runs a future to its end, on some runtime.
pub(crate) type Spawner = Arc<dyn Fn(Pin<Box<dyn Future<Output = ()> + Send>>) + Send + Sync>;

/// Limits of the calls of a [`Toolset`](crate::Toolset).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CallLimits {
    /// Time limit of a call with all its attempts. At its end the call's [`CallContext`](crate::CallContext)
    /// is cancelled, its future is dropped, and the model reads that there is no result. A thread cannot be
    /// ended: a blocking tool that ignores its context continues to run. `None` (the default): none. The
    /// deadline of a turn ([`Toolset::start`](crate::Toolset::start)) applies as well: the earlier one
    /// counts.
    pub timeout: Option<Duration>,
    /// Time that a running call has to end after its turn was cancelled, before it is abandoned as above.
    /// `None`: as long as it takes. Default 1 s.
    pub cancel_grace: Option<Duration>,
    /// Maximum number of calls of one reply that run at the same time, at least 1. 1: one after the other, in
    /// order. An abandoned call no longer counts, even if its thread still runs. Default 8.
    pub max_parallel: usize,
    /// Maximum number of abandoned calls of the toolset that have not ended, of all its turns: from then on a
    /// call is not started, and its result says so. At least 1. Together with the running calls, it bounds
    /// the threads of tools that never end. Default 64.
    pub max_abandoned: usize,
    /// Maximum bytes of a result; a longer one is cut, with a mark. Images and audio do not count. Default
    /// 65,536.
    pub max_result_bytes: usize,
    /// Maximum bytes of the images and audio of a result, decoded, of 32 at most; text tells of the others.
    /// Default 16 MiB.
    pub max_result_media_bytes: usize,
    /// Retries of failed calls of tools without [their own policy](crate::Tool::retries). Default: none.
    pub retries: RetryPolicy,
}

impl CallLimits {
    pub(crate) fn result_bytes(&self) -> MaxBytes {
        MaxBytes { text: self.max_result_bytes, media: self.max_result_media_bytes }
    }
}

impl Default for CallLimits {
    fn default() -> Self {
        Self {
            timeout: None,
            cancel_grace: Some(Duration::from_secs(1)),
            max_parallel: 8,
            max_abandoned: 64,
            max_result_bytes: 1 << 16,
            max_result_media_bytes: 16 << 20,
            retries: RetryPolicy::NONE,
        }
    }
}

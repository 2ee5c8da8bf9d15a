//! Limits of calls.

use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

/// Function that runs a future to its end, on some runtime.
pub(crate) type Spawner = Arc<dyn Fn(Pin<Box<dyn Future<Output = ()> + Send>>) + Send + Sync>;

/// Limits of the calls of a [`Toolset`](crate::Toolset).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CallLimits {
    /// Time limit of a call. At its end the call's [`CallContext`](crate::CallContext) is cancelled, its future is dropped, and the
    /// model reads that there is no result. A thread cannot be ended: a blocking tool that ignores its context runs on. `None` (the
    /// default): none.
    pub timeout: Option<Duration>,
    /// Time that a running call has to end after its turn was cancelled, before it is abandoned as above. `None`: as long as it takes.
    /// Default 1 s.
    pub cancel_grace: Option<Duration>,
    /// Maximum number of calls of one reply that run at the same time, at least 1. 1: one after the other, in order.
    /// A call that was abandoned does not count any more, even if its thread runs on. Default 8.
    pub max_parallel: usize,
    /// Maximum bytes of a result; a longer one is cut, and says so. Default 65,536.
    pub max_result_bytes: usize,
}

impl Default for CallLimits {
    fn default() -> Self {
        Self {
            timeout: None,
            cancel_grace: Some(Duration::from_secs(1)),
            max_parallel: 8,
            max_result_bytes: 1 << 16,
        }
    }
}

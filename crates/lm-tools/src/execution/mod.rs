//! Parts of the execution of calls: limits, retries, the result slot, the watcher of time limits.

mod answer;
mod content;
mod event;
mod limits;
mod retry_policy;
mod updates;
mod watch;

pub(crate) use answer::{Answer, PendingAnswer, ended_before, not_run};
pub(crate) use content::{given, is_shallow};
pub use event::{CallEvent, CallResult};
pub use limits::CallLimits;
pub(crate) use limits::Spawner;
pub use retry_policy::RetryPolicy;
pub(crate) use updates::{Reporter, Update, Updates};
pub(crate) use watch::{RunState, Watched, Watcher};

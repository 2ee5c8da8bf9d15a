//! Execution of calls: several at a time, each within its limits and with exactly one result.

mod answer;
mod attempts;
mod content;
mod event;
mod limits;
mod place;
mod retries;
mod running;
#[cfg(test)]
mod tests;
mod updates;
mod watch;

pub(crate) use answer::not_run;
pub(crate) use content::{given, is_shallow, shortened};
pub use event::{CallEvent, CallResult};
pub use limits::CallLimits;
pub(crate) use limits::Spawner;
pub use retries::RetryPolicy;
pub use running::RunningCalls;
pub(crate) use updates::Reporter;
pub(crate) use watch::Watcher;

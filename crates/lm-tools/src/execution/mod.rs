//! Execution of calls: several at a time, each within its limits and with exactly one result.

mod answer;
mod limits;
mod running;
#[cfg(test)]
mod tests;
mod watch;

pub use limits::CallLimits;
pub(crate) use limits::Spawner;
pub use running::RunningCalls;
pub(crate) use running::not_run;
pub(crate) use watch::Watcher;

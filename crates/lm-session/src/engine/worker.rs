//! Worker thread of the engine.

use std::ops::ControlFlow;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::mpsc::Receiver;
use std::time::Duration;

use crate::engine::activity::ActivityGauge;
use crate::engine::residency::Residency;
use crate::panics::panic_message;
use crate::scheduler::{Command, mark_engine_thread};

/// Interval at which cancellations are noticed while every request waits for its token to be sampled.
const CANCEL_POLL: Duration = Duration::from_millis(10);

/// Runs `commands` until [`Command::Shutdown`], and then until the last request has ended. A panic ends the
/// active requests, not the thread.
pub(crate) fn run(mut residency: Residency, commands: &Receiver<Command>, activity: &ActivityGauge) {
    mark_engine_thread();
    loop {
        residency.publish(activity);
        residency.answer_waiters();
        match catch_unwind(AssertUnwindSafe(|| run_iteration(&mut residency, commands, activity))) {
            Ok(ControlFlow::Continue(())) => {}
            Ok(ControlFlow::Break(())) => return,
            Err(panic) => {
                let message = panic_message(&*panic);
                let recovered = catch_unwind(AssertUnwindSafe(|| {
                    if let Some(scheduler) = residency.scheduler() {
                        scheduler.recover(&message);
                    }
                }));
                if recovered.is_err() {
                    tracing::error!("a panic while the engine recovered from one");
                }
            }
        }
    }
}

/// Handles the waiting commands and runs one step.
fn run_iteration(
    residency: &mut Residency,
    commands: &Receiver<Command>,
    activity: &ActivityGauge,
) -> ControlFlow<()> {
    while let Some(command) = next_command(residency, commands) {
        residency.handle(command);
        residency.publish(activity);
        residency.answer_waiters();
    }
    if residency.is_drained() {
        return ControlFlow::Break(());
    }
    if let Some(scheduler) = residency.scheduler() {
        scheduler.step();
    }
    ControlFlow::Continue(())
}

/// Returns the next command, waiting for it while no request can run; `None` when a step is due.
fn next_command(residency: &mut Residency, commands: &Receiver<Command>) -> Option<Command> {
    if residency.is_drained() {
        return None;
    }
    let Some(scheduler) = residency.scheduler().filter(|scheduler| !scheduler.is_idle()) else {
        return residency.wait_idle(commands);
    };
    if !scheduler.is_runnable() {
        commands.recv_timeout(CANCEL_POLL).ok()
    } else if let Some(wait) = scheduler.sampling_wait() {
        commands.recv_timeout(wait).ok()
    } else {
        commands.try_recv().ok()
    }
}

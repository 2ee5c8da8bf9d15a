//! Worker thread of the engine.

use std::ops::ControlFlow;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::mpsc::{Receiver, TryRecvError};

use crate::request::Command;
use crate::scheduler::{Scheduler, panic_message};

/// Runs `commands` until the last sender is gone. A panic ends the active requests, not the thread.
pub(crate) fn run(mut scheduler: Scheduler, commands: &Receiver<Command>) {
    loop {
        match catch_unwind(AssertUnwindSafe(|| run_iteration(&mut scheduler, commands))) {
            Ok(ControlFlow::Continue(())) => {}
            Ok(ControlFlow::Break(())) => return,
            Err(panic) => scheduler.recover(&panic_message(&*panic)),
        }
    }
}

/// Handles the waiting commands, blocking if no request is active, and runs one step.
fn run_iteration(scheduler: &mut Scheduler, commands: &Receiver<Command>) -> ControlFlow<()> {
    while scheduler.is_idle() {
        match commands.recv() {
            Ok(command) => scheduler.handle(command),
            Err(_) => return ControlFlow::Break(()),
        }
    }
    loop {
        match commands.try_recv() {
            Ok(command) => scheduler.handle(command),
            Err(TryRecvError::Empty) => break,
            Err(TryRecvError::Disconnected) => return ControlFlow::Break(()),
        }
    }
    scheduler.step();
    ControlFlow::Continue(())
}

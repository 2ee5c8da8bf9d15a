//! Ctrl-C: ends the turn that is running, not the program.

use std::sync::{Arc, Mutex, PoisonError};

use anyhow::{Context, Result};
use lm_session::CancelHandle;

/// What shells report for a program that Ctrl-C ended.
const EXIT_CODE: i32 = 130;

/// The turn that Ctrl-C ends. Clones share it.
#[derive(Clone, Default)]
pub struct Interrupt {
    turn: Arc<Mutex<Option<CancelHandle>>>,
}

impl Interrupt {
    /// Takes over the signal. Without a turn, or when the turn does not end after the first time, it ends the program.
    pub fn install() -> Result<Self> {
        let interrupt = Self::default();
        let shared = interrupt.clone();
        ctrlc::set_handler(move || {
            if !shared.cancel() {
                std::process::exit(EXIT_CODE);
            }
        })
        .context("Ctrl-C cannot be handled")?;
        Ok(interrupt)
    }

    /// Names the turn that runs until the guard is dropped.
    pub fn during(&self, turn: CancelHandle) -> Guard<'_> {
        self.set(Some(turn));
        Guard(self)
    }

    /// Cancels the turn; false when there is none or it is cancelled already.
    pub fn cancel(&self) -> bool {
        let turn = self.turn.lock().unwrap_or_else(PoisonError::into_inner);
        let first = turn.as_ref().filter(|turn| !turn.is_cancelled());
        first.inspect(|turn| turn.cancel()).is_some()
    }

    fn set(&self, turn: Option<CancelHandle>) {
        *self.turn.lock().unwrap_or_else(PoisonError::into_inner) = turn;
    }
}

/// A turn in progress.
pub struct Guard<'a>(&'a Interrupt);

impl Drop for Guard<'_> {
    fn drop(&mut self) {
        self.0.set(None);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_running_turn_is_cancelled_and_only_once() {
        let interrupt = Interrupt::default();
        assert!(!interrupt.cancel());
        let turn = CancelHandle::new();
        {
            let _guard = interrupt.during(turn.clone());
            assert!(interrupt.cancel());
            assert!(!interrupt.cancel());
        }
        assert!(turn.is_cancelled());
        turn.reset();
        assert!(!interrupt.cancel());
    }
}

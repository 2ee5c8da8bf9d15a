//! Ctrl-C handling: it ends the running turn, or the program.

use std::sync::{Arc, Mutex, PoisonError};

use anyhow::{Context, Result};
use lm_session::CancelHandle;

/// Exit code of a program ended by Ctrl-C, as shells report it.
pub const EXIT_CODE: u8 = 130;

/// The turn that Ctrl-C cancels. Clones share it.
#[derive(Clone, Default)]
pub struct Interrupt {
    turn: Arc<Mutex<Option<CancelHandle>>>,
}

impl Interrupt {
    /// Installs the signal handler. Without a turn, or if the turn is already cancelled, Ctrl-C ends the
    /// program.
    pub fn install() -> Result<Self> {
        let interrupt = Self::default();
        let shared = interrupt.clone();
        ctrlc::set_handler(move || {
            if !shared.cancel() {
                crate::lines::restore_terminal();
                std::process::exit(EXIT_CODE.into());
            }
        })
        .context("Ctrl-C cannot be handled")?;
        Ok(interrupt)
    }

    /// Sets the running turn until the guard is dropped.
    pub fn during(&self, turn: CancelHandle) -> Guard<'_> {
        self.set(Some(turn));
        Guard(self)
    }

    /// Cancels the turn; returns false if there is none or it is already cancelled.
    pub fn cancel(&self) -> bool {
        let turn = self.turn.lock().unwrap_or_else(PoisonError::into_inner);
        let first = turn.as_ref().filter(|turn| !turn.is_cancelled());
        first.inspect(|turn| turn.cancel()).is_some()
    }

    /// Returns true if the running turn is cancelled.
    #[cfg(any(test, feature = "mcp"))]
    pub fn is_cancelled(&self) -> bool {
        let turn = self.turn.lock().unwrap_or_else(PoisonError::into_inner);
        turn.as_ref().is_some_and(CancelHandle::is_cancelled)
    }

    fn set(&self, turn: Option<CancelHandle>) {
        *self.turn.lock().unwrap_or_else(PoisonError::into_inner) = turn;
    }
}

/// Guard of a running turn.
pub struct Guard<'a>(&'a Interrupt);

impl Drop for Guard<'_> {
    fn drop(&mut self) {
        self.0.set(None);
    }
}

/// Returns true if an error is the end of a cancelled turn.
pub fn is_interrupt(error: &anyhow::Error) -> bool {
    error.chain().any(|cause| {
        matches!(cause.downcast_ref(), Some(lm_session::Error::Cancelled))
            || matches!(cause.downcast_ref(), Some(lm_conversation::Error::Cancelled))
            || matches!(cause.downcast_ref(), Some(lm_tools::Error::Cancelled))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn running_turn_is_cancelled_once() {
        let interrupt = Interrupt::default();
        assert!(!interrupt.cancel());
        let turn = CancelHandle::new();
        {
            let _guard = interrupt.during(turn.clone());
            assert!(!interrupt.is_cancelled() && interrupt.cancel());
            assert!(interrupt.is_cancelled() && !interrupt.cancel());
        }
        assert!(turn.is_cancelled());
        assert!(!interrupt.cancel());
    }

    #[test]
    fn cancellation_in_any_layer_is_an_interrupt() {
        for error in [
            anyhow::Error::from(lm_session::Error::Cancelled),
            lm_conversation::Error::Cancelled.into(),
            lm_tools::Error::Cancelled.into(),
        ] {
            assert!(is_interrupt(&error.context("generate")));
        }
        assert!(!is_interrupt(&anyhow::anyhow!("cancelled")));
    }
}

//! Turns that run to their end without a reader.

use std::panic::resume_unwind;
use std::thread::{self, JoinHandle};

use lm_session::CancelHandle;

use crate::error::{Error, Result};
use crate::event::{ConversationEvent, Reply};
use crate::turn::Turn;

/// Handle to a detached turn; see [`Turn::detach`]. Dropping it does not end the turn.
#[derive(Debug)]
pub struct DetachedTurn {
    cancel: CancelHandle,
    thread: JoinHandle<Result<Reply>>,
}

impl Turn {
    /// Runs the turn to its end on a thread of its own, whether or not anybody reads it. `callback` gets the
    /// events: the last one is [`ConversationEvent::Finished`], when message and reply are in the history, or
    /// an error. The turn goes on when the handle and the conversation are dropped, and
    /// [`Engine::wait_idle`](crate::Engine::wait_idle) waits for it.
    ///
    /// Until then [`Conversation::history`](crate::Conversation::history), `save` and `fork` are without the
    /// turn, as with any running one. A next turn (`send`, `stream`, `continue_reply`) and `prefill` wait for
    /// its end, except in its own callback, where they cancel it unless it is finished. `abort`,
    /// `set_history`, `reset`, `set_preface_messages` and `restore` cancel it at once.
    ///
    /// ```
    /// # use lm_conversation::{Conversation, ConversationConfig, PromptTemplate};
    /// use std::time::Duration;
    ///
    /// use lm_conversation::{ConversationEvent, TurnOptions};
    ///
    /// # let engine = lm_session::testing::scripted_engine(["Hello!"]);
    /// # let template = PromptTemplate::new("{% for m in messages %}{{ m.content }}\n{% endfor %}")?;
    /// # let config = ConversationConfig { template: Some(template), ..ConversationConfig::default() };
    /// # let mut conversation = Conversation::new(&engine, config)?;
    /// conversation.stream("Hi.", TurnOptions::default())?.detach(|event| match event {
    ///     Ok(ConversationEvent::Text(text)) => print!("{text}"),
    ///     Ok(ConversationEvent::Finished(_)) => println!(),
    ///     Ok(_) => {}
    ///     Err(error) => eprintln!("{error}"),
    /// })?;
    /// engine.wait_idle(Duration::from_secs(10))?;
    /// assert_eq!(conversation.history()[1].content.text(), "Hello!");
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::TurnThread`].
    pub fn detach(
        self,
        callback: impl FnMut(Result<ConversationEvent>) + Send + 'static,
    ) -> Result<DetachedTurn> {
        let (cancel, task) = (self.canceller(), self.progress.detach());
        let run = move || {
            let _task = task; // Dropped after the turn.
            self.progress.run_here();
            self.report(callback)
        };
        let thread = thread::Builder::new().name("lm-turn".to_owned()).spawn(run);
        Ok(DetachedTurn { cancel, thread: thread.map_err(Error::TurnThread)? })
    }

    /// Reads all events into `callback`.
    fn report(self, mut callback: impl FnMut(Result<ConversationEvent>)) -> Result<Reply> {
        let mut outcome = Err(Error::Cancelled);
        for event in self {
            match &event {
                Ok(ConversationEvent::Finished(reply)) => outcome = Ok(reply.clone()),
                Ok(_) => {}
                Err(error) => outcome = Err(of_callback(error)),
            }
            callback(event);
        }
        outcome
    }
}

/// The error of a turn whose callback has the error itself.
fn of_callback(error: &Error) -> Error {
    match error {
        Error::Cancelled => Error::Cancelled,
        Error::DeadlineExceeded => Error::DeadlineExceeded,
        error => Error::DetachedTurn { message: error.to_string() },
    }
}

impl DetachedTurn {
    /// Cancels the turn, as [`Turn::canceller`] does.
    pub fn cancel(&self) {
        self.cancel.cancel();
    }

    /// Returns true if the turn has ended, and its callback has returned.
    pub fn is_finished(&self) -> bool {
        self.thread.is_finished()
    }

    /// Waits for the end of the turn and returns the reply.
    ///
    /// # Errors
    /// [`Error::Cancelled`], [`Error::DeadlineExceeded`], and [`Error::DetachedTurn`] with the text of any
    /// other error, which the callback got.
    ///
    /// # Panics
    /// If the callback has panicked, with its panic. The conversation is then as before the turn, unless the
    /// turn was finished.
    pub fn wait(self) -> Result<Reply> {
        self.thread.join().unwrap_or_else(|panic| resume_unwind(panic))
    }
}

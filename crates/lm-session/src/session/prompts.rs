//! Prompts whose rows are read, several at a time.

use std::collections::VecDeque;

use async_channel::Receiver;
use lm_model::Direction;
use lm_tokenizer::TokenId;

use crate::cancel::CancelHandle;
use crate::engine::Engine;
use crate::error::{Error, Result};
use crate::generate::{PromptOutput, PromptRows};
use crate::ids::AdapterId;
use crate::params::SessionConfig;
use crate::scheduler::Reply;
use crate::session::Session;
use crate::session::scoring::prompt_output;

/// Number of concurrent prompts of [`in_order`].
const AHEAD: usize = 8;
/// The same of a bidirectional model, whose prompts have no cache.
const AHEAD_WITHOUT_CACHE: usize = 64;

/// A prompt in progress.
pub(super) struct RunningPrompt {
    replies: Receiver<Reply>,
    /// Dropping the session would end its request.
    _session: Session,
}

impl RunningPrompt {
    /// Starts the prompt of `ids` in a session of its own; `rows` are those to read, of a prompt that is not
    /// empty.
    pub fn begin(
        engine: &Engine,
        ids: &[TokenId],
        rows: impl FnOnce() -> PromptRows,
        adapter: Option<AdapterId>,
        cancel: &CancelHandle,
    ) -> Result<Self> {
        let mut session = engine.session(SessionConfig { adapter, ..SessionConfig::default() })?;
        let prompt = session.resolve(ids.into())?;
        let replies = session.begin_prompt(prompt, 0, rows(), cancel)?;
        Ok(Self { replies, _session: session })
    }

    /// Waits for the output.
    pub fn wait(self) -> Result<PromptOutput> {
        prompt_output(&self.replies)
    }
}

/// Results of `items`, in order. Up to 8 run or wait at a time, or 64 of a bidirectional model, as one batch
/// if they fit.
pub(super) fn in_order<I, R, T>(
    engine: &Engine,
    items: impl IntoIterator<Item = I>,
    mut begin: impl FnMut(&I) -> Result<R>,
    wait: fn(R) -> Result<T>,
) -> impl Iterator<Item = Result<T>> {
    let ahead = match engine.model_info().direction {
        Direction::Causal => AHEAD,
        Direction::Bidirectional => AHEAD_WITHOUT_CACHE,
    };
    let mut started: VecDeque<Result<R>> = VecDeque::new();
    let mut items = items.into_iter().peekable();
    std::iter::from_fn(move || {
        while started.len() < ahead
            && let Some(item) = items.peek()
        {
            let running = begin(item);
            // An engine busy with earlier items accepts it after them.
            if matches!(running, Err(Error::Busy { .. })) && started.iter().any(Result::is_ok) {
                break;
            }
            items.next();
            started.push_back(running);
        }
        started.pop_front().map(|running| running.and_then(wait))
    })
}

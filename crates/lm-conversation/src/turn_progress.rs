//! Progress of a turn: from the events of its generation to the events of the reply.

use std::collections::VecDeque;
use std::sync::Arc;

use lm_processors::UnenforcedKeyword;
use lm_session::{
    CancelHandle, Engine, EngineTask, FinishReason, Finished, Generation, SessionEvent, TokenId, Tokenizer,
};
use lm_template::Message;

use crate::config::{OnCancel, OnTokenLimit};
use crate::error::{Error, Result};
use crate::event::{ConversationEvent, Reply, ScoredToken};
use crate::reply_reader::{Piece, ReplyReader};
use crate::resampling::Resampling;
use crate::shared_state::SharedState;
use crate::turn_prompt::{CutReply, TurnPrompt};
use crate::window::Window;

/// Setup of a turn.
pub(crate) struct TurnSetup {
    pub(crate) engine: Engine,
    pub(crate) shared: SharedState,
    pub(crate) cancel: CancelHandle,
    pub(crate) on_cancel: OnCancel,
    pub(crate) on_token_limit: OnTokenLimit,
    pub(crate) turn_prompt: TurnPrompt,
    pub(crate) reader: ReplyReader,
    /// Rejection sampling, if the constraint leaves keywords to validate.
    pub(crate) resampling: Option<Resampling>,
    /// Sliding window, if the reply may exceed the context.
    pub(crate) window: Option<Window>,
    /// True if a reply without a call is an error.
    pub(crate) call_required: bool,
    pub(crate) unenforced: Vec<UnenforcedKeyword>,
    pub(crate) tokenizer: Arc<Tokenizer>,
}

/// State of a turn, besides its generation.
#[derive(Debug)]
pub(crate) struct Progress {
    setup: TurnSetup,
    ready: VecDeque<ConversationEvent>,
    /// Text and reasoning of the returned events.
    partial: (String, String),
    /// Error that ended the turn, returned after the ready events.
    failed: Option<Error>,
    /// True after the last item.
    over: bool,
}

impl Progress {
    pub(crate) fn new(mut setup: TurnSetup) -> Self {
        let continued = setup.turn_prompt.change.continues.as_ref();
        let partial = continued
            .map(|reply| (reply.content.text(), reply.reasoning_content.clone().unwrap_or_default()));
        let partial = partial.unwrap_or_default();
        let ready = setup.turn_prompt.dropped.take().map(ConversationEvent::Dropped).into_iter().collect();
        Self { setup, ready, partial, failed: None, over: false }
    }

    /// Returns the handle that cancels the turn.
    pub(crate) fn canceller(&self) -> CancelHandle {
        self.setup.cancel.clone()
    }

    /// Marks the turn as detached: later ones wait for it, and [`Engine::wait_idle`] for the returned task.
    pub(crate) fn detach(&self) -> EngineTask {
        self.setup.shared.detach();
        self.setup.engine.task()
    }

    /// Notes that the detached turn is read on this thread.
    pub(crate) fn run_here(&self) {
        self.setup.shared.run_here();
    }

    /// Returns the next item that is available without the engine: `Some(None)` is the end.
    pub(crate) fn take_ready(&mut self) -> Option<Option<Result<ConversationEvent>>> {
        if let Some(event) = self.ready.pop_front() {
            match &event {
                ConversationEvent::Text(text) => self.partial.0 += text,
                ConversationEvent::Reasoning(text) => self.partial.1 += text,
                _ => {}
            }
            return Some(Some(Ok(event)));
        }
        if let Some(error) = self.failed.take() {
            return Some(Some(Err(error)));
        }
        self.over.then_some(None)
    }

    /// Handles an event of the generation. Returns the generation that takes its place: another attempt, or
    /// none at the end.
    pub(crate) fn advance(
        &mut self,
        event: Option<lm_session::Result<SessionEvent>>,
    ) -> Option<Option<Generation>> {
        let event = event.unwrap_or(Err(lm_session::Error::EngineStopped));
        let next = event.map_err(Error::from).and_then(|event| match event {
            SessionEvent::Prefill(progress) => {
                let first = self.setup.resampling.as_mut().is_none_or(|reply| reply.note_prefill(progress))
                    && self.setup.window.as_ref().is_none_or(Window::is_first);
                self.ready.extend(first.then_some(ConversationEvent::Prefill(progress)));
                Ok(None)
            }
            SessionEvent::Token { id, text, added, logprobs, steered } => {
                let tokenizer = &self.setup.tokenizer;
                let scored = logprobs.filter(|_| !tokenizer.end_ids().contains(&id));
                let scored = scored.map(|logprobs| ScoredToken::new(id, &logprobs, tokenizer));
                let last = self.setup.window.as_mut().is_some_and(Window::count);
                let piece = Piece { text, added, steered };
                match &mut self.setup.window {
                    Some(window) if last => {
                        window.held = Some((piece, scored));
                        Ok(None)
                    }
                    _ => self.read(piece, scored),
                }
            }
            SessionEvent::PromptLogprobs(logprobs) => {
                let TurnSetup { turn_prompt, tokenizer, .. } = &self.setup;
                let tokens = turn_prompt.ids.iter().skip(1).zip(&logprobs);
                let scored = tokens.map(|(&id, logprobs)| ScoredToken::new(id, logprobs, tokenizer));
                self.ready.push_back(ConversationEvent::PromptLogprobs(scored.collect()));
                Ok(None)
            }
            SessionEvent::Finished(finished) => self.finish(finished),
        });
        match next {
            Ok(None) if self.over => Some(None),
            Ok(next) => next.map(Some),
            Err(error) => {
                self.failed = Some(error);
                self.end();
                Some(None)
            }
        }
    }

    /// Reads a piece of the reply. Returns another attempt if the piece completes an invalid call.
    fn read(&mut self, piece: Piece, scored: Option<ScoredToken>) -> Result<Option<Generation>> {
        let mut events: Vec<_> = scored.map(ConversationEvent::Logprobs).into_iter().collect();
        let read = self.setup.reader.push(&piece, &mut events);
        if self.setup.reader.is_repeated() {
            self.setup.cancel.cancel();
        }
        let Some(resampling) = &mut self.setup.resampling else {
            self.ready.extend(events);
            return read.map(|()| None);
        };
        read?;
        match resampling.push(piece, events) {
            Ok(events) => {
                self.ready.extend(events);
                Ok(None)
            }
            Err(invalid) => self.resample(invalid).map(Some),
        }
    }

    fn resample(&mut self, invalid: Error) -> Result<Generation> {
        let TurnSetup { resampling, shared, reader, .. } = &mut self.setup;
        let (Some(resampling), Some(mut state)) = (resampling, shared.lock_turn()) else {
            return Err(Error::Cancelled);
        };
        let (generation, restarted) = resampling.resample(&mut state.session, reader, invalid)?;
        *reader = restarted;
        Ok(generation)
    }

    /// Moves the sliding window; `None` if the reply ends here.
    fn shift(&mut self, finish: &Finished) -> Result<Option<Generation>> {
        let TurnSetup { window, shared, tokenizer, turn_prompt, .. } = &mut self.setup;
        let Some(window) = window.as_mut().filter(|_| finish.reason == FinishReason::ContextFull) else {
            return Ok(None);
        };
        let mut state = shared.lock_turn().ok_or(Error::Cancelled)?;
        let Some((generation, shift)) = window.shift(&mut state.session, tokenizer, finish)? else {
            return Ok(None);
        };
        drop(state);
        turn_prompt.change.dropped = window.dropped();
        self.ready.push_back(ConversationEvent::ContextShift(shift));
        Ok(Some(generation))
    }

    /// Ends the reply, or returns another attempt at it.
    fn finish(&mut self, mut finish: Finished) -> Result<Option<Generation>> {
        if self.setup.reader.is_repeated() {
            // The reply ended before the repeat, whatever the engine did until `read` cancelled it.
            (finish.reason, finish.steered) = (FinishReason::EndToken, None);
        }
        if let Some(generation) = self.shift(&finish)? {
            return Ok(Some(generation));
        }
        if let Some(window) = &mut self.setup.window {
            window.correct(&mut finish);
            if let Some((piece, scored)) = window.held.take() {
                self.read(piece, scored)?;
            }
        }
        match finish.reason {
            FinishReason::Cancelled => return self.end_early(finish, Error::Cancelled),
            FinishReason::DeadlineExceeded => return self.end_early(finish, Error::DeadlineExceeded),
            _ => {}
        }
        let mut events = Vec::new();
        let mut message = self.setup.reader.finish(&mut events)?;
        let mut resampled = 0;
        if let Some(resampling) = &mut self.setup.resampling {
            resampled = resampling.rejected();
            resampling.correct(&mut finish);
            let has_cut_call = self.setup.reader.cut_call().is_some();
            events = match resampling.finish(events, &message, has_cut_call) {
                Ok(events) => events,
                Err(invalid) => return self.resample(invalid).map(Some),
            };
        }
        self.ready.extend(events);
        let cut_call = self.setup.reader.cut_call().is_some();
        if self.setup.call_required && message.tool_calls.is_empty() && !cut_call {
            return Err(Error::NoCall { reason: finish.reason, text: message.content.text() });
        }
        if finish.is_cut_off() && self.setup.on_token_limit == OnTokenLimit::Error {
            return Err(Error::TokenLimit { reason: finish.reason, text: message.content.text() });
        }
        prepend(&mut message, &self.setup.turn_prompt.before);
        self.complete(message, finish, resampled)
    }

    /// Ends a cancelled turn, with `error` or with the partial reply.
    fn end_early(&mut self, mut finish: Finished, error: Error) -> Result<Option<Generation>> {
        match self.setup.on_cancel {
            OnCancel::Rollback => Err(error),
            OnCancel::KeepPartial => {
                let mut resampled = 0;
                if let Some(resampling) = &self.setup.resampling {
                    resampling.correct(&mut finish);
                    resampled = resampling.rejected();
                }
                let message = self.partial_message();
                self.complete(message, finish, resampled)
            }
        }
    }

    fn partial_message(&mut self) -> Message {
        let (text, reasoning) = std::mem::take(&mut self.partial);
        let mut message = Message::assistant(text);
        message.reasoning_content = Some(reasoning).filter(|text| !text.is_empty());
        message
    }

    /// Adds the turn to the history and sends the last event.
    fn complete(
        &mut self,
        message: Message,
        mut finish: Finished,
        resampled: usize,
    ) -> Result<Option<Generation>> {
        let TurnSetup { unenforced, turn_prompt, .. } = &mut self.setup;
        // The usage of the last generation includes the earlier ones.
        finish.usage.continued_tokens = turn_prompt.written;
        let (unenforced, polyfills) = (std::mem::take(unenforced), turn_prompt.polyfills.clone());
        self.add_to_history(message.clone(), Some(&finish)).ok_or(Error::Cancelled)?;
        self.over = true;
        let reasoning_tokens = self.setup.reader.reasoning_tokens();
        let cut_call = self.setup.reader.cut_call().cloned();
        let (model, raw) = (self.setup.engine.name().to_owned(), self.setup.reader.take_raw());
        let reply = Reply {
            model,
            raw,
            unenforced,
            resampled,
            polyfills,
            cut_call,
            reasoning_tokens,
            ..Reply::new(message, finish)
        };
        self.ready.push_back(ConversationEvent::Finished(reply));
        Ok(None)
    }

    /// Adds the turn to the history; `finish` is `None` for a turn that was dropped. `None` if another turn
    /// has started.
    fn add_to_history(&mut self, reply: Message, finish: Option<&Finished>) -> Option<()> {
        let mut state = self.setup.shared.lock_turn()?;
        let open = self.open_reply(state.session.tokens(), finish);
        state.complete(std::mem::take(&mut self.setup.turn_prompt.change), reply, open);
        Some(())
    }

    /// Returns the reply as tokens, if it was cut off: `ids` are the ids of the session.
    fn open_reply(&self, mut ids: Vec<TokenId>, finish: Option<&Finished>) -> Option<CutReply> {
        let TurnSetup { turn_prompt, reader, tokenizer, window, .. } = &self.setup;
        if window.as_ref().is_some_and(|window| !window.is_first()) {
            return None; // Its start is no longer in the session.
        }
        let steered = finish.and_then(|finish| finish.steered);
        let ended = finish.is_some_and(|finish| {
            matches!(finish.reason, FinishReason::EndToken | FinishReason::StopString(_))
        });
        let prompt_tokens = turn_prompt.ids.len() - turn_prompt.written;
        // The end of a steered text is not the model's.
        ids.truncate(steered.map_or(ids.len(), |steered| prompt_tokens + steered.from));
        let at_end = ids.last().is_some_and(|last| tokenizer.end_ids().contains(last));
        if reader.has_call() || at_end || (ended && steered.is_none()) {
            return None;
        }
        let written = ids.len().checked_sub(prompt_tokens)?;
        let TurnPrompt { media, tail, polyfills, before, .. } = turn_prompt.clone();
        Some(CutReply { ids, media, written, tail, polyfills, before })
    }

    /// Ends the turn early: the history is as before it, or has the partial reply.
    fn end(&mut self) {
        self.over = true;
        if let Some(mut state) = self.setup.shared.lock_turn() {
            state.end_turn();
        }
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        if self.over {
            return;
        }
        if self.setup.on_cancel == OnCancel::KeepPartial {
            let reply = self.partial_message();
            let _ = self.add_to_history(reply, None); // Another turn may have started.
            self.setup.cancel.cancel();
        }
        self.end();
    }
}

/// Prepends text and reasoning to a reply.
fn prepend(message: &mut Message, (text, reasoning): &(String, String)) {
    if !text.is_empty() {
        message.content = format!("{text}{}", message.content.text()).into();
    }
    if !reasoning.is_empty() {
        let rest = message.reasoning_content.take().unwrap_or_default();
        message.reasoning_content = Some(format!("{reasoning}{rest}"));
    }
}

impl std::fmt::Debug for TurnSetup {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("TurnSetup").field("change", &self.turn_prompt.change).finish_non_exhaustive()
    }
}

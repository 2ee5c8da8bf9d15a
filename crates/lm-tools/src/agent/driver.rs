//! Course of a turn: reply → calls → reply, until there is an answer or a reason to stop.

use super::limits::Counts;
use super::state::Shared;
use super::{AgentEvent, AgentReply, AgentSettings, StopReason, spans};
use crate::{Error, Result, Toolset};
use futures_core::Stream;
use lm_conversation::{ConversationEvent, FinishReason, ToolChoice, Turn, TurnOptions};
use lm_template::Message;
use std::future::poll_fn;
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::Poll;
use std::time::Instant;

/// Place of the event that is handed to the reader.
#[derive(Clone, Default)]
pub(super) struct Events(Arc<Mutex<Option<AgentEvent>>>);

impl Events {
    pub fn take(&self) -> Option<AgentEvent> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).take()
    }

    /// Hands out an event; the turn goes on when the reader asks for the next one.
    pub async fn emit(&self, event: AgentEvent) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = Some(event);
        let mut handed_out = false;
        poll_fn(|_| if std::mem::replace(&mut handed_out, true) { Poll::Ready(()) } else { Poll::Pending })
            .await;
    }
}

/// Execution of a turn.
pub(super) struct Driver {
    pub state: Shared,
    pub tools: Toolset,
    pub settings: AgentSettings,
    pub options: TurnOptions,
    pub events: Events,
    pub counts: Counts,
    /// True if the model may only answer.
    pub must_answer: bool,
}

impl Driver {
    pub fn new(
        state: Shared,
        tools: Toolset,
        settings: AgentSettings,
        options: TurnOptions,
        events: Events,
    ) -> Self {
        let must_answer = settings.limits.max_rounds == 0;
        Self { state, tools, settings, options, events, counts: Counts::default(), must_answer }
    }

    /// Runs the turn from its first reply on.
    pub async fn run(mut self, first: Turn) -> Result<AgentReply> {
        let reply = self.replies(first).await;
        match &reply {
            Ok(reply) => spans::record_reply(reply),
            Err(_) => self.state.lock().end(),
        }
        reply
    }

    async fn replies(&mut self, mut turn: Turn) -> Result<AgentReply> {
        loop {
            let (message, cut) = self.reply(turn).await?;
            if let Some(stop) = cut {
                return self.state.lock().finish(message, stop);
            }
            if message.tool_calls.is_empty() {
                return self.state.lock().finish(message, StopReason::Answered);
            }
            if let Some(stop) = self.calls(&message.tool_calls).await?.or_else(|| self.exhausted()) {
                return self.state.lock().finish(message, stop);
            }
            turn = match self.next_reply() {
                Ok(turn) => turn,
                Err(error) => {
                    let stop = self.stop_of(&error).ok_or(error)?;
                    return self.state.lock().finish(message, stop);
                }
            };
        }
    }

    /// Returns the limit that made a reply fail, after which the work of the turn is a result: not before a call has run, unless it is the
    /// time limit.
    fn stop_of(&self, error: &Error) -> Option<StopReason> {
        use lm_conversation::Error::{DeadlineExceeded, Session};
        use lm_session::Error::{BudgetTooSmall, PromptTooLong};
        let Error::Conversation(error) = error else { return None };
        match *error {
            DeadlineExceeded => Some(StopReason::TimeLimit),
            _ if self.counts.rounds == 0 => None,
            Session(PromptTooLong { prompt_tokens, context_tokens }) => {
                Some(StopReason::ContextFull { prompt_tokens, context_tokens })
            }
            Session(BudgetTooSmall { .. }) => {
                let max = self.settings.limits.max_output_tokens;
                max.map(|max_output_tokens| StopReason::TokenLimit { max_output_tokens })
            }
            _ => None,
        }
    }

    /// Options of the next reply.
    pub fn reply_options(&self) -> TurnOptions {
        let mut options = self.options.clone();
        let state = self.state.lock();
        options.tool_choice = match self.must_answer {
            true => ToolChoice::None,
            false => {
                let choices = &self.settings.tool_choices;
                choices.of(state.finished.len(), &state.steps, &self.options.tool_choice)
            }
        };
        let left = self.counts.tokens_left(&self.settings.limits);
        options.max_output_tokens = [options.max_output_tokens, left].into_iter().flatten().min();
        options
    }

    fn next_reply(&self) -> Result<Turn> {
        let options = self.reply_options();
        self.state.lock().next_reply(options)
    }

    /// Reads a reply of the model to its end, or to a limit.
    async fn reply(&mut self, turn: Turn) -> Result<(Message, Option<StopReason>)> {
        let span = spans::chat();
        let mut events = turn.into_stream();
        let mut text = String::new();
        loop {
            self.check_cancelled()?;
            let event = poll_fn(|context| Pin::new(&mut events).poll_next(context)).await;
            let event = event.ok_or(Error::Cancelled)?;
            let event = match event.map_err(Error::from) {
                Ok(event) => event,
                Err(error) => {
                    let stop = self.stop_of(&error).ok_or(error)?;
                    return Ok((Message::assistant(text), Some(stop)));
                }
            };
            match &event {
                ConversationEvent::Text(more) => text += more,
                ConversationEvent::Dropped(dropped) => self.state.lock().dropped(dropped),
                ConversationEvent::Finished(reply) => {
                    let (message, reason) = (reply.message.clone(), reply.finish.reason.clone());
                    spans::record_usage(&span, reply);
                    let usage = &reply.finish.usage;
                    self.counts.output_tokens += usage.output_tokens.saturating_sub(usage.continued_tokens);
                    self.state.lock().reply_ended(reply);
                    self.events.emit(event.into()).await;
                    return self.ended(message, &reason);
                }
                _ => {}
            }
            self.events.emit(event.into()).await;
        }
    }

    pub fn check_cancelled(&self) -> Result<()> {
        if self.options.cancel.is_cancelled() { Err(Error::Cancelled) } else { Ok(()) }
    }

    /// Returns the outcome of a complete reply.
    fn ended(&self, message: Message, reason: &FinishReason) -> Result<(Message, Option<StopReason>)> {
        self.check_cancelled()?;
        let left = self.counts.tokens_left(&self.settings.limits);
        let stop = match reason {
            FinishReason::Cancelled => return Err(Error::Cancelled),
            FinishReason::DeadlineExceeded => Some(StopReason::TimeLimit),
            FinishReason::MaxOutputTokens if left == Some(0) => self.exhausted(),
            _ => None,
        };
        // Complete calls of a reply at its limit have results, too.
        let stop = stop.filter(|_| message.tool_calls.is_empty());
        Ok((message, stop))
    }

    /// Returns the limit that leaves nothing to a further reply.
    pub fn exhausted(&self) -> Option<StopReason> {
        let limits = &self.settings.limits;
        if let (Some(max_output_tokens), Some(0)) =
            (limits.max_output_tokens, self.counts.tokens_left(limits))
        {
            return Some(StopReason::TokenLimit { max_output_tokens });
        }
        let is_late = self.options.deadline.is_some_and(|deadline| Instant::now() >= deadline);
        is_late.then_some(StopReason::TimeLimit)
    }
}

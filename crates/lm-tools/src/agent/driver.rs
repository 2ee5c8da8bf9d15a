//! Turn driver: reply → calls → reply, until an answer or a reason to stop.

use super::invented_result::{HeldText, is_result};
use super::limits::Counts;
use super::state::Shared;
use super::{AgentEvent, AgentReply, AgentSettings, spans};
use crate::error::{Error, Result};
use crate::steps::StopReason;
use crate::toolset::Toolset;
use futures_core::Stream;
use lm_conversation::{ConversationEvent, FinishReason, Reply, ToolChoice, Turn, TurnOptions};
use lm_template::Message;
use std::future::poll_fn;
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::Poll;
use std::time::{Duration, Instant};

/// Slot for the event handed to the reader.
#[derive(Clone, Default)]
pub(super) struct Events(Arc<Mutex<Option<AgentEvent>>>);

impl Events {
    pub fn take(&self) -> Option<AgentEvent> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).take()
    }

    /// Hands out an event; the turn continues when the reader asks for the next one.
    pub async fn emit(&self, event: AgentEvent) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = Some(event);
        let mut handed_out = false;
        poll_fn(|_| if std::mem::replace(&mut handed_out, true) { Poll::Ready(()) } else { Poll::Pending })
            .await;
    }

    /// Hands out text, if there is any.
    async fn emit_text(&self, text: Option<String>) {
        if let Some(text) = text {
            self.emit(AgentEvent::Text(text)).await;
        }
    }
}

/// Start of a turn.
#[expect(clippy::large_enum_variant, reason = "one at a time")]
pub(super) enum First {
    /// The model replies.
    Reply(Turn),
    /// A hook ends the turn at the external results.
    Stopped(StopReason),
}

/// End of a reply.
enum Replied {
    /// Its message, which may have calls.
    Complete(Message),
    /// Its message, and the limit that it reached.
    Stopped(Message, StopReason),
    /// It is in the form of a tool's result.
    Result,
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
    /// True if the turn has discarded a reply in the form of a result.
    pub discarded: bool,
    /// End of the running round.
    round_ends: Option<Instant>,
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
        let counts = Counts::default();
        Self {
            state,
            tools,
            settings,
            options,
            events,
            counts,
            must_answer,
            discarded: false,
            round_ends: None,
        }
    }

    /// Starts the time limit of a round.
    pub fn begin_round(&mut self) {
        self.round_ends = after(self.settings.limits.round_timeout);
    }

    /// Earlier one of the ends of the turn and of its running round.
    pub fn deadline(&self) -> Option<Instant> {
        [self.options.deadline, self.round_ends].into_iter().flatten().min()
    }

    /// Runs the turn from its start.
    pub async fn run(mut self, first: First) -> Result<AgentReply> {
        let reply = self.replies(first).await;
        match &reply {
            Ok(reply) => spans::record_reply(reply),
            Err(_) => self.state.end(),
        }
        reply
    }

    async fn replies(&mut self, first: First) -> Result<AgentReply> {
        let given = self.state.lock().steps.clone();
        for step in given {
            self.events.emit(AgentEvent::ToolResult(step)).await;
        }
        let mut turn = match first {
            First::Reply(turn) => turn,
            First::Stopped(stop) => return self.state.lock().stop(stop),
        };
        loop {
            let (message, next) = match self.reply(turn).await? {
                Replied::Stopped(message, stop) => return self.state.lock().finish(message, stop),
                Replied::Complete(message) if message.tool_calls.is_empty() => {
                    return self.state.lock().finish(message, StopReason::Answered);
                }
                Replied::Complete(message) => {
                    if let Some(stop) = self.calls(&message.tool_calls).await? {
                        return self.state.lock().finish(message, stop);
                    }
                    (message, self.next_reply())
                }
                Replied::Result => (Message::assistant(""), self.reply_again()),
            };
            turn = match next {
                Ok(turn) => turn,
                Err(error) => {
                    let stop = self.stop_of(&error).ok_or(error)?;
                    return self.state.lock().finish(message, stop);
                }
            };
        }
    }

    /// Returns the limit that made a reply fail, so that the work of the turn is kept: only after a call has
    /// run, or for the time limit.
    fn stop_of(&self, error: &Error) -> Option<StopReason> {
        use lm_conversation::Error::{DeadlineExceeded, Session};
        use lm_session::Error::{BudgetTooSmall, PromptTooLong};
        let Error::Conversation(error) = error else { return None };
        match *error {
            DeadlineExceeded => Some(self.late().unwrap_or(StopReason::TimeLimit)),
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
        let mut options = TurnOptions { deadline: self.deadline(), ..self.options.clone() };
        options.tool_choice = if self.must_answer { ToolChoice::None } else { self.tool_choice() };
        let left = self.counts.tokens_left(&self.settings.limits);
        options.max_output_tokens = [options.max_output_tokens, left].into_iter().flatten().min();
        options
    }

    /// Tool choice of the next reply. A choosing function may use the agent: it runs without the lock of the
    /// state.
    fn tool_choice(&self) -> ToolChoice {
        let (replies, steps) = {
            let state = self.state.lock();
            (state.finished.len(), state.steps.clone())
        };
        self.settings.tool_choices.of(replies, &steps, &self.options.tool_choice)
    }

    fn next_reply(&mut self) -> Result<Turn> {
        self.begin_round();
        let options = self.reply_options();
        self.state.lock().next_reply(options)
    }

    /// Reads a reply of the model to its end, or to a limit.
    async fn reply(&mut self, turn: Turn) -> Result<Replied> {
        let span = spans::chat();
        let discards_results = self.discards_results();
        let mut events = turn.into_stream();
        let (mut text, mut held) = (String::new(), HeldText::default());
        loop {
            self.check_cancelled()?;
            let event = poll_fn(|context| Pin::new(&mut events).poll_next(context)).await;
            let event = event.ok_or(Error::Cancelled)?;
            let event = match event.map_err(Error::from) {
                Ok(event) => event,
                Err(error) => {
                    let stop = self.stop_of(&error).ok_or(error)?;
                    return Ok(Replied::Stopped(Message::assistant(text), stop));
                }
            };
            match &event {
                ConversationEvent::Text(more) => {
                    text += more;
                    if discards_results {
                        self.events.emit_text(held.push(more)).await;
                        continue;
                    }
                }
                ConversationEvent::Dropped(dropped) => self.state.lock().dropped(dropped),
                ConversationEvent::Finished(reply) => {
                    let reply = reply.clone();
                    spans::record_usage(&span, &reply);
                    let usage = &reply.finish.usage;
                    self.counts.output_tokens += usage.output_tokens.saturating_sub(usage.continued_tokens);
                    self.state.lock().reply_ended(&reply);
                    if discards_results && is_result(&text) && reply.message.tool_calls.is_empty() {
                        self.check_cancelled()?;
                        return Ok(Replied::Result);
                    }
                    self.events.emit_text(held.take()).await;
                    self.events.emit(event.into()).await;
                    return self.ended(reply);
                }
                ConversationEvent::ToolCallStarted { .. } | ConversationEvent::ToolCall(_) => {
                    self.events.emit_text(held.take()).await;
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
    fn ended(&self, reply: Reply) -> Result<Replied> {
        self.check_cancelled()?;
        let Reply { message, finish, cut_call, .. } = reply;
        let left = self.counts.tokens_left(&self.settings.limits);
        let stop = match finish.reason {
            FinishReason::Cancelled => return Err(Error::Cancelled),
            FinishReason::DeadlineExceeded => Some(self.late().unwrap_or(StopReason::TimeLimit)),
            _ if finish.is_cut_off() && left == Some(0) => self.exhausted(),
            _ => cut_call.map(|call| StopReason::CallCutOff { name: call.name }),
        };
        // Complete calls of a reply at its limit have results, too.
        let stop = stop.filter(|_| message.tool_calls.is_empty());
        Ok(match stop {
            Some(stop) => Replied::Stopped(message, stop),
            None => Replied::Complete(message),
        })
    }

    /// Returns the limit that rules out a further reply.
    pub fn exhausted(&self) -> Option<StopReason> {
        let limits = &self.settings.limits;
        if let (Some(max_output_tokens), Some(0)) =
            (limits.max_output_tokens, self.counts.tokens_left(limits))
        {
            return Some(StopReason::TokenLimit { max_output_tokens });
        }
        self.late()
    }

    /// Returns the time limit that has passed.
    pub fn late(&self) -> Option<StopReason> {
        let has_passed = |ends: Option<Instant>| ends.is_some_and(|ends| Instant::now() >= ends);
        if has_passed(self.options.deadline) {
            return Some(StopReason::TimeLimit);
        }
        has_passed(self.round_ends).then_some(StopReason::RoundTimeLimit)
    }
}

/// End of a time limit that starts now.
pub(super) fn after(timeout: Option<Duration>) -> Option<Instant> {
    timeout.and_then(|timeout| Instant::now().checked_add(timeout))
}

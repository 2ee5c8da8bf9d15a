//! State of a running turn, shared by its reader and its agent: the steps, and the history when the turn
//! ends.

use super::external::{Answered, ExternalCall};
use super::{AgentReply, Hook};
use crate::error::{Error, Result};
use crate::execution::not_run;
use crate::steps::{AgentStep, CallOutcome, StopReason};
use crate::tool_error::ToolErrorKind;
use lm_conversation::{
    CancelHandle, Conversation, DroppedHistory, DroppedTurns, Finished, OnCancel, Reply, Turn, TurnOptions,
};
use lm_template::{Message, Role, ToolCall};
use serde_json::json;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// State of a turn, shared by its reader and by the agent's next turn, which ends it.
#[derive(Clone)]
pub(super) struct Shared(Arc<Mutex<TurnState>>);

impl Shared {
    pub fn new(state: TurnState) -> Self {
        Self(Arc::new(Mutex::new(state)))
    }

    pub fn lock(&self) -> MutexGuard<'_, TurnState> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Ends the turn without a reply.
    pub fn end(&self) {
        self.lock().end();
        self.record();
    }

    /// Shows the steps to the hooks, as in the history. A hook may use the agent: it runs without the lock.
    pub fn record(&self) {
        let (hooks, steps) = {
            let mut state = self.lock();
            (state.hooks.clone(), std::mem::take(&mut state.unrecorded))
        };
        for step in &steps {
            for hook in &hooks {
                if catch_unwind(AssertUnwindSafe(|| hook.record(step))).is_err() {
                    tracing::error!(tool = step.call.name, "a hook panicked while it recorded a step");
                }
            }
        }
    }
}

pub(super) struct TurnState {
    conversation: Conversation,
    hooks: Vec<Arc<dyn Hook>>,
    cancel: CancelHandle,
    on_cancel: OnCancel,
    /// False after the turn: the conversation no longer belongs to it.
    is_open: bool,
    /// Length of the history before the turn, without a reply that it continues.
    before: usize,
    /// The original of the reply that it continues.
    continues: Option<Message>,
    /// Messages that are removed from the start of the history with the running reply's end.
    removing: Vec<Message>,
    /// The removed messages.
    removed: Vec<Message>,
    /// The last reply with calls, until a reply follows.
    round: Option<Round>,
    /// Number of the round, from 1.
    pub rounds: usize,
    pub steps: Vec<AgentStep>,
    /// Steps that the hooks have not recorded.
    unrecorded: Vec<AgentStep>,
    pub finished: Vec<Finished>,
    /// Calls that the turn has handed over to the caller.
    pub external: Vec<ExternalCall>,
}

/// A reply with calls.
struct Round {
    calls: Vec<ToolCall>,
    /// Start of the calls.
    started: Option<Instant>,
    /// Numbers of the calls that the caller runs.
    external: Vec<usize>,
    /// Results by the numbers of the calls.
    results: Vec<Option<Message>>,
}

impl Round {
    fn new(calls: Vec<ToolCall>, results: Vec<Option<Message>>) -> Self {
        Self { calls, started: None, external: Vec::new(), results }
    }
}

impl TurnState {
    pub fn new(conversation: Conversation, hooks: Vec<Arc<dyn Hook>>, options: &TurnOptions) -> Self {
        Self {
            conversation,
            hooks,
            cancel: options.cancel.clone(),
            on_cancel: options.on_cancel,
            is_open: true,
            before: 0,
            continues: None,
            removing: Vec::new(),
            removed: Vec::new(),
            round: None,
            rounds: 0,
            steps: Vec::new(),
            unrecorded: Vec::new(),
            finished: Vec::new(),
            external: Vec::new(),
        }
    }

    pub fn history(&self) -> Vec<Message> {
        self.conversation.history()
    }

    /// Returns true until the turn has ended.
    pub fn is_open(&self) -> bool {
        self.is_open
    }

    /// Fails if the turn was ended by its agent.
    fn open(&self) -> Result<()> {
        if self.is_open { Ok(()) } else { Err(Error::Cancelled) }
    }

    /// Starts the model's first reply; without input it continues the last one.
    pub fn first_reply(&mut self, input: Option<Vec<Message>>, options: TurnOptions) -> Result<Turn> {
        let mut history = self.conversation.history();
        let turn = match input {
            Some(input) => self.conversation.stream(input, options)?,
            None => {
                self.continues = history.pop();
                self.conversation.continue_reply(options)?
            }
        };
        self.before = history.len();
        Ok(turn)
    }

    /// Continues from the last reply's calls, whose results the caller has completed. Returns the history so
    /// far.
    pub fn resume(&mut self, answered: Answered, steps: Vec<AgentStep>) -> Vec<Message> {
        let history = self.conversation.history();
        self.conversation.set_history(history[..=answered.reply].to_vec());
        self.before = answered.reply;
        self.rounds = answered.round + 1;
        self.round = Some(Round::new(answered.calls, answered.results.into_iter().map(Some).collect()));
        self.steps = steps;
        history
    }

    /// Starts the model's reply to the results of the round and further messages; if it cannot start, the
    /// history is `before`.
    pub fn reply_to(
        &mut self,
        rest: Vec<Message>,
        options: TurnOptions,
        before: Vec<Message>,
    ) -> Result<Turn> {
        let input: Vec<_> = self.results().chain(rest).collect();
        let started = self.conversation.stream(input, options);
        Ok(started.inspect_err(|_| self.conversation.set_history(before))?)
    }

    /// Starts the model's next reply, to the results of the last round.
    pub fn next_reply(&mut self, options: TurnOptions) -> Result<Turn> {
        self.open()?;
        let results: Vec<_> = self.results().collect();
        Ok(self.conversation.stream(results, options)?)
    }

    /// Returns true if the running reply continues an earlier one.
    pub fn continues_reply(&self) -> bool {
        self.continues.is_some()
    }

    /// Removes the last reply and the messages that it answers from the history; returns these.
    pub fn discard_reply(&mut self) -> Result<Vec<Message>> {
        self.open()?;
        let mut history = self.conversation.history();
        history.pop();
        let role = history.last().map(|last| last.role.clone());
        let first = history.iter().rposition(|message| Some(&message.role) != role.as_ref());
        let input = history.split_off(first.map_or(0, |before| before + 1));
        self.conversation.set_history(history);
        Ok(input)
    }

    /// Starts the model's reply to messages that [`Self::discard_reply`] has removed.
    pub fn reply_to_input(&mut self, input: Vec<Message>, options: TurnOptions) -> Result<Turn> {
        Ok(self.conversation.stream(input, options)?)
    }

    /// Records the messages omitted from the prompt of the running reply.
    pub fn dropped(&mut self, dropped: &DroppedTurns) {
        if dropped.history == DroppedHistory::Removed {
            self.removing = dropped.messages.clone();
        }
    }

    /// Records a complete reply.
    pub fn reply_ended(&mut self, reply: &Reply) {
        self.before = self.before.saturating_sub(self.removing.len());
        self.removed.append(&mut self.removing);
        self.finished.push(reply.finish.clone());
        let calls = reply.message.tool_calls.clone();
        self.rounds += usize::from(!calls.is_empty());
        let results = vec![None; calls.len()];
        self.round = (!calls.is_empty()).then_some(Round::new(calls, results));
    }

    /// Records the start of the round's calls, except external ones.
    pub fn begin_calls(&mut self, external: Vec<usize>) -> Result<()> {
        self.open()?;
        if let Some(round) = &mut self.round {
            (round.started, round.external) = (Some(Instant::now()), external);
        }
        Ok(())
    }

    /// Adds the step of a call of the round.
    pub fn add(&mut self, number: usize, step: AgentStep) -> Result<()> {
        self.open()?;
        self.push(number, step);
        Ok(())
    }

    fn push(&mut self, number: usize, step: AgentStep) {
        self.unrecorded.push(step.clone());
        if let Some(result) = self.round.as_mut().and_then(|round| round.results.get_mut(number)) {
            *result = Some(step.result.clone());
        }
        self.steps.push(step);
    }

    /// Queues the steps with external results for recording.
    pub fn record_all(&mut self) {
        self.unrecorded.clone_from(&self.steps);
    }

    /// Results of the round, in the order of its calls.
    fn results(&self) -> impl Iterator<Item = Message> {
        self.round.iter().flat_map(|round| round.results.iter().flatten().cloned())
    }

    /// Hands calls over to the caller; returns the reason for the end of the turn.
    pub fn hand_over(&mut self, external: Vec<ExternalCall>) -> StopReason {
        let calls = external.iter().map(ExternalCall::handed_over).collect();
        self.external = external;
        StopReason::ExternalCalls { calls }
    }

    /// Ends the turn with its last message. The results of the round are in the history.
    pub fn finish(&mut self, message: Message, stop: StopReason) -> Result<AgentReply> {
        self.open()?;
        self.is_open = false;
        let mut history = self.conversation.history();
        if history.last().is_some_and(|last| !last.tool_calls.is_empty()) {
            history.extend(self.results());
            self.conversation.set_history(history);
        }
        Ok(AgentReply { message, stop, steps: self.steps.clone(), finished: self.finished.clone() })
    }

    /// Ends the turn after the external results, before a reply to them.
    pub fn stop(&mut self, stop: StopReason) -> Result<AgentReply> {
        let reply = self.conversation.history().pop().unwrap_or_default();
        self.finish(reply, stop)
    }

    /// Ends the turn without a reply. Started calls stay in the history with their results, since their side
    /// effects remain; without any, the history is as before the turn.
    fn end(&mut self) {
        if !std::mem::take(&mut self.is_open) {
            return;
        }
        self.cancel.cancel();
        self.conversation.abort();
        self.complete_round();
        let mut history = self.conversation.history();
        let turn = history.split_off(self.before.min(history.len()));
        let continues = self.continues.take();
        let mut settled = self.settled(turn.clone());
        if settled.is_empty() {
            settled.extend(continues);
            history.splice(..0, self.removed.drain(..));
        }
        if settled != turn {
            history.extend(settled);
            self.conversation.set_history(history);
        }
    }

    /// Gives a result to each call of the round without one, if any of them started.
    fn complete_round(&mut self) {
        let Some(Round { calls, started, external, results }) = &self.round else { return };
        let started = *started;
        if started.is_none() && results.iter().all(Option::is_none) {
            return;
        }
        let missing = (0..calls.len()).filter(|&number| results[number].is_none());
        let missing = missing.map(|number| (number, calls[number].clone(), external.contains(&number)));
        for (number, call, is_external) in missing.collect::<Vec<_>>() {
            let own_start = started.filter(|_| !is_external);
            let (outcome, result) = match own_start {
                Some(_) => (CallOutcome::Abandoned, refused(&call, ABANDONED)),
                None => (CallOutcome::NotRun, not_run(&call)),
            };
            let step = AgentStep {
                outcome,
                error: Some(ToolErrorKind::Cancelled),
                attempts: 0,
                elapsed_ms: own_start.map_or(0, |start| milliseconds(start.elapsed())),
                ..AgentStep::new(self.rounds - 1, call, result)
            };
            self.push(number, step);
        }
    }

    /// Completes the messages of a turn without a reply: a round without results is dropped.
    fn settled(&self, mut turn: Vec<Message>) -> Vec<Message> {
        let mut results = self.results().peekable();
        if let Some(reply) = turn.pop_if(|last| !last.tool_calls.is_empty())
            && results.peek().is_some()
        {
            turn.push(reply);
            turn.extend(results);
        }
        // A reply that was cancelled before its first token.
        turn.pop_if(|last| {
            last.role == Role::Assistant && last.content.is_empty() && last.reasoning_content.is_none()
        });
        let is_kept = self.on_cancel == OnCancel::KeepPartial
            && turn.last().is_some_and(|last| last.role == Role::Assistant);
        if self.steps.is_empty() && !is_kept { Vec::new() } else { turn }
    }
}

const ABANDONED: &str = "the turn was ended before the result of the call; it may have taken effect";

/// Milliseconds, as in an [`AgentStep`].
pub(super) fn milliseconds(elapsed: Duration) -> u64 {
    u64::try_from(elapsed.as_millis()).unwrap_or(u64::MAX)
}

/// Result of a call without a tool result, with the reason.
pub(super) fn refused(call: &ToolCall, reason: &str) -> Message {
    let error = json!({"tool_name": call.name, "error": reason});
    Message::tool(call.id.as_deref(), call.name.as_str(), error)
}

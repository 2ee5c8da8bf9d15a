//! Event stream of one turn of an agent.

use super::{Agent, AgentEvent, AgentReply, AgentStep};
use crate::execution::not_run;
use crate::{Error, Result, RunningCalls};
use lm_conversation::{
    CancelHandle, ConversationEvent, DroppedHistory, Finished, OnCancel, ToolChoice, Turn, TurnOptions,
};
use lm_template::{Message, Role, ToolCall};
use std::collections::VecDeque;
use std::iter::FusedIterator;

/// Events of one turn; the last one is [`AgentEvent::Finished`] or an error.
///
/// The calls of a reply run on threads of their own ([`CallLimits`](crate::CallLimits)), and their results come in the order of the
/// calls. Dropping the stream before its end cancels the turn.
#[derive(Debug)]
#[must_use = "a stream that is dropped is cancelled"]
pub struct AgentStream<'a> {
    agent: &'a mut Agent,
    /// `None` after the turn.
    run: Option<Run>,
}

/// State of a turn.
#[derive(Debug)]
struct Run {
    /// Length of the history before the turn, without a reply that it continues.
    before: usize,
    /// The reply that it continues, as it was.
    continues: Option<Message>,
    /// Messages that are removed from the start of the history with the running reply's end.
    removing: Vec<Message>,
    /// Those that were.
    removed: Vec<Message>,
    options: TurnOptions,
    /// The model's reply that is being generated.
    turn: Option<Turn>,
    /// Calls of the model's last reply without a result yet.
    calls: VecDeque<ToolCall>,
    /// Their execution, once it has begun.
    running: Option<RunningCalls>,
    /// Results of that reply's other calls.
    results: Vec<Message>,
    answer: Option<Message>,
    steps: Vec<AgentStep>,
    finished: Vec<Finished>,
}

impl<'a> AgentStream<'a> {
    /// Starts a turn; without input it continues the last reply.
    pub(super) fn start(
        agent: &'a mut Agent,
        input: Option<Vec<Message>>,
        mut options: TurnOptions,
    ) -> Result<Self> {
        options.cancel = options.cancel.child();
        if agent.max_rounds == 0 {
            options.tool_choice = ToolChoice::None;
        }
        agent.conversation.abort();
        let mut history = agent.conversation.history();
        let (turn, continues) = match input {
            Some(input) => (agent.conversation.stream(input, options.clone())?, None),
            None => (agent.conversation.continue_reply(options.clone())?, history.pop()),
        };
        let run = Run {
            before: history.len(),
            continues,
            removing: Vec::new(),
            removed: Vec::new(),
            turn: Some(turn),
            options,
            calls: VecDeque::new(),
            running: None,
            results: Vec::new(),
            answer: None,
            steps: Vec::new(),
            finished: Vec::new(),
        };
        Ok(Self { agent, run: Some(run) })
    }

    /// Returns the handle that cancels this turn alone, from any thread: within one step of the engine, and the running tools as [`Toolset::start`](crate::Toolset::start) says.
    pub fn canceller(&self) -> CancelHandle {
        self.run.as_ref().map_or_else(CancelHandle::new, |run| run.options.cancel.clone())
    }
}

impl Run {
    /// Advances to the next event: of the model, the result of a call, or the answer.
    fn next(&mut self, agent: &mut Agent) -> Result<AgentEvent> {
        if self.options.cancel.is_cancelled() {
            return Err(Error::Cancelled);
        }
        if let Some(message) = self.answer.take() {
            let (steps, finished) = (std::mem::take(&mut self.steps), std::mem::take(&mut self.finished));
            return Ok(AgentEvent::Finished(AgentReply { message, steps, finished }));
        }
        if !self.calls.is_empty() {
            return self.call(agent);
        }
        let turn = match &mut self.turn {
            Some(turn) => turn,
            None => {
                self.options.tool_choice = after_the_first(&self.options.tool_choice);
                self.turn.insert(agent.conversation.stream(self.results.clone(), self.options.clone())?)
            }
        };
        let event = turn.next().ok_or(Error::Cancelled)??;
        if let ConversationEvent::Dropped(dropped) = &event
            && dropped.history == DroppedHistory::Removed
        {
            self.removing = dropped.messages.clone();
        }
        if let ConversationEvent::Finished(reply) = &event {
            self.before = self.before.saturating_sub(self.removing.len());
            self.removed.append(&mut self.removing);
            self.turn = None;
            self.results.clear();
            self.finished.push(reply.finish.clone());
            self.calls = reply.message.tool_calls.clone().into();
            if self.calls.is_empty() {
                self.answer = Some(reply.message.clone());
            }
        }
        Ok(AgentEvent::Conversation(event))
    }

    /// Waits for the result of the next call; the first of a reply begins them all.
    fn call(&mut self, agent: &Agent) -> Result<AgentEvent> {
        if self.finished.len() > agent.max_rounds {
            let steps = self.steps.clone();
            return Err(Error::RoundLimit { max_rounds: agent.max_rounds, steps });
        }
        let TurnOptions { cancel, deadline, .. } = &self.options;
        let calls = || Vec::from(self.calls.clone());
        let running = self.running.get_or_insert_with(|| agent.tools.start(calls(), cancel, *deadline));
        let result = running.next();
        let result = self.take_result(result);
        if self.options.cancel.is_cancelled() {
            return Err(Error::Cancelled);
        }
        result.map(AgentEvent::ToolResult).ok_or(Error::Cancelled)
    }

    /// Adds the result of the next call.
    fn take_result(&mut self, result: Option<Message>) -> Option<Message> {
        let (call, result) = (self.calls.pop_front()?, result?);
        if self.calls.is_empty() {
            self.running = None;
        }
        self.results.push(result.clone());
        self.steps.push(AgentStep { call, result: result.clone() });
        Some(result)
    }

    /// Ends the calls that run, and takes their results.
    fn stop_calls(&mut self) {
        let Some(running) = self.running.take() else { return };
        self.options.cancel.cancel();
        for result in running {
            self.take_result(Some(result));
        }
    }

    /// Completes the messages of an ended turn: a last round of which some calls ran gets results for the others, and one of which
    /// none ran is left out.
    fn settled(&mut self, mut turn: Vec<Message>) -> Vec<Message> {
        if let Some(round) = turn.pop_if(|last| !last.tool_calls.is_empty())
            && !self.results.is_empty()
        {
            let not_run: Vec<_> = round.tool_calls.iter().skip(self.results.len()).map(not_run).collect();
            turn.push(round);
            turn.append(&mut self.results);
            turn.extend(not_run);
        }
        // A reply that was cancelled before its first token.
        turn.pop_if(|last| {
            last.role == Role::Assistant && last.content.is_empty() && last.reasoning_content.is_none()
        });
        let is_kept = self.options.on_cancel == OnCancel::KeepPartial
            && turn.last().is_some_and(|last| last.role == Role::Assistant);
        if self.steps.is_empty() && !is_kept {
            return Vec::new();
        }
        turn
    }

    /// Ends a turn without an answer. The calls that ran stay in the history with their results, since their side effects remain;
    /// without any, the history is as before the turn.
    fn end(mut self, agent: &mut Agent) {
        drop(self.turn.take());
        self.stop_calls();
        let mut history = agent.conversation.history();
        let turn = history.split_off(self.before.min(history.len()));
        let continues = self.continues.take();
        let mut settled = self.settled(turn.clone());
        if settled.is_empty() {
            settled.extend(continues);
            history.splice(..0, self.removed.drain(..));
        }
        if settled != turn {
            history.extend(settled);
            agent.conversation.set_history(history);
        }
    }
}

/// Tool choice after the first reply: a required call applies to the first reply only, since otherwise the turn
/// would have no answer.
fn after_the_first(choice: &ToolChoice) -> ToolChoice {
    match choice {
        ToolChoice::None => ToolChoice::None,
        ToolChoice::Auto | ToolChoice::Required | ToolChoice::Named(_) => ToolChoice::Auto,
    }
}

impl Iterator for AgentStream<'_> {
    type Item = Result<AgentEvent>;

    /// Waits for the next event.
    fn next(&mut self) -> Option<Self::Item> {
        let mut run = self.run.take()?;
        let event = run.next(self.agent);
        match &event {
            Ok(AgentEvent::Finished(_)) => {}
            Ok(_) => self.run = Some(run),
            Err(_) => run.end(self.agent),
        }
        Some(event)
    }
}

impl FusedIterator for AgentStream<'_> {}

impl Drop for AgentStream<'_> {
    fn drop(&mut self) {
        if let Some(run) = self.run.take() {
            run.end(self.agent);
        }
    }
}

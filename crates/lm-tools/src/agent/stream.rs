//! Event stream of one turn of an agent.

use super::{Agent, AgentEvent, AgentReply, AgentStep};
use crate::{Error, Result};
use lm_conversation::{ConversationEvent, Finished, ToolChoice, TurnOptions};
use lm_template::{Message, ToolCall};
use std::collections::VecDeque;
use std::iter::FusedIterator;

/// Events of one turn; the last one is [`AgentEvent::Finished`] or an error.
///
/// Tools run inside `next`, on the caller's thread. Dropping the stream before its end cancels the turn.
#[derive(Debug)]
#[must_use = "a stream that is dropped is cancelled"]
pub struct AgentStream<'a> {
    agent: &'a mut Agent,
    /// `None` after the turn.
    turn: Option<Turn>,
}

/// State of a turn.
#[derive(Debug)]
struct Turn {
    /// Length of the history before the turn.
    before: usize,
    options: TurnOptions,
    /// Calls of the model's last reply that have not run yet.
    calls: VecDeque<ToolCall>,
    /// Results of those that have.
    results: Vec<Message>,
    answer: Option<Message>,
    steps: Vec<AgentStep>,
    finished: Vec<Finished>,
}

impl<'a> AgentStream<'a> {
    pub(super) fn start(agent: &'a mut Agent, input: Vec<Message>, options: TurnOptions) -> Result<Self> {
        let turn = Turn {
            before: agent.conversation.history().len(),
            options: options.clone(),
            calls: VecDeque::new(),
            results: Vec::new(),
            answer: None,
            steps: Vec::new(),
            finished: Vec::new(),
        };
        agent
            .conversation
            .begin(input, options)
            .inspect_err(|_| agent.conversation.cancel_handle().reset())?;
        Ok(Self { agent, turn: Some(turn) })
    }
}

impl Turn {
    /// Advances to the next event: of the model, the result of a call, or the answer.
    fn next(&mut self, agent: &mut Agent) -> Result<AgentEvent> {
        if agent.conversation.cancel_handle().is_cancelled() {
            return Err(Error::Cancelled);
        }
        if let Some(message) = self.answer.take() {
            let (steps, finished) = (std::mem::take(&mut self.steps), std::mem::take(&mut self.finished));
            return Ok(AgentEvent::Finished(AgentReply { message, steps, finished }));
        }
        if let Some(call) = self.calls.pop_front() {
            return self.call(agent, call);
        }
        if !self.results.is_empty() {
            self.options.tool_choice = after_the_first(&self.options.tool_choice);
            agent.conversation.begin(std::mem::take(&mut self.results), self.options.clone())?;
        }
        let event = agent.conversation.next_event().ok_or(Error::Cancelled)??;
        if let ConversationEvent::Finished(reply) = &event {
            self.finished.push(reply.finish.clone());
            self.calls = reply.message.tool_calls.clone().into();
            if self.calls.is_empty() {
                self.answer = Some(reply.message.clone());
            }
        }
        Ok(AgentEvent::Conversation(event))
    }

    fn call(&mut self, agent: &Agent, call: ToolCall) -> Result<AgentEvent> {
        if self.finished.len() > agent.max_rounds {
            let steps = std::mem::take(&mut self.steps);
            return Err(Error::RoundLimit { max_rounds: agent.max_rounds, steps });
        }
        let result = agent.tools.call(&call);
        self.results.push(result.clone());
        self.steps.push(AgentStep { call, result: result.clone() });
        if agent.conversation.cancel_handle().is_cancelled() {
            return Err(Error::Cancelled);
        }
        Ok(AgentEvent::ToolResult(result))
    }

    /// Restores the conversation to its state before the turn.
    fn undo(self, agent: &mut Agent) {
        let conversation = &mut agent.conversation;
        conversation.abort();
        if conversation.history().len() > self.before {
            let history = conversation.history()[..self.before].to_vec();
            conversation.set_history(history);
        }
        // The cancellation has been handled and must not affect the next turn.
        conversation.cancel_handle().reset();
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
        let mut turn = self.turn.take()?;
        let event = turn.next(self.agent);
        match &event {
            Ok(AgentEvent::Finished(_)) => {}
            Ok(_) => self.turn = Some(turn),
            Err(_) => turn.undo(self.agent),
        }
        Some(event)
    }
}

impl FusedIterator for AgentStream<'_> {}

impl Drop for AgentStream<'_> {
    fn drop(&mut self) {
        if let Some(turn) = self.turn.take() {
            turn.undo(self.agent);
        }
    }
}

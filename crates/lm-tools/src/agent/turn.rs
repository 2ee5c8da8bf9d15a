//! One turn of an agent, blocking.

use super::{AgentEvent, AgentReply, AgentStep};
use crate::{Error, Result, Toolset};
use lm_conversation::{Conversation, ConversationEvent, Reply, TurnOptions};
use lm_template::Message;
use std::ops::ControlFlow;

/// What a turn works with. `emit` gets every event and ends the turn with `Break`, as a cancellation.
pub(super) struct Turn<'a> {
    pub conversation: &'a mut Conversation,
    pub tools: &'a Toolset,
    pub max_rounds: usize,
    pub options: TurnOptions,
    pub emit: &'a mut dyn FnMut(AgentEvent) -> ControlFlow<()>,
}

impl Turn<'_> {
    /// Runs the turn; unless it comes to an answer, the conversation is as before.
    pub fn run(mut self, input: Vec<Message>) -> Result<AgentReply> {
        let before = self.conversation.history().len();
        let reply = self.rounds(input);
        if let Err(error) = &reply {
            roll_back(self.conversation, before);
            if matches!(error, Error::Cancelled) {
                // Served; it must not reach the next turn.
                self.conversation.cancel_handle().reset();
            }
        }
        reply
    }

    fn rounds(&mut self, mut messages: Vec<Message>) -> Result<AgentReply> {
        let mut steps = Vec::new();
        let mut finished = Vec::new();
        loop {
            let Reply { message, finish, .. } = self.reply(messages)?;
            finished.push(finish);
            if message.tool_calls.is_empty() {
                return Ok(AgentReply { message, steps, finished });
            }
            if finished.len() > self.max_rounds {
                return Err(Error::RoundLimit { max_rounds: self.max_rounds, steps });
            }
            messages = self.results(&message, &mut steps)?;
        }
    }

    /// One reply of the model.
    fn reply(&mut self, messages: Vec<Message>) -> Result<Reply> {
        let cancel = self.conversation.cancel_handle();
        for event in self.conversation.stream(messages, self.options.clone())? {
            let event = event?;
            let reply = match &event {
                ConversationEvent::Finished(reply) => Some(reply.clone()),
                _ => None,
            };
            // The engine may be done before it could see the handle.
            if cancel.is_cancelled() || (self.emit)(AgentEvent::Conversation(event)).is_break() {
                return Err(Error::Cancelled);
            }
            if let Some(reply) = reply {
                return Ok(reply);
            }
        }
        unreachable!("a conversation's stream ends with `Finished` or an error")
    }

    /// The results of a message's calls, in the order of the calls.
    fn results(&mut self, message: &Message, steps: &mut Vec<AgentStep>) -> Result<Vec<Message>> {
        let cancel = self.conversation.cancel_handle();
        let mut results = Vec::new();
        for call in &message.tool_calls {
            let result = self.tools.call(call);
            steps.push(AgentStep { call: call.clone(), result: result.clone() });
            results.push(result.clone());
            if cancel.is_cancelled() || (self.emit)(AgentEvent::ToolResult(result)).is_break() {
                return Err(Error::Cancelled);
            }
        }
        Ok(results)
    }
}

/// Forgets the messages after the first `len`.
pub(super) fn roll_back(conversation: &mut Conversation, len: usize) {
    if conversation.history().len() > len {
        let history = conversation.history()[..len].to_vec();
        conversation.set_history(history);
    }
}

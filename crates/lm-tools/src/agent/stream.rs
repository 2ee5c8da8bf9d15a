//! One turn of an agent, as a stream of events.

use super::turn::{Turn, roll_back};
use super::{Agent, AgentEvent};
use crate::{Error, Result};
use lm_conversation::{Conversation, TurnOptions};
use lm_template::Message;
use std::iter::FusedIterator;
use std::ops::ControlFlow;
use std::sync::mpsc::{Receiver, sync_channel};
use std::thread::JoinHandle;

/// How many events the turn may be ahead of the one who reads them.
const EVENTS_AHEAD: usize = 64;

/// The events of one turn; the last one is [`AgentEvent::Finished`] or an error.
///
/// The turn runs on a thread of its own, which has the conversation until the stream is dropped. Dropping it before
/// its end cancels the turn, and waits for a tool that is running.
#[derive(Debug)]
#[must_use = "a stream that is dropped is cancelled"]
pub struct AgentStream<'a> {
    agent: &'a mut Agent,
    /// Length of the history before the turn.
    before: usize,
    /// None after the last event.
    events: Option<Receiver<Result<AgentEvent>>>,
    thread: Option<JoinHandle<Conversation>>,
}

impl<'a> AgentStream<'a> {
    pub(super) fn start(agent: &'a mut Agent, input: Vec<Message>, options: TurnOptions) -> Result<Self> {
        let mut conversation = agent.conversation.take().ok_or(Error::ConversationLost)?;
        let before = conversation.history().len();
        let (tools, max_rounds) = (agent.tools.clone(), agent.max_rounds);
        let (sender, events) = sync_channel(EVENTS_AHEAD);
        let thread = std::thread::spawn(move || {
            let mut emit = |event| match sender.send(Ok(event)) {
                Ok(()) => ControlFlow::Continue(()),
                Err(_) => ControlFlow::Break(()),
            };
            let conversation_of_turn = &mut conversation;
            let turn = Turn {
                conversation: conversation_of_turn,
                tools: &tools,
                max_rounds,
                options,
                emit: &mut emit,
            };
            let last = turn.run(input).map(AgentEvent::Finished);
            // Fails when the stream was dropped: then nobody waits for it.
            drop(sender.send(last));
            conversation
        });
        Ok(Self { agent, before, events: Some(events), thread: Some(thread) })
    }
}

impl Iterator for AgentStream<'_> {
    type Item = Result<AgentEvent>;

    /// Waits for the next event.
    fn next(&mut self) -> Option<Self::Item> {
        // A turn that ends without a last event has panicked.
        let event = self.events.as_ref()?.recv().unwrap_or(Err(Error::ConversationLost));
        if matches!(event, Ok(AgentEvent::Finished(_)) | Err(_)) {
            self.events = None;
        }
        Some(event)
    }
}

impl FusedIterator for AgentStream<'_> {}

impl Drop for AgentStream<'_> {
    fn drop(&mut self) {
        let Some(thread) = self.thread.take() else { return };
        let is_unfinished = self.events.take().is_some();
        if is_unfinished {
            self.agent.cancel.cancel();
        }
        let mut conversation = thread.join().ok();
        if is_unfinished {
            // The turn may have come to its end ahead of its reader.
            self.agent.cancel.reset();
            conversation.iter_mut().for_each(|conversation| roll_back(conversation, self.before));
        }
        self.agent.conversation = conversation;
    }
}

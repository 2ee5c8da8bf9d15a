//! Iterator over the events of a turn.

use std::iter::FusedIterator;

use crate::conversation::Conversation;
use crate::error::Result;
use crate::event::ConversationEvent;

/// Iterator over the events of one turn, as they come.
///
/// The last item is [`ConversationEvent::Finished`] or an error. Dropping the stream before that cancels the turn, and the conversation
/// is unchanged.
#[derive(Debug)]
#[must_use = "a stream that is dropped is cancelled"]
pub struct Stream<'a> {
    conversation: &'a mut Conversation,
}

impl<'a> Stream<'a> {
    pub(crate) fn new(conversation: &'a mut Conversation) -> Self {
        Self { conversation }
    }
}

impl Iterator for Stream<'_> {
    type Item = Result<ConversationEvent>;

    /// Waits for the next event.
    fn next(&mut self) -> Option<Self::Item> {
        self.conversation.next_event()
    }
}

impl FusedIterator for Stream<'_> {}

impl Drop for Stream<'_> {
    fn drop(&mut self) {
        self.conversation.abort();
    }
}

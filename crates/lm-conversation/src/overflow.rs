//! Prompts that exceed the context, and the policies for them.

use lm_template::{Message, Role};

/// Handling of a prompt that exceeds the context or leaves too little of it for the reply.
///
/// A reply that reaches the end of the context ends with
/// [`FinishReason::ContextFull`](crate::FinishReason::ContextFull), except with [`Overflow::SlidingWindow`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Overflow {
    /// The turn fails with [`lm_session::Error::PromptTooLong`].
    #[default]
    Error,
    /// The oldest turns are omitted from the prompt, reported by
    /// [`ConversationEvent::Dropped`](crate::ConversationEvent::Dropped).
    ///
    /// A turn is a user's message with everything up to the next one: calls and their results stay together.
    /// The preface and the running turn are never dropped; if they exceed the context, the turn fails with
    /// [`lm_session::Error::PromptTooLong`].
    ///
    /// Turns are dropped when the prompt leaves less than [the reply's share](Overflow::reply_share) of the
    /// context, and then several at once ([`HistoryCut`](crate::HistoryCut)): the next turns find their
    /// prompt in the KV cache again.
    DropOldest(DroppedHistory),
    /// [`Overflow::DropOldest`] with [`DroppedHistory::Kept`] for prompts, and a reply that reaches the end
    /// of the context continues in a sliding window with attention sinks, reported by
    /// [`ConversationEvent::ContextShift`](crate::ConversationEvent::ContextShift).
    ///
    /// The sinks are the prompt of the preface and the running turn; the window is the most recent part of
    /// the reply. When the context is full, earlier turns and the oldest tokens of the reply are dropped,
    /// until at most three quarters of the context are taken, and the rest runs again as a prompt. So the
    /// positions and the next tokens are the same as for a prompt with these tokens, and the prefill is
    /// needed once per quarter of the context. Messages and calls with their results are dropped as a whole,
    /// and the window starts at a character. The event and the history have the whole reply.
    ///
    /// A constraint covers the whole reply, with the part that left the window. If it does not allow an end
    /// (in reasoning, a call, or an answer of a format), the text is brought to its end within the context,
    /// as with the other policies. Filters and penalties see the tokens in the context. After each shift the
    /// sampler has another seed, derived from the first one.
    ///
    /// The reply ends at the end of the context if the sinks take more than half of it, if the reply may be
    /// resampled ([`Reply::unenforced`](crate::Reply::unenforced)), and in
    /// [`Conversation::continue_reply`](crate::Conversation::continue_reply).
    SlidingWindow,
}

/// Place of dropped turns in [`Conversation::history`](crate::Conversation::history).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum DroppedHistory {
    /// They stay in the history but not in later prompts. After
    /// [`Conversation::set_history`](crate::Conversation::set_history) prompts start with the first message
    /// again, until they exceed the context.
    #[default]
    Kept,
    /// They are removed when the turn is complete. A failed or cancelled turn removes none.
    Removed,
}

/// A shift of the context: the dropped tokens, and those that ran again.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ContextShift {
    /// Number of earlier turns dropped by this shift.
    pub turns: usize,
    /// Number of the reply's oldest tokens dropped by this shift.
    pub reply_tokens: usize,
    /// Number of kept prompt tokens: the preface and the running turn.
    pub sink_tokens: usize,
    /// Number of the reply's kept tokens, the most recent ones.
    pub window_tokens: usize,
}

/// Turns omitted from a prompt.
#[derive(Debug, Clone, PartialEq)]
pub struct DroppedTurns {
    /// Number of turns.
    pub turns: usize,
    /// Their messages, the oldest first.
    pub messages: Vec<Message>,
    /// Place of the messages in the history after the turn.
    pub history: DroppedHistory,
}

impl Overflow {
    /// Place of the turns omitted from prompts, if any.
    pub(crate) fn drops(self) -> Option<DroppedHistory> {
        match self {
            Self::Error => None,
            Self::DropOldest(history) => Some(history),
            Self::SlidingWindow => Some(DroppedHistory::Kept),
        }
    }

    /// Number of tokens of a context reserved for a reply of up to `max_output_tokens`: at most a quarter of
    /// it.
    pub fn reply_share(context_tokens: usize, max_output_tokens: Option<usize>) -> usize {
        let share = context_tokens / 4;
        max_output_tokens.map_or(share, |max| max.min(share))
    }
}

/// Returns the number of leading messages in each possible choice of dropped turns, the smallest one first.
/// `begins_turn`: the new messages begin a turn; otherwise they belong to the last one of the history, which
/// is kept.
pub(crate) fn cuts(history: &[Message], begins_turn: bool) -> Vec<usize> {
    let starts = history.iter().enumerate().filter(|(_, message)| message.role == Role::User);
    let mut cuts: Vec<usize> = starts.map(|(index, _)| index).filter(|&index| index > 0).collect();
    if begins_turn && !history.is_empty() {
        cuts.push(history.len());
    }
    cuts
}

#[cfg(test)]
mod tests {
    use lm_template::{Map, ToolCall, Value};

    use super::*;

    #[test]
    fn turns_are_cut_at_user_messages() {
        let call = || Message::tool_calls(vec![ToolCall::new("f", Map::new())]);
        let result = || Message::tool(None, "f", Value::Null);
        let user = || Message::user("a");
        let history =
            [Message::assistant("Hi."), user(), call(), result(), Message::assistant("b"), user(), call()];
        assert_eq!(cuts(&history, true), [1, 5, 7]);
        assert_eq!(cuts(&history, false), [1, 5], "a result belongs to the call before it");
        assert_eq!(cuts(&history[1..5], false), [] as [usize; 0]);
        assert_eq!(cuts(&[], true), [] as [usize; 0]);
    }
}

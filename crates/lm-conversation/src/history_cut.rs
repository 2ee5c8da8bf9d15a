//! Cut of a history that exceeds the context, which stays while the history grows.

use lm_session::{TextSegment, Tokenizer};
use lm_template::{Message, ToolSpec};

/// Tokens counted for a message beside its texts: its markers.
const MESSAGE_TOKENS: usize = 4;
/// Tokens counted for an image or audio.
const MEDIA_TOKENS: usize = 256;

/// Choice of the oldest messages to leave out of a prompt that exceeds the context, for programs that render
/// their own prompts. [`Overflow::DropOldest`](crate::Overflow::DropOldest) uses it for a conversation's.
///
/// Cuts are at marks: the first place after each multiple of a number of tokens from the start of the
/// history. That number is the largest power of two that is at most half of the room, so a quarter of the
/// room at least is free after the cut moves. A mark depends on the messages before it, and not on those
/// after it: a program that keeps no state finds the same cut again while the history grows, and the prompt
/// in the KV cache.
///
/// ```
/// use lm_conversation::{HistoryCut, Message};
///
/// # let engine = lm_session::testing::scripted_engine(["Hello!"]);
/// let history: Vec<Message> = (0..40).map(|turn| Message::user(format!("Question {turn}."))).collect();
/// let places: Vec<usize> = (1..=history.len()).collect();
/// let cut = HistoryCut {
///     tokenizer: engine.tokenizer(),
///     preface: &[Message::system("Be brief.")],
///     tools: &[],
///     history: &history,
///     places: &places,
///     context_tokens: 256,
///     reply_tokens: 64,
/// };
/// let fits = |dropped: usize| Ok::<_, lm_conversation::Error>(history.len() - dropped <= 20);
/// assert!(cut.first_that_fits(fits)?.is_some_and(|dropped| dropped >= 20));
/// # Ok::<(), lm_conversation::Error>(())
/// ```
#[derive(Debug, Clone, Copy)]
pub struct HistoryCut<'a> {
    /// Counts the tokens of texts.
    pub tokenizer: &'a Tokenizer,
    /// Messages before the history, which are kept.
    pub preface: &'a [Message],
    /// Tools of the prompt.
    pub tools: &'a [ToolSpec],
    /// All messages of the history, the oldest first.
    pub history: &'a [Message],
    /// Possible numbers of left out messages, in ascending order.
    pub places: &'a [usize],
    /// Tokens of the context.
    pub context_tokens: usize,
    /// Tokens of it reserved for the reply ([`Overflow::reply_share`](crate::Overflow::reply_share)).
    pub reply_tokens: usize,
}

impl HistoryCut<'_> {
    /// Returns the smallest mark for which `fits`; if none does, since a message is long, the smallest other
    /// place. `None` if no place is enough. Assumes that fewer messages have fewer tokens. `fits` is called
    /// with few messages first.
    ///
    /// # Errors
    /// Same errors as `fits`.
    pub fn first_that_fits<E>(
        &self,
        mut fits: impl FnMut(usize) -> Result<bool, E>,
    ) -> Result<Option<usize>, E> {
        let marks = self.marks();
        if let Some(mark) = first(&marks, &mut fits)? {
            return Ok(Some(mark));
        }
        let last = marks.last().copied();
        let others: Vec<usize> = self.places.iter().copied().filter(|&place| Some(place) > last).collect();
        first(&others, &mut fits)
    }

    /// The first place after each multiple of [`quantum`](Self::quantum).
    fn marks(&self) -> Vec<usize> {
        let quantum = self.quantum();
        let (mut tokens, mut counted, mut next, mut marks) = (0, 0, quantum, Vec::new());
        for &place in self.places {
            let until = place.clamp(counted, self.history.len());
            tokens += self.count(&self.history[counted..until]);
            counted = until;
            if tokens >= next {
                marks.push(place);
                next = (tokens / quantum + 1) * quantum;
            }
        }
        marks
    }

    /// Tokens between marks. It depends on what is equal in all turns: the preface, the tools and the reply's
    /// share; the power of two is the same for slightly different ones.
    fn quantum(&self) -> usize {
        let tools = self.tools.iter().map(|tool| self.tokens(&tool.to_json().to_string())).sum::<usize>();
        let taken = self.reply_tokens + self.count(self.preface) + tools;
        let half = self.context_tokens.saturating_sub(taken) / 2;
        1 << half.max(1).ilog2()
    }

    /// Estimates the tokens of messages.
    fn count(&self, messages: &[Message]) -> usize {
        messages.iter().map(|message| self.message_tokens(message)).sum()
    }

    fn message_tokens(&self, message: &Message) -> usize {
        let calls = message.tool_calls.iter().map(|call| self.tokens(&call.to_json().to_string()));
        let media = message.content.parts().iter().filter(|part| part.as_text().is_none()).count();
        let reasoning = message.reasoning_content.as_deref().unwrap_or_default();
        let texts = self.tokens(&message.content.text()) + self.tokens(reasoning);
        MESSAGE_TOKENS + texts + media * MEDIA_TOKENS + calls.sum::<usize>()
    }

    /// Number of tokens of a text; a quarter of its bytes if it cannot be encoded.
    fn tokens(&self, text: &str) -> usize {
        let ids = self.tokenizer.encode_segments(&[TextSegment::Content(text)]);
        ids.map_or(text.len() / 4, |ids| ids.len())
    }
}

/// Returns the first of `places` for which `fits`. It goes from the end on, twice as far with each step,
/// since the prompt of many messages takes time.
fn first<E>(places: &[usize], mut fits: impl FnMut(usize) -> Result<bool, E>) -> Result<Option<usize>, E> {
    let (mut found, mut low, mut high, mut step) = (None, 0, places.len(), 1);
    while low < high {
        let middle = if step > 0 { high.saturating_sub(step).max(low) } else { low.midpoint(high) };
        if fits(places[middle])? {
            (found, high, step) = (Some(places[middle]), middle, 2 * step);
        } else {
            (low, step) = (middle + 1, 0);
        }
    }
    Ok(found)
}

#[cfg(test)]
mod tests {
    use lm_session::testing::tokenizer;

    use super::*;

    #[test]
    fn first_sufficient_place_is_found() {
        let needed = |needed: usize| first::<()>(&[2, 4, 6, 8], |cut| Ok(cut >= needed)).expect("no error");
        let found: Vec<_> = (1..=9).map(needed).collect();
        let expected = [2, 2, 4, 4, 6, 6, 8, 8].map(Some);
        assert_eq!((&found[..8], found[8]), (&expected[..], None));
        assert_eq!(first::<()>(&[], |_| Ok(true)), Ok(None));
    }

    #[test]
    fn search_begins_with_few_messages() {
        let places: Vec<usize> = (0..1_000).collect();
        let mut tried = Vec::new();
        let found = first::<()>(&places, |cut| {
            tried.push(cut);
            Ok(cut >= 990)
        });
        assert_eq!(found, Ok(Some(990)));
        assert!(tried.iter().all(|cut| *cut > 970) && tried.len() < 10, "{tried:?}");
    }

    /// A history of `turns` questions and answers, with a long one at `long`.
    fn history(turns: usize, long: Option<usize>) -> Vec<Message> {
        let turn = |turn: usize| {
            let question = if long == Some(turn) { "word ".repeat(400) } else { format!("question {turn}") };
            [Message::user(question), Message::assistant(format!("answer {turn}"))]
        };
        (0..turns).flat_map(turn).collect()
    }

    /// Marks and quantum of a history.
    fn marks(history: &[Message], context_tokens: usize) -> (Vec<usize>, usize) {
        let places: Vec<usize> = (2..=history.len()).step_by(2).collect();
        let tokenizer = tokenizer();
        let (tools, preface) = (&[], &[Message::system("Be brief.")]);
        let (places, reply_tokens) = (&places, 64);
        let tokenizer = &tokenizer;
        let cut = HistoryCut { tokenizer, preface, tools, history, places, context_tokens, reply_tokens };
        (cut.marks(), cut.quantum())
    }

    #[test]
    fn marks_depend_on_the_messages_before_them() {
        let (all, quantum) = marks(&history(60, None), 512);
        assert_eq!(quantum, 128);
        assert!(all.len() > 3, "{all:?}");
        for turns in 1..60 {
            let (shorter, _) = marks(&history(turns, None), 512);
            assert_eq!(shorter, all[..shorter.len()], "{turns}");
            assert!(all.get(shorter.len()).is_none_or(|next| *next > 2 * turns));
        }
    }

    #[test]
    fn marks_are_the_first_places_after_multiples() {
        let tokenizer = tokenizer();
        for long in [None, Some(3)] {
            let history = history(40, long);
            let places: Vec<usize> = (2..=history.len()).step_by(2).collect();
            let cut = HistoryCut {
                tokenizer: &tokenizer,
                preface: &[],
                tools: &[],
                history: &history,
                places: &places,
                context_tokens: 256,
                reply_tokens: 0,
            };
            let multiple = |place: usize| cut.count(&history[..place]) / cut.quantum();
            let is_mark = |place: &usize| multiple(*place) > multiple(place - 2);
            let expected: Vec<usize> = places.iter().copied().filter(is_mark).collect();
            assert_eq!(cut.marks(), expected, "{long:?}");
        }
    }

    #[test]
    fn long_message_is_one_step_between_marks() {
        let (marks, quantum) = marks(&history(30, Some(3)), 512);
        assert!(400 > 2 * quantum);
        assert_eq!(marks[0], 8, "the first place after the long message");
        assert!(marks.is_sorted() && marks.windows(2).all(|pair| pair[0] < pair[1]), "{marks:?}");
    }

    #[test]
    fn places_after_the_last_mark_are_the_last_resort() {
        let history = history(3, None);
        let places = [2, 4, 6];
        let tokenizer = tokenizer();
        let cut = HistoryCut {
            tokenizer: &tokenizer,
            preface: &[],
            tools: &[],
            history: &history,
            places: &places,
            context_tokens: 4_096,
            reply_tokens: 0,
        };
        assert_eq!(cut.marks(), [] as [usize; 0]);
        assert_eq!(cut.first_that_fits::<()>(|dropped| Ok(dropped >= 3)), Ok(Some(4)));
        assert_eq!(cut.first_that_fits::<()>(|_| Ok(false)), Ok(None));
    }
}

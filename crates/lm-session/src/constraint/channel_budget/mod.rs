//! Token budget of a channel, such as reasoning.

use std::sync::Arc;

use super::{Constraint, Ending, TokenMask};
use crate::{Result, TokenId, Tokenizer};

/// Maximum number of times that one completion closes the channel.
const MAX_CLOSED: usize = 8;

/// Ends a channel after a number of tokens: its end marker is then forced, and the reply continues after it.
///
/// All text between the channel's start and end markers counts, also when a reply has several such parts. Another constraint
/// can apply to the reply as a whole. It has to allow the end marker; where it does not do so at once (in the middle of a
/// character, say), the end marker comes at the first token where it does.
///
/// ```
/// use lm_session::{ChannelBudget, Constraint, TokenMask, testing};
///
/// let tokenizer = std::sync::Arc::new(testing::tokenizer());
/// let mut budget = ChannelBudget::new(&tokenizer, "<think>", "\n", "</think>", 1)?.starting_inside();
/// let mut mask = TokenMask::new(tokenizer.logits_width());
/// budget.mask(&mut mask)?;
/// assert_eq!(mask.count(), tokenizer.logits_width(), "one token of reasoning is free");
/// budget.commit(tokenizer.encode("x")?[0])?;
/// assert_eq!(budget.forced()?, tokenizer.encode("\n</think>")?);
/// # Ok::<(), lm_session::Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct ChannelBudget {
    channel: Arc<Channel>,
    inner: Option<Box<dyn Constraint>>,
    state: State,
    /// State before each committed token.
    history: Vec<State>,
}

#[derive(Debug)]
struct Channel {
    tokenizer: Arc<Tokenizer>,
    start: String,
    end: String,
    /// Tokens that close the channel.
    closing: Vec<TokenId>,
    budget: usize,
}

/// State at the next token of a reply: `spent` tokens of the budget are used, and `matched` bytes of the next marker are matched.
#[derive(Clone, Copy, Debug)]
enum State {
    Outside {
        spent: usize,
        matched: usize,
    },
    Inside {
        spent: usize,
        matched: usize,
    },
    /// The first `written` closing tokens are committed.
    Closing {
        spent: usize,
        written: usize,
    },
}

impl ChannelBudget {
    /// Creates a budget of `tokens` for the channel between `start` and `end`; `layout` is written before `end` when the budget
    /// forces the end.
    ///
    /// # Errors
    /// [`crate::Error::Tokenizer`] when the tokenizer cannot encode the end.
    pub fn new(
        tokenizer: &Arc<Tokenizer>,
        start: &str,
        layout: &str,
        end: &str,
        tokens: usize,
    ) -> Result<Self> {
        let closing = tokenizer.encode(&format!("{layout}{end}"))?;
        let (tokenizer, start, end) = (Arc::clone(tokenizer), start.to_owned(), end.to_owned());
        let channel = Arc::new(Channel { tokenizer, start, end, closing, budget: tokens });
        Ok(Self { channel, inner: None, state: State::Outside { spent: 0, matched: 0 }, history: Vec::new() })
    }

    /// Sets the state for a reply that begins inside the channel.
    pub fn starting_inside(mut self) -> Self {
        self.state = State::Inside { spent: 0, matched: 0 };
        self
    }

    /// Adds a constraint on the whole reply.
    pub fn with(mut self, inner: Option<Box<dyn Constraint>>) -> Self {
        self.inner = inner;
        self
    }

    /// Returns the token that must come next to end the channel, if the reply's constraint allows it.
    fn next_closing(&mut self) -> Result<Option<TokenId>> {
        let Some(&[next, ..]) = self.closing() else { return Ok(None) };
        let allowed = match &mut self.inner {
            Some(inner) => inner.valid_prefix(&[next])? == 1,
            None => true,
        };
        Ok(allowed.then_some(next))
    }

    /// Commits a completion and appends it to `ids`; returns false if there is none.
    fn complete(&mut self, ids: &mut Vec<TokenId>) -> Result<bool> {
        for _ in 0..MAX_CLOSED {
            while let Some(next) = self.next_closing()? {
                self.commit(next)?;
                ids.push(next);
            }
            let Some(inner) = &mut self.inner else { return Ok(true) };
            let Some(mut rest) = inner.completion()?.map(Vec::into_iter) else { return Ok(false) };
            while self.next_closing()?.is_none() {
                let Some(next) = rest.next() else { return Ok(true) };
                self.commit(next)?;
                ids.push(next);
            }
        }
        Ok(false)
    }

    /// Returns the remaining tokens of the closing sequence, if the channel has to end now.
    fn closing(&self) -> Option<&[TokenId]> {
        match self.state {
            State::Inside { spent, .. } if spent >= self.channel.budget => Some(&self.channel.closing),
            State::Closing { written, .. } => Some(&self.channel.closing[written..]),
            _ => None,
        }
    }
}

impl Constraint for ChannelBudget {
    fn mask(&mut self, mask: &mut TokenMask) -> Result<()> {
        match &mut self.inner {
            Some(inner) => inner.mask(mask)?,
            None => mask.allow_all(),
        }
        if let Some(&[next, ..]) = self.closing()
            && mask.allows(next)
        {
            mask.clear();
            mask.allow(next);
        }
        Ok(())
    }

    fn commit(&mut self, id: TokenId) -> Result<()> {
        if let Some(inner) = &mut self.inner {
            inner.commit(id)?;
        }
        let closes = self.closing().is_some_and(|closing| closing.first() == Some(&id));
        self.history.push(self.state);
        self.state = self.channel.after(self.state, id, closes);
        Ok(())
    }

    fn rollback(&mut self, tokens: usize) -> Result<()> {
        if let Some(inner) = &mut self.inner {
            inner.rollback(tokens)?;
        }
        let len = self.history.len().saturating_sub(tokens);
        self.state = self.history.get(len).copied().unwrap_or(self.state);
        self.history.truncate(len);
        Ok(())
    }

    fn ending(&mut self) -> Result<Ending> {
        let has_to_close = self.closing().is_some();
        match &mut self.inner {
            Some(inner) => inner.ending(),
            None if has_to_close => Ok(Ending::Forbidden),
            None => Ok(Ending::Allowed),
        }
    }

    fn fork(&self) -> Box<dyn Constraint> {
        Box::new(self.clone())
    }

    fn forced(&mut self) -> Result<Vec<TokenId>> {
        let closing = self.closing().unwrap_or_default().to_vec();
        match &mut self.inner {
            None => Ok(closing),
            Some(inner) if closing.is_empty() => inner.forced(),
            Some(inner) => {
                let allowed = inner.valid_prefix(&closing)?;
                Ok(closing[..allowed].to_vec())
            }
        }
    }

    fn valid_prefix(&mut self, ids: &[TokenId]) -> Result<usize> {
        let mut valid = 0;
        while let Some(&id) = ids.get(valid) {
            let closes = self.next_closing()?;
            let fits = match (closes, &mut self.inner) {
                (Some(next), _) => next == id,
                (None, Some(inner)) => inner.valid_prefix(&[id])? == 1,
                (None, None) => true,
            };
            if !fits {
                break;
            }
            self.commit(id)?;
            valid += 1;
        }
        self.rollback(valid)?;
        Ok(valid)
    }

    fn completion(&mut self) -> Result<Option<Vec<TokenId>>> {
        let mut ids = Vec::new();
        let whole = self.complete(&mut ids);
        self.rollback(ids.len())?;
        Ok(whole?.then_some(ids))
    }

    fn closing_literals(&self) -> &[String] {
        self.inner.as_ref().map_or(&[], |inner| inner.closing_literals())
    }
}

impl Channel {
    /// State after token `id`; `closes` is true if it is the next closing token.
    fn after(&self, state: State, id: TokenId, closes: bool) -> State {
        if closes {
            let (spent, written) = match state {
                State::Closing { spent, written } => (spent, written + 1),
                State::Outside { spent, .. } | State::Inside { spent, .. } => (spent, 1),
            };
            let done = written == self.closing.len();
            return if done {
                State::Outside { spent, matched: 0 }
            } else {
                State::Closing { spent, written }
            };
        }
        let state = match state {
            State::Inside { spent, matched } => State::Inside { spent: spent + 1, matched },
            // The reply's constraint allowed another token: the channel ends a little later.
            State::Closing { spent, .. } => State::Inside { spent, matched: 0 },
            outside @ State::Outside { .. } => outside,
        };
        self.tokenizer.token_bytes(id).iter().fold(state, |state, byte| self.after_byte(state, *byte))
    }

    fn after_byte(&self, state: State, byte: u8) -> State {
        match state {
            State::Outside { spent, matched } => match advance(self.start.as_bytes(), matched, byte) {
                None => State::Inside { spent, matched: 0 },
                Some(matched) => State::Outside { spent, matched },
            },
            State::Inside { spent, matched } => match advance(self.end.as_bytes(), matched, byte) {
                None => State::Outside { spent, matched: 0 },
                Some(matched) => State::Inside { spent, matched },
            },
            closing @ State::Closing { .. } => closing,
        }
    }
}

/// Returns the length of the longest prefix of `marker` that the text ends with after `byte`, given that `matched` bytes matched
/// before; `None` when the text ends with the whole marker. An empty marker is never found.
fn advance(marker: &[u8], matched: usize, byte: u8) -> Option<usize> {
    let written = [&marker[..matched], &[byte]].concat();
    let longest = (0..=written.len()).rev().find(|&len| marker.starts_with(&written[written.len() - len..]));
    longest.filter(|&len| len < marker.len() || marker.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::tokenizer;

    fn budget(tokens: usize) -> (ChannelBudget, Arc<Tokenizer>) {
        let tokenizer = Arc::new(tokenizer());
        let budget = ChannelBudget::new(&tokenizer, "<think>", "\n", "</think>", tokens).expect("it encodes");
        (budget, tokenizer)
    }

    fn write(budget: &mut ChannelBudget, tokenizer: &Tokenizer, text: &str) -> usize {
        let ids = tokenizer.encode(text).expect("it encodes");
        ids.iter().for_each(|&id| budget.commit(id).expect("all is let in"));
        ids.len()
    }

    #[test]
    fn a_partial_marker_match_falls_back_to_its_longest_prefix() {
        let text = |marker: &str, text: &str| {
            text.bytes().try_fold(0, |matched, byte| advance(marker.as_bytes(), matched, byte))
        };
        assert_eq!(text("aab", "xaaa"), Some(2));
        assert_eq!(text("aab", "xaaab"), None);
        assert_eq!(text("<a>", "<<a"), Some(2));
        assert_eq!(text("", "abc"), Some(0));
    }

    #[test]
    fn only_the_channel_counts_and_all_of_its_parts_together() {
        let (mut budget, tokenizer) = budget(8);
        write(&mut budget, &tokenizer, "An answer that is longer than the budget.");
        assert!(budget.forced().expect("no inner one").is_empty());
        write(&mut budget, &tokenizer, "<think>");
        let first = write(&mut budget, &tokenizer, "abc");
        let end = write(&mut budget, &tokenizer, "</think>");
        write(&mut budget, &tokenizer, "More of the answer.<think>");
        assert!(budget.forced().expect("no inner one").is_empty());
        for _ in first + end..8 {
            assert_eq!(budget.ending().expect("no inner one"), Ending::Allowed);
            write(&mut budget, &tokenizer, "a");
        }
        let closing = tokenizer.encode("\n</think>").expect("it encodes");
        assert_eq!(budget.forced().expect("no inner one"), closing);
        assert_eq!(budget.ending().expect("no inner one"), Ending::Forbidden);
    }

    #[test]
    fn the_end_is_forced_once_and_taken_back_by_a_rollback() {
        let (budget, tokenizer) = budget(2);
        let mut budget = budget.starting_inside();
        write(&mut budget, &tokenizer, "a");
        write(&mut budget, &tokenizer, "b");
        let closing = budget.forced().expect("no inner one");
        let mut mask = TokenMask::new(tokenizer.logits_width());
        for &id in &closing {
            mask.clear();
            budget.mask(&mut mask).expect("no inner one");
            assert_eq!(mask.ids().collect::<Vec<_>>(), [id]);
            budget.commit(id).expect("all is let in");
        }
        assert!(budget.forced().expect("no inner one").is_empty());
        budget.rollback(closing.len()).expect("as many were committed");
        assert_eq!(budget.forced().expect("no inner one"), closing);
        budget.rollback(1).expect("one was committed");
        assert!(budget.forced().expect("no inner one").is_empty());
    }

    #[test]
    fn what_holds_for_the_reply_decides_when_the_end_can_come() {
        /// Requires "ab" first.
        #[derive(Clone, Debug)]
        struct AbFirst(Vec<TokenId>, usize);
        impl Constraint for AbFirst {
            fn mask(&mut self, mask: &mut TokenMask) -> Result<()> {
                match self.0.get(self.1) {
                    Some(&id) => mask.allow(id),
                    None => mask.allow_all(),
                }
                Ok(())
            }
            fn commit(&mut self, _: TokenId) -> Result<()> {
                self.1 += 1;
                Ok(())
            }
            fn rollback(&mut self, tokens: usize) -> Result<()> {
                self.1 -= tokens;
                Ok(())
            }
            fn ending(&mut self) -> Result<Ending> {
                Ok(Ending::Allowed)
            }
            fn fork(&self) -> Box<dyn Constraint> {
                Box::new(self.clone())
            }
        }
        let (budget, tokenizer) = budget(0);
        let [a, b] = ["a", "b"].map(|text| tokenizer.encode(text).expect("it encodes")[0]);
        let mut budget = budget.starting_inside().with(Some(Box::new(AbFirst(vec![a, b], 0))));
        let mut mask = TokenMask::new(tokenizer.logits_width());
        for id in [a, b] {
            assert!(budget.forced().expect("both agree").is_empty());
            mask.clear();
            budget.mask(&mut mask).expect("both agree");
            assert_eq!(mask.ids().collect::<Vec<_>>(), [id]);
            budget.commit(id).expect("it is let in");
        }
        assert_eq!(budget.forced().expect("both agree"), tokenizer.encode("\n</think>").expect("it encodes"));
    }

    #[test]
    fn a_completion_ends_the_channel_as_it_is_forced_to_end() {
        let tokenizer = Arc::new(tokenizer());
        let spec = crate::ConstraintSpec::Lark {
            text: "start: TEXT marker_0 /\\[[0-9]{50}\\]/\nTEXT: /[a-z\\n]*/".to_owned(),
            markers: vec!["</think>".to_owned()],
        };
        let compiler = crate::GrammarCompiler::new(&tokenizer).expect("tables");
        let inner = compiler.compile(&spec).expect("it compiles").start();
        let (budget, _) = budget(2);
        let mut budget = budget.starting_inside().with(Some(inner));
        let text = |budget: &mut ChannelBudget| {
            let ids = budget.completion().expect("no error").expect("there is one");
            assert!(budget.completes(&ids).expect("no error"));
            ids.iter().flat_map(|&id| tokenizer.token_bytes(id).to_vec()).collect::<Vec<u8>>()
        };
        let end = format!("</think>[{}]", "0".repeat(50));
        assert_eq!(text(&mut budget), end.as_bytes());
        write(&mut budget, &tokenizer, "a");
        write(&mut budget, &tokenizer, "b");
        assert_eq!(text(&mut budget), format!("\n{end}").as_bytes());
    }
}

//! Token budget of a channel, such as reasoning.

mod channel;
#[cfg(test)]
mod tests;

use std::sync::Arc;

use self::channel::{Channel, State};
use super::{Constraint, Ending, TokenMask};
use crate::constraint::ConstraintRecord;
use crate::error::Result;
use lm_tokenizer::{TokenId, Tokenizer};

/// Maximum number of times that one completion closes the channel.
const MAX_CLOSED: usize = 8;

/// Ends a channel after a number of tokens: its end marker is then forced, and the reply continues after it.
///
/// All text between the channel's start and end markers counts, also when a reply has several such parts.
/// Another constraint can apply to the reply as a whole. It has to allow the end marker; if it does not do so
/// at once (in the middle of a character, say), the end marker is forced at the first token where it is
/// allowed.
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

impl ChannelBudget {
    /// Creates a budget of `tokens` for the channel between `start` and `end`; `layout` is written before
    /// `end` when the budget forces the end.
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
        Ok(Self::closing_with(tokenizer, start, end, closing, tokens))
    }

    /// Creates a budget whose channel is closed with the tokens `closing`.
    pub(crate) fn closing_with(
        tokenizer: &Arc<Tokenizer>,
        start: &str,
        end: &str,
        closing: Vec<TokenId>,
        tokens: usize,
    ) -> Self {
        let (tokenizer, start, end) = (Arc::clone(tokenizer), start.to_owned(), end.to_owned());
        let channel = Arc::new(Channel { tokenizer, start, end, closing, budget: tokens });
        Self { channel, inner: None, state: State::Outside { spent: 0, matched: 0 }, history: Vec::new() }
    }

    /// Sets the state for a reply that starts inside the channel.
    pub fn starting_inside(mut self) -> Self {
        self.state = State::Inside { spent: 0, matched: 0 };
        self
    }

    /// Adds a constraint on the whole reply.
    pub fn with(mut self, inner: Option<Box<dyn Constraint>>) -> Self {
        self.inner = inner;
        self
    }

    /// Returns the next token for ending the channel, if the reply's constraint allows it.
    fn next_closing(&mut self) -> Result<Option<TokenId>> {
        let Some(&[next, ..]) = self.closing() else { return Ok(None) };
        let allowed = match &mut self.inner {
            Some(inner) => inner.valid_prefix(&[next])? == 1,
            None => true,
        };
        Ok(allowed.then_some(next))
    }

    /// Commits a completion and appends it to `ids`; returns false without a completion.
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

    /// Returns the remaining tokens of the closing sequence, if the channel has to end.
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
        if self.next_closing()?.is_some() {
            return Ok(Ending::Forbidden);
        }
        self.inner.as_mut().map_or(Ok(Ending::Allowed), |inner| inner.ending())
    }

    fn fork(&self) -> Box<dyn Constraint> {
        Box::new(self.clone())
    }

    fn state_bytes(&self) -> usize {
        self.inner.as_ref().map_or(0, |inner| inner.state_bytes()) + size_of_val(&*self.history)
    }

    fn record(&self) -> Option<ConstraintRecord> {
        let inner = match &self.inner {
            Some(inner) => Some(Box::new(inner.record()?)),
            None => None,
        };
        let Channel { start, end, closing, budget, .. } = &*self.channel;
        let (start, end, closing) = (start.clone(), end.clone(), closing.clone());
        let inside = matches!(self.state, State::Inside { .. });
        Some(ConstraintRecord::Budget { start, end, closing, tokens: *budget, inside, inner })
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

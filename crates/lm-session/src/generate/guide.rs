//! Application of a constraint in one generation.

use std::sync::Arc;

use lm_tokenizer::{SpecialTokens, Tokenizer};

use crate::constraint::{Constraint, Ending, TokenMask};
use crate::error::{Error, Result};
use crate::event::Steered;
use crate::generate::steering::{ClosingTokens, Search, SearchContext};
use crate::sampling::argmax;
use lm_tokenizer::TokenId;

/// Length of the text's tail, in bytes, that the search for completions uses.
const TAIL_BYTES: usize = 64;
/// Number of tokens after which a search without a result is repeated.
const RETRY: usize = 32;
/// Maximum number of rejected tokens in one position before the text ends there.
const MAX_REJECTED: usize = 16;

/// The constraint of a generation, its mask for the next token, and a known completion of the text.
#[derive(Debug)]
pub(crate) struct Guide {
    constraint: Box<dyn Constraint>,
    vocabulary: GuideVocabulary,
    mask: TokenMask,
    /// True if `mask` belongs to the next token.
    ready: bool,
    search: Search,
    /// A completion: tokens after which the text may end; `None` before one was found.
    completion: Option<Vec<TokenId>>,
    /// Length of the text, in tokens, when the search is repeated.
    retry_at: usize,
    /// Last bytes of the text.
    tail: Vec<u8>,
    /// Number of tokens of the text.
    len: usize,
    /// Tokens forced before sampling, until [`Guide::begin`] takes them.
    first: Vec<TokenId>,
    /// Number of tokens rejected in the current position.
    rejected: usize,
    /// True if the last search found no completion, although one may exist.
    unfound: bool,
    steered: Option<Steered>,
    /// True if the text has reached the end of a followed completion.
    closed: bool,
}

/// Token tables of a guide.
#[derive(Clone, Debug)]
pub(crate) struct GuideVocabulary {
    pub tokenizer: Arc<Tokenizer>,
    pub closing: Arc<ClosingTokens>,
    /// Ids that end a generation.
    pub end_ids: Vec<TokenId>,
    pub logits_width: usize,
}

/// Outcome of a sampled token.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Step {
    /// The sampled token, or its replacement, and the tokens forced after it.
    Tokens(Vec<TokenId>),
    /// The token is rejected because no completion after it fits; the mask now forbids it, and another token
    /// has to be sampled.
    Rejected,
}

impl Guide {
    /// Creates a guide for a text that starts with `written` and continues for up to `remaining_tokens`.
    ///
    /// # Errors
    /// [`Error::BudgetTooSmall`] when the known completion does not fit.
    pub fn new(
        constraint: Box<dyn Constraint>,
        vocabulary: GuideVocabulary,
        written: &[TokenId],
        remaining_tokens: usize,
    ) -> Result<Self> {
        let width = vocabulary.logits_width;
        let search = Search::new(constraint.closing_literals(), width);
        let mut guide = Self {
            constraint,
            vocabulary,
            mask: TokenMask::new(width),
            ready: false,
            search,
            completion: None,
            retry_at: 0,
            tail: Vec::new(),
            len: 0,
            first: Vec::new(),
            rejected: 0,
            unfound: false,
            steered: None,
            closed: false,
        };
        written.iter().try_for_each(|&id| guide.constraint.commit(id))?;
        guide.record(written);
        let mut first = guide.commit_forced()?;
        let ended = first.last().is_some_and(|&id| guide.is_end(id));
        let forced_len = first.len() - usize::from(ended);
        guide.completion = match remaining_tokens.checked_sub(forced_len) {
            Some(left) => guide.find_completion(&first, left)?,
            None => None,
        };
        if guide.completion.is_none()
            && let Some(shortest) = guide.find_completion(&first, usize::MAX)?
        {
            let needed_tokens = forced_len + shortest.len();
            if needed_tokens > remaining_tokens {
                return Err(Error::BudgetTooSmall { needed_tokens, available_tokens: remaining_tokens });
            }
            // The first search reached its time limit.
            guide.completion = Some(shortest);
        }
        if first.len() > remaining_tokens {
            first.pop(); // The end token: the text is complete without it.
            guide.closed = true;
        }
        guide.end_if_complete(&mut first, remaining_tokens);
        guide.record(&first);
        guide.first = first;
        Ok(guide)
    }

    /// Approximate bytes of the constraint's state and the masks.
    pub fn state_bytes(&self) -> usize {
        self.constraint.state_bytes() + self.mask.bytes() + self.search.mask_bytes()
    }

    /// Takes the tokens forced at the start of the text; empty on later calls.
    pub fn begin(&mut self) -> Vec<TokenId> {
        std::mem::take(&mut self.first)
    }

    /// Returns the mask of the next token, with the end tokens if the text may end.
    pub fn mask(&mut self) -> Result<&TokenMask> {
        if !self.ready {
            self.mask.clear();
            self.constraint.mask(&mut self.mask)?;
            if self.constraint.ending()? != Ending::Forbidden {
                self.vocabulary.end_ids.iter().for_each(|&id| self.mask.allow(id));
            }
            self.ready = true;
        }
        Ok(&self.mask)
    }

    /// Returns the mask of the end tokens if the text is complete here, and what may follow is not free text.
    pub fn ends_if_complete(&mut self) -> Result<Option<TokenMask>> {
        // After a rejection the model prefers a part that does not fit.
        if self.len == 0 || self.rejected > 0 || self.constraint.ending()? != Ending::Allowed {
            return Ok(None);
        }
        let closing = self.vocabulary.closing.clone();
        let mask = self.mask()?;
        if closing.is_free_text(mask) {
            return Ok(None);
        }
        let mut ends = TokenMask::new(mask.width());
        self.vocabulary.end_ids.iter().for_each(|&id| ends.allow(id));
        Ok((!ends.is_empty()).then_some(ends))
    }

    /// Returns true if the mask allows a token whose bytes begin the text of `id`.
    pub fn allows_start_of(&mut self, id: TokenId) -> Result<bool> {
        let tokenizer = self.vocabulary.tokenizer.clone();
        let text = tokenizer.token_bytes(id);
        let begins = |id: TokenId| {
            let bytes = tokenizer.token_bytes(id);
            !bytes.is_empty() && text.starts_with(bytes)
        };
        Ok(self.mask()?.ids().any(begins))
    }

    /// Error for a row of logits whose finite logits are all masked, so that no token can be sampled; `None`
    /// if the failure has another cause.
    pub fn refusal(&self, row: &[f32], generated: &[TokenId]) -> Option<Error> {
        let is_finite = |id: TokenId| row.get(id as usize).is_some_and(|logit| logit.is_finite());
        let best = argmax(row).filter(|_| !self.mask.ids().any(is_finite))?;
        let text = |ids: &[TokenId]| self.vocabulary.tokenizer.decode(ids, SpecialTokens::Keep);
        Some(Error::TokenRefused {
            token: text(&[best as TokenId]),
            index: generated.len(),
            text: text(generated),
        })
    }

    /// Commits `sampled`, or replaces it by a token of the known completion, so that the text can end within
    /// `remaining_tokens`.
    pub fn step(&mut self, sampled: TokenId, remaining_tokens: usize) -> Result<Step> {
        let mut ids = vec![sampled];
        if self.is_end(sampled) {
            return Ok(Step::Tokens(ids));
        }
        self.constraint.commit(sampled)?;
        ids.extend(self.commit_forced()?);
        self.closed = false;
        if !self.fits(&ids, remaining_tokens)? {
            self.note_steered(0, usize::from(self.unfound));
            let committed = ids.iter().filter(|&&id| !self.is_end(id)).count();
            self.constraint.rollback(committed)?;
            if self.completion.as_ref().is_some_and(Vec::is_empty) {
                return self.reject(sampled);
            }
            ids = self.follow_completion(remaining_tokens)?;
        }
        self.end_if_complete(&mut ids, remaining_tokens);
        self.record(&ids);
        Ok(Step::Tokens(ids))
    }

    /// Returns true if the text is complete: only an end token may follow, or steering has reached its end.
    /// The error of a failed constraint is reported with the next mask.
    pub fn is_complete(&mut self) -> bool {
        self.closed || matches!(self.constraint.ending(), Ok(Ending::Required))
    }

    /// Returns true if the text stops where it may not end, without a known completion.
    pub fn is_cut_off(&mut self) -> bool {
        !self.closed && self.completion.is_none() && matches!(self.constraint.ending(), Ok(Ending::Forbidden))
    }

    /// Steering of the text, if it was steered.
    pub fn steered(&self) -> Option<Steered> {
        self.steered
    }

    /// Commits the forced tokens and returns them, up to an end token, which is included but not committed.
    fn commit_forced(&mut self) -> Result<Vec<TokenId>> {
        let mut forced = match self.constraint.ending()? {
            Ending::Forbidden => self.constraint.forced()?,
            Ending::Allowed | Ending::Required => Vec::new(),
        };
        if let Some(end) = forced.iter().position(|&id| self.is_end(id)) {
            forced.truncate(end + 1);
        }
        for &id in forced.iter().filter(|&&id| !self.vocabulary.end_ids.contains(&id)) {
            self.constraint.commit(id)?;
        }
        Ok(forced)
    }

    /// Returns true if the text may continue with `ids`, which are committed: a fitting completion is known
    /// after them and becomes the current one, or none was known before.
    fn fits(&mut self, ids: &[TokenId], remaining_tokens: usize) -> Result<bool> {
        self.unfound = false;
        // Without a known completion no token is rejected: the text continues until its tokens run out.
        let Some(left) = remaining_tokens.checked_sub(ids.len()) else {
            return Ok(self.completion.is_none());
        };
        let waits = self.completion.is_none() && self.len < self.retry_at;
        let found = if waits { None } else { self.find_completion(ids, left)? };
        let goes_on = found.is_some() || self.completion.is_none();
        if goes_on {
            if found.is_none() && !waits {
                self.retry_at = self.len + RETRY;
            }
            self.completion = found;
        }
        Ok(goes_on)
    }

    /// Finds a completion of up to `limit` tokens after `ids`, which are committed.
    fn find_completion(&mut self, ids: &[TokenId], limit: usize) -> Result<Option<Vec<TokenId>>> {
        let ended = ids.last().is_some_and(|&id| self.is_end(id));
        if ended || self.constraint.ending()? != Ending::Forbidden {
            return Ok(Some(Vec::new()));
        }
        if let Some(known) = &self.completion {
            if let Some(rest) = known.strip_prefix(ids) {
                return Ok(Some(rest.to_vec()));
            }
            let known = known.clone();
            if known.len() <= limit && self.completes(&known)? {
                return Ok(Some(known));
            }
        }
        if let Some(shortest) = self.constraint.completion()?
            && self.completes(&shortest)?
        {
            return Ok((shortest.len() <= limit).then_some(shortest));
        }
        let Self { constraint, vocabulary, search, .. } = self;
        let mut tail = self.tail.clone();
        ids.iter().for_each(|&id| tail.extend_from_slice(vocabulary.tokenizer.token_bytes(id)));
        let GuideVocabulary { tokenizer, closing, end_ids, .. } = &*vocabulary;
        let mut context =
            SearchContext { constraint: &mut **constraint, tokenizer, tokens: closing, end_ids, tail: &tail };
        let found = search.completion(&mut context, limit)?;
        self.unfound = found.is_none();
        Ok(found)
    }

    /// Returns true if the text may end after `ids`, where the last one may be an end token required by the
    /// constraint itself.
    fn completes(&mut self, ids: &[TokenId]) -> Result<bool> {
        match ids.last() {
            Some(&last) if self.is_end(last) => Ok(self.constraint.valid_prefix(ids)? == ids.len()),
            _ => self.constraint.completes(ids),
        }
    }

    /// Commits the first token of the known completion, or all of it when it needs all remaining tokens.
    fn follow_completion(&mut self, remaining_tokens: usize) -> Result<Vec<TokenId>> {
        let mut next = self.completion.take().unwrap_or_default();
        let rest = if next.len() < remaining_tokens { next.split_off(next.len().min(1)) } else { Vec::new() };
        for &id in next.iter().filter(|&&id| !self.vocabulary.end_ids.contains(&id)) {
            self.constraint.commit(id)?;
        }
        self.closed = rest.is_empty();
        self.completion = Some(rest);
        self.note_steered(next.len(), 0);
        Ok(next)
    }

    /// Rejects a token if the text may end, so that another one is sampled. After [`MAX_REJECTED`] rejections
    /// the text is ended, or continues unsteered without an end token.
    fn reject(&mut self, sampled: TokenId) -> Result<Step> {
        self.rejected += 1;
        self.note_steered(usize::from(self.rejected == 1), 0);
        if self.rejected <= MAX_REJECTED {
            self.mask.forbid(sampled);
            return Ok(Step::Rejected);
        }
        let next = match self.vocabulary.end_ids.first() {
            Some(&end) => end,
            None => {
                self.constraint.commit(sampled)?;
                self.completion = None;
                sampled
            }
        };
        self.record(&[next]);
        Ok(Step::Tokens(vec![next]))
    }

    fn note_steered(&mut self, tokens: usize, unfound: usize) {
        let before = self.steered.unwrap_or(Steered { from: self.len, tokens: 0, unfound: 0 });
        let (tokens, unfound) = (before.tokens + tokens, before.unfound + unfound);
        self.steered = Some(Steered { from: before.from, tokens, unfound });
    }

    /// Appends the end token to `ids` if it is the only allowed token and there is exactly one; it is not
    /// committed.
    fn end_if_complete(&mut self, ids: &mut Vec<TokenId>, remaining_tokens: usize) {
        let ended = ids.last().is_some_and(|&id| self.is_end(id));
        if let [end] = self.vocabulary.end_ids[..]
            && !ended
            && ids.len() < remaining_tokens
            && matches!(self.constraint.ending(), Ok(Ending::Required))
        {
            ids.push(end);
        }
    }

    fn record(&mut self, ids: &[TokenId]) {
        let tokenizer = &self.vocabulary.tokenizer;
        ids.iter().for_each(|&id| self.tail.extend_from_slice(tokenizer.token_bytes(id)));
        self.tail.drain(..self.tail.len().saturating_sub(TAIL_BYTES));
        self.len += ids.len();
        (self.ready, self.rejected) = (false, 0);
    }

    fn is_end(&self, id: TokenId) -> bool {
        self.vocabulary.end_ids.contains(&id)
    }
}

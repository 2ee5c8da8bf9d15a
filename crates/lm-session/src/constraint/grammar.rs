//! A grammar as a constraint, over llguidance's matcher.

use std::fmt;
use std::sync::Arc;

use llguidance::Matcher;
use lm_model::Tokenizer;

use super::{Acceptance, Constraint, Ending, TokenMask};
use crate::{Error, Result, TokenId};

/// The state of a text under a grammar: [`crate::CompiledConstraint::start`].
pub struct GrammarConstraint {
    matcher: Matcher,
    closers: Arc<[String]>,
}

impl GrammarConstraint {
    pub(super) fn new(matcher: Matcher, closers: Arc<[String]>) -> Self {
        Self { matcher, closers }
    }

    /// What the grammar says about a text of `ids`, which may be cut into tokens in any way.
    pub(super) fn check(&mut self, tokenizer: &Tokenizer, ids: &[TokenId]) -> Result<Acceptance> {
        let valid = self.valid_prefix(ids)?;
        self.matcher.consume_tokens(&ids[..valid]).map_err(failed)?;
        let spelled = |ids: &[TokenId]| ids.iter().map(|&id| tokenizer.token_bytes(id).len()).sum::<usize>();
        match ids.get(valid) {
            Some(&id) => {
                let at = spelled(&ids[..valid]) + self.valid_bytes(tokenizer, tokenizer.token_bytes(id))?;
                Ok(Acceptance::Rejected { at })
            }
            None if self.ending()? == Ending::Forbidden => Ok(Acceptance::Incomplete),
            None => Ok(Acceptance::Accepted),
        }
    }

    /// How many of `bytes`, those of a token that may not come next, may come next.
    fn valid_bytes(&mut self, tokenizer: &Tokenizer, bytes: &[u8]) -> Result<usize> {
        let env = self.matcher.tok_env().map_err(failed)?;
        let single = |byte: &u8| env.tok_trie().token_id(std::slice::from_ref(byte));
        let ids: Option<Vec<TokenId>> = bytes.iter().map(single).collect();
        let ids = ids.filter(|_| bytes.len() > 1).unwrap_or_default();
        debug_assert!(ids.iter().all(|&id| tokenizer.token_bytes(id).len() == 1));
        self.valid_prefix(&ids)
    }
}

impl Constraint for GrammarConstraint {
    fn mask(&mut self, mask: &mut TokenMask) -> Result<()> {
        if !self.matcher.is_stopped() {
            mask.copy_from(self.matcher.compute_mask().map_err(failed)?.as_slice());
        }
        self.alive()
    }

    fn commit(&mut self, id: TokenId) -> Result<()> {
        self.matcher.consume_token(id).map_err(failed)
    }

    fn rollback(&mut self, tokens: usize) -> Result<()> {
        self.matcher.rollback(tokens).map_err(failed)
    }

    fn ending(&mut self) -> Result<Ending> {
        self.alive()?;
        if self.matcher.is_stopped() {
            return Ok(Ending::Required);
        }
        let accepting = self.matcher.is_accepting().map_err(failed)?;
        Ok(if accepting { Ending::Allowed } else { Ending::Forbidden })
    }

    fn fork(&self) -> Box<dyn Constraint> {
        Box::new(Self { matcher: self.matcher.deep_clone(), closers: self.closers.clone() })
    }

    fn forced(&mut self) -> Result<Vec<TokenId>> {
        if self.matcher.is_stopped() {
            return self.alive().map(|()| Vec::new());
        }
        let forced = self.matcher.compute_ff_tokens();
        self.alive().map(|()| forced)
    }

    fn valid_prefix(&mut self, ids: &[TokenId]) -> Result<usize> {
        self.matcher.validate_tokens(ids).map_err(failed)
    }

    fn closers(&self) -> &[String] {
        &self.closers
    }
}

impl GrammarConstraint {
    /// A matcher that has failed says so in every answer.
    fn alive(&self) -> Result<()> {
        self.matcher.get_error().map_or(Ok(()), |message| Err(Error::ConstraintFailed { message }))
    }
}

impl fmt::Debug for GrammarConstraint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("GrammarConstraint").finish_non_exhaustive()
    }
}

/// The library's errors are texts; they hold neither the grammar nor the text so far.
fn failed(error: impl fmt::Display) -> Error {
    Error::ConstraintFailed { message: error.to_string() }
}

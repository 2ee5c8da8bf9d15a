//! A grammar as a constraint, over llguidance's parser.

use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use llguidance::TokenParser;
use llguidance::api::StopReason;
use lm_model::Tokenizer;

use super::{Acceptance, Constraint, Ending, TokenMask};
use crate::scheduler::panic_message;
use crate::{Error, Result, TokenId};

/// The state of a text under a grammar: [`crate::CompiledConstraint::start`].
pub struct GrammarConstraint {
    parser: TokenParser,
    closers: Arc<[String]>,
    /// Why it cannot go on: the parser is not asked again.
    failed: Option<String>,
}

impl GrammarConstraint {
    /// `parser` is at the start of the text.
    pub(super) fn new(mut parser: TokenParser, closers: Arc<[String]>) -> Self {
        if parser.is_fresh() {
            parser.start_without_prompt();
        }
        Self { parser, closers, failed: None }
    }

    /// What the grammar says about a text of `ids`, which may be cut into tokens in any way.
    pub(super) fn check(&mut self, tokenizer: &Tokenizer, ids: &[TokenId]) -> Result<Acceptance> {
        let valid = self.valid_prefix(ids)?;
        ids[..valid].iter().try_for_each(|&id| self.commit(id))?;
        let spelled: usize = ids[..valid].iter().map(|&id| tokenizer.token_bytes(id).len()).sum();
        match ids.get(valid) {
            Some(&id) => {
                Ok(Acceptance::Rejected { at: spelled + self.valid_bytes(tokenizer.token_bytes(id))? })
            }
            None if self.ending()? == Ending::Forbidden => Ok(Acceptance::Incomplete),
            None => Ok(Acceptance::Accepted),
        }
    }

    /// How many of `bytes`, those of a token that may not come next, may come next.
    fn valid_bytes(&mut self, bytes: &[u8]) -> Result<usize> {
        let trie = self.parser.token_env.tok_trie();
        let ids: Option<Vec<TokenId>> = bytes.iter().map(|&byte| trie.token_id_at_bytes(&[byte])).collect();
        self.valid_prefix(&ids.filter(|_| bytes.len() > 1).unwrap_or_default())
    }

    /// What the parser says; its errors and panics are final.
    fn ask<T, E: fmt::Display>(
        &mut self,
        question: impl FnOnce(&mut TokenParser) -> std::result::Result<T, E>,
    ) -> Result<T> {
        if let Some(message) = self.failed.clone() {
            return Err(Error::ConstraintFailed { message });
        }
        let answer = match catch_unwind(AssertUnwindSafe(|| question(&mut self.parser))) {
            Ok(answer) => answer.map_err(|error| error.to_string()),
            Err(panic) => Err(panic_message(&*panic)),
        };
        answer.map_err(|message| {
            self.failed = Some(message.clone());
            Error::ConstraintFailed { message }
        })
    }

    /// The same for questions that have an answer in every state.
    fn look<T>(&mut self, question: impl FnOnce(&mut TokenParser) -> T) -> Result<T> {
        self.ask(|parser| Ok::<_, std::convert::Infallible>(question(parser)))
    }
}

impl Constraint for GrammarConstraint {
    fn mask(&mut self, mask: &mut TokenMask) -> Result<()> {
        let allowed = self.ask(|parser| match parser.stopped() {
            true => Ok(None),
            false => parser.compute_mask().map(Some).or_else(|error| match parser.stop_reason() {
                StopReason::NoExtensionBias => Ok(None), // No token of this vocabulary goes on.
                _ => Err(error),
            }),
        })?;
        if let Some(allowed) = allowed {
            mask.copy_from(allowed.as_slice());
        }
        Ok(())
    }

    fn commit(&mut self, id: TokenId) -> Result<()> {
        self.ask(|parser| parser.consume_token(id).and_then(|_| parser.check_stop()))?;
        Ok(())
    }

    fn rollback(&mut self, tokens: usize) -> Result<()> {
        // The library's cache of the last mask knows a state by its place only: another text may have come to the same place.
        self.ask(|parser| parser.rollback(tokens).map(|()| parser.invalidate_bias_cache()))
    }

    fn ending(&mut self) -> Result<Ending> {
        self.look(|parser| match parser.stop_reason() {
            StopReason::NoExtensionBias => Ending::Forbidden,
            _ if parser.stopped() => Ending::Required,
            _ if parser.is_accepting() => Ending::Allowed,
            _ => Ending::Forbidden,
        })
    }

    fn fork(&self) -> Box<dyn Constraint> {
        let (parser, closers, failed) = (self.parser.deep_clone(), self.closers.clone(), self.failed.clone());
        Box::new(Self { parser, closers, failed })
    }

    fn forced(&mut self) -> Result<Vec<TokenId>> {
        self.look(|parser| if parser.stopped() { Vec::new() } else { parser.compute_ff_tokens() })
    }

    fn valid_prefix(&mut self, ids: &[TokenId]) -> Result<usize> {
        self.ask(|parser| parser.validate_tokens_raw(ids))
    }

    fn closers(&self) -> &[String] {
        &self.closers
    }
}

impl fmt::Debug for GrammarConstraint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("GrammarConstraint").finish_non_exhaustive()
    }
}

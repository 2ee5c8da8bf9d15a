//! Constraint that follows a grammar with llguidance's parser.

use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use llguidance::TokenParser;
use llguidance::api::StopReason;

use super::shortest_completion::ShortestCompletion;
use super::vocabulary::special_token;
use super::{Acceptance, Constraint, ConstraintSpec, Ending, TokenMask};
use crate::constraint::ConstraintRecord;
use crate::error::{Error, Result};
use crate::panics::panic_message;
use lm_tokenizer::TokenId;

/// State of a text under a grammar; created by [`crate::CompiledConstraint::start`].
pub struct GrammarConstraint {
    parser: TokenParser,
    spec: Arc<ConstraintSpec>,
    closing_literals: Arc<[String]>,
    /// State of the shortest completions, if available.
    shortest: Option<ShortestCompletion>,
    /// First error, after which the parser is not called again.
    failed: Option<String>,
}

impl GrammarConstraint {
    /// Creates the constraint; `parser` is at the start of the text.
    pub(super) fn new(
        mut parser: TokenParser,
        spec: Arc<ConstraintSpec>,
        closing_literals: Arc<[String]>,
        shortest: Option<ShortestCompletion>,
    ) -> Self {
        if parser.is_fresh() {
            parser.start_without_prompt();
        }
        Self { parser, spec, closing_literals, shortest, failed: None }
    }

    /// Checks `text` byte by byte; an added token is matched by its spelling where the grammar allows it.
    pub(super) fn check(&mut self, text: &str) -> Result<Acceptance> {
        let env = self.parser.token_env.clone();
        let trie = env.tok_trie();
        let (mut at, text) = (0, text.as_bytes());
        while at < text.len() {
            let byte = trie.token_id_at_bytes(&text[at..=at]).map(|id| (id, 1));
            let mut next = None;
            for (id, len) in [special_token(trie, &text[at..]), byte].into_iter().flatten() {
                if next.is_none() && self.valid_prefix(&[id])? == 1 {
                    next = Some((id, len));
                }
            }
            let Some((id, len)) = next else { return Ok(Acceptance::Rejected { at }) };
            self.commit(id)?;
            at += len;
        }
        Ok(if self.ending()? == Ending::Forbidden { Acceptance::Incomplete } else { Acceptance::Accepted })
    }

    /// Calls the parser; its errors and panics are final.
    fn call_parser<T, E: fmt::Display>(
        &mut self,
        call: impl FnOnce(&mut TokenParser) -> std::result::Result<T, E>,
    ) -> Result<T> {
        if let Some(message) = self.failed.clone() {
            return Err(Error::ConstraintFailed { message });
        }
        let outcome = match catch_unwind(AssertUnwindSafe(|| call(&mut self.parser))) {
            Ok(outcome) => outcome.map_err(|error| error.to_string()),
            Err(panic) => Err(panic_message(&*panic)),
        };
        outcome.map_err(|message| {
            self.failed = Some(message.clone());
            Error::ConstraintFailed { message }
        })
    }

    /// [`Self::call_parser`] for infallible calls.
    fn call_infallible<T>(&mut self, call: impl FnOnce(&mut TokenParser) -> T) -> Result<T> {
        self.call_parser(|parser| Ok::<_, std::convert::Infallible>(call(parser)))
    }

    /// Queries the shortest completions; returns `None` without them, or after a panic of the library.
    fn query_shortest<T>(&mut self, call: impl FnOnce(&mut ShortestCompletion) -> T) -> Option<T> {
        let shortest = self.shortest.as_mut()?;
        let outcome = catch_unwind(AssertUnwindSafe(|| call(shortest))).ok();
        if outcome.is_none() {
            self.shortest = None;
        }
        outcome
    }
}

impl Constraint for GrammarConstraint {
    fn mask(&mut self, mask: &mut TokenMask) -> Result<()> {
        let allowed = self.call_parser(|parser| match parser.stopped() {
            true => Ok(None),
            false => parser.compute_mask().map(Some).or_else(|error| match parser.stop_reason() {
                StopReason::NoExtensionBias => Ok(None), // No token of this vocabulary can follow.
                _ => Err(error),
            }),
        })?;
        if let Some(allowed) = allowed {
            mask.copy_from(allowed.as_slice());
        }
        Ok(())
    }

    fn commit(&mut self, id: TokenId) -> Result<()> {
        self.call_parser(|parser| parser.consume_token(id).and_then(|_| parser.check_stop()))?;
        self.query_shortest(|shortest| shortest.commit(id));
        Ok(())
    }

    fn rollback(&mut self, tokens: usize) -> Result<()> {
        // The library's cache of the last mask keys a state by its position only: another text may have
        // reached the same position.
        self.call_parser(|parser| parser.rollback(tokens).map(|()| parser.invalidate_bias_cache()))?;
        self.query_shortest(|shortest| shortest.rollback(tokens));
        Ok(())
    }

    fn ending(&mut self) -> Result<Ending> {
        self.call_infallible(|parser| match parser.stop_reason() {
            StopReason::NoExtensionBias => Ending::Forbidden,
            _ if parser.stopped() => Ending::Required,
            _ if parser.is_accepting() => Ending::Allowed,
            _ => Ending::Forbidden,
        })
    }

    fn fork(&self) -> Box<dyn Constraint> {
        let (closing_literals, shortest, failed) =
            (self.closing_literals.clone(), self.shortest.clone(), self.failed.clone());
        let (parser, spec) = (self.parser.deep_clone(), self.spec.clone());
        Box::new(Self { parser, spec, closing_literals, shortest, failed })
    }

    fn state_bytes(&self) -> usize {
        if self.failed.is_some() {
            return 0; // A panic may have poisoned the lexer.
        }
        let lexer = self.parser.parser.lexer_stats().num_bytes;
        let shortest = self.shortest.as_ref().map_or(0, ShortestCompletion::state_bytes);
        lexer + self.parser.dbg_grammar.len() + shortest
    }

    fn record(&self) -> Option<ConstraintRecord> {
        Some(ConstraintRecord::Grammar((*self.spec).clone()))
    }

    fn forced(&mut self) -> Result<Vec<TokenId>> {
        self.call_infallible(|parser| if parser.stopped() { Vec::new() } else { parser.compute_ff_tokens() })
    }

    fn valid_prefix(&mut self, ids: &[TokenId]) -> Result<usize> {
        self.call_parser(|parser| parser.validate_tokens_raw(ids))
    }

    fn completes(&mut self, ids: &[TokenId]) -> Result<bool> {
        if self.parser.stopped() {
            return Ok(ids.is_empty() && self.ending()? != Ending::Forbidden);
        }
        let end = self.parser.token_env.eos_token();
        let ended = [ids, &[end]].concat();
        Ok(self.valid_prefix(&ended)? == ended.len())
    }

    fn completion(&mut self) -> Result<Option<Vec<TokenId>>> {
        Ok(self.query_shortest(ShortestCompletion::completion).flatten())
    }

    fn closing_literals(&self) -> &[String] {
        &self.closing_literals
    }
}

impl fmt::Debug for GrammarConstraint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("GrammarConstraint").finish_non_exhaustive()
    }
}

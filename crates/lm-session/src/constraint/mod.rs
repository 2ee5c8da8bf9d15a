//! Constraints on the tokens of a generation: compiled grammars and user-defined ones.

mod bounds;
mod cache;
mod channel_budget;
mod compiler;
mod conjunctions;
pub(crate) mod continuation;
mod cost;
mod grammar;
mod literals;
mod record;
mod refusal;
mod shortest_completion;

mod spec;
mod token_mask;
mod vocabulary;

use std::fmt;

pub use channel_budget::ChannelBudget;
pub use compiler::{CompiledConstraint, GrammarCompiler};
pub use grammar::GrammarConstraint;
pub use record::ConstraintRecord;
pub use spec::{Acceptance, ConstraintSpec};
pub use token_mask::TokenMask;

use crate::error::Result;
use lm_tokenizer::TokenId;

/// Decides token by token which tokens are allowed next.
///
/// The engine requests a mask, samples, and commits the sampled token. A constraint does not handle end
/// tokens: the engine allows them where [`Constraint::ending`] does, and never commits one. Constraints
/// compiled from a grammar are created by [`crate::Engine::compile`]; a user-defined one needs five methods:
///
/// ```
/// use std::sync::Arc;
///
/// use lm_session::{Constraint, Ending, Result, TokenId, TokenMask, Tokenizer};
///
/// /// Text without a letter (a lipogram).
/// #[derive(Clone, Debug)]
/// struct Without {
///     letter: u8,
///     tokenizer: Arc<Tokenizer>,
/// }
///
/// impl Constraint for Without {
///     fn mask(&mut self, mask: &mut TokenMask) -> Result<()> {
///         let text = |&id: &TokenId| !self.tokenizer.token_bytes(id).is_empty();
///         let fits = |id: &TokenId| !self.tokenizer.token_bytes(*id).contains(&self.letter);
///         (0..self.tokenizer.vocab_size() as TokenId).filter(text).filter(fits).for_each(|id| mask.allow(id));
///         Ok(())
///     }
///     // What may come next does not depend on what came before: there is no state.
///     fn commit(&mut self, _: TokenId) -> Result<()> {
///         Ok(())
///     }
///     fn rollback(&mut self, _: usize) -> Result<()> {
///         Ok(())
///     }
///     fn ending(&mut self) -> Result<Ending> {
///         Ok(Ending::Allowed)
///     }
///     fn fork(&self) -> Box<dyn Constraint> {
///         Box::new(self.clone())
///     }
/// }
///
/// use lm_session::{GenerateParams, SessionConfig, testing};
///
/// let engine = testing::scripted_engine(["hello"]); // The model would say "hello".
/// let constraint = Without { letter: b'o', tokenizer: engine.tokenizer().clone() };
/// let mut session = engine.session(SessionConfig::default())?;
/// session.prefill(&[1])?;
/// let params = GenerateParams {
///     constraint: Some(Box::new(constraint)),
///     max_output_tokens: Some(5),
///     ..GenerateParams::default()
/// };
/// let (text, _) = session.generate(params).into_text()?;
/// assert!(!text.contains('o'), "{text}");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub trait Constraint: Send + fmt::Debug {
    /// Sets every allowed next token in `mask`, which is empty and as wide as the logits.
    ///
    /// # Errors
    /// [`crate::Error::ConstraintFailed`], which ends the generation.
    fn mask(&mut self, mask: &mut TokenMask) -> Result<()>;

    /// Commits the next token, which the mask allows.
    ///
    /// # Errors
    /// [`crate::Error::ConstraintFailed`], also for a token that is not allowed.
    fn commit(&mut self, id: TokenId) -> Result<()>;

    /// Reverts the last `tokens` commits and restores masks, forced tokens and ending.
    ///
    /// # Errors
    /// [`crate::Error::ConstraintFailed`] if fewer were committed.
    fn rollback(&mut self, tokens: usize) -> Result<()>;

    /// Returns whether the text may end here.
    ///
    /// # Errors
    /// [`crate::Error::ConstraintFailed`].
    fn ending(&mut self) -> Result<Ending>;

    /// Creates a copy with its own state.
    fn fork(&self) -> Box<dyn Constraint>;

    /// Returns the known forced next tokens, in order; they are input of the model together and
    /// not sampled. Empty by default, which is always correct.
    ///
    /// # Errors
    /// [`crate::Error::ConstraintFailed`].
    fn forced(&mut self) -> Result<Vec<TokenId>> {
        Ok(Vec::new())
    }

    /// Returns the length of the longest allowed prefix of `ids`. By default each token is looked up in a
    /// mask.
    ///
    /// # Errors
    /// [`crate::Error::ConstraintFailed`].
    fn valid_prefix(&mut self, ids: &[TokenId]) -> Result<usize> {
        let width = ids.iter().max().map_or(0, |id| *id as usize + 1);
        let (mut mask, mut valid) = (TokenMask::new(width), 0);
        for &id in ids {
            mask.clear();
            self.mask(&mut mask)?;
            if !mask.allows(id) {
                break;
            }
            self.commit(id)?;
            valid += 1;
        }
        self.rollback(valid)?;
        Ok(valid)
    }

    /// Returns true if the text may end after `ids`. By default they are committed and rolled back.
    ///
    /// # Errors
    /// [`crate::Error::ConstraintFailed`].
    fn completes(&mut self, ids: &[TokenId]) -> Result<bool> {
        if self.valid_prefix(ids)? < ids.len() {
            return Ok(false);
        }
        ids.iter().try_for_each(|&id| self.commit(id))?;
        let ending = self.ending()?;
        self.rollback(ids.len())?;
        Ok(ending != Ending::Forbidden)
    }

    /// Returns tokens after which the text may end, as few as the constraint can find. None by default: the
    /// engine then searches for them.
    ///
    /// # Errors
    /// [`crate::Error::ConstraintFailed`].
    fn completion(&mut self) -> Result<Option<Vec<TokenId>>> {
        Ok(None)
    }

    /// Approximate bytes of memory that this constraint does not share with its forks. It bounds the waiting
    /// requests: [`crate::EngineSettings::max_waiting_grammar_bytes`]. Zero by default.
    fn state_bytes(&self) -> usize {
        0
    }

    /// Returns the constraint at its start as data, for [`crate::Engine::replay`]. `None` by default: a
    /// request with it is recorded, but cannot be replayed.
    fn record(&self) -> Option<ConstraintRecord> {
        None
    }

    /// Texts that close parts of the whole, such as `"}` or `</parameter>`: they are tried first when a
    /// generation must end. Empty by default.
    fn closing_literals(&self) -> &[String] {
        &[]
    }
}

impl Clone for Box<dyn Constraint> {
    fn clone(&self) -> Self {
        self.fork()
    }
}

/// Permission of a constrained text to end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ending {
    /// The text is incomplete.
    Forbidden,
    /// The text is complete and may continue.
    Allowed,
    /// The text is complete and cannot continue.
    Required,
}

//! What restricts the tokens of a generation: grammars, and constraints of one's own.

mod bounds;
mod cache;
mod channel_budget;
mod compiler;
mod conjunctions;
pub(crate) mod continuation;
mod cost;
mod grammar;
mod literals;
mod refusal;
mod shortest;
mod spec;
mod token_mask;
mod vocabulary;

use std::fmt;

pub use channel_budget::ChannelBudget;
pub use compiler::{CompiledConstraint, GrammarCompiler};
pub use grammar::GrammarConstraint;
pub use spec::{Acceptance, ConstraintSpec};
pub use token_mask::TokenMask;

use crate::{Result, TokenId};

/// Says which tokens may come next, token by token.
///
/// The engine asks for a mask, samples, and commits what was sampled. End tokens are none of a constraint's business:
/// the engine allows them where [`Constraint::ending`] does, and never commits one. A constraint that is compiled from
/// a grammar comes from [`crate::Engine::compile`]; one's own needs four methods:
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
    /// Allows in `mask`, which comes empty and as wide as the logits, every token that may come next.
    ///
    /// # Errors
    /// [`crate::Error::ConstraintFailed`], which ends the generation.
    fn mask(&mut self, mask: &mut TokenMask) -> Result<()>;

    /// Takes the next token, one that the mask allows.
    ///
    /// # Errors
    /// [`crate::Error::ConstraintFailed`], also for a token that may not come next.
    fn commit(&mut self, id: TokenId) -> Result<()>;

    /// Takes back the last `tokens` committed ones: masks, forced tokens and ending are again what they were.
    ///
    /// # Errors
    /// [`crate::Error::ConstraintFailed`] when fewer were committed.
    fn rollback(&mut self, tokens: usize) -> Result<()>;

    /// Whether the text may end here.
    ///
    /// # Errors
    /// [`crate::Error::ConstraintFailed`].
    fn ending(&mut self) -> Result<Ending>;

    /// A copy with a state of its own.
    fn fork(&self) -> Box<dyn Constraint>;

    /// Tokens that must come next, in this order, as far as they are known; they are fed to the model together and not
    /// sampled. None by default, which is always right.
    ///
    /// # Errors
    /// [`crate::Error::ConstraintFailed`].
    fn forced(&mut self) -> Result<Vec<TokenId>> {
        Ok(Vec::new())
    }

    /// How many of `ids` may come next, in this order. By default each is looked up in a mask.
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

    /// Whether the text may end after `ids`. By default they are committed and taken back.
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

    /// Tokens after which the text may end, as few as the constraint knows. None by default: the engine then searches for them.
    ///
    /// # Errors
    /// [`crate::Error::ConstraintFailed`].
    fn completion(&mut self) -> Result<Option<Vec<TokenId>>> {
        Ok(None)
    }

    /// Texts with which parts of the whole are closed, such as `"}` or `</parameter>`: where a generation must come to
    /// its end, they are tried first. None by default.
    fn closers(&self) -> &[String] {
        &[]
    }
}

impl Clone for Box<dyn Constraint> {
    fn clone(&self) -> Self {
        self.fork()
    }
}

/// Whether a constrained text may end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ending {
    /// More must come.
    Forbidden,
    /// It is complete, and more may come.
    Allowed,
    /// It is complete, and nothing more may come.
    Required,
}

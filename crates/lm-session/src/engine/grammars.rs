//! Grammars of an engine: their compiler and its tables.

use std::sync::{Arc, PoisonError};

use lm_tokenizer::TokenId;

use super::Engine;
use crate::constraint::{CompiledConstraint, ConstraintSpec, GrammarCompiler};
use crate::error::Result;
use crate::generate::{ClosingTokens, GuideVocabulary};

impl Engine {
    /// Compiles a grammar for this model's tokenizer, or returns it from the cache; see
    /// [`GrammarCompiler::compile`]. Generating sessions continue meanwhile. The first call builds the
    /// vocabulary's tables, which takes about half a second for 150,000 entries.
    ///
    /// ```
    /// use lm_session::{ConstraintSpec, GenerateParams, SessionConfig, testing};
    ///
    /// let engine = testing::scripted_engine(["I think it is 42, or so."]);
    /// let number = engine.compile(&ConstraintSpec::Regex("[1-9][0-9]{1,3}".to_owned()))?;
    /// let mut session = engine.session(SessionConfig::default())?;
    /// session.prefill(&engine.tokenizer().encode("How many?")?)?;
    /// let constraint = Some(number.start());
    /// let params = GenerateParams { constraint, max_output_tokens: Some(4), ..GenerateParams::default() };
    /// let (text, _) = session.generate(params).into_text()?;
    /// assert!(text.parse::<u64>()? >= 10);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// The errors of [`GrammarCompiler::new`] and [`GrammarCompiler::compile`].
    pub fn compile(&self, spec: &ConstraintSpec) -> Result<CompiledConstraint> {
        self.grammar_compiler()?.compile(spec)
    }

    /// Returns the compiler of [`Engine::compile`]; the first call creates it.
    ///
    /// # Errors
    /// The errors of [`GrammarCompiler::new`].
    pub fn grammar_compiler(&self) -> Result<GrammarCompiler> {
        let mut compiler = self.shared.compiler.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(compiler) = &*compiler {
            return Ok(compiler.clone());
        }
        Ok(compiler.insert(GrammarCompiler::new(self.tokenizer())?).clone())
    }

    /// Returns the token tables for the guide of a generation with these end ids.
    pub(crate) fn guide_vocabulary(&self, end_ids: Vec<TokenId>) -> GuideVocabulary {
        let tokenizer = self.tokenizer().clone();
        let logits_width = self.shared.info.logits_width;
        let closing = || Arc::new(ClosingTokens::new(&tokenizer, logits_width));
        let closing = self.shared.closing.get_or_init(closing).clone();
        GuideVocabulary { tokenizer, closing, end_ids, logits_width }
    }
}

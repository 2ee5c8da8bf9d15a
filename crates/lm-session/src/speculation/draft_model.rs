//! Draft model: the settings' handle to it.

use std::fmt;
use std::sync::Arc;

use lm_model::{CausalLm, LoadedModel, TokenId};
use lm_tokenizer::Tokenizer;

use crate::error::{Error, Result};

/// A small model that drafts tokens for a larger one with the same tokenizer; see
/// [`crate::EngineSettings::draft_model`].
///
/// ```
/// use lm_session::testing::{FakeLm, loaded, tokenizer};
/// use lm_session::{DraftModel, Engine, EngineSettings, GenerateParams, SessionConfig, Speculation};
///
/// let model = || loaded(FakeLm::random(3, tokenizer().logits_width()));
/// let speculation = Speculation { break_even: Some(0.0), ..Speculation::default() };
/// let draft_model = Some(DraftModel::new(model())); // Its twin: every draft token is accepted.
/// let engine = Engine::new(model(), EngineSettings { draft_model, speculation, ..EngineSettings::default() })?;
/// let mut session = engine.session(SessionConfig::default())?;
/// let params = GenerateParams { max_output_tokens: Some(20), ..GenerateParams::default() };
/// let (_, finished) = session.submit(&[1, 2, 3], params)?.into_text()?;
/// assert!(finished.usage.accepted_tokens > 0);
/// # Ok::<(), lm_session::Error>(())
/// ```
#[derive(Clone)]
pub struct DraftModel {
    pub(crate) model: Arc<dyn CausalLm>,
    tokenizer: Arc<Tokenizer>,
    name: String,
}

impl DraftModel {
    /// Wraps a loaded model. Its template and generation settings are not used.
    pub fn new(loaded: LoadedModel) -> Self {
        let LoadedModel { model, tokenizer, name, .. } = loaded;
        Self { model, tokenizer, name }
    }

    /// Name of the model.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Checks that the ids of the draft model have the meaning of those of `tokenizer`.
    ///
    /// # Errors
    /// [`Error::DraftTokenizer`].
    pub(crate) fn check(&self, tokenizer: &Tokenizer) -> Result<()> {
        let ids = self.tokenizer.vocab_size().max(tokenizer.vocab_size()) as TokenId;
        let bytes =
            |tokenizer: &Tokenizer, id| (tokenizer.token_bytes(id).to_vec(), tokenizer.token_kind(id));
        match (0..ids).find(|&id| bytes(&self.tokenizer, id) != bytes(tokenizer, id)) {
            Some(token) => Err(Error::DraftTokenizer { name: self.name.clone(), token }),
            None => Ok(()),
        }
    }
}

impl PartialEq for DraftModel {
    /// True for clones of one model.
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.model, &other.model)
    }
}

impl fmt::Debug for DraftModel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("DraftModel").field("name", &self.name).finish_non_exhaustive()
    }
}

//! Embeddings: pooled hidden states of a text.

use std::sync::Arc;

use lm_model::{EmbeddingConfig, Pooling};
use lm_tokenizer::TokenId;

use crate::cancel::CancelHandle;
use crate::engine::Engine;
use crate::error::{Error, Result};
use crate::generate::{PromptOutput, PromptRows};
use crate::ids::AdapterId;
use crate::session::EmbedInput;
use crate::session::prompts::{RunningPrompt, in_order};

/// Settings of an embedding.
#[derive(Clone, Debug, Default)]
pub struct EmbedParams {
    /// Reduction to one vector. `None`: the model's own, [`EmbeddingConfig::pooling`].
    pub pooling: Option<Pooling>,
    /// True for vectors of length 1. `None`: as the model's files say; true without such files.
    pub normalize: Option<bool>,
    /// LoRA adapter, as in [`SessionConfig::adapter`](crate::SessionConfig::adapter).
    pub adapter: Option<AdapterId>,
    /// Group of the requests; each takes a [`CancelHandle::child`] of it.
    pub cancel: CancelHandle,
}

impl Engine {
    /// Computes the embedding of a text: its pooled hidden states after the last norm, with the layers of
    /// [`Engine::embedding_config`] applied; for a model without such files a vector of length 1. It has
    /// [`Engine::embedding_size`] elements. The ids are used as they are; [`EmbedInput::of_text`] adds what
    /// an embedding model expects around a text.
    ///
    /// ```
    /// use lm_session::{EmbedParams, Pooling, TextSegment, testing};
    ///
    /// let engine = testing::scripted_engine(["Hello!"]);
    /// let ids = engine.tokenizer().encode_with_special_tokens(TextSegment::Content("The weather in Paris"))?;
    /// let params = EmbedParams { pooling: Some(Pooling::Last), ..EmbedParams::default() };
    /// let vector = engine.embed(&ids, &params)?;
    /// assert_eq!(vector.len(), engine.model_info().hidden_size);
    /// # Ok::<(), lm_session::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::EmptyPrompt`], [`Error::PromptTooLong`], [`Error::UnknownAdapter`], [`Error::Cancelled`],
    /// [`Error::Busy`], [`Error::EngineStopped`], and the errors of the model.
    pub fn embed(&self, ids: &[TokenId], params: &EmbedParams) -> Result<Vec<f32>> {
        self.embed_input(&ids.to_vec().into(), params)
    }

    /// [`Engine::embed`] of an input that has a prompt.
    ///
    /// # Errors
    /// As [`Engine::embed`].
    pub fn embed_input(&self, input: &EmbedInput, params: &EmbedParams) -> Result<Vec<f32>> {
        self.begin_embedding(input, params)?.wait()
    }

    /// Number of elements of an embedding.
    pub fn embedding_size(&self) -> usize {
        self.embedding_config().size(self.model_info().hidden_size)
    }

    /// Computes the embeddings of several texts, in order. Up to 8 texts run or wait at a time, or 64 of a
    /// bidirectional model, as one batch if they fit.
    ///
    /// ```
    /// # use lm_session::{EmbedParams, testing};
    /// # let engine = testing::scripted_engine(["Hello!"]);
    /// let texts = [vec![1, 2, 3], vec![4]];
    /// let vectors: Vec<Vec<f32>> = engine.embed_all(texts, &EmbedParams::default()).collect::<Result<_, _>>()?;
    /// assert_eq!(vectors.len(), 2);
    /// # Ok::<(), lm_session::Error>(())
    /// ```
    ///
    /// # Errors
    /// Each item has the errors of [`Engine::embed`] for its text.
    pub fn embed_all(
        &self,
        texts: impl IntoIterator<Item = impl Into<EmbedInput>>,
        params: &EmbedParams,
    ) -> impl Iterator<Item = Result<Vec<f32>>> {
        let begin = move |input: &EmbedInput| self.begin_embedding(input, params);
        in_order(self, texts.into_iter().map(Into::into), begin, RunningEmbedding::wait)
    }

    fn begin_embedding(&self, input: &EmbedInput, params: &EmbedParams) -> Result<RunningEmbedding> {
        let &EmbedParams { pooling, normalize, adapter, ref cancel } = params;
        let (EmbedInput { ids, unpooled }, config) = (input, self.embedding_config().clone());
        let pooling = pooling.unwrap_or(config.pooling);
        let rows = || PromptRows::pooled(ids, *unpooled, pooling);
        let prompt = RunningPrompt::begin(self, ids, rows, adapter, cancel)?;
        Ok(RunningEmbedding { prompt, config, normalize })
    }
}

/// An embedding in progress.
struct RunningEmbedding {
    prompt: RunningPrompt,
    config: Arc<EmbeddingConfig>,
    normalize: Option<bool>,
}

impl RunningEmbedding {
    fn wait(self) -> Result<Vec<f32>> {
        match self.prompt.wait()? {
            PromptOutput::Vector(values) => Ok(self.config.apply(values, self.normalize)),
            PromptOutput::Logprobs(_) | PromptOutput::Logits(_) => Err(Error::EngineStopped), // Not asked for.
        }
    }
}

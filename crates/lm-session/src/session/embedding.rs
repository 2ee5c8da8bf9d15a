//! Embeddings: pooled hidden states of a text.

use std::collections::VecDeque;
use std::sync::Arc;

use async_channel::Receiver;
use lm_model::{EmbeddingConfig, Pooling};
use lm_tokenizer::TokenId;

use crate::cancel::CancelHandle;
use crate::engine::Engine;
use crate::error::{Error, Result};
use crate::generate::{PromptOutput, PromptRows};
use crate::ids::AdapterId;
use crate::params::SessionConfig;
use crate::scheduler::Reply;
use crate::session::scoring::prompt_output;
use crate::session::{EmbedInput, Session};

/// Number of concurrent texts of [`Engine::embed_all`].
const AHEAD: usize = 8;

/// Settings of an embedding.
#[derive(Clone, Debug, Default)]
pub struct EmbedParams {
    /// Reduction to one vector. `None`: the model's own, [`EmbeddingConfig::pooling`].
    pub pooling: Option<Pooling>,
    /// True for vectors of length 1. `None`: as the model's files say; true without such files.
    pub normalize: Option<bool>,
    /// LoRA adapter, as in [`SessionConfig::adapter`].
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

    /// Computes the embeddings of several texts, in order. Up to 8 texts run or wait at a time, as one batch
    /// if they fit.
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
        let mut started: VecDeque<Result<RunningEmbedding>> = VecDeque::new();
        let mut texts = texts.into_iter().map(Into::into).peekable();
        std::iter::from_fn(move || {
            while started.len() < AHEAD
                && let Some(input) = texts.peek()
            {
                let embedding = self.begin_embedding(input, params);
                // An engine busy with earlier texts accepts it after them.
                if matches!(embedding, Err(Error::Busy { .. })) && started.iter().any(Result::is_ok) {
                    break;
                }
                texts.next();
                started.push_back(embedding);
            }
            started.pop_front().map(|embedding| embedding.and_then(RunningEmbedding::wait))
        })
    }

    fn begin_embedding(&self, input: &EmbedInput, params: &EmbedParams) -> Result<RunningEmbedding> {
        let &EmbedParams { pooling, normalize, adapter, ref cancel } = params;
        let (EmbedInput { ids, unpooled }, config) = (input, self.embedding_config().clone());
        let pooling = pooling.unwrap_or(config.pooling);
        let mut session = self.session(SessionConfig { adapter, ..SessionConfig::default() })?;
        let prompt = session.resolve(ids.as_slice().into())?;
        let rows = PromptRows::pooled(ids, *unpooled, pooling);
        let replies = session.begin_prompt(prompt, 0, rows, cancel)?;
        Ok(RunningEmbedding { replies, config, normalize, _session: session })
    }
}

/// An embedding in progress.
struct RunningEmbedding {
    replies: Receiver<Reply>,
    config: Arc<EmbeddingConfig>,
    normalize: Option<bool>,
    /// Dropping the session would end its request.
    _session: Session,
}

impl RunningEmbedding {
    fn wait(self) -> Result<Vec<f32>> {
        match prompt_output(&self.replies)? {
            PromptOutput::Embedding(values) => Ok(self.config.apply(values, self.normalize)),
            PromptOutput::Logprobs(_) => Err(Error::EngineStopped), // Not asked for.
        }
    }
}

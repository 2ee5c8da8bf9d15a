//! Inputs of embeddings: texts with their prompt, as tokens.

use lm_tokenizer::{TextSegment, TokenId, TokenKind};

use crate::engine::Engine;
use crate::error::Result;

/// Tokens to embed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct EmbedInput {
    /// All tokens, including those of a prompt.
    pub ids: Vec<TokenId>,
    /// Number of first tokens that the mean leaves out and that are not the first token of [`Pooling::Cls`]:
    /// those of a prompt that the model does not pool. At least one token is pooled.
    ///
    /// [`Pooling::Cls`]: crate::Pooling::Cls
    pub unpooled: usize,
}

impl EmbedInput {
    /// Encodes `prompt` and `text` as one text, with the special tokens of the tokenizer's post-processor,
    /// and cuts it off after [`EmbeddingConfig::max_tokens`](crate::EmbeddingConfig::max_tokens). Special
    /// tokens spelled in the prompt are tokens, those in the text are plain text.
    ///
    /// ```
    /// use lm_session::{EmbedInput, EmbedParams, testing};
    ///
    /// let engine = testing::scripted_engine(["Hello!"]);
    /// let prompt = engine.embedding_config().prompt("query").unwrap_or_default();
    /// let input = EmbedInput::of_text(&engine, prompt, "The weather in Paris")?;
    /// let vector = engine.embed_input(&input, &EmbedParams::default())?;
    /// assert_eq!(vector.len(), engine.embedding_size());
    /// # Ok::<(), lm_session::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::Tokenizer`](crate::Error::Tokenizer).
    pub fn of_text(engine: &Engine, prompt: &str, text: &str) -> Result<Self> {
        let config = engine.embedding_config();
        let max_tokens = config.max_tokens.unwrap_or(usize::MAX);
        let encode = |segments: &[TextSegment<'_>]| engine.tokenizer().encode_separate(segments, max_tokens);
        let ids = encode(&[TextSegment::Template(prompt), TextSegment::Content(text)])?;
        if config.include_prompt || prompt.is_empty() {
            return Ok(Self { ids, unpooled: 0 });
        }
        // The prompt alone, without a special token after it, as sentence-transformers counts its tokens.
        let alone = encode(&[TextSegment::Template(prompt)])?;
        let is_special = |id: &&TokenId| engine.tokenizer().token_kind(**id) == TokenKind::Special;
        let after = alone.last().filter(is_special).map_or(0, |_| 1);
        Ok(Self { ids, unpooled: alone.len() - after })
    }
}

impl From<Vec<TokenId>> for EmbedInput {
    /// Tokens that are used as they are.
    fn from(ids: Vec<TokenId>) -> Self {
        Self { ids, unpooled: 0 }
    }
}

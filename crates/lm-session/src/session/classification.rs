//! Logits of labels: whole texts, or pairs of them, under a classifier.

use lm_model::ModelOutput;
use lm_tokenizer::{TextPair, TextSegment};

use crate::cancel::CancelHandle;
use crate::engine::Engine;
use crate::error::{Error, Result};
use crate::generate::{PromptOutput, PromptRows};
use crate::ids::AdapterId;
use crate::session::prompts::{RunningPrompt, in_order};

impl Engine {
    /// Encodes two texts as the input of a cross-encoder, such as a query and a document, cut off after
    /// [`CrossEncoderConfig::max_tokens`](crate::CrossEncoderConfig::max_tokens). Special tokens spelled in
    /// them are plain text.
    ///
    /// # Errors
    /// [`Error::Tokenizer`].
    pub fn encode_pair(&self, texts: [&str; 2]) -> Result<TextPair> {
        let config = self.cross_encoder_config();
        let most = config.max_tokens.unwrap_or(usize::MAX);
        let pair = self.tokenizer().encode_pair(texts.map(TextSegment::Content), most)?;
        Ok(TextPair { second: pair.second.filter(|_| config.token_types), ..pair })
    }

    /// Computes the logits of the labels of several inputs, in order, for a model with a classifier
    /// ([`ModelOutput::Labels`]).
    ///
    /// # Errors
    /// [`Error::NoClassifier`] for other models. Each item has the errors of its input:
    /// [`Error::EmptyPrompt`], [`Error::PromptTooLong`], [`Error::UnknownAdapter`], [`Error::Cancelled`],
    /// [`Error::Busy`], [`Error::EngineStopped`], and the errors of the model.
    pub fn classify_all(
        &self,
        inputs: impl IntoIterator<Item = TextPair>,
        adapter: Option<AdapterId>,
        cancel: &CancelHandle,
    ) -> Result<impl Iterator<Item = Result<Vec<f32>>>> {
        let ModelOutput::Labels { pooling, .. } = self.model_info().output else {
            return Err(Error::NoClassifier { architecture: self.model_info().architecture.clone() });
        };
        let begin = move |TextPair { ids, second }: &TextPair| {
            let rows = || PromptRows::classified(ids, *second, pooling);
            RunningPrompt::begin(self, ids, rows, adapter, cancel)
        };
        Ok(in_order(self, inputs, begin, |running| match running.wait()? {
            PromptOutput::Vector(logits) => Ok(logits),
            PromptOutput::Logprobs(_) | PromptOutput::Logits(_) => Err(Error::EngineStopped), // Not asked for.
        }))
    }
}

//! Bounds of a request.

use crate::error::{ApiError, Result};

/// Bounds of a request; one that exceeds them is an error that names the field.
///
/// The size of the body is bounded by its reader, the nesting of JSON by `serde_json` (128 levels), schemas
/// by the compiler of grammars, and the prompt by the model's context.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Limits {
    /// Maximum number of messages. Default 65,536.
    pub messages: usize,
    /// Maximum number of images and audio. Default 256: each takes a part of the context that does not follow
    /// from its bytes, an image of one pixel more than a thousand tokens with some models.
    pub media: usize,
    /// Maximum number of tools. Default 1,024.
    pub tools: usize,
    /// Maximum length of a tool's name, in bytes. Default 256.
    pub tool_name_bytes: usize,
    /// Maximum `n`. Default 128.
    pub choices: usize,
    /// Maximum `top_logprobs`. Default 20.
    pub top_logprobs: usize,
    /// Maximum number of stop sequences. Default 16.
    pub stop_sequences: usize,
    /// Maximum length of a stop sequence, in bytes. Default 1,024.
    pub stop_bytes: usize,
    /// Maximum number of tokens in `logit_bias`. Default 1,024.
    pub logit_bias: usize,
    /// Maximum length of a text to encode, in bytes, in a request for its tokens alone: the encoding
    /// continues after a disconnect. Default 4 MiB.
    pub tokenize_bytes: usize,
    /// Maximum number of texts of an embedding request, and of documents to rerank. Default 2,048.
    pub embedding_inputs: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            messages: 65_536,
            media: 256,
            tools: 1_024,
            tool_name_bytes: 256,
            choices: 128,
            top_logprobs: 20,
            stop_sequences: 16,
            stop_bytes: 1_024,
            logit_bias: 1_024,
            tokenize_bytes: 4 << 20,
            embedding_inputs: 2_048,
        }
    }
}

/// Checks a count or a length against its limit.
pub(crate) fn at_most(param: &str, got: usize, limit: usize, unit: &str) -> Result<()> {
    if got <= limit {
        return Ok(());
    }
    Err(ApiError::invalid_param(param, format!("`{param}` has {got} {unit}, at most {limit} are accepted")))
}

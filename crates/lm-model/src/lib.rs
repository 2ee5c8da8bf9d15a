#![doc = include_str!("../README.md")]
#![forbid(unsafe_code)]

mod batch;
mod causal_lm;
mod error;
mod lower;
mod model_folder;
#[cfg(any(test, feature = "test-util"))]
pub mod testing;
mod tokenizer;
mod validate;

pub use batch::{
    AdapterId, AttentionKind, AttentionSpan, Batch, Embeddings, Input, LogitRows, Logits, SequenceInput,
    SequenceLogits,
};
pub use causal_lm::{CausalLm, ModelInfo};
pub use error::{BatchProblem, Error, Result};
pub use lower::{Device, KvDtype, KvPool, PAGE_LEN, PageId, WeightFormat};
pub use model_folder::{
    ChatTemplateSource, GenerationConfig, LoadOptions, LoadPhase, LoadProgress, LoadedModel, ModelFolder,
};
pub use tokenizer::{SpecialTokens, StreamDecoder, TextSegment, TokenId, TokenKind, Tokenizer};

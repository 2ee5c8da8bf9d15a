#![doc = include_str!("../README.md")]
#![forbid(unsafe_code)]

mod architectures;
mod batch;
mod blocks;
mod causal_lm;
mod config;
mod decoder;
mod error;
mod gguf;
mod layout;
mod lora;
mod model_folder;
mod spec;
#[cfg(any(test, feature = "test-util"))]
pub mod testing;
mod tokenizer;
mod validate;
mod weights;

pub use architectures::{ALL_ARCHITECTURES, Architecture};
pub use batch::{
    AdapterId, AttentionKind, AttentionSpan, Batch, Embeddings, Input, LogitRows, Logits, SequenceInput,
    SequenceLogits,
};
pub use causal_lm::{CausalLm, ModelInfo};
pub use config::{ModelConfig, RopeParameters, TokenIds};
pub use error::{BatchProblem, Error, Result};
pub use gguf::{
    GgufFile, GgufMetadata, GgufProblem, GgufStrings, GgufTensor, GgufTensorType, GgufValue, GgufValueType,
};
pub use lm_kernels::{
    CacheGroup, CacheLayout, Device, KvDtype, KvGeometry, KvPool, LayerCache, MappedFile, NO_PAGE, PAGE_LEN,
    PageId, Retention, WeightFormat,
};
pub use lora::AdapterInfo;
pub use model_folder::{
    ChatTemplateSource, FileBytes, Footprint, GenerationConfig, LoadOptions, LoadPhase, LoadProgress,
    LoadedModel, ModelFiles, ModelFolder, Parameters,
};
pub use tokenizer::{SpecialTokens, StreamDecoder, TextSegment, TokenId, TokenKind, Tokenizer};
pub use weights::TensorInfo;

pub(crate) use lm_kernels::{FloatDtype, RopeTable, Source};

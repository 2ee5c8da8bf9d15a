#![doc = include_str!("../README.md")]
#![forbid(unsafe_code)]

mod architectures;
mod audio;
mod batch;
mod causal_lm;
mod checkpoint;
mod config;
mod decoder;
mod embedding_config;
mod encoders;
mod error;
mod gguf;
mod gguf_model;
mod gguf_projector;
mod imatrix;
mod loader;
mod media;
mod model_folder;
mod nn;
mod prefetch;
mod spec;
#[cfg(any(test, feature = "test-util"))]
pub mod testing;
mod vision;

pub use architectures::{ALL_ARCHITECTURES, Architecture};
pub use audio::{ALL_AUDIO_FAMILIES, AudioFamily};
pub use batch::{
    AttentionKind, AttentionSpan, Batch, Embeddings, EncodedMedia, Input, LogitRows, Logits, MediaSlice,
    Position, SequenceInput, SequenceLogits,
};
pub use causal_lm::{CausalLm, ModelInfo};
pub use checkpoint::TensorInfo;
pub use config::{GenerationConfig, ModelConfig, RopeParameters, TokenIds};
pub use embedding_config::{
    CrossEncoderConfig, Dense, EmbeddingConfig, EmbeddingLayer, ScoreActivation, normalized,
};
pub use encoders::EncoderFamily;
pub use error::{BatchProblem, Error, Result};
pub use imatrix::{Calibration, ImportanceMatrix, LayerSums};
pub use lm_formats::{Error as FormatError, FileBytes, GgufFile, GgufMetadata, GgufProblem, ModelFiles};
pub use lm_kernels::{
    CacheGroup, CacheLayout, Device, KvDtype, KvGeometry, KvPool, LayerCache, NO_PAGE, PAGE_LEN, PageId,
    PrefetchPlan, Retention, WeightFormat,
};
pub use lm_media::{Image, ImageSize};
pub use lm_tokenizer::{SpecialTokens, StreamDecoder, TextSegment, TokenId, TokenKind, Tokenizer};
pub use loader::{Adapter, AdapterInfo, AdapterLoader, LoadPhase, LoadProgress};
pub use media::{
    AudioEncoder, ImageOptions, MediaLayout, MediaPiece, MediaPositions, MediaRows, VisionEncoder,
};
pub use model_folder::{
    ChatTemplateSource, Footprint, InputRecorder, LoadOptions, LoadedModel, ModelFolder, Parameters,
};
pub use prefetch::{PrefetchMeasurement, choose_prefetch_plan};
pub use spec::{AttentionShape, Direction, ModelOutput, Pooling};
pub use vision::{ALL_VISION_FAMILIES, VisionFamily};

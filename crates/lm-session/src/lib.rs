#![doc = include_str!("../README.md")]
#![forbid(unsafe_code)]

mod cache;
mod cancel;
mod constraint;
mod engine;
mod error;
mod event;
mod fingerprint;
mod generate;
mod ids;
mod media;
mod media_kind;
mod memory;
mod metrics;
mod panics;
mod params;
mod record;
mod sampling;
mod saved;
mod scheduler;
mod session;
mod speculation;
#[cfg(any(test, feature = "test-util"))]
pub mod testing;

pub use cancel::CancelHandle;
pub use constraint::{
    Acceptance, ChannelBudget, CompiledConstraint, Constraint, ConstraintRecord, ConstraintSpec, Ending,
    GrammarCompiler, GrammarConstraint, TokenMask,
};
pub use engine::{Engine, EngineActivity, EngineTask, MediaTokens, ModelState, Models};
pub use error::{Error, GrammarErrorKind, Result};
pub use event::{FinishReason, Finished, PrefillProgress, SessionEvent, Steered};
pub use ids::AdapterId;
pub use lm_media::{AudioLimits, DecodeLimits};
pub use lm_model::{
    Adapter, AdapterInfo, AdapterLoader, CausalLm, ChatTemplateSource, CrossEncoderConfig, Device, Direction,
    EmbeddingConfig, Footprint, GenerationConfig, ImageOptions, KvDtype, LoadOptions, LoadPhase,
    LoadProgress, LoadedModel, ModelFolder, ModelInfo, ModelOutput, PAGE_LEN, Pooling, ScoreActivation,
    WeightFormat, normalized,
};
pub use lm_tokenizer::{SpecialTokens, TextPair, TextSegment, TokenId, TokenKind, Tokenizer};
pub use media::{Media, Prompt, PromptPiece};
pub use media_kind::MediaKind;
pub use memory::{MemoryPlan, MemoryRequest, WeightChoice, available_memory};
pub use metrics::{CacheStats, PrefillStats, Timing, Usage};
pub use panics::caught_wakes;
pub use params::{EngineSettings, GenerateParams, PrefixCache, SessionConfig};
pub use record::{RecordHeader, RecordReader, RecordedEnd, RequestRecord};
pub use sampling::{
    Chain, FilterFactory, History, LogitsFilter, Masked, SamplerParams, TokenLogits, TokenLogprobs,
};
pub use saved::{CacheSave, SaveOptions, SavedCache, SavedError, SavedFile, SavedTokens};
pub use session::{
    EmbedInput, EmbedParams, Generation, GenerationStream, Replayed, SavedSession, Session, TextScore,
};
pub use speculation::{DraftModel, Speculation};

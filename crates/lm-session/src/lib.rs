#![doc = include_str!("../README.md")]
#![forbid(unsafe_code)]

mod activity;
mod adapters;
mod admission;
mod caches;
mod cancel;
mod capacity;
mod constraint;
mod embedding;
mod engine;
mod error;
mod event;
mod fingerprint;
mod generating;
mod generation;
mod guide;
mod media;
mod memory;
mod metrics;
mod models;
mod page_allocator;
mod page_table;
mod panics;
mod params;
mod prefix_tree;
mod prompt_rows;
mod record;
mod request;
mod residency;
mod sampling;
mod sampling_pool;
mod saved;
mod scheduler;
mod scoring;
mod session;
mod speculation;
mod steering;
mod step_pace;
mod stop;
#[cfg(any(test, feature = "test-util"))]
pub mod testing;
mod token_log;
mod worker;

pub use activity::EngineActivity;
pub use adapters::AdapterId;
pub use cancel::CancelHandle;
pub use constraint::{
    Acceptance, ChannelBudget, CompiledConstraint, Constraint, ConstraintSpec, Ending, GrammarCompiler,
    GrammarConstraint, TokenMask,
};
pub use embedding::{EmbedParams, Pooling, normalized};
pub use engine::{Engine, MediaTokens};
pub use error::{Error, GrammarErrorKind, Result};
pub use event::{FinishReason, Finished, PrefillProgress, SessionEvent, Steered};
pub use generation::{Generation, GenerationStream};
pub use lm_media::{DecodeLimits, SoundLimits};
pub use lm_model::{
    Adapter, AdapterInfo, AdapterLoader, CausalLm, ChatTemplateSource, Device, Footprint, GenerationConfig,
    KvDtype, LoadOptions, LoadPhase, LoadProgress, LoadedModel, ModelFolder, ModelInfo, PAGE_LEN,
    PictureOptions, WeightFormat,
};
pub use lm_tokenizer::{SpecialTokens, TextSegment, TokenId, TokenKind, Tokenizer};
pub use media::{Media, MediaKind, Prompt, PromptPiece};
pub use memory::{MemoryPlan, MemoryRequest, WeightChoice, available_memory};
pub use metrics::{CacheStats, PrefillStats, Timing, Usage};
pub use models::{ModelState, Models};
pub use panics::caught_wakes;
pub use params::{EngineSettings, GenerateParams, PrefixCache, SessionConfig, Speculation};
pub use record::{ConstraintRecord, RecordHeader, RecordReader, RecordedEnd, Replayed, RequestRecord};
pub use sampling::{Chain, FilterFactory, History, LogitsFilter, SamplerParams, TokenLogits, TokenLogprobs};
pub use saved::{CacheSave, SaveOptions, SavedCache, SavedError, SavedFile, SavedSession, SavedTokens};
pub use scoring::TextScore;
pub use session::Session;
pub use speculation::DraftModel;

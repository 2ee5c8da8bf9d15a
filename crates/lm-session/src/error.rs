//! Errors of this crate.

use lm_model::{KvDtype, ModelOutput, WeightFormat};
use lm_tokenizer::TokenId;

use crate::media_kind::MediaKind;

/// Result with this crate's [`Error`].
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// Errors of an engine, its sessions and grammars.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The model layer rejected a file, a tensor or a batch, or failed on it.
    #[error(transparent)]
    Model(#[from] lm_model::Error),
    /// The tokenizer failed on a text.
    #[error(transparent)]
    Tokenizer(#[from] lm_tokenizer::Error),
    /// The prompt has more tokens than a session can hold.
    #[error("prompt has {prompt_tokens} tokens, the context holds {context_tokens}")]
    PromptTooLong {
        /// Tokens that the session would hold.
        prompt_tokens: usize,
        /// Maximum number of tokens of a session: [`crate::Engine::context_tokens`].
        context_tokens: usize,
    },
    /// A session without tokens cannot be prefilled or generate: there is nothing to continue.
    #[error("the prompt is empty, expected at least one token")]
    EmptyPrompt,
    /// A request for tokens to a model of embeddings or labels.
    #[error("`{architecture}` generates no text: it is {}", kind_of(*output))]
    NoGeneration {
        /// `model_type` of the config.
        architecture: String,
        /// Output of the model.
        output: ModelOutput,
    },
    /// A request for labels to a model without a classifier.
    #[error("`{architecture}` is no classifier and no cross-encoder here")]
    NoClassifier {
        /// `model_type` of the config.
        architecture: String,
    },
    /// An image was given to a model without vision.
    #[error("the model reads no images, and was given one")]
    NoVision,
    /// An audio clip was given to a model without audio input.
    #[error("the model reads no audio, and was given one")]
    NoAudio,
    /// The tokenizer has no token for the rows of the model's media.
    #[error("the tokenizer has no token `{token}`, which stands for the rows of {}", kind.plural())]
    MediaToken {
        /// Kind of the media.
        kind: MediaKind,
        /// Text of the token.
        token: String,
    },
    /// The file of an image or an audio clip cannot be decoded, exceeds the limits, or has a size that the
    /// model does not support.
    #[error(transparent)]
    Media(#[from] lm_media::Error),
    /// An id marks a row of a media item that is missing from the prompt, or only a part of its rows is
    /// present.
    #[error("token {position} is a row of an image or an audio clip that was not given")]
    UnknownMedia {
        /// Its position among the tokens of the session.
        position: usize,
    },
    /// An encoder returned another number of rows than its layout has.
    #[error("the encoder gave {found} rows for a {kind}, expected {expected}")]
    MediaRows {
        /// Kind of the media item.
        kind: MediaKind,
        /// Rows of the layout.
        expected: usize,
        /// Rows of the encoder.
        found: usize,
    },
    /// The KV pool cannot hold the request even with every other cache evicted.
    #[error("the request needs {needed_pages} more KV pages, {free_pages} are free")]
    CacheFull {
        /// Pages missing for the next step.
        needed_pages: usize,
        /// Pages free after eviction.
        free_pages: usize,
    },
    /// A sampler parameter is out of range.
    #[error("sampler: `{field}` is {value}, expected {expected}")]
    InvalidSampler {
        /// Field of [`crate::SamplerParams`].
        field: &'static str,
        /// The value given.
        value: String,
        /// The accepted values.
        expected: String,
    },
    /// The operating system gave no random number for a sampler's seed; [`crate::SamplerParams::seed`] sets
    /// one.
    #[error("the operating system gave no random seed")]
    NoSeed(#[source] getrandom::Error),
    /// A model with the requested settings does not fit the memory; it was not loaded.
    #[error(
        "{} MB of memory are needed, {} MB are available: {} MB of weights{}, {} MB of cache for {} tokens in {}, {} MB besides",
        mega(*needed_bytes), mega(*available_bytes), mega(*weight_bytes),
        quantization.map(|format| format!(" in {format}")).unwrap_or_default(),
        mega(*cache_bytes), context_tokens, kv_dtype,
        mega(needed_bytes.saturating_sub(*weight_bytes).saturating_sub(*cache_bytes)),
    )]
    DoesNotFit {
        /// Format of the weights: the requested one, or the smallest; `None` as stored.
        quantization: Option<WeightFormat>,
        /// Data type of the KV cache: the requested one, or the smallest.
        kv_dtype: KvDtype,
        /// Tokens of a session: the requested number, or the smallest.
        context_tokens: usize,
        /// Bytes of the weights.
        weight_bytes: u64,
        /// Bytes of the cache when it is full.
        cache_bytes: u64,
        /// Peak memory of the process.
        needed_bytes: u64,
        /// Available memory.
        available_bytes: u64,
    },
    /// An engine setting is out of range.
    #[error("engine settings: `{field}` is {value}, expected {expected}")]
    InvalidSettings {
        /// Field of [`crate::EngineSettings`].
        field: &'static str,
        /// The value given.
        value: usize,
        /// The accepted values.
        expected: String,
    },
    /// The draft model has another tokenizer: its ids mean other tokens.
    #[error("draft model {name} has another tokenizer: token {token} differs")]
    DraftTokenizer {
        /// The draft model.
        name: String,
        /// First token that differs.
        token: TokenId,
    },
    /// The draft model has recurrent states, which cannot be rolled back to an accepted token.
    #[error("draft model {name} has recurrent states; a draft model needs attention layers alone")]
    DraftStates {
        /// The draft model.
        name: String,
    },
    /// A session names an adapter that the engine never loaded.
    #[error("adapter {adapter} does not exist, {loaded} were loaded")]
    UnknownAdapter {
        /// Id of the adapter.
        adapter: u32,
        /// Number of adapters that were loaded so far.
        loaded: usize,
    },
    /// The adapter of a session was unloaded by [`crate::Engine::unload_adapter`].
    #[error("adapter {adapter} was unloaded")]
    AdapterUnloaded {
        /// Id of the adapter.
        adapter: u32,
    },
    /// The model does not support adapters: it was not loaded from a model folder.
    #[error("model `{model}` takes no adapters")]
    NoAdapters {
        /// Name of the model.
        model: String,
    },
    /// An empty stop string would stop before the first token.
    #[error("stop string {index} is empty")]
    EmptyStopString {
        /// Index among the session's stop strings followed by the request's.
        index: usize,
    },
    /// The model returned a logit that is NaN or +infinity.
    #[error("logit of token {token} is {value}, expected a finite number or -infinity")]
    InvalidLogit {
        /// The first such token.
        token: TokenId,
        /// Its logit.
        value: f32,
    },
    /// Every token is masked, so that no token can be sampled.
    #[error("no token can be sampled: all {tokens} are masked")]
    NoCandidate {
        /// Width of the logits.
        tokens: usize,
    },
    /// A constraint forbids every token with a nonzero probability, for a model whose other logits are
    /// infinite, such as a scripted model of a test.
    #[error(
        "the constraint allows none of the model's tokens: `{token}` is refused as output token {index}, after `{text}`"
    )]
    TokenRefused {
        /// Text of the model's most probable token.
        token: String,
        /// Number of output tokens before it.
        index: usize,
        /// Their text.
        text: String,
    },
    /// A grammar cannot be compiled.
    #[error("{kind}: {message}")]
    Grammar {
        /// Kind of the defect.
        kind: GrammarErrorKind,
        /// The compiler's message.
        message: String,
    },
    /// A constraint cannot continue: the grammar's state became too large, or it received a forbidden token.
    #[error("the constraint failed: {message}")]
    ConstraintFailed {
        /// Description of the failure.
        message: String,
    },
    /// The shortest text that the constraint accepts exceeds the available tokens.
    #[error(
        "the shortest text that the constraint accepts has {needed_tokens} tokens, {available_tokens} may be generated"
    )]
    BudgetTooSmall {
        /// Number of tokens that suffice, including the forced ones.
        needed_tokens: usize,
        /// The smaller one of the token limit and the remaining context.
        available_tokens: usize,
    },
    /// The tokens ran out in the middle of a text without a known completion, so that it could not be steered
    /// to its end. For grammars, completions are found within wide bounds; user-defined constraints need
    /// [`crate::Constraint::completion`] if the engine's search does not suffice.
    #[error(
        "the text was cut off after {output_tokens} tokens, where its constraint does not allow it to end"
    )]
    TextCutOff {
        /// Tokens of the text so far.
        output_tokens: usize,
    },
    /// Too many requests wait: [`crate::EngineSettings::max_waiting_requests`],
    /// [`crate::EngineSettings::max_waiting_tokens`], [`crate::EngineSettings::max_waiting_grammar_bytes`].
    /// The state is unchanged; the same call can be repeated.
    #[error("the engine is busy: {waiting} request{} waiting; try again in {:.1} s", if *waiting == 1 { " is" } else { "s are" }, retry_after.as_secs_f64())]
    Busy {
        /// Number of waiting requests.
        waiting: usize,
        /// Time after which a place is expected to be free, from the rate of the last admissions.
        retry_after: std::time::Duration,
    },
    /// The maximum number of concurrent compilations is running. The state is unchanged; the same call can be
    /// repeated.
    #[error("{running} other grammars are being compiled; try again in {} s", retry_after.as_secs())]
    CompilerBusy {
        /// Number of running compilations.
        running: usize,
        /// Time limit of a compilation.
        retry_after: std::time::Duration,
    },
    /// A [`crate::SavedSession`] or a [`crate::SavedCache`] belongs to another model, tokenizer or cache
    /// format. It was not restored.
    #[error("what was saved is of the model with fingerprint {found:.16}, this one has {expected:.16}")]
    ForeignCache {
        /// [`crate::Engine::fingerprint`] of this engine.
        expected: String,
        /// The saved one.
        found: String,
    },
    /// A [`crate::SavedCache`] was computed with another adapter than the session's, or the adapter of a
    /// [`crate::SavedSession`] is not loaded. It was not restored.
    #[error("what was saved is of {}, the session has {}", adapter_name(*found), adapter_name(*expected))]
    ForeignAdapter {
        /// Checksum of the session's adapter.
        expected: Option<u32>,
        /// That of the adapter of the saved pages.
        found: Option<u32>,
    },
    /// A [`crate::SavedCache`] has another number of bytes than its tokens take in this model's pool, or the
    /// pool is not in host memory. It was not restored.
    #[error("the saved KV pages of {tokens} tokens have {found_bytes} bytes, expected {}", expected_bytes.map_or("none".to_owned(), |bytes| bytes.to_string()))]
    SavedPages {
        /// Number of saved tokens.
        tokens: usize,
        /// Expected bytes; `None` if the pool's pages cannot be written.
        expected_bytes: Option<usize>,
        /// Actual bytes.
        found_bytes: usize,
    },
    /// A saved token does not exist in the model.
    #[error("saved token {token} is not one of the model's {tokens}")]
    SavedToken {
        /// The token.
        token: TokenId,
        /// Number of tokens of the model.
        tokens: usize,
    },
    /// The record of requests cannot be written or read. A request with an unwritable record has run.
    #[error("the record of requests cannot be written or read")]
    Recording(#[source] std::io::Error),
    /// A line of a record is invalid.
    #[error("line {line} of the record: {message}")]
    InvalidRecord {
        /// Number of the line, from 1.
        line: usize,
        /// Description of the defect.
        message: String,
    },
    /// A prefill was cancelled. Its processed tokens stay cached: see [`crate::Session::tokens`].
    #[error("cancelled")]
    Cancelled,
    /// The model's code panicked in this request. The engine continues to serve others.
    #[error("the engine's worker panicked: {message}")]
    WorkerPanicked {
        /// The panic's message.
        message: String,
    },
    /// The worker thread could not be started.
    #[error("the engine's worker thread cannot start")]
    WorkerStart(#[source] std::io::Error),
    /// The registry has no model of this name.
    #[error("there is no model `{name}`")]
    UnknownModel {
        /// The requested name.
        name: String,
    },
    /// The registry already has a model of this name.
    #[error("there is a model `{name}` already")]
    DuplicateModel {
        /// The name.
        name: String,
    },
    /// Models with running requests leave too little of the registry's budget. The state is unchanged; the
    /// same call can be repeated.
    #[error(
        "model `{name}` needs {} MB of memory, models in use leave {} MB; try again when their requests have ended",
        mega(*needed_bytes), mega(*left_bytes)
    )]
    ModelsInUse {
        /// The model to load.
        name: String,
        /// Memory needed by the model.
        needed_bytes: u64,
        /// Budget minus the memory of the models in use.
        left_bytes: u64,
    },
    /// The files of an unloaded model were replaced by those of another one. Start another engine for it.
    #[error("the files of model `{name}` have changed since its engine started")]
    ModelChanged {
        /// Name of the model.
        name: String,
    },
    /// The engine was still at work at the end of [`crate::Engine::wait_idle`]. The work continues.
    #[error("the engine is still at work after {:.3} s", timeout.as_secs_f64())]
    NotIdle {
        /// The given time.
        timeout: std::time::Duration,
    },
    /// The worker thread has ended.
    #[error("the engine has stopped")]
    EngineStopped,
}

/// Bytes in millions, with one decimal: sums of rounded parts differ by a few decimals at most.
fn mega(bytes: u64) -> String {
    format!("{:.1}", bytes as f64 / 1e6)
}

/// Reason why a grammar cannot be compiled.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum GrammarErrorKind {
    /// The Lark text, a schema in it, or the regular expression is invalid.
    InvalidGrammar,
    /// The grammar exceeds a limit on size, depth, states or time.
    TooLarge,
}

impl std::fmt::Display for GrammarErrorKind {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::InvalidGrammar => "invalid grammar",
            Self::TooLarge => "grammar too large",
        })
    }
}

/// Describes a model that generates no text, and its use.
fn kind_of(output: ModelOutput) -> &'static str {
    match output {
        ModelOutput::Tokens => "a model of tokens",
        ModelOutput::HiddenStates => "an embedding model, for `lm embed` and /v1/embeddings",
        ModelOutput::Labels { .. } => "a cross-encoder or classifier, for `lm rerank` and /v1/rerank",
    }
}

/// Describes the adapter with a checksum.
fn adapter_name(checksum: Option<u32>) -> String {
    checksum.map_or("the model without an adapter".to_owned(), |sum| {
        format!("the adapter with checksum {sum:08x}")
    })
}

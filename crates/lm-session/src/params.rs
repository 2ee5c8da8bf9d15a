//! Parameters of an engine, a session and a generation.

use crate::speculation::Speculation;
use std::time::{Duration, Instant};

use lm_media::{AudioLimits, DecodeLimits};
use lm_tokenizer::TokenId;

use crate::cancel::CancelHandle;
use crate::constraint::Constraint;
use crate::ids::AdapterId;
use crate::sampling::SamplerParams;
use crate::speculation::DraftModel;

/// Sizes of an [`crate::Engine`].
#[derive(Clone, Debug, PartialEq)]
pub struct EngineSettings {
    /// Maximum number of tokens of one session. `None`: the model's context, as far as the KV pool holds it.
    pub max_context: Option<usize>,
    /// Capacity of the KV pool in tokens, for all sessions together, rounded up to whole pages; more where
    /// layers have windows. `None`: four full contexts, within 2 GiB or one full `max_context`, whichever is
    /// more.
    pub kv_cache_tokens: Option<usize>,
    /// Maximum number of prompt tokens per step, over all sessions. A prompt that lacks at most half of them
    /// runs before longer ones, and these have at most an eighth of them beside it: its first token does not
    /// wait for their prefill. Default 512.
    pub prefill_chunk: usize,
    /// Target duration of a step while a session decodes: prompts of other sessions take as many rows per
    /// step as fit, by the time that earlier steps took, and at least 8. Half of it is the longest wait for a
    /// token that is being sampled before the other sessions continue without it. [`Duration::MAX`] disables
    /// the limit: a step takes a whole chunk. A step of long prompts alone takes ten times as long, and at
    /// least 128 rows. Default 50 ms.
    pub step_budget: Duration,
    /// Maximum number of requests in the batch; later ones wait. Default 64.
    pub max_running_requests: usize,
    /// Maximum number of waiting requests; more are rejected with [`crate::Error::Busy`]. Default 256.
    pub max_waiting_requests: usize,
    /// Maximum number of tokens of the waiting requests together; more are rejected with
    /// [`crate::Error::Busy`], except for a single request. Default 4,194,304: 16 MiB.
    pub max_waiting_tokens: usize,
    /// Maximum bytes of grammar state of the waiting requests together ([`Constraint::state_bytes`]); more
    /// are rejected with [`crate::Error::Busy`], except for a single request. Default 256 MiB.
    pub max_waiting_grammar_bytes: usize,
    /// Scope of prefix caching. Default [`PrefixCache::Engine`].
    pub prefix_cache: PrefixCache,
    /// Speculative decoding of generations that do not set [`GenerateParams::speculation`].
    pub speculation: Speculation,
    /// Draft model of speculative decoding, used when prompt lookup has no profitable draft. It has the
    /// tokenizer of the model, a KV pool of as many tokens, and stays in memory when the model is unloaded.
    /// `None` (the default): prompt lookup alone.
    pub draft_model: Option<DraftModel>,
    /// Limits of decoded images. Default 64 MiB and 64 million pixels.
    pub image_limits: DecodeLimits,
    /// Limits of decoded audio clips. Default 64 MiB and 600 seconds.
    pub audio_limits: AudioLimits,
    /// Memory for encoded media without a pending request, so that a later prompt need not encode them again.
    /// Default 256 MiB.
    pub media_cache_bytes: usize,
    /// Idle time after which weights and KV pool are released as by [`crate::Engine::unload`]; the next
    /// request loads them again. `None`: never. Default `None`.
    pub keep_alive: Option<Duration>,
}

/// Scope of prefix caching: the sessions whose cached prefixes a session may reuse.
///
/// Full pages of a prompt stay reusable while the pool has room for them. Reused pages are bit-identical to
/// the session's own prefill (on a GPU: identical within rounding), so that logits disclose nothing about
/// other sessions. The time to first token does: it is shorter for a prefix that another session has cached
/// (a timing side channel).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum PrefixCache {
    /// All sessions of the engine: a new session with a known system prompt skips its prefill.
    #[default]
    Engine,
    /// The session itself and its forks: for sessions of users who must be isolated. When the last of them is
    /// closed, their pages are free at once.
    Session,
}

impl Default for EngineSettings {
    fn default() -> Self {
        Self {
            max_context: None,
            kv_cache_tokens: None,
            prefill_chunk: 512,
            step_budget: Duration::from_millis(50),
            max_running_requests: 64,
            max_waiting_requests: 256,
            max_waiting_tokens: 1 << 22,
            max_waiting_grammar_bytes: 256 << 20,
            prefix_cache: PrefixCache::Engine,
            speculation: Speculation::default(),
            draft_model: None,
            image_limits: DecodeLimits::default(),
            audio_limits: AudioLimits::default(),
            media_cache_bytes: 256 << 20,
            keep_alive: None,
        }
    }
}

/// Sampling and stop settings of a [`crate::Session`], unless a generation overrides them.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct SessionConfig {
    /// The sampler; greedy by default.
    pub sampler: SamplerParams,
    /// Stop strings: each ends the generation and is not emitted.
    pub stop: Vec<String>,
    /// Ids that end a generation, in addition to the tokenizer's and the generation config's end ids.
    pub stop_ids: Vec<TokenId>,
    /// Maximum number of output tokens of one generation. `None`: until the context is full.
    pub max_output_tokens: Option<usize>,
    /// LoRA adapter of all tokens of the session, one of [`Engine::adapters`](crate::Engine::adapters).
    /// `None`: the base model.
    pub adapter: Option<AdapterId>,
}

/// Settings of one [`crate::Session::generate`], on top of its session's [`SessionConfig`].
#[derive(Clone, Debug, Default)]
pub struct GenerateParams {
    /// Replaces the session's sampler.
    pub sampler: Option<SamplerParams>,
    /// Replaces the session's limit.
    pub max_output_tokens: Option<usize>,
    /// Stop strings in addition to the session's.
    pub stop: Vec<String>,
    /// Constraint on the generated text, from its first token on: [`crate::CompiledConstraint::start`], or a
    /// user-defined one.
    pub constraint: Option<Box<dyn Constraint>>,
    /// Group of the request, which takes a [`CancelHandle::child`] of it: cancelling the handle ends the
    /// generation within one step. [`crate::Generation::canceller`] cancels the generation alone.
    pub cancel: CancelHandle,
    /// Time at which the generation ends with [`crate::FinishReason::DeadlineExceeded`], even if it still
    /// waits. `None` (the default): never.
    pub deadline: Option<Instant>,
    /// Requests of a higher priority are admitted first, prefilled first and preempted last. Default 0.
    pub priority: i32,
    /// Number of the session's last tokens that start this output, for example from an earlier generation
    /// that is resampled from there. 0 by default, at most all tokens. They count as output for the limits,
    /// the penalties, the constraint and the stop strings, and their events are not sent again.
    pub continued: usize,
    /// Computes [`SessionEvent::Token::logprobs`](crate::SessionEvent::Token::logprobs), with this many most
    /// probable tokens each. `None` (the default): none are computed.
    pub logprobs: Option<usize>,
    /// Computes [`SessionEvent::PromptLogprobs`](crate::SessionEvent::PromptLogprobs), with this many most
    /// probable tokens each. The whole prompt runs then, even if it is cached. `None` (the default): none are
    /// computed.
    pub prompt_logprobs: Option<usize>,
    /// Replaces [`EngineSettings::speculation`].
    pub speculation: Option<Speculation>,
}

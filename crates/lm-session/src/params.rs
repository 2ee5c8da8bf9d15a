//! Parameters of an engine, a session and a generation.

use std::time::{Duration, Instant};

use lm_model::{AdapterId, GenerationConfig};
use lm_tokenizer::TokenId;

use crate::{CancelHandle, Constraint, Error, Result};

/// Sizes of an [`crate::Engine`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EngineSettings {
    /// Maximum number of tokens of one session. `None`: the model's context, as far as the KV pool holds it.
    pub max_context: Option<usize>,
    /// Capacity of the KV pool in tokens, for all sessions together, rounded up to whole pages; more where layers have windows.
    /// `None`: four full contexts, within 2 GiB or one full `max_context`, whichever is more.
    pub kv_cache_tokens: Option<usize>,
    /// Maximum number of prompt tokens per step, over all sessions. Default 512.
    pub prefill_chunk: usize,
    /// Target duration of a step while a session decodes: prompts of other sessions take as many rows per step as fit, by the
    /// time that earlier steps took, and at least 8. Half of it is the longest wait for a token that is being sampled before the
    /// other sessions go on without it. Default 50 ms.
    pub step_budget: Duration,
    /// Maximum number of requests in the batch; later ones wait. Default 64.
    pub max_running_requests: usize,
    /// Maximum number of waiting requests; more are refused with [`Error::Busy`]. Default 256.
    pub max_waiting_requests: usize,
    /// Maximum number of tokens of the waiting requests together; more are refused with [`Error::Busy`], but for a lone one.
    /// Default 4,194,304: 16 MiB.
    pub max_waiting_tokens: usize,
    /// Scope of prefix caching. Default [`PrefixCache::Engine`].
    pub prefix_cache: PrefixCache,
}

/// Scope of prefix caching: the sessions whose cached prefixes a session may reuse.
///
/// Full pages of a prompt stay reusable while the pool has room for them. Reused pages are bit-identical to the
/// session's own prefill (on a GPU: identical within rounding), so that the logits reveal nothing about other sessions. But the
/// time to first token reveals whether the same prefix was run recently.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum PrefixCache {
    /// All sessions of the engine: a new session with a known system prompt skips its prefill.
    #[default]
    Engine,
    /// The session itself and its forks: for sessions of users who must not learn about each other.
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
            prefix_cache: PrefixCache::Engine,
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
    /// LoRA adapter of all tokens of the session, one of [`lm_model::ModelInfo::adapters`]. `None`: the base model.
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
    /// Constraint on the generated text, from its first token on: [`crate::CompiledConstraint::start`], or a user-defined one.
    pub constraint: Option<Box<dyn Constraint>>,
    /// Group of the request, which takes a [`CancelHandle::child`] of it: cancelling the handle ends the generation within one
    /// step. [`crate::Generation::canceller`] cancels the generation alone.
    pub cancel: CancelHandle,
    /// Time at which the generation ends with [`crate::FinishReason::DeadlineExceeded`], also if it still waits. `None` (the
    /// default): never.
    pub deadline: Option<Instant>,
    /// Requests of a higher priority are admitted first, prefilled first and preempted last. Default 0.
    pub priority: i32,
    /// Number of the session's last tokens that are the beginning of this output, for example from an earlier generation that
    /// is resampled from there. 0 by default, at most all tokens. They count as output for the limits, the penalties, the
    /// constraint and the stop strings, and their events are not sent again.
    pub continued: usize,
    /// Computes [`SessionEvent::Token::logprobs`](crate::SessionEvent::Token::logprobs), with this many most probable tokens each.
    /// `None` (the default): none are computed.
    pub logprobs: Option<usize>,
}

/// Parameters of the sampler, which chooses the next token from the logits.
///
/// The filters run in the order of [`crate::Chain::new`]. With the same seed and the same tokens before it, a
/// generation draws the same random numbers, whatever else the engine runs.
///
/// ```
/// use lm_session::SamplerParams;
///
/// let greedy = SamplerParams::default();
/// assert!(greedy.is_greedy());
/// let creative = SamplerParams { temperature: 0.8, top_p: 0.95, seed: 7, ..SamplerParams::default() };
/// assert!(!creative.is_greedy());
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct SamplerParams {
    /// Divisor of the logits. 0 (the default) is greedy: the highest logit, the lowest id of equal ones.
    pub temperature: f32,
    /// Keeps the k highest logits and those equal to the k-th. 0 (the default) = off.
    pub top_k: usize,
    /// Nucleus sampling: keeps the smallest set of most likely tokens whose probabilities sum to p. 1 (the default) or more =
    /// off; 0 keeps one.
    pub top_p: f32,
    /// Keeps tokens whose probability is at least this fraction of the highest one, `0..=1`. 0 (the default) = off.
    pub min_p: f32,
    /// Makes tokens of prompt and output less likely when above 1, more likely when below. 1 (the default) = off.
    pub repetition_penalty: f32,
    /// Subtracted from the logits of tokens that occur in the output. 0 (the default) = off.
    pub presence_penalty: f32,
    /// Subtracted from the logits of tokens once per occurrence in the output. 0 (the default) = off.
    pub frequency_penalty: f32,
    /// Number of last tokens that the three penalties consider. `None` (the default) = all.
    pub penalty_window: Option<usize>,
    /// Biases added to the logits of single tokens; -infinity forbids one. Empty by default.
    pub logit_bias: Vec<(TokenId, f32)>,
    /// Seed of the random number generator. Default 0.
    pub seed: u64,
}

impl Default for SamplerParams {
    fn default() -> Self {
        Self {
            temperature: 0.0,
            top_k: 0,
            top_p: 1.0,
            min_p: 0.0,
            repetition_penalty: 1.0,
            presence_penalty: 0.0,
            frequency_penalty: 0.0,
            penalty_window: None,
            logit_bias: Vec::new(),
            seed: 0,
        }
    }
}

impl SamplerParams {
    /// Converts a model's `generation_config.json`: greedy unless `do_sample` is true. Absent keys have the defaults of
    /// transformers: temperature 1, top-k 50, the rest off.
    pub fn from_generation_config(config: &GenerationConfig) -> Self {
        let off = Self::default();
        let sample = config.do_sample == Some(true);
        Self {
            temperature: if sample { config.temperature.unwrap_or(1.0) } else { 0.0 },
            top_k: config.top_k.unwrap_or(50),
            top_p: config.top_p.unwrap_or(off.top_p),
            min_p: config.min_p.unwrap_or(off.min_p),
            repetition_penalty: config.repetition_penalty.unwrap_or(off.repetition_penalty),
            ..off
        }
    }

    /// Returns true if sampling is greedy: no random number is used.
    pub fn is_greedy(&self) -> bool {
        self.temperature == 0.0
    }

    /// Checks every field against its range.
    ///
    /// # Errors
    /// [`Error::InvalidSampler`] names the first field that is out of range. `logits_width` is the model's number of
    /// tokens: [`crate::ModelInfo::logits_width`].
    pub fn validate(&self, logits_width: usize) -> Result<()> {
        let at_least_zero = "a finite number of at least 0";
        check("temperature", self.temperature, self.temperature >= 0.0, at_least_zero)?;
        check("top_p", self.top_p, self.top_p >= 0.0, at_least_zero)?;
        check("min_p", self.min_p, (0.0..=1.0).contains(&self.min_p), "a number in 0..=1")?;
        let above_zero = self.repetition_penalty > 0.0;
        check("repetition_penalty", self.repetition_penalty, above_zero, "a finite number above 0")?;
        check("presence_penalty", self.presence_penalty, true, "a finite number")?;
        check("frequency_penalty", self.frequency_penalty, true, "a finite number")?;
        for &(id, bias) in &self.logit_bias {
            if id as usize >= logits_width {
                return Err(invalid(
                    "logit_bias",
                    format!("token {id}"),
                    &format!("an id below {logits_width}"),
                ));
            }
            if bias != f32::NEG_INFINITY {
                check("logit_bias", bias, true, "a finite number or -infinity")?;
            }
        }
        Ok(())
    }
}

fn check(field: &'static str, value: f32, in_range: bool, expected: &str) -> Result<()> {
    let valid = value.is_finite() && in_range;
    if valid { Ok(()) } else { Err(invalid(field, value.to_string(), expected)) }
}

fn invalid(field: &'static str, value: String, expected: &str) -> Error {
    Error::InvalidSampler { field, value, expected: expected.to_owned() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn out_of_range_parameters_are_named() {
        let off = SamplerParams::default;
        for (field, params) in [
            ("temperature", SamplerParams { temperature: -0.1, ..off() }),
            ("temperature", SamplerParams { temperature: f32::NAN, ..off() }),
            ("temperature", SamplerParams { temperature: f32::INFINITY, ..off() }),
            ("top_p", SamplerParams { top_p: -1.0, ..off() }),
            ("min_p", SamplerParams { min_p: 1.1, ..off() }),
            ("repetition_penalty", SamplerParams { repetition_penalty: 0.0, ..off() }),
            ("presence_penalty", SamplerParams { presence_penalty: f32::NAN, ..off() }),
            ("frequency_penalty", SamplerParams { frequency_penalty: f32::INFINITY, ..off() }),
            ("logit_bias", SamplerParams { logit_bias: vec![(10, 0.0)], ..off() }),
            ("logit_bias", SamplerParams { logit_bias: vec![(9, f32::INFINITY)], ..off() }),
        ] {
            match params.validate(10) {
                Err(Error::InvalidSampler { field: got, .. }) => assert_eq!(got, field),
                other => panic!("{params:?}: {other:?}"),
            }
        }
        let edges = SamplerParams { top_p: 1.5, logit_bias: vec![(9, f32::NEG_INFINITY)], ..off() };
        assert!(edges.validate(10).is_ok());
    }

    #[test]
    fn a_generation_config_samples_only_when_it_says_so() {
        let mut config = GenerationConfig { temperature: Some(0.6), top_p: Some(0.95), ..Default::default() };
        assert!(SamplerParams::from_generation_config(&config).is_greedy());
        config.do_sample = Some(true);
        let params = SamplerParams::from_generation_config(&config);
        assert_eq!((params.temperature, params.top_k, params.top_p), (0.6, 50, 0.95));
    }
}

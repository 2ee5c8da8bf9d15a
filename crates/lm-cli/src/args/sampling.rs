//! Options of the sampler.

use std::num::NonZeroUsize;

use anyhow::Result;
use lm_conversation::ConversationConfig;
use lm_model::ModelConfig;
use lm_session::{AdapterId, Engine, SamplerParams, SessionConfig};
use lm_tokenizer::TokenId;

use super::filters::FilterArgs;
use super::{numbers, usage};

/// Options of the sampler; the defaults come from the model's `generation_config.json`.
#[derive(Debug, clap::Args)]
#[command(next_help_heading = "Sampling")]
pub struct SamplerArgs {
    /// Sampling temperature; 0 is greedy
    #[arg(long, value_name = "T", value_parser = numbers::non_negative, allow_negative_numbers = true)]
    temperature: Option<f32>,
    /// Top-k sampling: keep the K most probable tokens; 0 disables it
    #[arg(long, value_name = "K", value_parser = numbers::at_least_zero, allow_negative_numbers = true)]
    top_k: Option<usize>,
    /// Nucleus sampling: keep the smallest set of tokens whose probabilities sum to P; 1 disables it
    #[arg(long, value_name = "P", value_parser = numbers::probability, allow_negative_numbers = true)]
    top_p: Option<f32>,
    /// Min-p sampling: drop tokens less probable than P times the most probable one; 0 disables it
    #[arg(long, value_name = "P", value_parser = numbers::probability, allow_negative_numbers = true)]
    min_p: Option<f32>,
    /// Repetition penalty on tokens of the prompt and the reply; 1 disables it
    #[arg(long, value_name = "X", value_parser = numbers::positive, allow_negative_numbers = true)]
    repetition_penalty: Option<f32>,
    /// Presence penalty, subtracted once from the logit of each token in the reply
    #[arg(long, value_name = "X", value_parser = numbers::finite, allow_negative_numbers = true)]
    presence_penalty: Option<f32>,
    /// Frequency penalty, subtracted from a token's logit for each occurrence in the reply
    #[arg(long, value_name = "X", value_parser = numbers::finite, allow_negative_numbers = true)]
    frequency_penalty: Option<f32>,
    /// Add BIAS to the logit of a token; -inf forbids it; may be repeated
    #[arg(long, value_name = "ID=BIAS", value_parser = numbers::logit_bias, allow_hyphen_values = true)]
    logit_bias: Vec<(TokenId, f32)>,
    #[command(flatten)]
    filters: FilterArgs,
    /// Random seed [default: drawn for each reply; `lm chat --stats` and --json show it]
    #[arg(long, value_parser = numbers::seed, allow_negative_numbers = true)]
    seed: Option<u64>,
    /// Maximum number of tokens in a reply [default: until the context is full]
    #[arg(long, short = 'n', value_name = "TOKENS", value_parser = numbers::count, allow_negative_numbers = true)]
    max_tokens: Option<NonZeroUsize>,
    /// Stop sequence; the reply ends before it; may be repeated
    #[arg(long, value_name = "TEXT", value_parser = numbers::stop_sequence, allow_hyphen_values = true)]
    stop: Vec<String>,
}

impl SamplerArgs {
    /// Checks the flags for a model, before it is loaded.
    ///
    /// # Errors
    /// When `--logit-bias` or `--suppress-tokens` names a token that the model does not have; when a value is
    /// out of range.
    pub fn check(&self, model: &ModelConfig) -> Result<()> {
        let known = model.vocab_size;
        let biased = self.logit_bias.iter().map(|(id, _)| ("--logit-bias", *id));
        let suppressed = self.filters.suppress_tokens.iter().map(|id| ("--suppress-tokens", *id));
        if let Some((flag, id)) = biased.chain(suppressed).find(|(_, id)| *id as usize >= known) {
            return Err(usage(format!("{flag} {id}: the model has token ids below {known}")));
        }
        self.with_advice(SamplerParams::default())
            .sampler
            .validate(known)
            .map_err(|error| usage(error.to_string()))
    }

    /// Creates the session's configuration: the model's generation config, overridden by the flags, and the
    /// loaded adapter.
    pub fn session_config(&self, engine: &Engine) -> SessionConfig {
        let config = self.with_advice(SamplerParams::from_generation_config(engine.generation_config()));
        SessionConfig { adapter: adapter(engine), ..config }
    }

    /// [`session_config`](Self::session_config) for a chat, in which a model without a generation config
    /// samples.
    pub fn chat_config(&self, engine: &Engine) -> SessionConfig {
        let sampler = self.with_advice(ConversationConfig::from_engine(engine).session.sampler).sampler;
        SessionConfig { sampler, ..self.session_config(engine) }
    }

    fn with_advice(&self, advice: SamplerParams) -> SessionConfig {
        let mut sampler = SamplerParams {
            temperature: self.temperature.unwrap_or(advice.temperature),
            top_k: self.top_k.unwrap_or(advice.top_k),
            top_p: self.top_p.unwrap_or(advice.top_p),
            min_p: self.min_p.unwrap_or(advice.min_p),
            repetition_penalty: self.repetition_penalty.unwrap_or(advice.repetition_penalty),
            presence_penalty: self.presence_penalty.unwrap_or(advice.presence_penalty),
            frequency_penalty: self.frequency_penalty.unwrap_or(advice.frequency_penalty),
            logit_bias: self.logit_bias.clone(),
            seed: self.seed,
            ..advice
        };
        self.filters.apply(&mut sampler);
        SessionConfig {
            sampler,
            stop: self.stop.clone(),
            max_output_tokens: self.max_tokens.map(NonZeroUsize::get),
            ..SessionConfig::default()
        }
    }
}

/// Adapter of `--lora`, if one was loaded.
pub fn adapter(engine: &Engine) -> Option<AdapterId> {
    engine.adapters().first().map(|(id, _)| *id)
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::Parser;
    use lm_model::GenerationConfig;

    #[derive(Parser)]
    struct Line {
        #[command(flatten)]
        sampler: SamplerArgs,
    }

    #[test]
    fn flags_override_generation_config() {
        let line = ["lm", "--top-k", "5", "--logit-bias", "3=-inf", "-n", "9"];
        let advice = GenerationConfig {
            do_sample: Some(true),
            temperature: Some(0.6),
            top_k: Some(20),
            ..GenerationConfig::default()
        };
        let config =
            Line::parse_from(line).sampler.with_advice(SamplerParams::from_generation_config(&advice));
        assert_eq!((config.sampler.temperature, config.sampler.top_k), (0.6, 5));
        assert_eq!(config.sampler.logit_bias, [(3, f32::NEG_INFINITY)]);
        assert_eq!(config.max_output_tokens, Some(9));
    }
}

//! Sampling parameters of a request.

use lm_conversation::{SamplerParams, TokenId};
use serde_json::{Map, Value};

use crate::error::{ApiError, Result};
use crate::fields::{Fields, shown};
use crate::limits::{Limits, at_most};

/// Sampling parameters of a request; those that are absent have the server's defaults.
#[derive(Debug, Clone, Default, PartialEq)]
#[non_exhaustive]
pub struct SamplingFields {
    /// Sampling temperature; 0 is greedy.
    pub temperature: Option<f32>,
    /// Nucleus sampling.
    pub top_p: Option<f32>,
    /// Top-k sampling; an extension of the API, as are `min_p` and `repetition_penalty`.
    pub top_k: Option<usize>,
    /// Min-p sampling.
    pub min_p: Option<f32>,
    /// Repetition penalty.
    pub repetition_penalty: Option<f32>,
    /// Presence penalty.
    pub presence_penalty: Option<f32>,
    /// Frequency penalty.
    pub frequency_penalty: Option<f32>,
    /// Biases of single tokens.
    pub logit_bias: Vec<(TokenId, f32)>,
    /// Random seed of the first choice; the next choices count up from it.
    pub seed: Option<u64>,
}

impl SamplingFields {
    pub(crate) fn read(fields: &mut Fields, limits: &Limits) -> Result<Self> {
        let read = Self {
            temperature: fields.get("temperature")?,
            top_p: fields.get("top_p")?,
            top_k: fields.get("top_k")?,
            min_p: fields.get("min_p")?,
            repetition_penalty: fields.get("repetition_penalty")?,
            presence_penalty: fields.get("presence_penalty")?,
            frequency_penalty: fields.get("frequency_penalty")?,
            logit_bias: logit_bias(fields.get("logit_bias")?.unwrap_or_default(), limits)?,
            seed: fields.get::<i64>("seed")?.map(i64::cast_unsigned),
        };
        // The ids are checked against the model's vocabulary when the request runs.
        let any_id = usize::MAX;
        let checked = read.sampler(&SamplerParams::default(), 0).validate(any_id);
        checked.map_err(|error| ApiError::from(lm_conversation::Error::from(error)))?;
        Ok(read)
    }

    /// Sampler of a choice: `defaults`, overridden by the request. Each choice has a seed of its own.
    pub fn sampler(&self, defaults: &SamplerParams, choice: usize) -> SamplerParams {
        let mut logit_bias = defaults.logit_bias.clone();
        logit_bias.extend(&self.logit_bias);
        SamplerParams {
            temperature: self.temperature.unwrap_or(defaults.temperature),
            top_p: self.top_p.unwrap_or(defaults.top_p),
            top_k: self.top_k.unwrap_or(defaults.top_k),
            min_p: self.min_p.unwrap_or(defaults.min_p),
            repetition_penalty: self.repetition_penalty.unwrap_or(defaults.repetition_penalty),
            presence_penalty: self.presence_penalty.unwrap_or(defaults.presence_penalty),
            frequency_penalty: self.frequency_penalty.unwrap_or(defaults.frequency_penalty),
            penalty_window: defaults.penalty_window,
            logit_bias,
            seed: self.seed.unwrap_or(defaults.seed).wrapping_add(choice as u64),
        }
    }
}

fn logit_bias(biases: Map<String, Value>, limits: &Limits) -> Result<Vec<(TokenId, f32)>> {
    at_most("logit_bias", biases.len(), limits.logit_bias, "tokens")?;
    let pair = |(token, bias): (String, Value)| {
        let pair = token.parse::<TokenId>().ok().zip(bias.as_f64());
        pair.map(|(token, bias)| (token, bias as f32)).ok_or_else(|| {
            let (token, bias) = (shown(&token.into()), shown(&bias));
            let message = format!("`logit_bias`: {token}: {bias}, expected a token id and a number");
            ApiError::invalid_param("logit_bias", message)
        })
    };
    biases.into_iter().map(pair).collect()
}

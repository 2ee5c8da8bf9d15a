//! Sampling parameters of a request.

use std::collections::BTreeMap;

use lm_conversation::{SamplerParams, TokenId};
use schemars::JsonSchema;
use serde::de::Error as _;
use serde::{Deserialize, Deserializer};
use serde_json::{Map, Value};

use crate::error::{ApiError, Result};
use crate::fields::shown;
use crate::limits::{Limits, at_most};

/// Sampling parameters of a request; absent ones have the server's defaults. Those from `top_k` to
/// `repetition_penalty` are extensions of OpenAI's API.
#[derive(Debug, Clone, Default, PartialEq, Deserialize, JsonSchema)]
#[non_exhaustive]
pub struct SamplingFields {
    /// Sampling temperature; 0 is greedy.
    #[schemars(range(min = 0))]
    pub temperature: Option<f32>,
    /// Nucleus sampling; 1 is off.
    #[schemars(range(min = 0, max = 1))]
    pub top_p: Option<f32>,
    /// Top-k sampling; 0 and -1 are off.
    #[serde(default, deserialize_with = "top_k")]
    #[schemars(with = "Option<i64>", range(min = -1))]
    pub top_k: Option<usize>,
    /// Min-p sampling; 0 is off.
    #[schemars(range(min = 0, max = 1))]
    pub min_p: Option<f32>,
    /// Locally typical sampling; 1 is off.
    #[schemars(range(min = 0, max = 1))]
    pub typical_p: Option<f32>,
    /// Top-nσ sampling; 0 and -1 are off.
    #[serde(default, deserialize_with = "top_n_sigma")]
    #[schemars(range(min = -1))]
    pub top_n_sigma: Option<f32>,
    /// Probability of XTC.
    #[schemars(range(min = 0, max = 1))]
    pub xtc_probability: Option<f32>,
    /// Threshold of XTC.
    #[schemars(range(min = 0, max = 1))]
    pub xtc_threshold: Option<f32>,
    /// Factor of the DRY penalty; 0 is off.
    #[schemars(range(min = 0))]
    pub dry_multiplier: Option<f32>,
    /// Base of the DRY penalty.
    #[schemars(range(min = 1))]
    pub dry_base: Option<f32>,
    /// Length of the shortest repetition that DRY penalizes.
    #[schemars(range(min = 1))]
    pub dry_allowed_length: Option<usize>,
    /// Number of last tokens that DRY considers; -1 is all.
    pub dry_penalty_last_n: Option<i64>,
    /// Strings of at most 64 bytes at which repetitions end.
    #[schemars(length(max = 64), inner(length(min = 1)))]
    pub dry_sequence_breakers: Option<Vec<String>>,
    /// Repetition penalty; 1 is off.
    #[schemars(extend("exclusiveMinimum" = 0))]
    pub repetition_penalty: Option<f32>,
    /// Name of `repetition_penalty` in llama.cpp.
    #[schemars(extend("exclusiveMinimum" = 0))]
    pub repeat_penalty: Option<f32>,
    /// Number of last tokens that the penalties consider; a negative number is all, and 0 turns them off.
    pub repeat_last_n: Option<i64>,
    /// Presence penalty.
    pub presence_penalty: Option<f32>,
    /// Frequency penalty.
    pub frequency_penalty: Option<f32>,
    /// Biases of single tokens, by their ids; also llama.cpp's array of pairs.
    #[serde(default, deserialize_with = "logit_bias")]
    #[schemars(with = "Option<BTreeMap<String, f32>>", extend("type" = ["object", "array", "null"], "default" = {}))]
    pub logit_bias: Vec<(TokenId, f32)>,
    /// Random seed of the first choice; the next choices count up from it. Without one each choice draws its
    /// own.
    #[serde(default, deserialize_with = "seed")]
    #[schemars(with = "Option<i64>")]
    pub seed: Option<u64>,
}

impl SamplingFields {
    /// Checks the values. Token ids are checked against the model's vocabulary when the request runs.
    pub(crate) fn checked(self, limits: &Limits) -> Result<Self> {
        for (name, share) in [("top_p", self.top_p), ("min_p", self.min_p), ("typical_p", self.typical_p)] {
            // The engine takes numbers above 1 for 1.
            if let Some(other) = share.filter(|share| !(0.0..=1.0).contains(share)) {
                return Err(ApiError::unexpected(name, other, "a number from 0 to 1"));
            }
        }
        at_most("logit_bias", self.logit_bias.len(), limits.logit_bias, "tokens")?;
        let checked = self.sampler(&SamplerParams::default(), 0).validate(usize::MAX);
        checked.map_err(|error| ApiError::from(lm_conversation::Error::from(error)))?;
        Ok(self)
    }

    /// Sampler of a choice: `defaults`, overridden by the request. Each choice has its own seed.
    pub fn sampler(&self, defaults: &SamplerParams, choice: usize) -> SamplerParams {
        let mut logit_bias = defaults.logit_bias.clone();
        logit_bias.extend(&self.logit_bias);
        let breakers = self.dry_sequence_breakers.as_ref();
        let last_n = |count: i64| usize::try_from(count).ok();
        SamplerParams {
            temperature: self.temperature.unwrap_or(defaults.temperature),
            top_p: self.top_p.unwrap_or(defaults.top_p),
            top_k: self.top_k.unwrap_or(defaults.top_k),
            min_p: self.min_p.unwrap_or(defaults.min_p),
            typical_p: self.typical_p.unwrap_or(defaults.typical_p),
            top_n_sigma: self.top_n_sigma.unwrap_or(defaults.top_n_sigma),
            xtc_probability: self.xtc_probability.unwrap_or(defaults.xtc_probability),
            xtc_threshold: self.xtc_threshold.unwrap_or(defaults.xtc_threshold),
            dry_multiplier: self.dry_multiplier.unwrap_or(defaults.dry_multiplier),
            dry_base: self.dry_base.unwrap_or(defaults.dry_base),
            dry_allowed_length: self.dry_allowed_length.unwrap_or(defaults.dry_allowed_length),
            dry_penalty_last_n: self.dry_penalty_last_n.map_or(defaults.dry_penalty_last_n, last_n),
            dry_sequence_breakers: breakers.unwrap_or(&defaults.dry_sequence_breakers).clone(),
            repetition_penalty: (self.repetition_penalty.or(self.repeat_penalty))
                .unwrap_or(defaults.repetition_penalty),
            presence_penalty: self.presence_penalty.unwrap_or(defaults.presence_penalty),
            penalty_window: self.repeat_last_n.map_or(defaults.penalty_window, last_n),
            frequency_penalty: self.frequency_penalty.unwrap_or(defaults.frequency_penalty),
            logit_bias,
            seed: self.seed.or(defaults.seed).map(|seed| seed.wrapping_add(choice as u64)),
            ..defaults.clone()
        }
    }
}

fn top_k<'de, D: Deserializer<'de>>(top_k: D) -> Result<Option<usize>, D::Error> {
    match Option::<Value>::deserialize(top_k)? {
        None => Ok(None),
        Some(off) if off == -1 => Ok(Some(0)),
        Some(top_k) => usize::deserialize(top_k).map(Some).map_err(D::Error::custom),
    }
}

fn seed<'de, D: Deserializer<'de>>(seed: D) -> Result<Option<u64>, D::Error> {
    Ok(Option::<i64>::deserialize(seed)?.map(i64::cast_unsigned))
}

fn top_n_sigma<'de, D: Deserializer<'de>>(sigma: D) -> Result<Option<f32>, D::Error> {
    let sigma = Option::<f32>::deserialize(sigma)?;
    Ok(sigma.map(|sigma| if sigma == -1.0 { 0.0 } else { sigma }))
}

fn logit_bias<'de, D: Deserializer<'de>>(biases: D) -> Result<Vec<(TokenId, f32)>, D::Error> {
    let pairs: Vec<(Value, Value)> = match Value::deserialize(biases)? {
        Value::Array(pairs) => serde_json::from_value(pairs.into()).map_err(D::Error::custom)?,
        biases => {
            let biases = Map::<String, Value>::deserialize(biases).map_err(D::Error::custom)?;
            biases.into_iter().map(|(token, bias)| (token.into(), bias)).collect()
        }
    };
    let pair = |(token, bias): (Value, Value)| {
        token_id(&token).zip(bias_of(&bias)).ok_or_else(|| {
            let (token, bias) = (shown(&token), shown(&bias));
            D::Error::custom(format_args!("{token}: {bias}, expected a token id and a number"))
        })
    };
    pairs.into_iter().map(pair).collect()
}

/// A token id as a number, or as the text that is a key.
fn token_id(token: &Value) -> Option<TokenId> {
    match token {
        Value::String(text) => text.parse().ok(),
        token => token.as_u64().and_then(|id| id.try_into().ok()),
    }
}

/// A bias; false excludes the token, as in llama.cpp.
fn bias_of(bias: &Value) -> Option<f32> {
    match bias {
        Value::Bool(false) => Some(f32::NEG_INFINITY),
        bias => bias.as_f64().map(|bias| bias as f32),
    }
}

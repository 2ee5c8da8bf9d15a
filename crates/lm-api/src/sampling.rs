//! Sampling parameters of a request.

use lm_conversation::{SamplerParams, TokenId};
use serde_json::{Map, Value};

use crate::error::{ApiError, Result};
use crate::fields::{Fields, shown};
use crate::limits::{Limits, at_most};
use crate::request_body::{BodyField, COUNT, INTEGER, POSITIVE};

/// Sampling parameters of a request; absent ones have the server's defaults.
#[derive(Debug, Clone, Default, PartialEq)]
#[non_exhaustive]
pub struct SamplingFields {
    /// Sampling temperature; 0 is greedy.
    pub temperature: Option<f32>,
    /// Nucleus sampling.
    pub top_p: Option<f32>,
    /// Top-k sampling; an extension of the API, as are the next fields up to `repetition_penalty`.
    pub top_k: Option<usize>,
    /// Min-p sampling.
    pub min_p: Option<f32>,
    /// Locally typical sampling.
    pub typical_p: Option<f32>,
    /// Top-nσ sampling.
    pub top_n_sigma: Option<f32>,
    /// Probability of XTC.
    pub xtc_probability: Option<f32>,
    /// Threshold of XTC.
    pub xtc_threshold: Option<f32>,
    /// Factor of the DRY penalty.
    pub dry_multiplier: Option<f32>,
    /// Base of the DRY penalty.
    pub dry_base: Option<f32>,
    /// Length of the shortest repetition that DRY penalizes.
    pub dry_allowed_length: Option<usize>,
    /// Number of last tokens that DRY considers; -1 = all.
    pub dry_penalty_last_n: Option<i64>,
    /// Strings at which repetitions end.
    pub dry_sequence_breakers: Option<Vec<String>>,
    /// Repetition penalty.
    pub repetition_penalty: Option<f32>,
    /// Presence penalty.
    pub presence_penalty: Option<f32>,
    /// Frequency penalty.
    pub frequency_penalty: Option<f32>,
    /// Biases of single tokens.
    pub logit_bias: Vec<(TokenId, f32)>,
    /// Random seed of the first choice; the next choices count up from it. Without one each choice draws its
    /// own.
    pub seed: Option<u64>,
}

const SHARE: &str = r#"{"type": "number", "minimum": 0, "maximum": 1}"#;
const NOT_NEGATIVE: &str = r#"{"type": "number", "minimum": 0}"#;
const NUMBER: &str = r#"{"type": "number"}"#;
const BREAKERS: &str = r#"{"type": "array", "maxItems": 64, "items": {"type": "string", "minLength": 1}}"#;
const LOGIT_BIAS: &str = r#"{"type": "object", "additionalProperties": {"type": "number"}}"#;

/// The fields.
pub(crate) const SAMPLING: &[BodyField] = &[
    BodyField::new("temperature", NOT_NEGATIVE, "Sampling temperature; 0 is greedy."),
    BodyField::new("top_p", SHARE, "Nucleus sampling; 1 is off."),
    BodyField::new("top_k", COUNT, "Top-k sampling; 0 is off."),
    BodyField::new("min_p", SHARE, "Min-p sampling; 0 is off."),
    BodyField::new("typical_p", SHARE, "Locally typical sampling; 1 is off."),
    BodyField::new("top_n_sigma", NOT_NEGATIVE, "Top-nσ sampling; 0 is off."),
    BodyField::new("xtc_probability", SHARE, "Probability of XTC."),
    BodyField::new("xtc_threshold", SHARE, "Threshold of XTC."),
    BodyField::new("dry_multiplier", NOT_NEGATIVE, "Factor of the DRY penalty; 0 is off."),
    BodyField::new("dry_base", r#"{"type": "number", "minimum": 1}"#, "Base of the DRY penalty."),
    BodyField::new("dry_allowed_length", POSITIVE, "Length of the shortest repetition that DRY penalizes."),
    BodyField::new("dry_penalty_last_n", INTEGER, "Number of last tokens that DRY considers; -1 is all."),
    BodyField::new(
        "dry_sequence_breakers",
        BREAKERS,
        "Strings of at most 64 bytes at which repetitions end.",
    ),
    BodyField::new(
        "repetition_penalty",
        r#"{"type": "number", "exclusiveMinimum": 0}"#,
        "Repetition penalty; 1 is off.",
    ),
    BodyField::new("presence_penalty", NUMBER, "Presence penalty."),
    BodyField::new("frequency_penalty", NUMBER, "Frequency penalty."),
    BodyField::new("logit_bias", LOGIT_BIAS, "Biases of single tokens, by their ids."),
    BodyField::new("seed", INTEGER, "Random seed of the first choice; the next choices count up from it."),
];

impl SamplingFields {
    pub(crate) fn read(fields: &mut Fields, limits: &Limits) -> Result<Self> {
        let read = Self {
            temperature: fields.get("temperature")?,
            top_p: share(fields, "top_p")?,
            top_k: fields.get("top_k")?,
            min_p: fields.get("min_p")?,
            typical_p: share(fields, "typical_p")?,
            top_n_sigma: fields.get("top_n_sigma")?,
            xtc_probability: fields.get("xtc_probability")?,
            xtc_threshold: fields.get("xtc_threshold")?,
            dry_multiplier: fields.get("dry_multiplier")?,
            dry_base: fields.get("dry_base")?,
            dry_allowed_length: fields.get("dry_allowed_length")?,
            dry_penalty_last_n: fields.get("dry_penalty_last_n")?,
            dry_sequence_breakers: fields.get("dry_sequence_breakers")?,
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
            repetition_penalty: self.repetition_penalty.unwrap_or(defaults.repetition_penalty),
            presence_penalty: self.presence_penalty.unwrap_or(defaults.presence_penalty),
            frequency_penalty: self.frequency_penalty.unwrap_or(defaults.frequency_penalty),
            logit_bias,
            seed: self.seed.or(defaults.seed).map(|seed| seed.wrapping_add(choice as u64)),
            ..defaults.clone()
        }
    }
}

/// Takes a share of the probability. The engine takes numbers above 1 for 1.
fn share(fields: &mut Fields, name: &'static str) -> Result<Option<f32>> {
    let share = fields.get::<f32>(name)?;
    match share.filter(|share| !(0.0..=1.0).contains(share)) {
        None => Ok(share),
        Some(other) => {
            let message = format!("`{name}` is {other}, expected a number from 0 to 1");
            Err(ApiError::invalid_param(name, message))
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

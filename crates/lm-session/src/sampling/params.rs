//! Parameters of a sampler.

use lm_model::GenerationConfig;
use lm_tokenizer::TokenId;
use serde::{Deserialize, Serialize};

use super::FilterFactory;
use crate::error::{Error, Result};

/// Maximum number of sequence breakers, and of bytes in each, as every token is searched for all of them.
const MAX_BREAKERS: usize = 64;

/// Parameters of the sampler, which chooses the next token from the logits.
///
/// The filters run in the order of [`crate::Chain::new`]. With the same seed and the same preceding tokens, a
/// generation draws the same random numbers, independent of other requests.
///
/// ```
/// use lm_session::SamplerParams;
///
/// let greedy = SamplerParams::default();
/// assert!(greedy.is_greedy());
/// let creative = SamplerParams { temperature: 0.8, top_p: 0.95, seed: Some(7), ..SamplerParams::default() };
/// assert!(!creative.is_greedy());
/// ```
///
/// Serialized, a bias of -infinity is null, and the user-defined filters are omitted.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct SamplerParams {
    /// Divisor of the logits. 0 (the default) is greedy: the highest logit, the lowest id of equal ones.
    pub temperature: f32,
    /// Keeps the k highest logits and those equal to the k-th. 0 (the default) = off.
    pub top_k: usize,
    /// Nucleus sampling: keeps the smallest set of most likely tokens whose probabilities sum to p. 1 (the
    /// default) or more = off; 0 keeps one.
    pub top_p: f32,
    /// Keeps tokens whose probability is at least this fraction of the highest one, `0..=1`. 0 (the default)
    /// = off.
    pub min_p: f32,
    /// Locally typical sampling: keeps the smallest set of tokens of surprisal closest to the entropy whose
    /// probabilities sum to p. 1 (the default) or more = off; 0 keeps one.
    pub typical_p: f32,
    /// Keeps the tokens whose logit is at most this many standard deviations below the highest one. 0 (the
    /// default) = off.
    pub top_n_sigma: f32,
    /// Probability that XTC removes the most likely tokens of a step, `0..=1`: those of at least
    /// `xtc_threshold`, except the least likely of them. 0 (the default) = off.
    pub xtc_probability: f32,
    /// Lowest probability of the tokens that XTC removes, `0..=1`. Above 0.5, XTC is off. Default 0.1.
    pub xtc_threshold: f32,
    /// Makes tokens of prompt and output less likely when above 1, more likely when below. 1 (the default) =
    /// off.
    pub repetition_penalty: f32,
    /// Subtracted from the logits of tokens that occur in the output. 0 (the default) = off.
    pub presence_penalty: f32,
    /// Subtracted from the logits of tokens once per occurrence in the output. 0 (the default) = off.
    pub frequency_penalty: f32,
    /// Number of last tokens that these three penalties consider. `None` (the default) = all.
    pub penalty_window: Option<usize>,
    /// Factor of the DRY penalty on tokens that continue a repetition of L tokens:
    /// `dry_multiplier * dry_base^(L - dry_allowed_length)`. 0 (the default) = off.
    pub dry_multiplier: f32,
    /// Base of the DRY penalty, at least 1. Default 1.75.
    pub dry_base: f32,
    /// Length of the shortest repetition whose continuation DRY penalizes, at least 1. Default 2.
    pub dry_allowed_length: usize,
    /// Number of last tokens of prompt and output that DRY considers. `None` (the default) = all; 0 = off.
    pub dry_penalty_last_n: Option<usize>,
    /// Strings at which repetitions end: at most 64, each of at most 64 bytes. Default: newline, `:`, `"`,
    /// `*`.
    pub dry_sequence_breakers: Vec<String>,
    /// Size of the n-grams that occur at most once in prompt and output. 0 (the default) = off.
    pub no_repeat_ngram_size: usize,
    /// Tokens that are never sampled. Empty by default.
    pub suppress_tokens: Vec<TokenId>,
    /// Biases added to the logits of single tokens; -infinity forbids one. Empty by default.
    #[serde(with = "biases")]
    pub logit_bias: Vec<(TokenId, f32)>,
    /// User-defined filters, which run after the logit bias and before the temperature. Empty by default.
    #[serde(skip)]
    pub filters: Vec<FilterFactory>,
    /// Seed of the random number generator. `None` (the default): drawn from the operating system for each
    /// generation; [`Finished::seed`](crate::Finished::seed) reports it.
    pub seed: Option<u64>,
}

/// Biases whose infinity is null: JSON has none.
mod biases {
    use serde::{Deserialize, Deserializer, Serialize, Serializer};

    use super::TokenId;

    pub fn serialize<S: Serializer>(biases: &[(TokenId, f32)], to: S) -> Result<S::Ok, S::Error> {
        let finite = |&(id, bias): &(TokenId, f32)| (id, bias.is_finite().then_some(bias));
        biases.iter().map(finite).collect::<Vec<_>>().serialize(to)
    }

    pub fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<Vec<(TokenId, f32)>, D::Error> {
        let biases = Vec::<(TokenId, Option<f32>)>::deserialize(from)?;
        Ok(biases.into_iter().map(|(id, bias)| (id, bias.unwrap_or(f32::NEG_INFINITY))).collect())
    }
}

impl Default for SamplerParams {
    fn default() -> Self {
        Self {
            temperature: 0.0,
            top_k: 0,
            top_p: 1.0,
            min_p: 0.0,
            typical_p: 1.0,
            top_n_sigma: 0.0,
            xtc_probability: 0.0,
            xtc_threshold: 0.1,
            repetition_penalty: 1.0,
            presence_penalty: 0.0,
            frequency_penalty: 0.0,
            penalty_window: None,
            dry_multiplier: 0.0,
            dry_base: 1.75,
            dry_allowed_length: 2,
            dry_penalty_last_n: None,
            dry_sequence_breakers: ["\n", ":", "\"", "*"].map(str::to_owned).into(),
            no_repeat_ngram_size: 0,
            suppress_tokens: Vec::new(),
            logit_bias: Vec::new(),
            filters: Vec::new(),
            seed: None,
        }
    }
}

impl SamplerParams {
    /// Converts a model's `generation_config.json`: greedy unless `do_sample` is true. Absent keys have the
    /// defaults of transformers: temperature 1, top-k 50, the rest off.
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

    /// Parameters for a chat with a model: those of its generation config, or for a model without one
    /// temperature 0.8, top-p 0.95 and min-p 0.05. Small models repeat themselves when they decode greedily.
    pub fn for_chat(config: &GenerationConfig) -> Self {
        let given = Self::from_generation_config(config);
        match config.is_recommended {
            true => given,
            false => Self { temperature: 0.8, top_k: 0, top_p: 0.95, min_p: 0.05, ..given },
        }
    }

    /// Returns true if sampling is greedy: no random number is used.
    pub fn is_greedy(&self) -> bool {
        self.temperature == 0.0
    }

    /// Returns the parameters with a seed: a drawn one, below 2^32, unless they have one or are greedy.
    ///
    /// # Errors
    /// [`Error::NoSeed`] if the operating system gives no random number.
    pub fn seeded(&self) -> Result<Self> {
        let drawn = match self.seed {
            None if !self.is_greedy() => Some(getrandom::u32().map_err(Error::NoSeed)?.into()),
            given => given,
        };
        Ok(Self { seed: drawn, ..self.clone() })
    }

    /// Checks every field against its range.
    ///
    /// # Errors
    /// [`Error::InvalidSampler`] names the first field that is out of range. `logits_width` is the model's
    /// number of tokens: [`crate::ModelInfo::logits_width`].
    pub fn validate(&self, logits_width: usize) -> Result<()> {
        const AT_LEAST_ZERO: &str = "a finite number of at least 0";
        const SHARE: &str = "a number in 0..=1";
        let share = |value: f32| (0.0..=1.0).contains(&value);
        check("temperature", self.temperature, self.temperature >= 0.0, AT_LEAST_ZERO)?;
        check("top_p", self.top_p, self.top_p >= 0.0, AT_LEAST_ZERO)?;
        check("min_p", self.min_p, share(self.min_p), SHARE)?;
        check("typical_p", self.typical_p, self.typical_p >= 0.0, AT_LEAST_ZERO)?;
        check("top_n_sigma", self.top_n_sigma, self.top_n_sigma >= 0.0, AT_LEAST_ZERO)?;
        check("xtc_probability", self.xtc_probability, share(self.xtc_probability), SHARE)?;
        check("xtc_threshold", self.xtc_threshold, share(self.xtc_threshold), SHARE)?;
        let above_zero = self.repetition_penalty > 0.0;
        check("repetition_penalty", self.repetition_penalty, above_zero, "a finite number above 0")?;
        check("presence_penalty", self.presence_penalty, true, "a finite number")?;
        check("frequency_penalty", self.frequency_penalty, true, "a finite number")?;
        self.validate_dry()?;
        self.suppress_tokens.iter().try_for_each(|&id| check_id("suppress_tokens", id, logits_width))?;
        for &(id, bias) in &self.logit_bias {
            check_id("logit_bias", id, logits_width)?;
            if bias != f32::NEG_INFINITY {
                check("logit_bias", bias, true, "a finite number or -infinity")?;
            }
        }
        Ok(())
    }

    fn validate_dry(&self) -> Result<()> {
        const FIELD: &str = "dry_sequence_breakers";
        let multiplier = self.dry_multiplier;
        check("dry_multiplier", multiplier, multiplier >= 0.0, "a finite number of at least 0")?;
        check("dry_base", self.dry_base, self.dry_base >= 1.0, "a finite number of at least 1")?;
        if self.dry_allowed_length == 0 {
            return Err(invalid("dry_allowed_length", "0".to_owned(), "at least 1"));
        }
        let breakers = &self.dry_sequence_breakers;
        if breakers.len() > MAX_BREAKERS {
            return Err(invalid(FIELD, format!("{} strings", breakers.len()), "at most 64"));
        }
        let bytes = breakers.iter().map(String::len).find(|len| !(1..=MAX_BREAKERS).contains(len));
        bytes.map_or(Ok(()), |len| Err(invalid(FIELD, format!("a string of {len} bytes"), "1 to 64 bytes")))
    }
}

fn check(field: &'static str, value: f32, in_range: bool, expected: &str) -> Result<()> {
    let valid = value.is_finite() && in_range;
    if valid { Ok(()) } else { Err(invalid(field, value.to_string(), expected)) }
}

fn check_id(field: &'static str, id: TokenId, logits_width: usize) -> Result<()> {
    let valid = (id as usize) < logits_width;
    let expected = || format!("an id below {logits_width}");
    if valid { Ok(()) } else { Err(invalid(field, format!("token {id}"), &expected())) }
}

fn invalid(field: &'static str, value: String, expected: &str) -> Error {
    Error::InvalidSampler { field, value, expected: expected.to_owned() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn out_of_range_parameters_are_reported() {
        let off = SamplerParams::default;
        let breakers = |count: usize, len: usize| SamplerParams {
            dry_sequence_breakers: vec!["-".repeat(len); count],
            ..off()
        };
        for (field, params) in [
            ("temperature", SamplerParams { temperature: -0.1, ..off() }),
            ("temperature", SamplerParams { temperature: f32::NAN, ..off() }),
            ("temperature", SamplerParams { temperature: f32::INFINITY, ..off() }),
            ("top_p", SamplerParams { top_p: -1.0, ..off() }),
            ("min_p", SamplerParams { min_p: 1.1, ..off() }),
            ("typical_p", SamplerParams { typical_p: -0.1, ..off() }),
            ("top_n_sigma", SamplerParams { top_n_sigma: -1.0, ..off() }),
            ("xtc_probability", SamplerParams { xtc_probability: 1.5, ..off() }),
            ("xtc_threshold", SamplerParams { xtc_threshold: f32::NAN, ..off() }),
            ("repetition_penalty", SamplerParams { repetition_penalty: 0.0, ..off() }),
            ("presence_penalty", SamplerParams { presence_penalty: f32::NAN, ..off() }),
            ("frequency_penalty", SamplerParams { frequency_penalty: f32::INFINITY, ..off() }),
            ("dry_multiplier", SamplerParams { dry_multiplier: -1.0, ..off() }),
            ("dry_base", SamplerParams { dry_base: 0.9, ..off() }),
            ("dry_allowed_length", SamplerParams { dry_allowed_length: 0, ..off() }),
            ("dry_sequence_breakers", breakers(1, 0)),
            ("dry_sequence_breakers", breakers(1, 65)),
            ("dry_sequence_breakers", breakers(65, 1)),
            ("suppress_tokens", SamplerParams { suppress_tokens: vec![9, 10], ..off() }),
            ("logit_bias", SamplerParams { logit_bias: vec![(10, 0.0)], ..off() }),
            ("logit_bias", SamplerParams { logit_bias: vec![(9, f32::INFINITY)], ..off() }),
        ] {
            match params.validate(10) {
                Err(Error::InvalidSampler { field: got, .. }) => assert_eq!(got, field),
                other => panic!("{params:?}: {other:?}"),
            }
        }
        let edges = SamplerParams {
            top_p: 1.5,
            suppress_tokens: vec![9],
            logit_bias: vec![(9, f32::NEG_INFINITY)],
            ..breakers(64, 64)
        };
        assert!(edges.validate(10).is_ok() && off().validate(10).is_ok());
    }

    #[test]
    fn chat_without_a_generation_config_samples() {
        let chat = |do_sample: Option<bool>, temperature| {
            let is_recommended = do_sample.is_some();
            let config = GenerationConfig { is_recommended, do_sample, temperature, ..Default::default() };
            let SamplerParams { temperature, top_p, min_p, top_k, .. } = SamplerParams::for_chat(&config);
            (temperature, top_p, min_p, top_k)
        };
        assert_eq!(chat(None, None), (0.8, 0.95, 0.05, 0));
        assert_eq!(chat(Some(false), None).0, 0.0);
        assert_eq!(chat(Some(true), Some(0.3)).0, 0.3);
    }

    #[test]
    fn generation_config_samples_only_on_request() {
        let mut config = GenerationConfig { temperature: Some(0.6), top_p: Some(0.95), ..Default::default() };
        assert!(SamplerParams::from_generation_config(&config).is_greedy());
        config.do_sample = Some(true);
        let params = SamplerParams::from_generation_config(&config);
        assert_eq!((params.temperature, params.top_k, params.top_p), (0.6, 50, 0.95));
    }

    #[test]
    fn seed_is_drawn_only_where_one_is_needed() {
        let sampled = SamplerParams { temperature: 1.0, ..SamplerParams::default() };
        assert_eq!(SamplerParams::default().seeded().unwrap().seed, None);
        assert_eq!(SamplerParams { seed: Some(9), ..sampled.clone() }.seeded().unwrap().seed, Some(9));
        let drawn = sampled.seeded().unwrap().seed.unwrap();
        assert!(u32::try_from(drawn).is_ok(), "{drawn}");
        assert_eq!(sampled.seeded().unwrap().temperature, 1.0);
    }
}

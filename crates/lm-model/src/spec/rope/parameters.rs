//! `rope_parameters`, and the older `rope_theta` and `rope_scaling`.

use lm_formats::Result;
use lm_kernels::RopePairing;

use super::{RopeAxes, RopeScaling, RopeSpec};
use crate::config::{ModelConfig, RopeParameters, invalid, unsupported};

/// Default RoPE base (theta) of transformers' configs.
const DEFAULT_THETA: f64 = 10_000.0;
const KINDS: &str = "default, dynamic, linear, llama3, longrope, proportional, yarn";

/// Parser of one layer type's parameters.
struct Reader<'a> {
    /// Config.json key of the parameters.
    key: &'a str,
    parameters: &'a RopeParameters,
    rotary_dim: usize,
    theta: f64,
    /// `max_position_embeddings`.
    context_len: usize,
}

impl RopeSpec {
    /// Reads the RoPE of all layers of a decoder without partial rotary.
    pub(in crate::spec) fn from_config(config: &ModelConfig, head_dim: usize) -> Result<Self> {
        let (key, parameters) = config.rope_parameters();
        if let Some(part) = parameters.partial_rotary_factor.filter(|part| *part != 1.0) {
            return Err(unsupported("partial_rotary_factor", part, "1.0"));
        }
        Self::from_parameters(key, &parameters, head_dim, config.max_position_embeddings)
    }

    /// Reads the parameters under `key` for heads of `head_dim` elements.
    pub(crate) fn from_parameters(
        key: &str,
        parameters: &RopeParameters,
        head_dim: usize,
        context_len: usize,
    ) -> Result<Self> {
        let theta = parameters.rope_theta.unwrap_or(DEFAULT_THETA);
        if !(theta.is_finite() && theta > 1.0) {
            return Err(invalid("rope_theta", theta, "a number above 1"));
        }
        let kind = parameters.kind();
        let part = match kind {
            "proportional" => 1.0, // It has its own form of partial rotary.
            _ => parameters.partial_rotary_factor.unwrap_or(1.0),
        };
        if !(part > 0.0 && part <= 1.0) {
            return Err(invalid("partial_rotary_factor", part, "above 0, at most 1"));
        }
        let rotary_dim = (head_dim as f64 * part) as usize;
        if rotary_dim == 0 || !rotary_dim.is_multiple_of(2) {
            let expected = "an even number of elements of a head, whose halves RoPE rotates";
            return Err(invalid("partial_rotary_factor", format!("{part}, {rotary_dim} elements"), expected));
        }
        for (name, value) in &parameters.rest {
            if value.is_object() {
                // Parameters by layer type, for a decoder that has a single RoPE.
                return Err(unsupported(&format!("{key}.{name}"), value, "absent"));
            }
            tracing::warn!(key = format!("{key}.{name}"), %value, "passed over: no parameter of RoPE");
        }
        let reader = Reader { key, parameters, rotary_dim, theta, context_len };
        let (scaling, axes) = (reader.scaling(kind)?, RopeAxes::Temporal);
        Ok(Self {
            theta,
            rotary_dim,
            pairing: RopePairing::HalfSplit,
            scaling,
            query_temperature: None,
            axes,
        })
    }
}

impl Reader<'_> {
    fn scaling(&self, kind: &str) -> Result<RopeScaling> {
        match kind {
            "default" => Ok(RopeScaling::None),
            "linear" => Ok(RopeScaling::Linear { factor: self.factor(None)? }),
            "proportional" => self.proportional(),
            "dynamic" => self.dynamic(),
            "llama3" => self.llama3(),
            "yarn" => self.yarn(),
            "longrope" => self.longrope(),
            other => Err(unsupported(&self.name("rope_type"), other, KINDS)),
        }
    }

    fn proportional(&self) -> Result<RopeScaling> {
        let part = self.parameters.partial_rotary_factor.unwrap_or(1.0);
        if !(0.0..=1.0).contains(&part) {
            return Err(invalid(&self.name("partial_rotary_factor"), part, "0 to 1"));
        }
        let pairs = (part * self.rotary_dim as f64 / 2.0) as usize;
        Ok(RopeScaling::Proportional { factor: self.factor(Some(1.0))?, pairs })
    }

    fn dynamic(&self) -> Result<RopeScaling> {
        if self.rotary_dim <= 2 {
            return Err(invalid(
                "head_dim",
                self.rotary_dim,
                "more than 2 elements that turn, for dynamic RoPE",
            ));
        }
        let factor = self.factor(None)?;
        if factor < 1.0 {
            return Err(invalid(&self.name("factor"), factor, "at least 1"));
        }
        Ok(RopeScaling::Dynamic { factor, context: self.context_len })
    }

    fn llama3(&self) -> Result<RopeScaling> {
        let low_freq_factor = self.positive("low_freq_factor", self.parameters.low_freq_factor)?;
        let high_freq_factor = self.positive("high_freq_factor", self.parameters.high_freq_factor)?;
        if high_freq_factor <= low_freq_factor {
            let expected = format!("more than low_freq_factor = {low_freq_factor}");
            return Err(invalid(&self.name("high_freq_factor"), high_freq_factor, expected));
        }
        let (factor, context) = (self.factor(None)?, self.original_context()?);
        Ok(RopeScaling::Llama3 { factor, low_freq_factor, high_freq_factor, context })
    }

    fn yarn(&self) -> Result<RopeScaling> {
        let context = self.original_context()?;
        let factor = self.factor(Some(self.context_len as f64 / context))?;
        let beta_fast = self.positive("beta_fast", self.parameters.beta_fast.or(Some(32.0)))?;
        let beta_slow = self.positive("beta_slow", self.parameters.beta_slow.or(Some(1.0)))?;
        let dim = self.rotary_dim as f64;
        // Index of the pair with this many rotations within the original context.
        let pair_of =
            |turns: f64| dim * (context / (turns * std::f64::consts::TAU)).ln() / (2.0 * self.theta.ln());
        let (mut low, mut high) = (pair_of(beta_fast), pair_of(beta_slow));
        if self.parameters.truncate.unwrap_or(true) {
            (low, high) = (low.floor(), high.ceil());
        }
        (low, high) = (low.max(0.0), high.min(dim - 1.0));
        if low == high {
            high += 0.001;
        }
        let magnitude = |weight: f64| if factor <= 1.0 { 1.0 } else { 0.1 * weight * factor.ln() + 1.0 };
        let given = |value: Option<f64>| value.filter(|value| *value != 0.0);
        let default = match (given(self.parameters.mscale), given(self.parameters.mscale_all_dim)) {
            (Some(mscale), Some(all)) => magnitude(mscale) / magnitude(all),
            _ => magnitude(1.0),
        };
        let attention_factor = self.attention_factor(default)?;
        Ok(RopeScaling::Yarn { factor, context, low, high, attention_factor })
    }

    fn longrope(&self) -> Result<RopeScaling> {
        let context = self.original_context()?;
        let factor = self.factor(Some(self.context_len as f64 / context))?;
        let default = if factor <= 1.0 { 1.0 } else { (1.0 + factor.ln() / context.ln()).sqrt() };
        Ok(RopeScaling::LongRope {
            short: self.divisors("short_factor", self.parameters.short_factor.as_deref())?,
            long: self.divisors("long_factor", self.parameters.long_factor.as_deref())?,
            context: context as usize,
            attention_factor: self.attention_factor(default)?,
        })
    }

    /// Checks that each pair has a divisor.
    fn divisors(&self, name: &str, values: Option<&[f64]>) -> Result<Vec<f64>> {
        let (values, pairs) = (values.unwrap_or_default(), self.rotary_dim / 2);
        if values.len() != pairs || !values.iter().all(|value| value.is_finite() && *value > 0.0) {
            let expected = format!("{pairs} positive numbers, one for each pair");
            return Err(invalid(&self.name(name), format!("a list of {}", values.len()), expected));
        }
        Ok(values.to_vec())
    }

    fn factor(&self, default: Option<f64>) -> Result<f64> {
        self.positive("factor", self.parameters.factor.or(default))
    }

    fn attention_factor(&self, default: f64) -> Result<f64> {
        self.positive("attention_factor", self.parameters.attention_factor.or(Some(default)))
    }

    /// Context length of the original training, in tokens.
    fn original_context(&self) -> Result<f64> {
        let given = self.parameters.original_max_position_embeddings.unwrap_or(self.context_len as f64);
        if given.is_finite() && given > 1.0 {
            return Ok(given);
        }
        Err(invalid(&self.name("original_max_position_embeddings"), given, "a number above 1"))
    }

    fn positive(&self, name: &str, value: Option<f64>) -> Result<f64> {
        match value {
            Some(value) if value.is_finite() && value > 0.0 => Ok(value),
            Some(value) => Err(invalid(&self.name(name), value, "a positive number")),
            None => Err(invalid(&self.name(name), "absent", "a positive number")),
        }
    }

    fn name(&self, name: &str) -> String {
        format!("{}.{name}", self.key)
    }
}

//! Rotary positions: base, rotated part of the head, scaling for a longer context.

use crate::config::{ModelConfig, RopeParameters, invalid, unsupported};
use crate::{Result, RopeTable};

/// Base and scaling of the rotary embedding.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct RopeSpec {
    pub(crate) theta: f64,
    /// Elements of a head that turn: its first ones. Even.
    pub(crate) rotary_dim: usize,
    pub(crate) scaling: RopeScaling,
}

/// How RoPE's frequencies are changed for a longer context.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum RopeScaling {
    None,
    /// Every frequency divided by `factor`.
    Linear {
        factor: f64,
    },
    /// The first `pairs` of a head's pairs turn, by frequencies divided by `factor`; the others stand still.
    ///
    /// # Source
    /// `_compute_proportional_rope_parameters` of transformers, `modeling_rope_utils.py`.
    Proportional {
        factor: f64,
        pairs: usize,
    },
    /// Low frequencies divided by `factor`, high ones kept, a blend between.
    ///
    /// # Source
    /// `_compute_llama3_parameters` of transformers, `modeling_rope_utils.py`.
    Llama3 {
        factor: f64,
        low_freq_factor: f64,
        high_freq_factor: f64,
        original_context: f64,
    },
}

/// Default base of transformers' configs.
const DEFAULT_THETA: f64 = 10_000.0;

impl RopeSpec {
    /// What `rope_parameters`, or the two older keys in its place, say for all layers.
    pub(super) fn from_config(config: &ModelConfig, head_dim: usize) -> Result<Self> {
        let (key, parameters) = match (&config.rope_parameters, &config.rope_scaling) {
            (Some(parameters), _) => ("rope_parameters", parameters.clone()),
            (None, Some(parameters)) => ("rope_scaling", parameters.clone()),
            (None, None) => ("rope_parameters", RopeParameters::default()),
        };
        let parameters = RopeParameters {
            rope_theta: parameters.rope_theta.or(config.rope_theta),
            partial_rotary_factor: parameters.partial_rotary_factor.or(config.partial_rotary_factor),
            ..parameters
        };
        Self::from_parameters(key, &parameters, head_dim)
    }

    /// What the parameters under `key` say for heads of this size.
    pub(crate) fn from_parameters(key: &str, parameters: &RopeParameters, head_dim: usize) -> Result<Self> {
        let theta = parameters.rope_theta.unwrap_or(DEFAULT_THETA);
        if !(theta.is_finite() && theta > 0.0) {
            return Err(invalid("rope_theta", theta, "a positive number"));
        }
        let scaling = RopeScaling::from_parameters(key, parameters, head_dim)?;
        let proportional = matches!(scaling, RopeScaling::Proportional { .. });
        if let Some(factor) =
            parameters.partial_rotary_factor.filter(|factor| *factor != 1.0 && !proportional)
        {
            return Err(unsupported("partial_rotary_factor", factor, "1.0"));
        }
        Ok(Self { theta, rotary_dim: head_dim, scaling })
    }

    /// The table that the kernel rotates by.
    pub(crate) fn table(&self) -> RopeTable {
        let frequency = |i: usize| self.theta.powf(-2.0 * i as f64 / self.rotary_dim as f64);
        let turns = self.scaling.pairs().unwrap_or(usize::MAX);
        let scaled = |i| if i < turns { self.scaling.apply(frequency(i)) as f32 } else { 0.0 };
        let inv_freq = (0..self.rotary_dim / 2).map(scaled).collect();
        RopeTable { inv_freq, attention_factor: 1.0 }
    }
}

impl RopeScaling {
    fn from_parameters(key: &str, parameters: &RopeParameters, head_dim: usize) -> Result<Self> {
        let kind = parameters.rope_type.as_deref().or(parameters.legacy_type.as_deref()).unwrap_or("default");
        if !matches!(kind, "default" | "linear" | "llama3" | "proportional") {
            let known = "default, linear, llama3, proportional";
            return Err(unsupported(&format!("{key}.rope_type"), kind, known));
        }
        if let Some((name, value)) = parameters.rest.iter().next() {
            return Err(unsupported(&format!("{key}.{name}"), value, "absent"));
        }
        if kind == "default" {
            return Ok(Self::None);
        }
        let positive = |name: &str, value: Option<f64>| match value {
            Some(value) if value.is_finite() && value > 0.0 => Ok(value),
            Some(value) => Err(invalid(&format!("{key}.{name}"), value, "a positive number")),
            None => Err(invalid(&format!("{key}.{name}"), "absent", "a positive number")),
        };
        if kind == "linear" {
            return Ok(Self::Linear { factor: positive("factor", parameters.factor)? });
        }
        if kind == "proportional" {
            let part = parameters.partial_rotary_factor.unwrap_or(1.0);
            if !(0.0..=1.0).contains(&part) {
                return Err(invalid(&format!("{key}.partial_rotary_factor"), part, "a number from 0 to 1"));
            }
            let pairs = (part * head_dim as f64 / 2.0).floor() as usize;
            return Ok(Self::Proportional {
                factor: positive("factor", parameters.factor.or(Some(1.0)))?,
                pairs,
            });
        }
        let low_freq_factor = positive("low_freq_factor", parameters.low_freq_factor)?;
        let high_freq_factor = positive("high_freq_factor", parameters.high_freq_factor)?;
        if high_freq_factor <= low_freq_factor {
            let expected = format!("more than low_freq_factor = {low_freq_factor}");
            return Err(invalid(&format!("{key}.high_freq_factor"), high_freq_factor, expected));
        }
        Ok(Self::Llama3 {
            factor: positive("factor", parameters.factor)?,
            low_freq_factor,
            high_freq_factor,
            original_context: positive(
                "original_max_position_embeddings",
                parameters.original_max_position_embeddings,
            )?,
        })
    }

    /// How many of a head's pairs turn, where not all do.
    fn pairs(self) -> Option<usize> {
        match self {
            Self::Proportional { pairs, .. } => Some(pairs),
            _ => None,
        }
    }

    fn apply(self, frequency: f64) -> f64 {
        match self {
            Self::None => frequency,
            Self::Linear { factor } | Self::Proportional { factor, .. } => frequency / factor,
            Self::Llama3 { factor, low_freq_factor, high_freq_factor, original_context } => {
                let wavelengths = original_context * frequency / std::f64::consts::TAU;
                let kept = (wavelengths - low_freq_factor) / (high_freq_factor - low_freq_factor);
                let kept = kept.clamp(0.0, 1.0);
                frequency * (kept + (1.0 - kept) / factor)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn frequencies_are_powers_of_theta() {
        let rope = RopeSpec { theta: 10_000.0, rotary_dim: 8, scaling: RopeScaling::None };
        let inv_freq = rope.table().inv_freq;
        for (got, expected) in inv_freq.iter().zip([1.0, 0.1, 0.01, 0.001]) {
            assert!((got - expected).abs() < 1e-9, "{inv_freq:?}");
        }
    }

    #[test]
    fn proportional_leaves_the_last_pairs_alone() {
        let scaling = RopeScaling::Proportional { factor: 2.0, pairs: 1 };
        let rope = RopeSpec { theta: 10_000.0, rotary_dim: 8, scaling };
        assert_eq!(rope.table().inv_freq, [0.5, 0.0, 0.0, 0.0]);
    }

    /// The three bands of Llama 3.1: wavelengths below 2,048 kept, above 8,192 divided by 8, a blend between.
    #[test]
    fn llama3_scales_low_frequencies_only() {
        let scaling = RopeScaling::Llama3 {
            factor: 8.0,
            low_freq_factor: 1.0,
            high_freq_factor: 4.0,
            original_context: 8192.0,
        };
        let of_wavelength = |wavelength: f64| std::f64::consts::TAU / wavelength;
        for (wavelength, divisor) in [(10.0, 1.0), (2048.0, 1.0), (8192.0, 8.0), (100_000.0, 8.0)] {
            let frequency = of_wavelength(wavelength);
            assert!((scaling.apply(frequency) * divisor / frequency - 1.0).abs() < 1e-12, "{wavelength}");
        }
        let middle = of_wavelength(4096.0);
        let expected = middle * (1.0 / 3.0 + 2.0 / 3.0 / 8.0);
        assert!((scaling.apply(middle) / expected - 1.0).abs() < 1e-12);
    }
}

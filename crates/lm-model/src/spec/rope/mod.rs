//! Rotary position embedding (RoPE): base, rotated part of a head, and scaling for a longer context.

mod axes;
mod parameters;
mod scaling;

pub(crate) use axes::RopeAxes;
pub(crate) use scaling::RopeScaling;

use lm_kernels::{RopePairing, RopeTable};

/// RoPE of some layers.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct RopeSpec {
    pub(crate) theta: f64,
    /// Number of rotated elements of a head, the first ones; even.
    pub(crate) rotary_dim: usize,
    pub(crate) pairing: RopePairing,
    pub(crate) scaling: RopeScaling,
    pub(crate) query_temperature: Option<QueryTemperature>,
    pub(crate) axes: RopeAxes,
}

/// Position-dependent scale of queries: `1 + beta · ln(1 + ⌊position / context⌋)`.
///
/// # Source
/// `get_llama_4_attn_scale` of transformers, `modeling_ministral3.py`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct QueryTemperature {
    pub(crate) beta: f64,
    pub(crate) context: f64,
}

impl RopeSpec {
    /// Maximum sequence length; accounts for a `max_position_embeddings` that is still that of the original
    /// training.
    pub(crate) fn context_len(&self, max_position_embeddings: usize) -> usize {
        let stretched = match self.scaling {
            RopeScaling::Dynamic { factor, context } => factor * context as f64,
            RopeScaling::Yarn { factor, context, .. } => factor * context,
            _ => 0.0,
        };
        max_position_embeddings.max(stretched.min(f64::from(1_u32 << 31)) as usize)
    }

    /// Divisors of each pair's frequency by the scaling, in short sequences.
    pub(crate) fn divisors(&self) -> Vec<f64> {
        let period = |pair: usize| self.theta.powf(2.0 * pair as f64 / self.rotary_dim as f64);
        let divisor = |pair| 1.0 / (period(pair) * self.scaling.apply(pair, period(pair), 1));
        (0..self.rotary_dim / 2).map(divisor).collect()
    }

    /// Returns the kernel's table for a sequence of `len` tokens.
    pub(crate) fn table(&self, len: usize) -> RopeTable {
        let pairs = self.rotary_dim / 2;
        let theta = self.scaling.theta(self.theta, self.rotary_dim, len) as f32;
        // In f32, like the reference: exponents and powers are rounded.
        let exponent = |pair: usize| (2 * pair) as f32 / self.rotary_dim as f32;
        let period = |pair: usize| f64::from(theta).powf(exponent(pair).into()) as f32;
        let inv_freq = (0..pairs).map(|pair| self.scaling.apply(pair, period(pair), len)).collect();
        RopeTable { inv_freq, attention_factor: self.scaling.attention_factor() as f32 }
    }
}

impl QueryTemperature {
    /// Factor on a query at `position`.
    pub(crate) fn factor(self, position: u32) -> f32 {
        let rounds = (f64::from(position) / self.context).floor();
        (1.0 + self.beta * rounds.ln_1p()) as f32
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn table(theta: f64, rotary_dim: usize, scaling: RopeScaling, len: usize) -> Vec<f32> {
        let (pairing, axes) = (RopePairing::HalfSplit, RopeAxes::Temporal);
        let rope = RopeSpec { theta, rotary_dim, pairing, scaling, query_temperature: None, axes };
        rope.table(len).inv_freq
    }

    #[test]
    fn frequencies_are_powers_of_theta() {
        let inv_freq = table(10_000.0, 8, RopeScaling::None, 1);
        for (got, expected) in inv_freq.iter().zip([1.0, 0.1, 0.01, 0.001]) {
            assert!((got - expected).abs() < 1e-9, "{inv_freq:?}");
        }
    }

    #[test]
    fn proportional_rope_keeps_the_last_pairs() {
        let scaling = RopeScaling::Proportional { factor: 2.0, pairs: 1 };
        assert_eq!(table(10_000.0, 8, scaling, 1), [0.5, 0.0, 0.0, 0.0]);
    }

    #[test]
    fn dynamic_rope_changes_the_base_only_beyond_the_context() {
        let scaling = RopeScaling::Dynamic { factor: 2.0, context: 10 };
        let plain = table(10_000.0, 4, RopeScaling::None, 1);
        assert_eq!(table(10_000.0, 4, scaling.clone(), 10), plain);
        // 2 · 20 / 10 - 1 = 3, to the power of 4 / 2: a base nine times as large.
        assert_eq!(table(10_000.0, 4, scaling, 20), table(90_000.0, 4, RopeScaling::None, 1));
    }

    #[test]
    fn longrope_uses_short_and_long_divisors() {
        let (short, long) = (vec![1.0, 2.0], vec![4.0, 8.0]);
        let scaling = RopeScaling::LongRope { short, long, context: 10, attention_factor: 1.5 };
        let plain = table(10_000.0, 4, RopeScaling::None, 1);
        assert_eq!(table(10_000.0, 4, scaling.clone(), 10), [plain[0], plain[1] / 2.0]);
        assert_eq!(table(10_000.0, 4, scaling, 11), [plain[0] / 4.0, plain[1] / 8.0]);
    }

    #[test]
    fn query_temperature_grows_at_whole_contexts() {
        let temperature = QueryTemperature { beta: 0.1, context: 8.0 };
        assert_eq!(temperature.factor(7), 1.0);
        assert_eq!(temperature.factor(8), (1.0 + 0.1 * 2_f64.ln()) as f32);
        assert_eq!(temperature.factor(15), temperature.factor(8));
    }
}

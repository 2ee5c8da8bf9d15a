use lm_kernels::Activation;

use super::{Bias, ExpertsSpec, linear_params};
use crate::Result;
use crate::config::{ModelConfig, unsupported};
use crate::weights::LayerParam;

/// A feed-forward block in field words.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Mlp {
    /// `down(activation(gate(x)) · up(x))`.
    Gated {
        intermediate_size: usize,
        activation: Activation,
        /// Of all three projections.
        bias: Bias,
    },
    /// Many of them, of which each row goes through a few.
    Experts(ExpertsSpec),
}

impl Mlp {
    /// The gated block that a config describes.
    pub(super) fn gated(config: &ModelConfig) -> Result<Self> {
        Ok(Self::Gated {
            intermediate_size: config.intermediate_size,
            activation: activation("hidden_act", config.hidden_act.as_deref().unwrap_or("silu"))?,
            bias: config.mlp_bias.into(),
        })
    }

    /// What gates it.
    pub(crate) fn activation_mut(&mut self) -> &mut Activation {
        match self {
            Self::Gated { activation, .. } => activation,
            Self::Experts(experts) => &mut experts.activation,
        }
    }

    pub(super) fn params(&self, hidden: usize) -> Vec<(LayerParam, Vec<usize>)> {
        match *self {
            Self::Experts(ref experts) => experts.params(hidden),
            Self::Gated { intermediate_size: inner, bias, .. } => [
                linear_params(LayerParam::Gate, [hidden, inner], bias),
                linear_params(LayerParam::Up, [hidden, inner], bias),
                linear_params(LayerParam::Down, [inner, hidden], bias),
            ]
            .concat(),
        }
    }
}

/// The activation with the name that transformers gives it, under a key of config.json.
pub(crate) fn activation(key: &str, name: &str) -> Result<Activation> {
    match name {
        "silu" | "swish" => Ok(Activation::Silu),
        "gelu_pytorch_tanh" => Ok(Activation::GeluTanh),
        other => Err(unsupported(key, other, "silu, gelu_pytorch_tanh")),
    }
}

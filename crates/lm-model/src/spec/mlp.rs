use lm_formats::Result;
use lm_kernels::Activation;

use super::{Bias, ExpertsSpec, linear_params};
use crate::checkpoint::{LayerParam, Piece};
use crate::config::{ModelConfig, invalid, unsupported};

/// Feed-forward block.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Mlp {
    Gated(GatedSpec),
    Plain(PlainSpec),
    /// Mixture of experts: gated blocks; each row is routed to a few.
    Experts(ExpertsSpec),
    /// A dense gated block parallel to experts; the outputs are added.
    DenseAndMoe(GatedSpec, ExpertsSpec, DenseBranch),
    /// None: the layer is a mixer alone.
    Absent,
}

/// Inputs and outputs of a dense block parallel to experts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum DenseBranch {
    /// Block, router and experts each have their own norm, and each expert a factor (Gemma 4).
    OwnNorms,
    /// Shared expert: it reads the rows that the router and the experts read.
    Shared,
    /// Shared expert whose output is multiplied by a sigmoid, one for each row.
    GatedShared,
}

/// Gated feed-forward block: `down(activation(gate(x)) · up(x))`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct GatedSpec {
    pub(crate) intermediate_size: usize,
    pub(crate) activation: Activation,
    /// Bias of all three projections.
    pub(crate) bias: Bias,
    pub(crate) sparsity: Option<Sparsity>,
}

/// Ungated feed-forward block: `down(activation(up(x)))`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct PlainSpec {
    pub(crate) intermediate_size: usize,
    pub(crate) activation: PlainActivation,
    /// Bias of both projections.
    pub(crate) bias: Bias,
}

/// Activation of an ungated block.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum PlainActivation {
    Fixed(Activation),
    /// xIELU with learned parameters in the files.
    Xielu,
}

/// Returns the activation of xIELU's stored parameters: `alpha_p`, `alpha_n`, `beta`, `eps`.
pub(crate) fn xielu_of([alpha_p, alpha_n, beta, eps]: [f32; 4]) -> Activation {
    let softplus = |x: f32| f64::from(x).exp().ln_1p() as f32;
    Activation::Xielu { alpha_p: softplus(alpha_p), alpha_n: beta + softplus(alpha_n), beta, eps }
}

/// Activation sparsity: gates keep their excess over a threshold of `deviations` standard deviations above
/// the row's mean; others are 0.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Sparsity {
    pub(crate) deviations: f32,
}

/// Maximum width of a shared expert, far beyond any model's, so that no product of sizes overflows.
const MAX_SHARED_WIDTH: usize = 1 << 24;

impl Sparsity {
    /// Returns the threshold that zeroes this share of normally distributed gates; `None` for 0.
    pub(crate) fn of_share(key: &str, share: f64) -> Result<Option<Self>> {
        match share {
            0.0 => Ok(None),
            share if share > 0.0 && share < 1.0 => {
                Ok(Some(Self { deviations: normal_quantile(share) as f32 }))
            }
            _ => Err(invalid(key, share, "from 0 to less than 1")),
        }
    }
}

/// Quantile of the standard normal distribution: Newton's method on `1/2 + φ(x) Σ x^(2n+1) / (1·3···(2n+1))`.
fn normal_quantile(share: f64) -> f64 {
    let density = |x: f64| (-x * x / 2.0).exp() / std::f64::consts::TAU.sqrt();
    let below = |x: f64| {
        let terms = (1..200).scan(x, |term, n| {
            let this = *term;
            *term *= x * x / f64::from(2 * n + 1);
            Some(this)
        });
        0.5 + density(x) * terms.sum::<f64>()
    };
    (0..50).fold(0.0, |x, _| x - ((below(x) - share) / density(x)).clamp(-1.0, 1.0))
}

impl Mlp {
    /// Reads the gated block of a config.
    pub(super) fn gated(config: &ModelConfig) -> Result<Self> {
        Ok(Self::Gated(GatedSpec {
            intermediate_size: config.intermediate_size,
            activation: activation("hidden_act", config.hidden_act.as_deref().unwrap_or("silu"))?,
            bias: config.mlp_bias.into(),
            sparsity: None,
        }))
    }

    /// Reads the ungated block of a config.
    pub(crate) fn plain(config: &ModelConfig) -> Result<Self> {
        Ok(Self::Plain(PlainSpec {
            intermediate_size: config.intermediate_size,
            activation: match config.hidden_act.as_deref().unwrap_or("silu") {
                "xielu" => PlainActivation::Xielu,
                name => PlainActivation::Fixed(activation("hidden_act", name)?),
            },
            bias: config.mlp_bias.into(),
        }))
    }

    /// Width inside the dense block, if there is one that is no shared expert.
    pub(crate) fn dense_width(&self) -> Option<usize> {
        match self {
            Self::Gated(gated) | Self::DenseAndMoe(gated, _, DenseBranch::OwnNorms) => {
                Some(gated.intermediate_size)
            }
            Self::Plain(plain) => Some(plain.intermediate_size),
            Self::Experts(_)
            | Self::Absent
            | Self::DenseAndMoe(_, _, DenseBranch::Shared | DenseBranch::GatedShared) => None,
        }
    }

    pub(super) fn params(&self, hidden: usize) -> Vec<(LayerParam, Vec<usize>)> {
        match self {
            Self::Gated(gated) => gated.params_of(DENSE, hidden),
            Self::Plain(plain) => plain.params(hidden),
            Self::Experts(experts) => experts.params(hidden),
            Self::Absent => Vec::new(),
            Self::DenseAndMoe(gated, experts, branch) => [
                gated.params_of(branch.projections(), hidden),
                experts.params(hidden),
                branch.params(hidden, experts),
            ]
            .concat(),
        }
    }

    /// The experts, if any.
    pub(crate) fn experts(&self) -> Option<&ExpertsSpec> {
        match self {
            Self::Gated(_) | Self::Plain(_) | Self::Absent => None,
            Self::Experts(experts) | Self::DenseAndMoe(_, experts, _) => Some(experts),
        }
    }
}

impl DenseBranch {
    /// Gate, up and down projection of the dense block.
    pub(crate) fn projections(self) -> GatedParams {
        match self {
            Self::OwnNorms => DENSE,
            Self::Shared | Self::GatedShared => {
                [LayerParam::SharedGate, LayerParam::SharedUp, LayerParam::SharedDown]
            }
        }
    }

    fn params(self, hidden: usize, experts: &ExpertsSpec) -> Vec<(LayerParam, Vec<usize>)> {
        match self {
            Self::Shared => Vec::new(),
            Self::GatedShared => vec![(LayerParam::SharedRowGate, vec![1, hidden])],
            Self::OwnNorms => {
                let norms = [
                    LayerParam::GatedPostNorm,
                    LayerParam::ExpertsNorm,
                    LayerParam::ExpertsPostNorm,
                    LayerParam::RouterNorm,
                ];
                let norms: Vec<_> = norms.map(|norm| (norm, vec![hidden])).into();
                let factors = vec![(LayerParam::ExpertFactors, vec![experts.num_experts])];
                [norms, factors].concat()
            }
        }
    }
}

/// Gate, up and down projection of a gated block.
pub(crate) type GatedParams = [fn(Piece) -> LayerParam; 3];

/// Projections of a layer's dense block.
pub(crate) const DENSE: GatedParams = [LayerParam::Gate, LayerParam::Up, LayerParam::Down];

impl GatedSpec {
    /// Shared expert parallel to experts, of a width under a config.json key.
    pub(crate) fn beside(experts: &ExpertsSpec, key: &str, intermediate_size: usize) -> Result<Self> {
        if !(1..=MAX_SHARED_WIDTH).contains(&intermediate_size) {
            return Err(invalid(key, intermediate_size, format!("1 to {MAX_SHARED_WIDTH}")));
        }
        let ExpertsSpec { activation, bias, .. } = *experts;
        Ok(Self { intermediate_size, activation, bias, sparsity: None })
    }

    fn params_of(&self, [gate, up, down]: GatedParams, hidden: usize) -> Vec<(LayerParam, Vec<usize>)> {
        let Self { intermediate_size: inner, bias, .. } = *self;
        [
            linear_params(gate, [hidden, inner], bias),
            linear_params(up, [hidden, inner], bias),
            linear_params(down, [inner, hidden], bias),
        ]
        .concat()
    }
}

impl PlainSpec {
    fn params(&self, hidden: usize) -> Vec<(LayerParam, Vec<usize>)> {
        let Self { intermediate_size: inner, bias, .. } = *self;
        [
            linear_params(LayerParam::Up, [hidden, inner], bias),
            linear_params(LayerParam::Down, [inner, hidden], bias),
            match self.activation {
                PlainActivation::Fixed(_) => Vec::new(),
                PlainActivation::Xielu => vec![
                    (LayerParam::XieluAlphaP, vec![1]),
                    (LayerParam::XieluAlphaN, vec![1]),
                    (LayerParam::XieluBeta, vec![]),
                    (LayerParam::XieluEps, vec![]),
                ],
            },
        ]
        .concat()
    }
}

/// Returns the activation of a transformers name; `key` is its config.json key.
pub(crate) fn activation(key: &str, name: &str) -> Result<Activation> {
    match name {
        "silu" | "swish" => Ok(Activation::Silu),
        "gelu" | "gelu_python" => Ok(Activation::Gelu),
        "gelu_pytorch_tanh" | "gelu_python_tanh" | "gelu_new" | "gelu_fast" | "gelu_accurate" => {
            Ok(Activation::GeluTanh)
        }
        "quick_gelu" => Ok(Activation::QuickGelu),
        "relu" => Ok(Activation::Relu),
        "relu2" => Ok(Activation::ReluSquared),
        "sigmoid" => Ok(Activation::Sigmoid),
        other => Err(unsupported(
            key,
            other,
            "silu, gelu, gelu_pytorch_tanh, gelu_new, quick_gelu, relu, relu2, sigmoid",
        )),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Values of the usual tables of the normal distribution.
    #[test]
    fn quantiles_match_published_tables() {
        let table =
            [(0.5, 0.0), (0.95, 1.644_853_626_951), (0.4, -0.253_347_103_136), (0.999, 3.090_232_306_168)];
        for (share, quantile) in table {
            assert!((normal_quantile(share) - quantile).abs() < 1e-9, "{share}");
        }
    }

    #[test]
    fn share_of_one_or_more_is_rejected() {
        assert_eq!(Sparsity::of_share("key", 0.0).unwrap(), None);
        for share in [1.0, -0.1, f64::NAN] {
            assert!(Sparsity::of_share("key", share).is_err(), "{share}");
        }
    }
}

use burn::tensor::Tensor;
use lm_kernels::{Activation, Weight};

use super::{Linear, RmsNorm};
use crate::Result;
use crate::spec::{DecoderSpec, NormPlacement};
use crate::weights::{LayerParam, Param, WeightLoader};

/// What stands around a block of a layer: norms before and after it, and the sum with what went in.
pub(crate) struct Sublayer {
    before: Option<RmsNorm>,
    after: Option<RmsNorm>,
    /// Factor on what the block gives.
    scale: Option<f32>,
}

/// Rows that a block reads, `[rows, hidden]`, to be normed first where there is a norm.
pub(crate) struct BlockInput<'a> {
    x: Tensor<2>,
    norm: Option<&'a RmsNorm>,
}

impl Sublayer {
    /// Those of a layer's two blocks: mixer and feed-forward.
    pub(crate) fn load_pair(
        loader: &mut WeightLoader<'_>,
        spec: &DecoderSpec,
        layer: usize,
        norms: NormPlacement,
    ) -> Result<[Self; 2]> {
        let mut pair = |params: Option<[LayerParam; 2]>| -> Result<[Option<RmsNorm>; 2]> {
            let Some(params) = params else { return Ok([None, None]) };
            let [mixer, mlp] =
                params.map(|param| RmsNorm::load(loader, spec, Param::Layer(layer, param), spec.hidden_size));
            Ok([Some(mixer?), Some(mlp?)])
        };
        let ([mixer_before, mlp_before], [mixer_after, mlp_after]) =
            (pair(norms.before())?, pair(norms.after())?);
        let scale = spec.residual_scale;
        Ok([
            Self { before: mixer_before, after: mixer_after, scale },
            Self { before: mlp_before, after: mlp_after, scale },
        ])
    }

    /// What the block reads of the rows `x`, `[rows, hidden]`.
    pub(crate) fn input(&self, x: Tensor<2>) -> BlockInput<'_> {
        BlockInput { x, norm: self.before.as_ref() }
    }

    /// `x` plus what the block's last projection makes of `inner`, `[rows, inputs of the projection]`.
    pub(crate) fn add_projected(&self, x: Tensor<2>, inner: Tensor<2>, projection: &Linear) -> Tensor<2> {
        match (&self.after, self.scale) {
            (None, None) => projection.add_to(x, inner),
            _ => self.add(x, projection.forward(inner)),
        }
    }

    /// `x` plus `y`, what the block gives, normed and scaled where the architecture does so.
    pub(crate) fn add(&self, x: Tensor<2>, y: Tensor<2>) -> Tensor<2> {
        let y = match &self.after {
            None => y,
            Some(norm) => norm.forward(y),
        };
        match self.scale {
            None => x + y,
            Some(scale) => x + y * scale,
        }
    }
}

impl BlockInput<'_> {
    /// The rows, normed.
    pub(crate) fn normed(self) -> Tensor<2> {
        match self.norm {
            None => self.x,
            Some(norm) => norm.forward(self.x),
        }
    }

    /// Products with three weights, without biases.
    pub(crate) fn qkv(self, weights: [&Weight; 3]) -> [Tensor<2>; 3] {
        match self.norm {
            None => weights.map(|weight| lm_kernels::linear(self.x.clone(), weight)),
            Some(norm) => lm_kernels::qkv(self.x, norm.weight(), norm.eps(), weights),
        }
    }

    /// `activation(gate(x)) · up(x)`, biases included.
    pub(crate) fn gated(self, gate: &Linear, up: &Linear, activation: Activation) -> Tensor<2> {
        match self.norm {
            // Biases stand between the products and the gate.
            Some(norm) if !gate.has_bias() && !up.has_bias() => {
                let (gate, up) = (gate.weight(), up.weight());
                lm_kernels::gated(self.x, norm.weight(), norm.eps(), gate, up, activation)
            }
            _ => {
                let x = self.normed();
                lm_kernels::glu(gate.forward(x.clone()), up.forward(x), activation)
            }
        }
    }
}

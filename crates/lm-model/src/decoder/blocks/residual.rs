use burn::tensor::Tensor;
use lm_kernels::Activation;

use super::{ForwardContext, LayerLoader, Projection};
use crate::checkpoint::LayerParam;
use crate::error::Result;
use crate::nn::{Norm, scaled};
use crate::spec::{LayerSpec, NormPlacement};

/// Residual wrapper of a layer's block: pre-norm, post-norm, add, and a norm of the sum.
pub(crate) struct ResidualBlock {
    pre_norm: Option<Norm>,
    post_norm: Option<Norm>,
    /// Norm of the sum.
    sum_norm: Option<Norm>,
    /// Factor on the block's output.
    scale: Option<f32>,
}

/// Input rows of a block, `[rows, hidden]`, with the pre-norm where there is one.
pub(crate) struct BlockInput<'a> {
    x: Tensor<2>,
    norm: Option<&'a Norm>,
}

impl ResidualBlock {
    /// Loads the wrappers of a layer's two blocks, mixer and feed-forward.
    pub(crate) fn load_pair(layer: &mut LayerLoader<'_, '_>, spec: &LayerSpec) -> Result<[Self; 2]> {
        let [has_mixer, has_mlp] = spec.blocks();
        let mut pair = |[mixer, mlp]: [Option<LayerParam>; 2]| -> Result<[Option<Norm>; 2]> {
            let mut load =
                |param: Option<LayerParam>| param.map(|param| layer.norm(param, layer.hidden())).transpose();
            if mixer == mlp {
                let norm = load(mixer)?;
                return Ok([norm.clone(), norm]);
            }
            Ok([load(mixer.filter(|_| has_mixer))?, load(mlp.filter(|_| has_mlp))?])
        };
        let ([mixer_pre, mlp_pre], [mixer_post, mlp_post]) =
            (pair(spec.norms.pre_norms())?, pair(spec.norms.post_norms())?);
        let scale = layer.spec.residual_scale;
        let wrapper = |pre_norm, post: Option<Norm>| match spec.norms {
            NormPlacement::PostAdd => Self { pre_norm, post_norm: None, sum_norm: post, scale },
            _ => Self { pre_norm, post_norm: post, sum_norm: None, scale },
        };
        Ok([wrapper(mixer_pre, mixer_post), wrapper(mlp_pre, mlp_post)])
    }

    /// Returns the block's input for the rows `x`, `[rows, hidden]`.
    pub(crate) fn input(&self, x: Tensor<2>) -> BlockInput<'_> {
        BlockInput { x, norm: self.pre_norm.as_ref() }
    }

    /// Returns `x` plus the block's last projection of `inner`, `[rows, inputs of the projection]`.
    pub(crate) fn add_projected(
        &self,
        x: Tensor<2>,
        inner: Tensor<2>,
        projection: &Projection,
        context: &ForwardContext,
    ) -> Tensor<2> {
        match (&self.post_norm, self.scale) {
            (None, None) => self.normed_sum(projection.add_to(x, inner, context)),
            _ => self.add(x, projection.forward(inner, context)),
        }
    }

    /// Returns `x` plus `y`, the block's output, normed and scaled where the architecture does so.
    pub(crate) fn add(&self, x: Tensor<2>, y: Tensor<2>) -> Tensor<2> {
        let y = match &self.post_norm {
            None => y,
            Some(norm) => norm.forward(y),
        };
        self.normed_sum(x + scaled(y, self.scale))
    }

    fn normed_sum(&self, sum: Tensor<2>) -> Tensor<2> {
        match &self.sum_norm {
            None => sum,
            Some(norm) => norm.forward(sum),
        }
    }
}

impl BlockInput<'_> {
    /// Returns the rows after the pre-norm.
    pub(crate) fn normed(self) -> Tensor<2> {
        match self.norm {
            None => self.x,
            Some(norm) => norm.forward(self.x),
        }
    }

    /// Projects the rows to queries, keys and values.
    pub(crate) fn qkv(self, projections: [&Projection; 3], context: &ForwardContext) -> [Tensor<2>; 3] {
        match self.norm {
            // Adapters read the normed rows, which the fused op does not return.
            Some(Norm::Rms(norm)) if !projections.iter().any(|projection| projection.is_adapted(context)) => {
                let weights = projections.map(|projection| &projection.linear.weight);
                let biases = projections.map(|projection| projection.linear.bias.clone());
                lm_kernels::qkv(self.x, norm.weight.clone(), norm.eps, weights, biases)
            }
            _ => {
                let x = self.normed();
                projections.map(|projection| projection.forward(x.clone(), context))
            }
        }
    }

    /// Computes `activation(gate(x)) · up(x)`, biases included.
    pub(crate) fn gated(
        self,
        gate: &Projection,
        up: &Projection,
        activation: Activation,
        context: &ForwardContext,
    ) -> Tensor<2> {
        match self.norm {
            // Biases and adapters apply between the products and the gate.
            Some(Norm::Rms(norm)) if gate.is_bare(context) && up.is_bare(context) => {
                let (gate, up) = (&gate.linear.weight, &up.linear.weight);
                lm_kernels::gated(self.x, norm.weight.clone(), norm.eps, gate, up, activation)
            }
            _ => {
                let x = self.normed();
                lm_kernels::glu(gate.forward(x.clone(), context), up.forward(x, context), activation)
            }
        }
    }
}

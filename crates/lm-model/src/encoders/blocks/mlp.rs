use burn::tensor::Tensor;
use lm_kernels::Activation;

use super::{Bias, Linear, TILE, TensorReader, in_tiles};
use crate::error::Result;

/// Feed-forward block: two projections with an activation between them, or a third that is its gate.
pub(crate) struct Mlp {
    /// Its activation multiplies the rows of `up`.
    gate: Option<Linear>,
    up: Linear,
    down: Linear,
    activation: Activation,
}

impl Mlp {
    /// Loads the modules `names` from `inputs` over `inner` to `outputs`.
    pub(crate) fn load(
        tensors: &mut TensorReader<'_>,
        [up, down]: [&str; 2],
        [inputs, inner, outputs]: [usize; 3],
        bias: Bias,
        activation: Activation,
    ) -> Result<Self> {
        let up = Linear::load(tensors, up, [inputs, inner], bias)?;
        let down = Linear::load(tensors, down, [inner, outputs], bias)?;
        Ok(Self { gate: None, up, down, activation })
    }

    /// Loads the modules `names` (gate, up and down) from `inputs` over `inner` to `outputs`.
    pub(crate) fn load_gated(
        tensors: &mut TensorReader<'_>,
        [gate, up, down]: [&str; 3],
        widths: [usize; 3],
        bias: Bias,
        activation: Activation,
    ) -> Result<Self> {
        let [inputs, inner, _] = widths;
        let gate = Some(Linear::load(tensors, gate, [inputs, inner], bias)?);
        Ok(Self { gate, ..Self::load(tensors, [up, down], widths, bias, activation)? })
    }

    /// `[rows, inputs]` to `[rows, outputs]`.
    pub(crate) fn forward(&self, x: Tensor<2>) -> Tensor<2> {
        in_tiles(x, |x| self.down.forward(self.wide(x)))
    }

    /// Returns `residual`, `[rows, outputs]`, plus the block of `x`, `[rows, inputs]`.
    pub(crate) fn add_to(&self, residual: Tensor<2>, x: Tensor<2>) -> Tensor<2> {
        match x.dims()[0] <= TILE {
            true => self.down.add_to(residual, self.wide(x)),
            false => residual + self.forward(x),
        }
    }

    /// `[rows, inputs]` to `[rows, inner]`.
    fn wide(&self, x: Tensor<2>) -> Tensor<2> {
        match &self.gate {
            Some(gate) => lm_kernels::glu(gate.forward(x.clone()), self.up.forward(x), self.activation),
            None => self.up.activated(x, self.activation),
        }
    }
}

use burn::tensor::Tensor;
use lm_kernels::Activation;

use super::{Bias, Linear, TowerTensors};
use crate::error::Result;

/// Rows that are widened at a time, so that the wide rows of thousands of patches are never all in memory.
const TILE: usize = 512;

/// Feed-forward block: two projections with an activation between them, or a third that is its gate.
pub(crate) struct Mlp {
    /// Its activation multiplies the rows of `up`.
    gate: Option<Linear>,
    up: Linear,
    down: Linear,
    activation: Activation,
    inner: usize,
}

impl Mlp {
    /// Loads the modules `names` from `inputs` over `inner` to `outputs`.
    pub(crate) fn load(
        tensors: &mut TowerTensors<'_>,
        [up, down]: [&str; 2],
        [inputs, inner, outputs]: [usize; 3],
        bias: Bias,
        activation: Activation,
    ) -> Result<Self> {
        let up = Linear::load(tensors, up, [inputs, inner], bias)?;
        let down = Linear::load(tensors, down, [inner, outputs], bias)?;
        Ok(Self { gate: None, up, down, activation, inner })
    }

    /// Loads the modules `names` (gate, up and down) from `inputs` over `inner` to `outputs`.
    pub(crate) fn load_gated(
        tensors: &mut TowerTensors<'_>,
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
        let [rows, _] = x.dims();
        let tile = |first| self.of_tile(x.clone().narrow(0, first, TILE.min(rows - first)));
        Tensor::cat((0..rows).step_by(TILE).map(tile).collect(), 0)
    }

    fn of_tile(&self, x: Tensor<2>) -> Tensor<2> {
        let wide = self.up.forward(x.clone()); // [rows, inner]
        let (gate, factor) = match &self.gate {
            Some(gate) => (gate.forward(x), wide),
            None => {
                let ones = Tensor::ones([wide.dims()[0], self.inner], &wide.device());
                (wide, ones)
            }
        };
        self.down.forward(lm_kernels::glu(gate, factor, self.activation))
    }
}

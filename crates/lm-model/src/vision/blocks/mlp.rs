use burn::tensor::Tensor;
use lm_kernels::Activation;

use super::{Bias, Linear, TowerTensors};
use crate::error::Result;

/// Rows that are widened at a time, so that the wide rows of thousands of patches are never all in memory.
const TILE: usize = 512;

/// Feed-forward block without a gate: two projections with an activation between them.
pub(crate) struct Mlp {
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
        Ok(Self { up, down, activation, inner })
    }

    /// `[rows, inputs]` to `[rows, outputs]`.
    pub(crate) fn forward(&self, x: Tensor<2>) -> Tensor<2> {
        let [rows, _] = x.dims();
        let tile = |first| self.of_tile(x.clone().narrow(0, first, TILE.min(rows - first)));
        Tensor::cat((0..rows).step_by(TILE).map(tile).collect(), 0)
    }

    fn of_tile(&self, x: Tensor<2>) -> Tensor<2> {
        let wide = self.up.forward(x); // [rows, inner]
        let ones = Tensor::ones([wide.dims()[0], self.inner], &wide.device());
        self.down.forward(lm_kernels::glu(wide, ones, self.activation))
    }
}

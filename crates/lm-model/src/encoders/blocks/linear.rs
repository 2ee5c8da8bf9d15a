use lm_kernels::Weight;

use super::{Bias, Linear, TensorReader};
use crate::error::Result;

impl Linear {
    /// Loads the module `name` with its `weight` and `bias`, from `inputs` to `outputs`.
    pub(crate) fn load(
        tensors: &mut TensorReader<'_>,
        name: &str,
        [inputs, outputs]: [usize; 2],
        bias: Bias,
    ) -> Result<Self> {
        let weight = tensors.matrix(&format!("{name}.weight"), [outputs, inputs])?;
        let bias = bias.if_present(|| tensors.vector(&format!("{name}.bias"), outputs))?;
        Ok(Self { weight, bias })
    }

    /// A projection without a bias.
    pub(crate) fn of_weight(weight: Weight) -> Self {
        Self { weight, bias: None }
    }
}

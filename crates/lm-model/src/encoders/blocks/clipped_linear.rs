use burn::tensor::Tensor;

use super::{Bias, Linear, TensorReader};
use crate::error::Result;

/// Projection whose input and output are clamped to ranges from the checkpoint, if the tower requires it.
pub(crate) struct ClippedLinear {
    linear: Linear,
    /// Ranges of input and output.
    ranges: Option<[[f32; 2]; 2]>,
}

impl ClippedLinear {
    /// Loads the module `name`; with `clipped` also its four bounds.
    pub(crate) fn load(
        tensors: &mut TensorReader<'_>,
        name: &str,
        widths: [usize; 2],
        clipped: bool,
    ) -> Result<Self> {
        let linear = Linear::load(tensors, &format!("{name}.linear"), widths, Bias::Absent)?;
        let ranges = match clipped {
            false => None,
            true => {
                Some([range(tensors, &format!("{name}.input"))?, range(tensors, &format!("{name}.output"))?])
            }
        };
        Ok(Self { linear, ranges })
    }

    /// `[rows, inputs]` to `[rows, outputs]`.
    pub(crate) fn forward(&self, x: Tensor<2>) -> Tensor<2> {
        match self.ranges {
            None => self.linear.forward(x),
            Some([[low, high], [least, most]]) => self.linear.forward(x.clamp(low, high)).clamp(least, most),
        }
    }
}

/// Loads the bounds `name_min` and `name_max`; infinite bounds are invalid.
fn range(tensors: &mut TensorReader<'_>, name: &str) -> Result<[f32; 2]> {
    let [low, high] = ["min", "max"].map(|bound| format!("{name}_{bound}"));
    let least = tensors.values(&low, 1)?[0];
    let most = tensors.values(&high, 1)?[0];
    if least <= most {
        return Ok([least, most]);
    }
    Err(tensors.invalid_value(&high, most, format!("a number from {low} = {least} on")))
}

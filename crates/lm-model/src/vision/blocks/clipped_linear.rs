use burn::tensor::Tensor;

use super::{Bias, Linear, TowerTensors};
use crate::error::{Error, Result};

/// Projection whose input and output are clamped to ranges that the checkpoint holds, where the tower asks for it.
pub(crate) struct ClippedLinear {
    linear: Linear,
    /// Ranges of input and output.
    ranges: Option<[[f32; 2]; 2]>,
}

impl ClippedLinear {
    /// Loads the module `name`; with `clipped` also its four bounds.
    pub(crate) fn load(
        tensors: &mut TowerTensors<'_>,
        name: &str,
        widths: [usize; 2],
        clipped: bool,
    ) -> Result<Self> {
        let linear = Linear::load(tensors, &format!("{name}.linear"), widths, Bias::Absent)?;
        let mut bound = |bound: &str| Ok::<_, Error>(tensors.values(&format!("{name}.{bound}"), 1)?[0]);
        let ranges = match clipped {
            false => None,
            true => Some([
                [bound("input_min")?, bound("input_max")?],
                [bound("output_min")?, bound("output_max")?],
            ]),
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

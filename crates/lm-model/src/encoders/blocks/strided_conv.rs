use burn::tensor::Tensor;

use super::{Bias, Linear, TensorReader};
use crate::error::Result;

/// Rows of the output that are computed at a time, so that the squares of all are never in memory.
const TILE: usize = 32;

/// Convolution with 3 × 3 kernels, stride 2 and zero padding: the output has half as many rows and columns,
/// rounded up.
pub(crate) struct StridedConv {
    linear: Linear,
}

impl StridedConv {
    /// Loads the weight `[outputs, inputs, 3, 3]` of the module `name`.
    pub(crate) fn load(
        tensors: &mut TensorReader<'_>,
        name: &str,
        [inputs, outputs]: [usize; 2],
    ) -> Result<Self> {
        Ok(Self { linear: Linear::load(tensors, name, [9 * inputs, outputs], Bias::Absent)? })
    }

    /// `[rows, columns, inputs]` to `[rows / 2, columns / 2, outputs]`, both rounded up.
    pub(crate) fn forward(&self, x: Tensor<3>) -> Tensor<3> {
        let [rows, columns, inputs] = x.dims();
        let [height, width] = [rows.div_ceil(2), columns.div_ceil(2)];
        let zeros = |rows, columns| Tensor::zeros([rows, columns, inputs], &x.device());
        let x = Tensor::cat(vec![zeros(1, columns), x.clone(), zeros(2 * height + 1 - rows, columns)], 0);
        let sides = [1, 2 * width + 1 - columns].map(|columns| zeros(2 * height + 2, columns));
        let [left, right] = sides;
        let x = Tensor::cat(vec![left, x, right], 1); // [2 · height + 2, 2 · width + 2, inputs]
        let tile = |first| {
            let count = TILE.min(height - first);
            let squares = squares(x.clone().narrow(0, 2 * first, 2 * count + 2));
            self.linear.forward(squares)
        };
        let tiles = Tensor::cat((0..height).step_by(TILE).map(tile).collect(), 0);
        let [_, outputs] = tiles.dims();
        tiles.reshape([height, width, outputs])
    }
}

/// The squares of 3 × 3 at every other row and column: `[2h + 2, 2w + 2, inputs]` to `[h · w, inputs · 9]`.
fn squares(x: Tensor<3>) -> Tensor<2> {
    let [rows, columns, inputs] = x.dims();
    let (height, width) = (rows / 2 - 1, columns / 2 - 1);
    let pairs = x.reshape([height + 1, 2, width + 1, 2, inputs]);
    let at = |row: usize, column: usize| {
        let rows = pairs.clone().narrow(0, row / 2, height).narrow(1, row % 2, 1);
        let part = rows.narrow(2, column / 2, width).narrow(3, column % 2, 1);
        part.reshape([height * width, inputs, 1])
    };
    let places = (0..3).flat_map(|row| (0..3).map(move |column| (row, column)));
    Tensor::cat(places.map(|(row, column)| at(row, column)).collect(), 2)
        .reshape([height * width, inputs * 9])
}

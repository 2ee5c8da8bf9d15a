use burn::tensor::Tensor;

use super::Norm;

/// Norm over each of several parts of a row, with a weight for each element of the row.
#[derive(Clone)]
pub(crate) struct PartsNorm {
    /// Norm of a part, without a weight; of the whole row, with its weight, where there is one part.
    norm: Norm,
    /// Weight of the row, `[1, parts, len]`; `None` for one part.
    weight: Option<Tensor<3>>,
}

impl PartsNorm {
    /// Makes the norm of a row of several parts from that of a part without a weight, and the row's weight.
    pub(crate) fn new(of_part: impl Into<Norm>, weight: Tensor<1>, parts: usize) -> Self {
        let len = weight.dims()[0] / parts;
        Self { norm: of_part.into(), weight: Some(weight.reshape([1, parts, len])) }
    }

    /// A norm of whole rows.
    pub(crate) fn whole(norm: impl Into<Norm>) -> Self {
        Self { norm: norm.into(), weight: None }
    }

    /// Norms rows of parts, `[rows, parts, len]`.
    pub(crate) fn forward(&self, x: Tensor<3>) -> Tensor<3> {
        let normed = self.norm.forward_parts(x);
        match &self.weight {
            None => normed,
            Some(weight) => normed * weight.clone(),
        }
    }
}

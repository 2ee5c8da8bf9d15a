use burn::tensor::Tensor;

use super::{LayerNorm, RmsNorm};

/// Norm of one of two kinds.
#[derive(Clone)]
pub(crate) enum Norm {
    Layer(LayerNorm),
    Rms(RmsNorm),
}

impl Norm {
    /// Norms each row of `[rows, len]`.
    pub(crate) fn forward(&self, x: Tensor<2>) -> Tensor<2> {
        match self {
            Self::Layer(norm) => norm.forward(x),
            Self::Rms(norm) => norm.forward(x),
        }
    }

    /// Norms parts of each row, each as long as the weight: heads or the whole row of
    /// `[rows, heads, head_dim]`.
    pub(crate) fn forward_parts(&self, x: Tensor<3>) -> Tensor<3> {
        let (Self::Layer(LayerNorm { weight, .. }) | Self::Rms(RmsNorm { weight, .. })) = self;
        let (shape, [len]) = (x.dims(), weight.dims());
        let parts = shape.iter().product::<usize>() / len;
        self.forward(x.reshape([parts, len])).reshape(shape)
    }

    /// Applies [`Norm::forward_parts`] if there is a norm.
    pub(crate) fn apply(norm: Option<&Self>, x: Tensor<3>) -> Tensor<3> {
        match norm {
            None => x,
            Some(norm) => norm.forward_parts(x),
        }
    }
}

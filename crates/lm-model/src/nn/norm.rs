use burn::tensor::Tensor;

use super::{LayerNorm, RmsNorm};

/// Norm of one of two kinds.
#[derive(Clone)]
pub(crate) enum Norm {
    Layer(Box<LayerNorm>),
    Rms(Box<RmsNorm>),
}

impl From<LayerNorm> for Norm {
    fn from(norm: LayerNorm) -> Self {
        Self::Layer(Box::new(norm))
    }
}

impl From<RmsNorm> for Norm {
    fn from(norm: RmsNorm) -> Self {
        Self::Rms(Box::new(norm))
    }
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
        match self {
            Self::Layer(norm) => in_parts(x, norm.weight.dims()[0], |x| norm.forward(x)),
            Self::Rms(norm) => norm.forward_parts(x),
        }
    }

    /// Applies [`Norm::forward_parts`] if there is a norm.
    pub(crate) fn apply(norm: Option<&Self>, x: Tensor<3>) -> Tensor<3> {
        match norm {
            None => x,
            Some(norm) => norm.forward_parts(x),
        }
    }
}

/// Applies a function of rows of `len` elements to the parts of each row.
pub(super) fn in_parts(x: Tensor<3>, len: usize, norm: impl FnOnce(Tensor<2>) -> Tensor<2>) -> Tensor<3> {
    let shape = x.dims();
    let parts = shape.iter().product::<usize>() / len;
    norm(x.reshape([parts, len])).reshape(shape)
}

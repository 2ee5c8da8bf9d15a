//! Optional bias of a linear layer, as an operation argument.

use std::borrow::Cow;

use burn::backend::tensor::FloatTensor;
use burn::backend::{Backend, Dispatch, ExtensionType};
use burn::tensor::Tensor;

use super::backend::Bridge;
use super::host_tensor::HostTensors;
use super::{Op, Weight};

/// Bias of a linear layer.
#[derive(ExtensionType)]
pub enum Bias<B: Backend> {
    Absent,
    /// `[out]`.
    Present(FloatTensor<B>),
}

impl Bias<Dispatch> {
    /// Bias of the products of `op` with `weight`.
    ///
    /// # Panics
    /// When its length is not the number of the weight's rows.
    pub(super) fn of(op: Op, bias: Option<Tensor<1>>, weight: &Weight) -> Self {
        let Some(bias) = bias else { return Self::Absent };
        let name = op.name;
        assert_eq!(bias.dims(), [weight.rows()], "{name}: the bias must be as long as a row of the result");
        Self::Present(bias.into_dispatch())
    }
}

impl<B: Bridge> Bias<B> {
    /// Elements in host memory.
    pub(super) fn values<'a>(&'a self, tensors: &HostTensors<B>) -> Option<Cow<'a, [f32]>> {
        match self {
            Self::Absent => None,
            Self::Present(bias) => Some(tensors.values(bias)),
        }
    }

    /// Adds the bias to each row of `y`, `[rows, out]`.
    pub(super) fn add_to(self, y: Tensor<2>) -> Tensor<2> {
        match self {
            Self::Absent => y,
            Self::Present(bias) => y + B::lift::<1>(bias).unsqueeze(),
        }
    }
}

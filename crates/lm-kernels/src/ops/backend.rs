//! Backends that run the operations.

use burn::backend::tensor::{FloatTensor, IntTensor};
use burn::backend::{Backend, Dispatch, Flex};
use burn::tensor::{Int, Tensor};

use super::host_tensor::HostTensors;

/// Conversion between a backend's own tensors and burn's device-independent [`Tensor`], so that the portable
/// bodies of the operations are ordinary tensor code, and access to tensors in host memory.
pub trait Bridge: Backend {
    /// Access to the elements, if the tensors of this backend are in host memory.
    const HOST: Option<HostTensors<Self>>;

    /// Wraps a float primitive of this backend.
    fn lift<const D: usize>(tensor: FloatTensor<Self>) -> Tensor<D>;
    /// Wraps an int primitive of this backend.
    fn lift_int<const D: usize>(tensor: IntTensor<Self>) -> Tensor<D, Int>;
    /// Unwraps the primitive.
    ///
    /// # Panics
    /// When the tensor is on another backend.
    fn lower<const D: usize>(tensor: Tensor<D>) -> FloatTensor<Self>;
    /// Unwraps the primitive of an int tensor.
    ///
    /// # Panics
    /// When the tensor is on another backend.
    fn lower_int<const D: usize>(tensor: Tensor<D, Int>) -> IntTensor<Self>;
}

impl Bridge for Dispatch {
    const HOST: Option<HostTensors<Self>> = None;

    fn lift<const D: usize>(tensor: FloatTensor<Self>) -> Tensor<D> {
        Tensor::from_dispatch(tensor)
    }
    fn lift_int<const D: usize>(tensor: IntTensor<Self>) -> Tensor<D, Int> {
        Tensor::from_dispatch(tensor)
    }
    fn lower<const D: usize>(tensor: Tensor<D>) -> FloatTensor<Self> {
        tensor.into_dispatch()
    }
    fn lower_int<const D: usize>(tensor: Tensor<D, Int>) -> IntTensor<Self> {
        tensor.into_dispatch()
    }
}

macro_rules! bridge {
    ($backend:ty, $host:expr) => {
        impl Bridge for $backend {
            const HOST: Option<HostTensors<Self>> = $host;

            fn lift<const D: usize>(tensor: FloatTensor<Self>) -> Tensor<D> {
                Tensor::from_primitive::<Self>(tensor)
            }
            fn lift_int<const D: usize>(tensor: IntTensor<Self>) -> Tensor<D, Int> {
                Tensor::from_primitive::<Self>(tensor)
            }
            fn lower<const D: usize>(tensor: Tensor<D>) -> FloatTensor<Self> {
                tensor
                    .try_into_primitive::<Self>()
                    .expect("a portable body stays on the device of its inputs")
            }
            fn lower_int<const D: usize>(tensor: Tensor<D, Int>) -> IntTensor<Self> {
                tensor
                    .try_into_primitive::<Self>()
                    .expect("a portable body stays on the device of its inputs")
            }
        }
    };
}

bridge!(Flex, Some(HostTensors::FLEX));
#[cfg(feature = "ndarray")]
bridge!(burn_ndarray::NdArray, Some(HostTensors::NDARRAY));
#[cfg(feature = "wgpu")]
bridge!(burn_wgpu::CubeBackend, None);

/// Implements the trait of an operation for every compiled backend. Its body chooses between the slice kernel
/// and the portable body by [`Bridge::HOST`].
macro_rules! on_every_backend {
    ($op:ident) => {
        impl $op for burn::backend::Flex {}
        #[cfg(feature = "ndarray")]
        impl $op for burn_ndarray::NdArray {}
        #[cfg(feature = "wgpu")]
        impl $op for burn_wgpu::CubeBackend {}
    };
}
pub(super) use on_every_backend;

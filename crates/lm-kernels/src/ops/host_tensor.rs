//! Slice access to tensors in host memory.

use std::borrow::Cow;

use burn::backend::TensorMetadata;
use burn::tensor::{DType, Shape, TensorData};
use burn_flex::FlexTensor;

/// A float tensor whose elements are a slice of host memory.
pub(super) trait HostTensor: TensorMetadata + Sized {
    /// The elements in row-major order; borrowed unless the tensor is a strided view.
    ///
    /// # Panics
    /// When the elements are not f32.
    fn values(&self) -> Cow<'_, [f32]>;

    /// Rewrites the elements, in place if the tensor is not shared.
    ///
    /// # Panics
    /// When the elements are not f32.
    fn update(self, rewrite: impl FnOnce(&mut [f32])) -> Self;

    /// Creates a tensor of the shape.
    fn from_values(values: Vec<f32>, shape: Shape) -> Self;
}

impl HostTensor for FlexTensor {
    fn values(&self) -> Cow<'_, [f32]> {
        assert_eq!(self.dtype(), DType::F32, "host kernels take f32 tensors");
        match self.as_slice::<f32>() {
            Some(values) => Cow::Borrowed(values),
            None => {
                let packed = self.to_contiguous();
                Cow::Owned(packed.as_slice::<f32>().expect("just made contiguous").to_vec())
            }
        }
    }

    fn update(self, rewrite: impl FnOnce(&mut [f32])) -> Self {
        assert_eq!(self.dtype(), DType::F32, "host kernels take f32 tensors");
        let mut tensor = if self.is_contiguous() { self } else { self.to_contiguous() };
        let (start, end) = tensor.layout().contiguous_offsets().expect("just made contiguous");
        rewrite(&mut tensor.storage_mut::<f32>()[start..end]);
        tensor
    }

    fn from_values(values: Vec<f32>, shape: Shape) -> Self {
        FlexTensor::from_data(TensorData::new(values, shape))
    }
}

#[cfg(feature = "ndarray")]
#[allow(deprecated, reason = "deprecated upstream, kept behind its feature")]
mod ndarray {
    use super::{Cow, HostTensor, Shape, TensorData, TensorMetadata};
    use burn_ndarray::NdArrayTensor;

    impl HostTensor for NdArrayTensor {
        fn values(&self) -> Cow<'_, [f32]> {
            let NdArrayTensor::F32(storage) = self else { panic!("host kernels take f32 tensors") };
            let view = storage.view();
            match view.to_slice() {
                Some(values) => Cow::Borrowed(values),
                None => Cow::Owned(view.iter().copied().collect()),
            }
        }

        fn update(self, rewrite: impl FnOnce(&mut [f32])) -> Self {
            let NdArrayTensor::F32(mut storage) = self else { panic!("host kernels take f32 tensors") };
            let array = storage.ensure_owned();
            if let Some(values) = array.as_slice_mut() {
                rewrite(values);
                return NdArrayTensor::F32(storage);
            }
            let tensor = NdArrayTensor::F32(storage);
            let mut values = tensor.values().into_owned();
            rewrite(&mut values);
            Self::from_values(values, tensor.shape())
        }

        fn from_values(values: Vec<f32>, shape: Shape) -> Self {
            NdArrayTensor::from_data(TensorData::new(values, shape))
        }
    }
}

//! Slice access to float tensors in host memory.

use std::borrow::Cow;

use burn::backend::tensor::FloatTensor;
use burn::backend::{Backend, Flex};
use burn::tensor::{DType, Shape, TensorData};
use burn_flex::FlexTensor;

use super::buffer_pool;

/// Access to the elements of a backend's float tensors as slices of host memory.
pub struct HostTensors<B: Backend> {
    values: fn(&FloatTensor<B>) -> Cow<'_, [f32]>,
    update: Update<B>,
    create: fn(TensorData) -> FloatTensor<B>,
    /// The elements of a large unshared tensor, without a copy; `None` for others.
    into_values: fn(FloatTensor<B>) -> Option<Vec<f32>>,
}

/// Rewrites the elements by a callback.
type Update<B> = fn(FloatTensor<B>, &mut dyn FnMut(&mut [f32])) -> FloatTensor<B>;

impl<B: Backend> HostTensors<B> {
    /// Elements in row-major order; borrowed unless the tensor is a strided view.
    ///
    /// # Panics
    /// When the elements are not f32.
    pub(super) fn values<'a>(&self, tensor: &'a FloatTensor<B>) -> Cow<'a, [f32]> {
        (self.values)(tensor)
    }

    /// Rewrites the elements, in place if the tensor is not shared.
    ///
    /// # Panics
    /// When the elements are not f32.
    pub(super) fn update(
        &self,
        tensor: FloatTensor<B>,
        mut rewrite: impl FnMut(&mut [f32]),
    ) -> FloatTensor<B> {
        (self.update)(tensor, &mut rewrite)
    }

    /// Creates a tensor of the shape, computed from the elements of `input`, whose memory is kept for later
    /// results. `compute` overwrites the whole output.
    ///
    /// # Panics
    /// When the elements are not f32.
    pub(super) fn map(
        &self,
        shape: impl Into<Shape>,
        input: FloatTensor<B>,
        compute: impl FnOnce(&[f32], &mut [f32]),
    ) -> FloatTensor<B> {
        let shape = shape.into();
        let mut out = buffer_pool::take(shape.num_elements());
        compute(&self.values(&input), &mut out);
        self.reuse(input);
        self.create(out, shape)
    }

    /// Keeps the memory of an unused large tensor for later results, unless it is shared.
    pub(super) fn reuse(&self, tensor: FloatTensor<B>) {
        if let Some(values) = (self.into_values)(tensor) {
            buffer_pool::give_back(values);
        }
    }

    /// Creates a tensor of the shape.
    pub(super) fn create(&self, values: Vec<f32>, shape: impl Into<Shape>) -> FloatTensor<B> {
        (self.create)(TensorData::new(values, shape))
    }
}

impl HostTensors<Flex> {
    /// Tensors of burn-flex.
    pub(super) const FLEX: Self = Self {
        values: flex_values,
        update: flex_update,
        create: FlexTensor::from_data,
        into_values: flex_into_values,
    };
}

fn flex_values(tensor: &FlexTensor) -> Cow<'_, [f32]> {
    assert_eq!(tensor.dtype(), DType::F32, "host kernels take f32 tensors");
    match tensor.as_slice::<f32>() {
        Some(values) => Cow::Borrowed(values),
        None => {
            let packed = tensor.to_contiguous();
            Cow::Owned(packed.as_slice::<f32>().expect("just made contiguous").to_vec())
        }
    }
}

fn flex_update(tensor: FlexTensor, rewrite: &mut dyn FnMut(&mut [f32])) -> FlexTensor {
    assert_eq!(tensor.dtype(), DType::F32, "host kernels take f32 tensors");
    let mut tensor = if tensor.is_contiguous() { tensor } else { tensor.to_contiguous() };
    let (start, end) = tensor.layout().contiguous_offsets().expect("just made contiguous");
    rewrite(&mut tensor.storage_mut::<f32>()[start..end]);
    tensor
}

fn flex_into_values(tensor: FlexTensor) -> Option<Vec<f32>> {
    let bytes = tensor.bytes().len();
    if bytes < buffer_pool::LARGE * size_of::<f32>() {
        return None;
    }
    // Of a shared tensor or of a part of one, `into_data` is a copy.
    let is_whole = tensor.is_unique() && size_of_val(tensor.as_slice::<f32>()?) == bytes;
    if is_whole { tensor.into_data().try_into_vec().ok() } else { None }
}

#[cfg(feature = "ndarray")]
mod ndarray {
    use burn::backend::TensorMetadata;
    use burn_ndarray::{NdArray, NdArrayTensor};

    use super::{Cow, HostTensors, TensorData};

    impl HostTensors<NdArray> {
        /// Tensors of burn-ndarray.
        pub(in crate::ops) const NDARRAY: Self =
            Self { values, update, create: NdArrayTensor::from_data, into_values: |_| None };
    }

    fn values(tensor: &NdArrayTensor) -> Cow<'_, [f32]> {
        let NdArrayTensor::F32(storage) = tensor else { panic!("host kernels take f32 tensors") };
        let view = storage.view();
        match view.to_slice() {
            Some(values) => Cow::Borrowed(values),
            None => Cow::Owned(view.iter().copied().collect()),
        }
    }

    fn update(tensor: NdArrayTensor, rewrite: &mut dyn FnMut(&mut [f32])) -> NdArrayTensor {
        let NdArrayTensor::F32(mut storage) = tensor else { panic!("host kernels take f32 tensors") };
        let array = storage.ensure_owned();
        if let Some(values) = array.as_slice_mut() {
            rewrite(values);
            return NdArrayTensor::F32(storage);
        }
        let tensor = NdArrayTensor::F32(storage);
        let mut values = values(&tensor).into_owned();
        rewrite(&mut values);
        NdArrayTensor::from_data(TensorData::new(values, tensor.shape()))
    }
}

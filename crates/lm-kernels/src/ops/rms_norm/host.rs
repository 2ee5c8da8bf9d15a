//! Implementation over slices of host memory.

use super::super::host_tensor::HostTensor;
use crate::{Pool, host};

pub(in crate::ops) fn rms_norm<T: HostTensor>(x: T, weight: T, eps: f32) -> T {
    let mut y = vec![0.0; x.shape().num_elements()];
    host::rms_norm(Pool::global(), &x.values(), &weight.values(), eps, &mut y);
    T::from_values(y, x.shape())
}

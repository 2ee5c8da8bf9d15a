//! Implementation over slices of host memory.

use super::super::host_tensor::HostTensor;
use crate::{PackedMatrix, Pool, host};

pub(in crate::ops) fn linear<T: HostTensor>(x: T, weight: &PackedMatrix) -> T {
    let rows = x.shape()[0];
    let mut y = vec![0.0; rows * weight.rows()];
    host::linear(Pool::global(), weight, &x.values(), rows, &mut y);
    T::from_values(y, [rows, weight.rows()].into())
}

//! Over slices of host memory.

use super::super::host_tensor::HostTensor;
use crate::{Pool, host};

pub(in crate::ops) fn swiglu<T: HostTensor>(gate: T, up: T) -> T {
    let mut y = vec![0.0; gate.shape().num_elements()];
    host::swiglu(Pool::global(), &gate.values(), &up.values(), &mut y);
    T::from_values(y, gate.shape())
}

//! Implementation over slices of host memory.

use super::super::host_tensor::HostTensor;
use crate::{Activation, Pool, host};

pub(in crate::ops) fn glu<T: HostTensor>(gate: T, up: T, activation: Activation) -> T {
    let mut y = vec![0.0; gate.shape().num_elements()];
    host::glu(Pool::global(), &gate.values(), &up.values(), activation, &mut y);
    T::from_values(y, gate.shape())
}

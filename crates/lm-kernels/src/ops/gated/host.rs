//! Implementation over slices of host memory.

use super::super::host_tensor::HostTensor;
use crate::host::{Input, Norm};
use crate::{Activation, PackedMatrix, Pool, host};

pub(in crate::ops) fn gated<T: HostTensor>(
    x: T,
    norm: T,
    eps: f32,
    gate: &PackedMatrix,
    up: &PackedMatrix,
    activation: Activation,
) -> T {
    let rows = x.shape()[0];
    let mut y = vec![0.0; rows * gate.rows()];
    let (values, weight) = (x.values(), norm.values());
    let input = Input { x: &values, rows, norm: Some(Norm { weight: &weight, eps }) };
    host::gated(Pool::global(), input, gate, up, activation, &mut y);
    T::from_values(y, [rows, gate.rows()].into())
}

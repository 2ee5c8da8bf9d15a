//! Implementation over slices of host memory.

use super::super::host_tensor::HostTensor;
use crate::host::DeltaNetRows;
use crate::{DeltaNet, Pool, RaggedLayout, StatePages, host};

pub(in crate::ops) fn delta_net<T: HostTensor>(
    qkv: T,
    dt: T,
    beta: T,
    net: &DeltaNet,
    states: &mut StatePages,
    layout: &RaggedLayout,
) -> T {
    let (rows, spec) = (qkv.shape()[0], net.spec());
    let mut y = vec![0.0; rows * spec.num_value_heads * spec.value_dim];
    let (qkv, dt, beta) = (qkv.values(), dt.values(), beta.values());
    let inputs = DeltaNetRows { qkv: &qkv, dt: &dt, beta: &beta };
    host::delta_net(Pool::global(), inputs, net, states, layout, &mut y);
    T::from_values(y, [rows, spec.num_value_heads, spec.value_dim].into())
}

//! Implementation over slices of host memory.

use super::super::host_tensor::HostTensor;
use crate::host::DeltaNetRows;
use crate::{DeltaNet, Pool, RaggedLayout, StatePages, host};

pub(in crate::ops) fn delta_net<T: HostTensor>(
    qkv: T,
    time: T,
    strength: T,
    net: &DeltaNet,
    states: &mut StatePages,
    layout: &RaggedLayout,
) -> T {
    let (rows, spec) = (qkv.shape()[0], net.spec());
    let mut y = vec![0.0; rows * spec.num_value_heads * spec.value_dim];
    let (qkv, time, strength) = (qkv.values(), time.values(), strength.values());
    let inputs = DeltaNetRows { qkv: &qkv, time: &time, strength: &strength };
    host::delta_net(Pool::global(), inputs, net, states, layout, &mut y);
    T::from_values(y, [rows, spec.num_value_heads, spec.value_dim].into())
}

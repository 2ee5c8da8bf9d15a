//! Implementation over slices of host memory.

use super::super::host_tensor::HostTensor;
use crate::{CausalConv, Pool, RaggedLayout, StatePages, host};

pub(in crate::ops) fn short_conv<T: HostTensor>(
    x: T,
    conv: &CausalConv,
    states: &mut StatePages,
    layout: &RaggedLayout,
) -> T {
    let rows = x.shape()[0];
    let mut y = vec![0.0; rows * conv.channels()];
    host::short_conv(Pool::global(), &x.values(), conv, states, layout, &mut y);
    T::from_values(y, [rows, conv.channels()].into())
}

//! Implementation over slices of host memory; in place if the tensor is not shared.

use super::super::host_tensor::HostTensor;
use crate::{Pool, RopeAngles, host};

pub(in crate::ops) fn rope<T: HostTensor>(x: T, angles: &RopeAngles) -> T {
    let head_dim = x.shape()[2];
    x.update(|x| host::rope(Pool::global(), x, head_dim, angles))
}

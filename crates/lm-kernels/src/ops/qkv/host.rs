//! Implementation over slices of host memory.

use super::super::host_tensor::HostTensor;
use crate::host::{Input, Norm, Output};
use crate::{PackedMatrix, Pool, host};

pub(in crate::ops) fn qkv<T: HostTensor>(x: T, norm: T, eps: f32, weights: [&PackedMatrix; 3]) -> [T; 3] {
    let rows = x.shape()[0];
    let mut results = weights.map(|w| vec![0.0; rows * w.rows()]);
    let (values, weight) = (x.values(), norm.values());
    let input = Input { x: &values, rows, norm: Some(Norm { weight: &weight, eps }) };
    let [q, k, v] = &mut results;
    let mut outputs = [(weights[0], q), (weights[1], k), (weights[2], v)].map(|(w, y)| Output {
        w,
        bias: None,
        add: false,
        y,
    });
    host::linears(Pool::global(), input, &mut outputs);
    let mut weights = weights.into_iter();
    results.map(|y| T::from_values(y, [rows, weights.next().map_or(0, PackedMatrix::rows)].into()))
}

//! Implementation over slices of host memory.

use burn::backend::tensor::FloatTensor;
use burn::backend::{Backend, TensorMetadata};

use super::super::host_tensor::HostTensor;
use super::{Biases, ExpertShape};
use crate::host::ExpertBiases;
use crate::{PackedMatrix, Pool, Routing, host};

pub(in crate::ops) fn moe<B: Backend>(
    x: FloatTensor<B>,
    [gate, up, down]: [&PackedMatrix; 3],
    biases: Biases<B>,
    ExpertShape { count, activation }: ExpertShape,
    routing: &Routing,
) -> FloatTensor<B>
where
    FloatTensor<B>: HostTensor,
{
    let biases = match &biases {
        Biases::Absent => None,
        Biases::Present { gate, up, down } => Some([gate.values(), up.values(), down.values()]),
    };
    let biases = biases.as_ref().map(|[gate, up, down]| ExpertBiases { gate, up, down });
    let experts = host::Experts { count, gate, up, down, biases, activation };
    let mut y = vec![0.0; x.shape().num_elements()];
    host::moe(Pool::global(), &x.values(), &experts, routing, &mut y);
    HostTensor::from_values(y, x.shape())
}

//! Embedding lookup.

use burn::tensor::{Device, Tensor};

use super::{Op, Weight};

pub(super) const OP: Op = Op { name: "embedding", summary: "rows of a weight by id" };

/// Gathers the rows `ids` of the weight on `device`.
///
/// # Shapes
/// - the weight: `[vocab, hidden]`; returns `[ids.len(), hidden]`
///
/// # Panics
/// When an id is not below the weight's number of rows, or a weight in device memory is on another device.
pub fn embedding(weight: &Weight, ids: &[u32], device: &Device) -> Tensor<2> {
    for &id in ids {
        assert!((id as usize) < weight.rows(), "embedding: id {id} of {} rows", weight.rows());
    }
    weight.matrix().clone().select(ids, device)
}

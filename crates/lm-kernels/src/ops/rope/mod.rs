//! Rotary position embedding.

pub(super) mod host;

use std::sync::Arc;

use burn::backend::Dispatch;
use burn::tensor::Tensor;

use super::backend::LmOps;
use super::{Op, from_host};
use crate::RopeTable;

pub(super) const OP: Op =
    Op { name: "rope", summary: "rotates each head by absolute position, half-split layout" };

/// Rotates `x` by absolute position. Element `i` of the first half of the rotated part pairs with element `i` of
/// its second half; what lies beyond `2 * inv_freq.len()` is passed on.
///
/// # Shapes
/// - `x`: `[rows, heads, head_dim]`; returns the same shape
/// - `positions`: one per row, zero-based, cache included
///
/// # Panics
/// When there is not one position per row, or the table rotates more than `head_dim` elements.
///
/// # Source
/// RoFormer, arXiv 2104.09864; half-split layout as in the Hugging Face Llama code, which also takes the product of position
/// and frequency in f32.
pub fn rope(x: Tensor<3>, positions: &Arc<[u32]>, table: &Arc<RopeTable>) -> Tensor<3> {
    let [rows, _, head_dim] = x.dims();
    assert_eq!(positions.len(), rows, "rope: one position per row");
    assert!(2 * table.inv_freq.len() <= head_dim, "rope: the table rotates more than head_dim elements");
    Tensor::from_dispatch(Dispatch::rope(x.into_dispatch(), positions.clone(), table.clone()))
}

/// The angles are taken on the host: WGSL promises no accuracy for sines of large arguments.
pub(super) fn portable(x: Tensor<3>, positions: &[u32], table: &RopeTable) -> Tensor<3> {
    let [rows, heads, head_dim] = x.dims();
    let half = table.inv_freq.len();
    let device = x.device();
    let angles =
        || positions.iter().flat_map(|&p| table.inv_freq.iter().map(move |f| f64::from(p as f32 * f)));
    let per_pair = |turn: fn(f64) -> f64| {
        let values = angles().map(|angle| turn(angle) as f32 * table.attention_factor);
        from_host(values.collect(), [rows, 1, half], &device)
    };
    let (cos, sin) = (per_pair(f64::cos), per_pair(f64::sin)); // [rows, 1, half]

    let part = |from: usize, to: usize| x.clone().slice([0..rows, 0..heads, from..to]);
    let (first, second) = (part(0, half), part(half, 2 * half)); // [rows, heads, half]
    let mut parts =
        vec![first.clone() * cos.clone() - second.clone() * sin.clone(), second * cos + first * sin];
    if 2 * half < head_dim {
        parts.push(part(2 * half, head_dim));
    }
    Tensor::cat(parts, 2) // [rows, heads, head_dim]
}

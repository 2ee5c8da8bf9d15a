//! Rotary position embedding (RoPE).

use std::sync::Arc;

use burn::backend::tensor::FloatTensor;
use burn::backend::{Dispatch, TensorMetadata, backend_extension};
use burn::tensor::Tensor;

use super::backend::{Bridge, on_every_backend};
use super::{Op, from_host};
use crate::host;
use crate::host::{Pool, RopeAngles, RopePairing};

pub(super) const OP: Op =
    Op { name: "rope", summary: "rotates each head by absolute position, half-split or adjacent pairs" };

/// Rotates `x` by absolute position, in the pairs of the angles' [`RopePairing`]; elements past the rotated
/// part are not changed (partial rotary).
///
/// # Shapes
/// - `x`: `[rows, heads, head_dim]`; returns the same shape
/// - `angles`: of one position per row
///
/// # Panics
/// When there is not one position per row, or the angles rotate more than `head_dim` elements.
///
/// # Source
/// RoFormer, arXiv 2104.09864; half-split layout as in the Hugging Face Llama code, which also takes the
/// product of position and frequency in f32.
pub fn rope(x: Tensor<3>, angles: &Arc<RopeAngles>) -> Tensor<3> {
    let [rows, _, head_dim] = x.dims();
    assert_eq!(angles.rows(), rows, "rope: one position per row");
    assert!(angles.rotary_dim() <= head_dim, "rope: the angles rotate more than head_dim elements");
    Tensor::from_dispatch(Dispatch::rope(x.into_dispatch(), angles.clone()))
}

/// Backend operation of [`rope`].
#[backend_extension(Flex, NdArray: cfg(feature = "ndarray"), Cube: cfg(feature = "wgpu"))]
pub trait RopeOp: Bridge {
    fn rope(x: FloatTensor<Self>, angles: Arc<RopeAngles>) -> FloatTensor<Self> {
        let Some(tensors) = Self::HOST else {
            return Self::lower(portable(Self::lift(x), &angles));
        };
        let head_dim = x.shape()[2];
        tensors.update(x, |x| host::rope(Pool::global(), x, head_dim, &angles))
    }
}

on_every_backend!(RopeOp);

/// The angles are computed on the host: WGSL guarantees no accuracy for sines of large arguments.
pub(super) fn portable(x: Tensor<3>, angles: &RopeAngles) -> Tensor<3> {
    let [rows, heads, head_dim] = x.dims();
    let half = angles.rotary_dim() / 2;
    let per_pair = |values: &[f32]| from_host(values.to_vec(), [rows, 1, half], &x.device());
    let (cos, sin) = (per_pair(angles.cos()), per_pair(angles.sin())); // [rows, 1, half]

    let part = |from: usize, to: usize| x.clone().slice([0..rows, 0..heads, from..to]);
    let (first, second) = match angles.pairing() {
        RopePairing::HalfSplit => (part(0, half), part(half, 2 * half)),
        RopePairing::Adjacent => {
            let pairs = part(0, 2 * half).reshape([rows, heads, half, 2]);
            let element = |index| pairs.clone().narrow(3, index, 1).reshape([rows, heads, half]);
            (element(0), element(1))
        }
    }; // [rows, heads, half]
    let rotated = [first.clone() * cos.clone() - second.clone() * sin.clone(), second * cos + first * sin];
    let mut parts = match angles.pairing() {
        RopePairing::HalfSplit => rotated.to_vec(),
        RopePairing::Adjacent => {
            let pairs = Tensor::stack::<4>(rotated.to_vec(), 3); // [rows, heads, half, 2]
            vec![pairs.reshape([rows, heads, 2 * half])]
        }
    };
    if 2 * half < head_dim {
        parts.push(part(2 * half, head_dim));
    }
    Tensor::cat(parts, 2) // [rows, heads, head_dim]
}

//! Bidirectional attention within segments of rows, without a cache: the patches of images, and the texts of
//! an encoder.

use std::sync::Arc;

use burn::backend::tensor::FloatTensor;
use burn::backend::{Dispatch, TensorMetadata, backend_extension};
use burn::tensor::Tensor;

use super::Op;
use super::attention::{attend, mask_of_rows};
use super::backend::{Bridge, on_every_backend};
use crate::host;
use crate::host::{AttentionSpec, KvDtype, PAGE_LEN, PageId, PagedLayer, Pool, RaggedLayout, SequenceLayout};

pub(super) const OP: Op =
    Op { name: "segment_attention", summary: "each row attends to the rows of its own segment" };

/// Rows whose scores the portable body computes at a time.
const TILE: usize = 256;

/// Lets each row attend to all rows of its own segment, or with `reach` to those at most so far from it on
/// both sides (a symmetric window); segments are `lengths` rows each, one after another.
///
/// Memory beyond inputs and output is linear in the rows: scores of all pairs of rows are never stored.
///
/// # Shapes
/// - `q`: `[rows, num_heads, head_dim]`; returns the same shape
/// - `k`, `v`: `[rows, num_kv_heads, head_dim]`; `num_kv_heads` divides `num_heads`
///
/// # Panics
/// When shapes do not fit, or the lengths do not add up to the rows. When a copy of keys and values cannot be
/// allocated.
pub fn segment_attention(
    q: Tensor<3>,
    k: Tensor<3>,
    v: Tensor<3>,
    lengths: &[usize],
    scale: f32,
    reach: Option<usize>,
) -> Tensor<3> {
    let ([rows, num_heads, head_dim], [_, num_kv_heads, _]) = (q.dims(), k.dims());
    assert_eq!(k.dims(), [rows, num_kv_heads, head_dim], "segment_attention: k against q");
    assert_eq!(v.dims(), k.dims(), "segment_attention: v against k");
    assert_eq!(num_heads % num_kv_heads, 0, "segment_attention: num_kv_heads must divide num_heads");
    assert_eq!(lengths.iter().sum::<usize>(), rows, "segment_attention: the segments must cover the rows");
    let spec =
        AttentionSpec { num_heads, num_kv_heads, head_dim, scale, window: None, soft_cap: None, sinks: None };
    let (q, k, v) = (q.into_dispatch(), k.into_dispatch(), v.into_dispatch());
    Tensor::from_dispatch(Dispatch::segment_attention(q, k, v, Arc::new(layout(lengths, reach)), spec))
}

/// Segments as sequences of one bidirectional range, each with pages of its own.
fn layout(lengths: &[usize], reach: Option<usize>) -> RaggedLayout {
    let (mut row, mut page) = (0, 0);
    let sequences = lengths.iter().map(|&len| {
        let (rows, pages) = (row..row + len, page..page + len.div_ceil(PAGE_LEN) as PageId);
        (row, page) = (rows.end, pages.end);
        let (block_table, bidirectional) = (pages.collect(), vec![0..len]);
        SequenceLayout { rows, cached_len: 0, block_table, bidirectional, reach }
    });
    RaggedLayout { sequences: sequences.collect() }
}

/// Backend operation of [`segment_attention`].
#[backend_extension(Flex, NdArray: cfg(feature = "ndarray"), Cube: cfg(feature = "wgpu"))]
pub trait SegmentAttentionOp: Bridge {
    fn segment_attention(
        q: FloatTensor<Self>,
        k: FloatTensor<Self>,
        v: FloatTensor<Self>,
        layout: Arc<RaggedLayout>,
        spec: AttentionSpec,
    ) -> FloatTensor<Self> {
        let Some(tensors) = Self::HOST else {
            return Self::lower(portable([q, k, v].map(Self::lift), &layout, &spec));
        };
        let pages = layout.sequences.iter().map(|sequence| sequence.block_table.len()).sum();
        let mut pages = PagedLayer::new(KvDtype::F32, pages, spec.num_kv_heads, spec.head_dim)
            .expect("memory for a copy of keys and values");
        pages.write(Pool::global(), &layout, &tensors.values(&k), &tensors.values(&v));
        [k, v].into_iter().for_each(|rows| tensors.reuse(rows));
        tensors.map(q.shape(), q, |q, out| {
            host::attention(Pool::global(), q, &pages, &layout, &spec, out);
        })
    }
}

on_every_backend!(SegmentAttentionOp);

pub(super) fn portable([q, k, v]: [Tensor<3>; 3], layout: &RaggedLayout, spec: &AttentionSpec) -> Tensor<3> {
    let mut out = Vec::new();
    for sequence in layout.sequences.iter().filter(|sequence| !sequence.rows.is_empty()) {
        let (start, len) = (sequence.rows.start, sequence.rows.len());
        let [k, v] = [&k, &v].map(|tensor| tensor.clone().narrow(0, start, len));
        for first in (0..len).step_by(TILE) {
            let rows = first..len.min(first + TILE);
            let q = q.clone().narrow(0, start + first, rows.len());
            let mask = sequence.reach.map(|_| mask_of_rows(sequence, rows, 0..len, None, &q));
            out.push(attend(q, k.clone(), v.clone(), mask, spec));
        }
    }
    if out.is_empty() { q } else { Tensor::cat(out, 0) }
}

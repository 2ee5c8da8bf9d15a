//! Paged attention of a ragged batch.

use std::ops::Range;
use std::sync::Arc;

use burn::backend::tensor::FloatTensor;
use burn::backend::{Backend, Dispatch, ExtensionType, TensorMetadata, backend_extension};
use burn::tensor::activation::softmax;
use burn::tensor::{DType, Device, Int, Tensor};

use super::backend::{Bridge, on_every_backend};
use super::kv_pool::KvLayer;
use super::{KvPool, Op, from_host, to_host};
use crate::host;
use crate::host::{AttentionSpec, PAGE_LEN, PageId, PagedLayer, Pool, RaggedLayout, SequenceLayout};

pub(super) const OP: Op =
    Op { name: "attention", summary: "writes new keys and values to their pages, then attends over them" };

/// Result of an attention operation: its output `[rows, num_heads, head_dim]` and the updated KV cache.
#[derive(ExtensionType)]
pub struct AttentionOutput<B: Backend> {
    pub out: FloatTensor<B>,
    #[extension_type]
    pub cache: KvLayer<B>,
}

/// New keys and values of an attention operation.
#[derive(ExtensionType)]
pub enum NewKv<B: Backend> {
    /// `[rows, num_kv_heads, head_dim]` each.
    Rows { k: FloatTensor<B>, v: FloatTensor<B> },
    /// Absent: the layer shares the cache of an earlier layer, which has written it.
    Shared,
}

/// Writes the keys and values of the new rows to their slots in `layer` of the pool, then lets each row
/// attend to the slots of its own sequence: causally, or to the end of its bidirectional range, and within
/// the sliding window.
///
/// # Shapes
/// - `q`: `[rows, num_heads, head_dim]`; returns the same shape
/// - `k`, `v`: `[rows, num_kv_heads, head_dim]`
///
/// # Panics
/// When shapes, layout, spec and pool do not fit each other; the pool is then unchanged. When the pool's
/// tensors are on another device than `q`; the layer's cache is then lost.
pub fn attention(
    q: Tensor<3>,
    k: Tensor<3>,
    v: Tensor<3>,
    pool: &mut KvPool,
    layer: usize,
    layout: &Arc<RaggedLayout>,
    spec: &AttentionSpec,
) -> Tensor<3> {
    let [rows, ..] = q.dims();
    assert_eq!(k.dims(), [rows, spec.num_kv_heads, spec.head_dim], "attention: k against spec");
    assert_eq!(v.dims(), k.dims(), "attention: v against k");
    assert_eq!(
        pool.layout().kv(layer).shared_with,
        None,
        "attention: layer {layer} has no pages to write to"
    );
    let (k, v) = (k.into_dispatch(), v.into_dispatch());
    attend_over(q, NewKv::Rows { k, v }, pool, layer, layout, spec)
}

/// [`attention`] of a layer that shares the KV cache of an earlier one, which has written the rows' keys and
/// values in the same forward pass.
///
/// # Shapes
/// - `q`: `[rows, num_heads, head_dim]`; returns the same shape
///
/// # Panics
/// As [`attention`].
pub fn attention_shared(
    q: Tensor<3>,
    pool: &mut KvPool,
    layer: usize,
    layout: &Arc<RaggedLayout>,
    spec: &AttentionSpec,
) -> Tensor<3> {
    attend_over(q, NewKv::Shared, pool, layer, layout, spec)
}

fn attend_over(
    q: Tensor<3>,
    new: NewKv<Dispatch>,
    pool: &mut KvPool,
    layer: usize,
    layout: &Arc<RaggedLayout>,
    spec: &AttentionSpec,
) -> Tensor<3> {
    let [rows, ..] = q.dims();
    assert_eq!(q.dims(), [rows, spec.num_heads, spec.head_dim], "attention: q against spec");
    assert_eq!(spec.num_heads % spec.num_kv_heads, 0, "attention: num_kv_heads must divide num_heads");
    assert!(
        spec.sinks.as_ref().is_none_or(|sinks| sinks.len() == spec.num_heads),
        "attention: a sink for each query head"
    );
    assert_ne!(spec.window, Some(0), "attention: a window holds at least the query itself");
    let geometry = *pool.layout().kv(layer);
    assert_eq!(
        [geometry.num_kv_heads, geometry.head_dim],
        [spec.num_kv_heads, spec.head_dim],
        "attention: pool against spec"
    );
    check_layout(layout, rows, pool.num_pages_of(layer), spec.window);

    let cache = pool.take(layer);
    let attended = Dispatch::attention(q.into_dispatch(), new, cache, layout.clone(), spec.clone());
    pool.put_back(layer, attended.cache);
    Tensor::from_dispatch(attended.out)
}

/// Backend operation of [`attention`]. The cache of the layer is moved in and returned, so that it is updated
/// in place.
#[backend_extension(Flex, NdArray: cfg(feature = "ndarray"), Cube: cfg(feature = "wgpu"))]
pub trait AttentionOp: Bridge {
    fn attention(
        q: FloatTensor<Self>,
        #[extension_type] new: NewKv<Self>,
        #[extension_type] cache: KvLayer<Self>,
        layout: Arc<RaggedLayout>,
        spec: AttentionSpec,
    ) -> AttentionOutput<Self> {
        match (Self::HOST, cache) {
            (Some(tensors), KvLayer::Host(mut pages)) => {
                if let NewKv::Rows { k, v } = new {
                    pages.write(Pool::global(), &layout, &tensors.values(&k), &tensors.values(&v));
                    tensors.reuse(k);
                    tensors.reuse(v);
                }
                let out = tensors.map(q.shape(), q, |q, out| {
                    host::attention(Pool::global(), q, &pages, &layout, &spec, out);
                });
                AttentionOutput { out, cache: KvLayer::Host(pages) }
            }
            (_, cache) => {
                let (out, cache) = portable(Self::lift(q), new, cache, &layout, &spec);
                AttentionOutput { out: Self::lower(out), cache }
            }
        }
    }
}

on_every_backend!(AttentionOp);

pub(super) fn portable<B: Bridge>(
    q: Tensor<3>,
    new: NewKv<B>,
    cache: KvLayer<B>,
    layout: &RaggedLayout,
    spec: &AttentionSpec,
) -> (Tensor<3>, KvLayer<B>) {
    let cache = match new {
        NewKv::Rows { k, v } => cache.write(B::lift(k), B::lift(v), layout),
        NewKv::Shared => cache,
    };
    let attend = |sequence: &SequenceLayout| {
        let (keys, values) = cache.read(sequence, spec.window, &q.device());
        attend(rows_of(&q, &sequence.rows), keys, values, Some(mask(sequence, spec.window, &q)), spec)
    };
    let outputs: Vec<_> = layout.sequences.iter().filter(|s| !s.rows.is_empty()).map(attend).collect();
    let out = if outputs.is_empty() { q.zeros_like() } else { Tensor::cat(outputs, 0) };
    (out, cache)
}

/// Attention of one sequence: `q [rows, num_heads, head_dim]`, `keys` and
/// `values [slots, num_kv_heads, head_dim]`, `mask [rows, slots]`; without a mask, each row sees all slots.
pub(super) fn attend(
    q: Tensor<3>,
    keys: Tensor<3>,
    values: Tensor<3>,
    mask: Option<Tensor<2>>,
    spec: &AttentionSpec,
) -> Tensor<3> {
    let ([rows, heads, dim], [slots, kv_heads, _]) = (q.dims(), keys.dims());
    let group = heads / kv_heads;
    let q = q.reshape([rows, kv_heads, group, dim]).permute([1, 2, 0, 3]); // [kv_heads, group, rows, dim]
    let q = q.reshape([kv_heads, group * rows, dim]);
    let scores = q.matmul(keys.permute([1, 2, 0])) * spec.scale; // [kv_heads, group * rows, slots]
    let scores = match spec.soft_cap {
        None => scores,
        Some(cap) => (scores / cap).tanh() * cap,
    };
    let scores = scores.reshape([kv_heads, group, rows, slots]);
    let scores = match mask {
        None => scores,
        Some(mask) => scores + mask.reshape([1, 1, rows, slots]),
    };
    let scores = match &spec.sinks {
        None => scores,
        Some(sinks) => {
            let sinks = from_host(sinks.to_vec(), [kv_heads, group, 1, 1], &scores.device());
            Tensor::cat(vec![scores, sinks.repeat_dim(2, rows)], 3)
        }
    };
    let weights = softmax(scores, 3).narrow(3, 0, slots).reshape([kv_heads, group * rows, slots]);
    let out = weights.matmul(values.swap_dims(0, 1)); // [kv_heads, group * rows, dim]
    let out = out.reshape([kv_heads, group, rows, dim]).permute([2, 0, 1, 3]); // [rows, kv_heads, group, dim]
    out.reshape([rows, heads, dim])
}

/// Additive mask over the slots from the first visible one on: 0 for visible slots, a large negative number
/// for the others. It is finite, because WGSL may assume that no infinities occur.
fn mask(sequence: &SequenceLayout, window: Option<usize>, like: &Tensor<3>) -> Tensor<2> {
    let slots = sequence.first_visible(window)..total_len(sequence);
    mask_of_rows(sequence, 0..sequence.rows.len(), slots, window, like)
}

/// The mask of some of a sequence's rows over the slots `slots`, which contain all that are visible to them.
pub(super) fn mask_of_rows(
    sequence: &SequenceLayout,
    rows: Range<usize>,
    slots: Range<usize>,
    window: Option<usize>,
    like: &Tensor<3>,
) -> Tensor<2> {
    let shape = [rows.len(), slots.len()];
    let mut bias = vec![-1e30; rows.len() * slots.len()];
    for (index, row) in rows.enumerate() {
        for slot in sequence.visible(row, window) {
            bias[index * slots.len() + slot - slots.start] = 0.0;
        }
    }
    from_host(bias, shape, &like.device())
}

fn rows_of(tensor: &Tensor<3>, rows: &Range<usize>) -> Tensor<3> {
    tensor.clone().narrow(0, rows.start, rows.len())
}

impl<B: Bridge> KvLayer<B> {
    /// Writes the rows of `k` and `v` to their slots.
    fn write(self, k: Tensor<3>, v: Tensor<3>, layout: &RaggedLayout) -> Self {
        match self {
            KvLayer::Host(mut pages) => {
                let rows = |tensor| to_host(tensor).expect("host memory is always readable");
                pages.write(Pool::global(), layout, &rows(k), &rows(v));
                KvLayer::Host(pages)
            }
            KvLayer::Device { keys, values } => KvLayer::Device {
                keys: B::lower(write_slots(B::lift(keys), &k, layout)),
                values: B::lower(write_slots(B::lift(values), &v, layout)),
            },
        }
    }

    /// Reads keys and values of a sequence's slots from the first visible one on:
    /// `[slots, num_kv_heads, head_dim]` each, f32.
    fn read(
        &self,
        sequence: &SequenceLayout,
        window: Option<usize>,
        device: &Device,
    ) -> (Tensor<3>, Tensor<3>) {
        let slots = sequence.first_visible(window)..total_len(sequence);
        match self {
            KvLayer::Host(pages) => {
                let read = |vector: fn(&PagedLayer, PageId, usize, usize) -> Vec<f32>| {
                    let shape = [slots.len(), pages.num_kv_heads(), pages.head_dim()];
                    let places = slots.clone().map(|slot| sequence.place(slot));
                    let vectors = places.flat_map(|(page, offset)| {
                        (0..pages.num_kv_heads()).flat_map(move |head| vector(pages, page, head, offset))
                    });
                    from_host(vectors.collect(), shape, device)
                };
                (read(PagedLayer::key), read(PagedLayer::value))
            }
            KvLayer::Device { keys, values } => {
                let slots: Vec<i32> = slots.map(|slot| flat_slot(sequence, slot) as i32).collect();
                let slots = Tensor::<1, Int>::from_data(slots.as_slice(), device);
                let gather = |cache: &FloatTensor<B>| {
                    B::lift::<3>(cache.clone()).select(0, slots.clone()).cast(DType::F32)
                };
                (gather(keys), gather(values))
            }
        }
    }
}

/// Number of slots of a sequence after this pass.
fn total_len(sequence: &SequenceLayout) -> usize {
    sequence.cached_len + sequence.rows.len()
}

/// Flat index of a slot in the pool.
fn flat_slot(sequence: &SequenceLayout, slot: usize) -> usize {
    let (page, offset) = sequence.place(slot);
    page as usize * PAGE_LEN + offset
}

/// Writes rows with one assignment per page that they touch; in place if `cache` is not shared.
fn write_slots(mut cache: Tensor<3>, rows: &Tensor<3>, layout: &RaggedLayout) -> Tensor<3> {
    let dtype = cache.dtype();
    for sequence in &layout.sequences {
        let (mut slot, end) = (sequence.cached_len, total_len(sequence));
        while slot < end {
            let len = (PAGE_LEN - slot % PAGE_LEN).min(end - slot);
            let first = sequence.rows.start + slot - sequence.cached_len;
            let to = flat_slot(sequence, slot);
            cache = cache.slice_assign(to..to + len, rows_of(rows, &(first..first + len)).cast(dtype));
            slot += len;
        }
    }
    cache
}

/// Asserts that the layout fits the rows of the batch and the pool.
fn check_layout(layout: &RaggedLayout, rows: usize, num_pages: usize, window: Option<usize>) {
    let mut next = 0;
    for (index, sequence) in layout.sequences.iter().enumerate() {
        let SequenceLayout { rows, block_table, bidirectional, .. } = sequence;
        assert_eq!(rows.start, next, "sequence {index}: its rows must follow those before");
        assert!(rows.start <= rows.end, "sequence {index}: its rows end before they start");
        next = rows.end;
        let (pages, slots) = (block_table.len(), total_len(sequence));
        assert!(pages * PAGE_LEN >= slots, "sequence {index}: {pages} pages cannot hold {slots} slots");
        for &page in &block_table[sequence.first_visible(window) / PAGE_LEN..] {
            assert!((page as usize) < num_pages, "sequence {index}: page {page} of {num_pages}");
        }
        for span in bidirectional {
            assert!(span.end <= rows.len(), "sequence {index}: bidirectional {span:?} leaves its rows");
        }
    }
    assert_eq!(next, rows, "the sequences must cover the rows of the batch");
}

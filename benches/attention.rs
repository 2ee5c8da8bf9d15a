//! Attention over paged KV: `cargo bench -p lm-benches --bench attention [-- FILTER]`.
//!
//! One row over copies of a cache that are larger together than any cache of the processor, in bytes of keys
//! and values a second; 512 rows in operations a second.

use criterion::Criterion;
use lm_benches::{Amount, COLD, Group, criterion, noise};
use lm_kernels::{AttentionSpec, KvDtype, PAGE_LEN, PagedLayer, Pool, RaggedLayout, SequenceLayout, host};

const DTYPES: [KvDtype; 3] = [KvDtype::F16, KvDtype::Q8, KvDtype::F32];
const MANY: usize = 512;

/// Heads of Qwen3-0.6B.
fn spec() -> AttentionSpec {
    AttentionSpec {
        num_heads: 16,
        num_kv_heads: 8,
        head_dim: 128,
        scale: 0.1,
        window: None,
        soft_cap: None,
        sinks: None,
    }
}

/// Caches of layers, queries and room for the result.
struct Operands {
    layers: Vec<PagedLayer>,
    next: usize,
    layout: RaggedLayout,
    q: Vec<f32>,
    out: Vec<f32>,
}

impl Operands {
    /// Fills the cache with equal values, whose average is that value.
    fn new(dtype: KvDtype, cached_len: usize, rows: usize, layers: usize) -> lm_kernels::Result<Self> {
        let (spec, slots) = (spec(), cached_len + rows);
        let shapes = vec![(spec.num_kv_heads, spec.head_dim); layers];
        let mut layers = PagedLayer::for_layers(dtype, slots.div_ceil(PAGE_LEN), &shapes)?;
        let layout = |cached_len, rows| {
            let block_table = (0..slots.div_ceil(PAGE_LEN) as u32).collect();
            let sequence = SequenceLayout { rows: 0..rows, cached_len, block_table, ..Default::default() };
            RaggedLayout { sequences: vec![sequence] }
        };
        let width = spec.num_kv_heads * spec.head_dim;
        let (keys, values) = (noise(slots * width), vec![0.25; slots * width]);
        for layer in &mut layers {
            layer.write(Pool::global(), &layout(0, slots), &keys, &values);
        }
        let q = noise(rows * spec.num_heads * spec.head_dim);
        let (mut out, layout) = (vec![0.0; q.len()], layout(cached_len, rows));
        host::attention(Pool::global(), &q, &layers[0], &layout, &spec, &mut out);
        assert!(out.iter().all(|out| (out - 0.25).abs() < 2e-3), "an average of equal values is that value");
        Ok(Self { layers, next: 0, layout, q, out })
    }

    fn run(&mut self, pool: &Pool) {
        host::attention(pool, &self.q, &self.layers[self.next], &self.layout, &spec(), &mut self.out);
        self.next = (self.next + 1) % self.layers.len();
    }
}

fn empty_layer(dtype: KvDtype, slots: usize) -> lm_kernels::Result<PagedLayer> {
    let spec = spec();
    PagedLayer::new(dtype, slots.div_ceil(PAGE_LEN), spec.num_kv_heads, spec.head_dim)
}

fn main() -> lm_kernels::Result<()> {
    let mut criterion = criterion();
    decode(&mut criterion)?;
    prefill(&mut criterion);
    criterion.final_summary();
    Ok(())
}

fn decode(criterion: &mut Criterion) -> lm_kernels::Result<()> {
    let mut group = Group::of_bytes(criterion, "attention, 1 row");
    for dtype in DTYPES {
        for cached_len in [512_usize, 4096] {
            let slots = cached_len + 1;
            let bytes = slots.div_ceil(PAGE_LEN) * empty_layer(dtype, slots)?.bytes_per_page();
            let setup = || Operands::new(dtype, cached_len, 1, COLD / bytes + 1);
            let case = format!("{dtype} after {cached_len}");
            group.case(&case, Amount::Bytes(bytes), setup, |pool, operands| operands.run(pool));
        }
    }
    Ok(())
}

fn prefill(criterion: &mut Criterion) {
    let mut group = Group::of_operations(criterion, &format!("attention, {MANY} rows"));
    for dtype in DTYPES {
        for cached_len in [0, 1536, 4096] {
            let visible: usize = (cached_len + 1..=cached_len + MANY).sum();
            let amount = Amount::Operations(4 * visible * spec().num_heads * spec().head_dim);
            let case = format!("{dtype} after {cached_len}");
            let setup = || Operands::new(dtype, cached_len, MANY, 1);
            group.case(&case, amount, setup, |pool, operands| operands.run(pool));
        }
    }
}

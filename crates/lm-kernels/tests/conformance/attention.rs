//! Paged attention: ragged batches, GQA, sliding windows and bidirectional ranges, in several steps.

use std::ops::Range;
use std::sync::Arc;

use half::f16;
use lm_kernels::{
    AttentionSpec, CacheLayout, KvDtype, KvGeometry, KvPool, PAGE_LEN, PageId, RaggedLayout, SequenceLayout,
    attention, from_host, segment_attention, to_host,
};

use super::{Random, Target, assert_close};

const NUM_PAGES: usize = 24;

pub fn check(target: &Target) {
    let mut random = Random::new(6);
    for dtype in [KvDtype::F32, KvDtype::F16] {
        for ratio in [1, 2, 3, 4, 6, 8] {
            for (window, soft_cap) in
                [(None, None), (Some(1), None), (Some(9), Some(1.5)), (Some(40), None), (None, Some(4.0))]
            {
                let num_kv_heads = random.between(1, 4);
                let spec = AttentionSpec {
                    num_heads: ratio * num_kv_heads,
                    num_kv_heads,
                    head_dim: 4 * random.between(1, 10),
                    scale: 0.4,
                    window,
                    soft_cap,
                    sinks: (ratio % 2 == 0).then(|| random.values(ratio * num_kv_heads, 2.0).into()),
                };
                Run::new(target, spec, dtype).steps(&mut random);
            }
        }
    }
}

/// Several segments, an empty one and one of many rows among them, against plain loops.
pub fn check_segments(target: &Target) {
    let mut random = Random::new(16);
    for (heads, kv_heads, dim, lengths, reach) in [
        (1, 1, 8, vec![1], None),
        (3, 3, 12, vec![5, 0, 70], None),
        (4, 2, 20, vec![33, 32, 1], None),
        (2, 2, 72, vec![300], None),
        (2, 1, 12, vec![300, 7, 40], Some(33)),
        (3, 3, 20, vec![1, 64], Some(0)),
        (16, 16, 4, vec![16; 9], Some(20)),
        (16, 16, 4, vec![16; 9], None),
    ] {
        let rows: usize = lengths.iter().sum();
        let q = random.values(rows * heads * dim, 2.0);
        let [k, v] = [2.0, 1.0].map(|scale| random.values(rows * kv_heads * dim, scale));
        let tensor = |values: &[f32], heads| from_host(values.to_vec(), [rows, heads, dim], &target.burn);
        let (keys, values) = (tensor(&k, kv_heads), tensor(&v, kv_heads));
        let got = segment_attention(tensor(&q, heads), keys, values, &lengths, 0.3, reach);
        assert_eq!(got.dims(), [rows, heads, dim]);
        let vector = |values: &'_ [f32], of: usize, row: usize, head: usize| -> Vec<f64> {
            let first = (row * of + head) * dim;
            values[first..first + dim].iter().map(|&x| x.into()).collect()
        };
        let (mut expected, mut first) = (Vec::new(), 0);
        for len in &lengths {
            for row in first..first + len {
                for head in 0..heads {
                    let (query, kv_head) = (vector(&q, heads, row, head), head * kv_heads / heads);
                    let score = |other| {
                        let key = vector(&k, kv_heads, other, kv_head);
                        (query.iter().zip(&key).map(|(q, k)| q * k).sum::<f64>() * f64::from(0.3_f32)).exp()
                    };
                    let is_near = |other: usize| reach.is_none_or(|reach| row.abs_diff(other) <= reach);
                    let weight = |other| if is_near(other) { score(other) } else { 0.0 };
                    let weights: Vec<f64> = (first..first + len).map(weight).collect();
                    let mut sum = vec![0.0; dim];
                    for (other, weight) in weights.iter().enumerate() {
                        let value = vector(&v, kv_heads, first + other, kv_head);
                        sum.iter_mut().zip(value).for_each(|(sum, value)| *sum += weight * value);
                    }
                    let total: f64 = weights.iter().sum();
                    expected.extend(sum.iter().map(|sum| sum / total));
                }
            }
            first += len;
        }
        let what = format!(
            "segment_attention {heads}/{kv_heads} · {dim}, {lengths:?}, {reach:?}, on {}",
            target.device
        );
        assert_close(&what, &to_host(got).unwrap(), &expected, |_| 1e-5);
    }
}

/// A pool and the same keys and values in plain vectors by sequence.
struct Run<'a> {
    target: &'a Target,
    spec: AttentionSpec,
    pool: KvPool,
    sequences: Vec<Reference>,
}

struct Reference {
    block_table: Vec<PageId>,
    /// `[slot][kv_head * head_dim]`, rounded like the pool's.
    keys: Vec<Vec<f64>>,
    values: Vec<Vec<f64>>,
}

impl<'a> Run<'a> {
    fn new(target: &'a Target, spec: AttentionSpec, dtype: KvDtype) -> Self {
        let geometry = KvGeometry {
            num_kv_heads: spec.num_kv_heads,
            head_dim: spec.head_dim,
            window: spec.window,
            shared_with: None,
        };
        // The middle layer is used; the others must stay unchanged.
        let pool = KvPool::new(target.device, &CacheLayout::new([geometry; 3]), NUM_PAGES, dtype).unwrap();
        if pool.dtype() != dtype {
            println!(
                "skipped: {dtype} pages on {}: kept as {}, the device lacks it",
                target.device,
                pool.dtype()
            );
        }
        Self { target, spec, pool, sequences: Vec::new() }
    }

    /// Prompts, then longer and shorter continuations, then single tokens.
    fn steps(mut self, random: &mut Random) {
        let pages = random.shuffled(NUM_PAGES);
        let tables = pages.chunks(NUM_PAGES / 4);
        self.sequences = tables
            .map(|table| Reference { block_table: table.to_vec(), keys: Vec::new(), values: Vec::new() })
            .collect();
        for longest in [70, 40, 2] {
            let mut lengths: Vec<usize> = (0..4).map(|_| random.between(1, longest)).collect();
            lengths[random.between(0, 4)] = 0;
            self.step(&lengths, random);
        }
    }

    fn step(&mut self, lengths: &[usize], random: &mut Random) {
        let layout = self.layout(lengths, random);
        let AttentionSpec { num_heads, num_kv_heads, head_dim, .. } = self.spec;
        let rows = layout.rows();
        let q = random.values(rows * num_heads * head_dim, 2.0);
        let k = random.values(rows * num_kv_heads * head_dim, 2.0);
        let v = random.values(rows * num_kv_heads * head_dim, 1.0);
        self.remember(&layout, &k, &v);

        let tensor =
            |values: &[f32], heads| from_host(values.to_vec(), [rows, heads, head_dim], &self.target.burn);
        let (q_rows, k_rows, v_rows) =
            (tensor(&q, num_heads), tensor(&k, num_kv_heads), tensor(&v, num_kv_heads));
        let got = attention(q_rows, k_rows, v_rows, &mut self.pool, 1, &Arc::new(layout.clone()), &self.spec);
        assert_eq!(got.dims(), [rows, num_heads, head_dim]);

        let what = format!("attention {:?}, {lengths:?} rows, on {}", self.spec, self.target.device);
        assert_close(&what, &to_host(got).unwrap(), &self.expected(&layout, &q), |_| 1e-5);
    }

    fn layout(&self, lengths: &[usize], random: &mut Random) -> RaggedLayout {
        let mut next = 0;
        let sequences = lengths.iter().zip(&self.sequences).map(|(&len, reference)| {
            let rows = next..next + len;
            next = rows.end;
            let cached_len = reference.keys.len();
            let pages = (cached_len + len).div_ceil(PAGE_LEN);
            let block_table = reference.block_table[..pages].to_vec();
            SequenceLayout { rows, cached_len, block_table, bidirectional: spans(len, random), reach: None }
        });
        RaggedLayout { sequences: sequences.collect() }
    }

    fn remember(&mut self, layout: &RaggedLayout, k: &[f32], v: &[f32]) {
        let width = self.spec.num_kv_heads * self.spec.head_dim;
        let dtype = self.pool.dtype();
        let stored = |row: usize, values: &[f32]| {
            let values = &values[row * width..(row + 1) * width];
            values.iter().map(|&value| as_stored(value, dtype)).collect()
        };
        for (sequence, reference) in layout.sequences.iter().zip(&mut self.sequences) {
            for row in sequence.rows.clone() {
                reference.keys.push(stored(row, k));
                reference.values.push(stored(row, v));
            }
        }
    }

    fn expected(&self, layout: &RaggedLayout, q: &[f32]) -> Vec<f64> {
        let AttentionSpec { num_heads, num_kv_heads, head_dim, .. } = self.spec;
        let mut out = Vec::new();
        for (sequence, reference) in layout.sequences.iter().zip(&self.sequences) {
            for row in 0..sequence.rows.len() {
                for head in 0..num_heads {
                    let sink = self.spec.sinks.as_ref().map(|sinks| sinks[head].into());
                    let start = ((sequence.rows.start + row) * num_heads + head) * head_dim;
                    let kv_head = head / (num_heads / num_kv_heads);
                    let part = kv_head * head_dim..(kv_head + 1) * head_dim;
                    let slots =
                        (0..reference.keys.len()).filter(|&slot| sees(sequence, row, slot, self.spec.window));
                    let slots: Vec<usize> = slots.collect();
                    out.extend(attend(
                        &q[start..start + head_dim],
                        reference,
                        &slots,
                        part,
                        (&self.spec, sink),
                    ));
                }
            }
        }
        out
    }
}

/// One query head over its visible slots.
fn attend(
    q: &[f32],
    reference: &Reference,
    slots: &[usize],
    part: Range<usize>,
    (spec, sink): (&AttentionSpec, Option<f64>),
) -> Vec<f64> {
    let dot = |slot: &usize| -> f64 {
        let key = &reference.keys[*slot][part.clone()];
        let score = q.iter().zip(key).map(|(&q, k)| f64::from(q) * k).sum::<f64>() * f64::from(spec.scale);
        spec.soft_cap.map(f64::from).map_or(score, |cap| cap * (score / cap).tanh())
    };
    let scores: Vec<f64> = slots.iter().map(dot).collect();
    let largest = scores.iter().copied().chain(sink).fold(f64::NEG_INFINITY, f64::max);
    let weights: Vec<f64> = scores.iter().map(|score| (score - largest).exp()).collect();
    let total = weights.iter().sum::<f64>() + sink.map_or(0.0, |sink| (sink - largest).exp());
    let element = |index: usize| {
        let terms = slots.iter().zip(&weights).map(|(&slot, weight)| weight * reference.values[slot][index]);
        terms.sum::<f64>() / total
    };
    part.clone().map(element).collect()
}

/// Visibility by window and ranges, as the documentation of [`SequenceLayout`] defines it.
fn sees(sequence: &SequenceLayout, row: usize, slot: usize, window: Option<usize>) -> bool {
    let query = sequence.cached_len + row;
    let together = sequence.bidirectional.iter().any(|range| {
        let slots = sequence.cached_len + range.start..sequence.cached_len + range.end;
        slots.contains(&query) && slots.contains(&slot)
    });
    (slot <= query || together) && window.is_none_or(|window| slot + window > query)
}

/// Up to two disjoint ranges.
fn spans(len: usize, random: &mut Random) -> Vec<Range<usize>> {
    let middle = len / 2;
    let mut spans = Vec::new();
    for (start, end) in [(0, middle), (middle, len)] {
        if end - start >= 3 && random.between(0, 2) == 0 {
            let first = random.between(start, end - 2);
            spans.push(first..random.between(first + 2, end + 1));
        }
    }
    spans
}

fn as_stored(value: f32, dtype: KvDtype) -> f64 {
    match dtype {
        KvDtype::F16 => f16::from_f32(value).to_f64(),
        KvDtype::F32 => value.into(),
        KvDtype::Q8 => unreachable!("8-bit pages are tested beside their kernel: other devices have none"),
    }
}

//! `attention` against loops in double precision, and against itself with every split and batching.

mod extremes;

use super::super::testing::{Random, bits};
use super::super::{KvDtype, PagedLayer, Pool, RaggedLayout};
use super::*;

/// A batch with all its keys and values, `[slots, heads, head_dim]` of each sequence.
struct Case {
    spec: AttentionSpec,
    lengths: Vec<(usize, usize)>,
    keys: Vec<Vec<f32>>,
    values: Vec<Vec<f32>>,
    queries: Vec<Vec<f32>>,
    bidirectional: Vec<Vec<Range<usize>>>,
}

impl Case {
    fn new(random: &mut Random, spec: AttentionSpec, lengths: &[(usize, usize)]) -> Self {
        let mut rows = |heads: usize| -> Vec<Vec<f32>> {
            lengths
                .iter()
                .map(|(cached, new)| random.normal((cached + new) * heads * spec.head_dim))
                .collect()
        };
        Self {
            lengths: lengths.to_vec(),
            keys: rows(spec.num_kv_heads),
            values: rows(spec.num_kv_heads),
            queries: rows(spec.num_heads),
            bidirectional: vec![vec![]; lengths.len()],
            spec,
        }
    }

    /// Runs all rows of every sequence in one batch, the prompts split after each `step` rows. Sequence `i`
    /// returns `[slots, heads, head_dim]`.
    fn run(&self, isa: Isa, threads: usize, dtype: KvDtype, step: usize) -> Vec<Vec<f32>> {
        let pool = Pool::new(threads);
        let slots: Vec<(usize, usize)> = self.lengths.iter().map(|(cached, new)| (0, cached + new)).collect();
        let (whole, pages) = Random(7).layout(&slots);
        let mut layer = PagedLayer::new(dtype, pages, self.spec.num_kv_heads, self.spec.head_dim).unwrap();
        let mut out: Vec<Vec<f32>> = vec![vec![]; slots.len()];
        let mut done = 0;
        while slots.iter().any(|&(_, end)| done < end) {
            let mut layout = RaggedLayout::default();
            let (mut q, mut k, mut v) = (vec![], vec![], vec![]);
            for (i, sequence) in whole.sequences.iter().enumerate() {
                let (from, to) = (done.min(slots[i].1), (done + step).min(slots[i].1));
                let start = layout.rows();
                layout.sequences.push(SequenceLayout {
                    rows: start..start + (to - from),
                    cached_len: from,
                    bidirectional: self.bidirectional[i].clone(),
                    ..sequence.clone()
                });
                let part = |data: &[f32], heads: usize| {
                    data[from * heads * self.spec.head_dim..to * heads * self.spec.head_dim].to_vec()
                };
                q.extend(part(&self.queries[i], self.spec.num_heads));
                k.extend(part(&self.keys[i], self.spec.num_kv_heads));
                v.extend(part(&self.values[i], self.spec.num_kv_heads));
            }
            layer.write(&Pool::new(2), &layout, &k, &v);
            let mut y = vec![f32::NAN; q.len()];
            attention_on(isa, &pool, &q, &layer, &layout, &self.spec, &mut y);
            let width = self.spec.num_heads * self.spec.head_dim;
            for (out, sequence) in out.iter_mut().zip(&layout.sequences) {
                out.extend(&y[sequence.rows.start * width..sequence.rows.end * width]);
            }
            done += step;
        }
        out
    }

    /// One query's result in double precision, by definition.
    fn expected(&self, sequence: usize, slot: usize, head: usize) -> Vec<f64> {
        let AttentionSpec { num_heads, num_kv_heads, head_dim, scale, window, soft_cap, ref sinks } =
            self.spec;
        let kv_head = head / (num_heads / num_kv_heads);
        let query = &self.queries[sequence][(slot * num_heads + head) * head_dim..][..head_dim];
        let row = |data: &[Vec<f32>], s: usize| -> Vec<f64> {
            let start = (s * num_kv_heads + kv_head) * head_dim;
            data[sequence][start..start + head_dim].iter().map(|x| f64::from(*x)).collect()
        };
        let end = self.lengths[sequence].0 + self.lengths[sequence].1;
        let sees = |s: usize| {
            let together = |range: &Range<usize>| range.contains(&s) && range.contains(&slot);
            let before_or_together = s <= slot || self.bidirectional[sequence].iter().any(together);
            before_or_together && window.is_none_or(|window| s + window > slot)
        };
        let sink = sinks.as_ref().map_or(0.0, |sinks| f64::from(sinks[head]).exp());
        let (mut total, mut out) = (sink, vec![0.0; head_dim]);
        for s in (0..end).filter(|&s| sees(s)) {
            let dot: f64 = query.iter().zip(row(&self.keys, s)).map(|(q, k)| f64::from(*q) * k).sum();
            let score = dot * f64::from(scale);
            let weight = soft_cap.map_or(score, |cap| f64::from(cap) * (score / f64::from(cap)).tanh()).exp();
            total += weight;
            out.iter_mut().zip(row(&self.values, s)).for_each(|(out, v)| *out += weight * v);
        }
        out.iter().map(|out| out / total).collect()
    }

    fn check(&self, dtype: KvDtype, tolerance: f64) {
        for (sequence, out) in self.run(Isa::current(), 2, dtype, usize::MAX / 2).iter().enumerate() {
            for (index, out) in out.chunks(self.spec.head_dim).enumerate() {
                let (slot, head) = (index / self.spec.num_heads, index % self.spec.num_heads);
                for (got, exact) in out.iter().zip(self.expected(sequence, slot, head)) {
                    let error = (f64::from(*got) - exact).abs();
                    assert!(
                        error < tolerance,
                        "{:?} {dtype}: slot {slot}, head {head} is off by {error:e}",
                        self.spec
                    );
                }
            }
        }
    }
}

fn spec(random: &mut Random, group: usize, window: Option<usize>) -> AttentionSpec {
    let num_kv_heads = random.between(1, 3);
    let head_dim = [8, 16, 20, 64][random.between(0, 3)];
    let scale = 1.5 / (head_dim as f32).sqrt();
    AttentionSpec {
        num_heads: group * num_kv_heads,
        num_kv_heads,
        head_dim,
        scale,
        window,
        soft_cap: None,
        sinks: None,
    }
}

#[test]
fn random_ragged_batches_match_the_reference() {
    let mut random = Random(11);
    for group in 1..=8 {
        for window in [None, Some(1), Some(7), Some(32), Some(45)] {
            let spec = spec(&mut random, group, window);
            let lengths: Vec<(usize, usize)> = (0..3).map(|_| (0, random.between(1, 80))).collect();
            let case = Case::new(&mut random, spec, &lengths);
            case.check(KvDtype::F32, 2e-6);
            case.check(KvDtype::F16, 4e-3);
            case.check(KvDtype::Q8, 8e-2);
        }
    }
}

#[test]
fn pages_before_the_window_may_be_missing() {
    let mut random = Random(19);
    for (window, cached) in [(1, 64), (33, 290), (45, 600), (300, 700)] {
        let case = Case::new(&mut random, spec(&mut Random(5), 2, Some(window)), &[(cached, 3)]);
        let (layout, pages) = random.layout(&case.lengths);
        let mut layer =
            PagedLayer::new(KvDtype::F32, pages, case.spec.num_kv_heads, case.spec.head_dim).unwrap();
        let all = SequenceLayout { rows: 0..cached + 3, cached_len: 0, ..layout.sequences[0].clone() };
        layer.write(&Pool::new(1), &RaggedLayout { sequences: vec![all] }, &case.keys[0], &case.values[0]);
        let run = |layout: &RaggedLayout| {
            let width = case.spec.num_heads * case.spec.head_dim;
            let (q, mut y) = (&case.queries[0][cached * width..], vec![f32::NAN; 3 * width]);
            attention_on(Isa::current(), &Pool::new(2), q, &layer, layout, &case.spec, &mut y);
            bits(&y)
        };
        let mut freed = layout.clone();
        let gone = layout.sequences[0].first_visible(Some(window)) / super::super::PAGE_LEN;
        assert!(gone > 0, "nothing is gone");
        freed.sequences[0].block_table[..gone].fill(super::super::NO_PAGE);
        assert_eq!(run(&freed), run(&layout), "window {window} after {cached}");
    }
}

#[test]
fn bidirectional_rows_see_each_other() {
    let mut random = Random(12);
    for window in [None, Some(5)] {
        let spec = spec(&mut random, 2, window);
        let mut case = Case::new(&mut random, spec, &[(0, 90), (0, 20)]);
        case.bidirectional = vec![vec![3..40, 70..90], vec![0..1]];
        case.check(KvDtype::F32, 2e-6);
    }
}

#[test]
fn caps_and_sinks_are_applied() {
    let mut random = Random(15);
    for window in [None, Some(40)] {
        let spec = AttentionSpec { soft_cap: Some(1.2), ..spec(&mut random, 2, window) };
        let mut case = Case::new(&mut random, spec, &[(0, 300), (0, 20)]);
        case.check(KvDtype::F32, 2e-6);
        case.spec.sinks = Some(random.normal(case.spec.num_heads).into());
        case.check(KvDtype::F32, 2e-6);
    }
}

#[test]
fn context_of_several_chunks_matches_the_reference() {
    let mut random = Random(16);
    for (window, length) in [(None, 700), (Some(300), 900)] {
        let spec = spec(&mut random, 2, window);
        let case = Case::new(&mut random, spec, &[(0, length), (0, 257)]);
        case.check(KvDtype::F32, 2e-6);
        for dtype in [KvDtype::F16, KvDtype::Q8] {
            let whole: Vec<_> =
                case.run(Isa::current(), 1, dtype, 10_000).iter().map(|out| bits(out)).collect();
            for (threads, step) in [(2, 1), (3, 100), (2, 255)] {
                let cut: Vec<_> =
                    case.run(Isa::current(), threads, dtype, step).iter().map(|out| bits(out)).collect();
                assert!(cut == whole, "{dtype}, {threads} threads, {step} rows at a time");
            }
        }
    }
}

#[test]
fn splits_threads_batches_and_isa_give_the_same_bits() {
    let mut random = Random(13);
    for (dtype, window) in [(KvDtype::F16, None), (KvDtype::F32, Some(37)), (KvDtype::Q8, None)] {
        let spec = spec(&mut random, 3, window);
        let case = Case::new(&mut random, spec, &[(0, 100), (0, 33), (0, 64)]);
        let whole = case.run(Isa::Scalar, 1, dtype, 1000);
        let whole: Vec<Vec<u32>> = whole.iter().map(|out| bits(out)).collect();
        for &isa in Isa::supported() {
            for (threads, step) in [(1, 1000), (3, 1), (2, 13), (1, 32), (2, 45)] {
                let cut = case.run(isa, threads, dtype, step);
                let cut: Vec<Vec<u32>> = cut.iter().map(|out| bits(out)).collect();
                assert_eq!(cut, whole, "{dtype} with {isa}, {threads} threads, {step} rows at a time");
            }
        }
    }
}

#[test]
#[should_panic(expected = "page 9 of 1")]
fn page_out_of_range_is_rejected() {
    let spec = AttentionSpec {
        num_heads: 1,
        num_kv_heads: 1,
        head_dim: 1,
        scale: 1.0,
        window: None,
        soft_cap: None,
        sinks: None,
    };
    let layer = PagedLayer::new(KvDtype::F32, 1, 1, 1).unwrap();
    let sequence = SequenceLayout { rows: 0..1, block_table: vec![9], ..Default::default() };
    let layout = RaggedLayout { sequences: vec![sequence] };
    attention(&Pool::new(1), &[1.0], &layer, &layout, &spec, &mut [0.0]);
}

/// Register tiles of 1, 2, 4, 6, 8 and 12 queries, and their remainders.
#[test]
fn each_query_has_the_bits_of_running_alone() {
    let mut random = Random(21);
    for dtype in [KvDtype::F32, KvDtype::F16, KvDtype::Q8] {
        let spec =
            AttentionSpec { num_heads: 1, num_kv_heads: 1, head_dim: 20, ..spec(&mut random, 1, None) };
        let case = Case::new(&mut random, spec, &[(0, 48)]);
        let alone = bits(&case.run(Isa::Scalar, 1, dtype, 1)[0]);
        for &isa in Isa::supported() {
            for step in 1..=24 {
                assert_eq!(bits(&case.run(isa, 1, dtype, step)[0]), alone, "{dtype} with {isa}, {step} rows");
            }
        }
    }
}

/// Columns of the widest register tiles, and their remainders.
#[test]
fn every_head_width_matches_the_reference() {
    let mut random = Random(22);
    for head_dim in [80, 96, 128, 144, 256] {
        let scale = 1.5 / (head_dim as f32).sqrt();
        let spec = AttentionSpec { head_dim, scale, ..spec(&mut random, 1, None) };
        let case = Case::new(&mut random, spec, &[(0, 3), (0, 40)]);
        case.check(KvDtype::F32, 2e-6);
        for dtype in [KvDtype::F16, KvDtype::Q8] {
            let expected: Vec<_> = case.run(Isa::Scalar, 1, dtype, 100).iter().map(|out| bits(out)).collect();
            for &isa in Isa::supported() {
                let got: Vec<_> = case.run(isa, 1, dtype, 100).iter().map(|out| bits(out)).collect();
                assert_eq!(got, expected, "{dtype} with {isa}, {head_dim} columns");
            }
        }
    }
}

#[test]
fn partial_quads_count_in_8_bits() {
    let mut random = Random(23);
    for head_dim in [1, 2, 6, 18] {
        let spec = AttentionSpec { head_dim, scale: 1.0, ..spec(&mut random, 2, None) };
        Case::new(&mut random, spec, &[(0, 40)]).check(KvDtype::Q8, 8e-2);
    }
}

#[test]
fn more_heads_than_a_unit_share_a_kv_head() {
    let mut random = Random(24);
    let spec = AttentionSpec { num_heads: 71, num_kv_heads: 1, head_dim: 8, ..spec(&mut random, 1, None) };
    Case::new(&mut random, spec, &[(0, 5)]).check(KvDtype::F32, 2e-6);
}

//! Paged attention of new rows to the KV pages of their sequences.
//!
//! A unit of work is a few rows of one sequence with the query heads of one KV head (GQA), so that a page is
//! read once for all of them and never repeated. Slots are processed in chunks at fixed positions
//! ([`chunk`]): all scores of a chunk are computed before the first value is accumulated, and chunks are
//! merged in order. A row's result depends only on the slots visible to it and their positions, so that
//! prompts may be split anywhere, rows may share tiles, and the chunks of a long context may run on different
//! threads.

mod bytes;
mod chunk;
mod float;
#[cfg(test)]
mod tests;

use std::cell::RefCell;
use std::ops::Range;
use std::sync::Arc;

use super::isa::Isa;
use super::lanes::{Kernel, Lanes, exp};
use super::pages::{PagedLayer, Pages, with_pages};
use super::pool::Pool;
use super::profile::{self, Work};
use super::ragged::{RaggedLayout, SequenceLayout};
use super::split::{Block, SharedMatrix, for_each_chunk};
use chunk::{Attend, CHUNK, Chunk, Partial, Queries, attend_chunk};

/// Maximum queries per unit, which share each page: rows times the heads of a group.
const QUERIES: usize = 48;

/// Units per thread below which chunks are distributed over threads as well.
const FEW_UNITS: usize = 4;

/// Attention parameters of a layer.
#[derive(Clone, Debug, PartialEq)]
pub struct AttentionSpec {
    /// Query heads, a multiple of `num_kv_heads`.
    pub num_heads: usize,
    /// KV heads; query head `h` reads head `h / (num_heads / num_kv_heads)`.
    pub num_kv_heads: usize,
    /// Head dimension.
    pub head_dim: usize,
    /// Scaling factor of the dot products, usually `1 / sqrt(head_dim)`.
    pub scale: f32,
    /// Sliding window in slots, the query's own included; `None` for full causal attention.
    pub window: Option<usize>,
    /// Logit soft-capping: `cap · tanh(score / cap)`, after the scaling.
    pub soft_cap: Option<f32>,
    /// Attention sinks: a logit for each query head that adds to the softmax denominator and has no value.
    pub sinks: Option<Arc<[f32]>>,
}

/// Softmax attention of each row of `q` to the slots of its sequence in `pages`. Those of the new rows are
/// included and must be written first ([`PagedLayer::write`]). [`SequenceLayout::visible`] gives the slots
/// visible to a row.
///
/// The result is bit-identical however the rows of a sequence are split into calls and batched with others.
///
/// # Shapes
/// - `q`, `out`: `[rows, num_heads, head_dim]`; `out` is overwritten
///
/// # Panics
/// When a length does not fit, row ranges overlap, or a block table is too short or names a page out of
/// range.
///
/// # Source
/// Online softmax: arXiv 1805.02867; pages: PagedAttention, arXiv 2309.06180; chunks: Flash-Decoding (Dao et
/// al., 2023); sinks: arXiv 2309.17453.
pub fn attention(
    pool: &Pool,
    q: &[f32],
    pages: &PagedLayer,
    layout: &RaggedLayout,
    spec: &AttentionSpec,
    out: &mut [f32],
) {
    let _span = profile::span(Work::Attention);
    attention_on(Isa::current(), pool, q, pages, layout, spec, out);
}

/// [`attention`] on one instruction set.
fn attention_on(
    isa: Isa,
    pool: &Pool,
    q: &[f32],
    pages: &PagedLayer,
    layout: &RaggedLayout,
    spec: &AttentionSpec,
    out: &mut [f32],
) {
    let width = spec.num_heads * spec.head_dim;
    assert_eq!(spec.num_heads % spec.num_kv_heads, 0, "{} heads read {}", spec.num_heads, spec.num_kv_heads);
    assert_eq!(
        (pages.num_kv_heads(), pages.head_dim()),
        (spec.num_kv_heads, spec.head_dim),
        "pages fit the spec"
    );
    assert_eq!(q.len(), layout.rows() * width, "queries are [{}, {width}]", layout.rows());
    assert_eq!(q.len(), out.len(), "as many results as queries");
    assert!(
        spec.sinks.as_ref().is_none_or(|sinks| sinks.len() == spec.num_heads),
        "a sink for each of {} heads",
        spec.num_heads
    );
    layout.check_rows();
    let units: Vec<Unit<'_>> =
        layout.sequences.iter().flat_map(|sequence| Unit::split(sequence, spec)).collect();
    units.iter().for_each(|unit| unit.check(pages));
    let out = SharedMatrix::new(out, width);
    with_pages!(&pages.storage, pages => {
        let call = Call { isa, pool, q, pages, spec, out };
        if units.len() < FEW_UNITS * pool.threads() { call.split_chunks(&units) } else { call.whole_units(&units) }
    });
}

/// Some rows of one sequence and the query heads of one KV head.
struct Unit<'a> {
    sequence: &'a SequenceLayout,
    /// Rows of the batch.
    rows: Range<usize>,
    kv_head: usize,
    /// Union of the slots visible to its rows.
    slots: Range<usize>,
}

impl<'a> Unit<'a> {
    /// Splits a sequence into units.
    fn split(sequence: &'a SequenceLayout, spec: &AttentionSpec) -> impl Iterator<Item = Unit<'a>> {
        let step = (QUERIES * spec.num_kv_heads / spec.num_heads).max(1);
        let (end, window) = (sequence.rows.end, spec.window);
        sequence.rows.clone().step_by(step).flat_map(move |start| {
            let rows = start..(start + step).min(end);
            let visible = rows.clone().map(move |row| sequence.visible(row - sequence.rows.start, window));
            let slots = visible.reduce(|a, b| a.start.min(b.start)..a.end.max(b.end)).unwrap_or(0..0);
            (0..spec.num_kv_heads).map(move |kv_head| Unit {
                sequence,
                rows: rows.clone(),
                kv_head,
                slots: slots.clone(),
            })
        })
    }

    /// # Panics
    /// When the block table does not name a page for each slot.
    fn check(&self, pages: &PagedLayer) {
        if self.kv_head == 0 && !self.slots.is_empty() {
            let (first, last) = (self.slots.start / super::PAGE_LEN, (self.slots.end - 1) / super::PAGE_LEN);
            self.sequence.block_table[first..=last].iter().for_each(|&page| pages.check(page, 0, 0));
        }
    }

    /// The unit's slots, split at chunk boundaries.
    fn chunks(&self) -> impl Iterator<Item = Range<usize>> + use<> {
        let Range { start, end } = self.slots;
        (start / CHUNK..end.div_ceil(CHUNK))
            .map(move |chunk| start.max(chunk * CHUNK)..end.min((chunk + 1) * CHUNK))
    }

    fn queries<'q>(&self, q: &'q [f32], spec: &AttentionSpec) -> Queries<'q> {
        let (group, dim) = (spec.num_heads / spec.num_kv_heads, spec.head_dim);
        let mut queries = Queries { heads: Vec::new(), visible: Vec::new() };
        for row in self.rows.clone() {
            let first = row * spec.num_heads + self.kv_head * group;
            queries.heads.extend(q[first * dim..(first + group) * dim].chunks_exact(dim));
            let visible = self.sequence.visible(row - self.sequence.rows.start, spec.window);
            queries.visible.extend(std::iter::repeat_n(visible, group));
        }
        queries
    }
}

/// A call, generic over the element type of the pages.
struct Call<'a, E> {
    isa: Isa,
    pool: &'a Pool,
    q: &'a [f32],
    pages: &'a Pages<E>,
    spec: &'a AttentionSpec,
    out: SharedMatrix<'a, f32>,
}

impl<E: Attend> Call<'_, E> {
    /// Runs each unit as one task.
    fn whole_units(&self, units: &[Unit<'_>]) {
        self.pool.run(units.len(), |index| {
            let unit = &units[index];
            let chunks: Vec<Range<usize>> = unit.chunks().collect();
            ROOM.with_borrow_mut(|[total, next]| {
                total.reset(unit.rows.len() * self.group(), self.pages.width());
                for slots in chunks {
                    self.isa.run(AttendChunk { call: self, unit, slots, out: next });
                    self.isa.run(Merge { total, next });
                }
                self.finish(unit, total);
            });
        });
    }

    /// Runs each chunk of a unit as one task; the partial results are merged afterwards.
    fn split_chunks(&self, units: &[Unit<'_>]) {
        let tasks: Vec<(&Unit<'_>, Range<usize>)> =
            units.iter().flat_map(|unit| unit.chunks().map(move |slots| (unit, slots))).collect();
        let mut partials = vec![Partial::default(); tasks.len()];
        for_each_chunk(self.pool, &mut partials, 1, |index, out| {
            let (unit, slots) = &tasks[index];
            self.isa.run(AttendChunk { call: self, unit, slots: slots.clone(), out: &mut out[0] });
        });
        let mut partials = partials.iter();
        for unit in units {
            let mut total = Partial::default();
            total.reset(unit.rows.len() * self.group(), self.pages.width());
            for next in partials.by_ref().take(unit.chunks().count()) {
                self.isa.run(Merge { total: &mut total, next });
            }
            self.finish(unit, &mut total);
        }
    }

    /// Query heads per KV head.
    fn group(&self) -> usize {
        self.spec.num_heads / self.spec.num_kv_heads
    }

    /// Divides by the sums of the weights (with the sinks) and writes the result.
    fn finish(&self, unit: &Unit<'_>, total: &mut Partial) {
        let (group, dim) = (self.group(), self.spec.head_dim);
        let heads = unit.kv_head * group..(unit.kv_head + 1) * group;
        // SAFETY: units have rows or heads of their own.
        let out = unsafe { self.out.block(unit.rows.clone(), heads.start * dim..heads.end * dim) };
        let sinks = self.spec.sinks.as_ref().map(|sinks| &sinks[heads]);
        self.isa.run(Finish { total, sinks, dim, out });
    }
}

thread_local! {
    /// Scratch space for the partial softmax of a unit and of a chunk.
    static ROOM: RefCell<[Partial; 2]> = const {
        RefCell::new([const { Partial { max: Vec::new(), sum: Vec::new(), values: Vec::new() } }; 2])
    };
    /// Scratch space for the scores of a chunk, by query.
    static SCORES: RefCell<Vec<[f32; CHUNK]>> = const { RefCell::new(Vec::new()) };
}

struct AttendChunk<'a, 'c, E> {
    call: &'a Call<'c, E>,
    unit: &'a Unit<'a>,
    slots: Range<usize>,
    out: &'a mut Partial,
}

impl<E: Attend> Kernel for AttendChunk<'_, '_, E> {
    type Output = ();
    const ONLY_FLOATS: bool = !E::SCALED;

    #[inline(always)]
    fn run<V: Lanes>(self) {
        let Self { call, unit, slots, out } = self;
        let queries = unit.queries(call.q, call.spec);
        let mut scores = SCORES.take();
        let chunk = Chunk { block_table: &unit.sequence.block_table, kv_head: unit.kv_head, slots };
        attend_chunk::<V, E>(&queries, call.pages, &chunk, call.spec, &mut scores, out);
        SCORES.set(scores);
    }
}

struct Merge<'a> {
    total: &'a mut Partial,
    next: &'a Partial,
}

impl Kernel for Merge<'_> {
    type Output = ();
    const ONLY_FLOATS: bool = true;

    #[inline(always)]
    fn run<V: Lanes>(self) {
        self.total.merge::<V>(self.next);
    }
}

struct Finish<'a> {
    total: &'a mut Partial,
    sinks: Option<&'a [f32]>,
    dim: usize,
    out: Block<'a, f32>,
}

impl Kernel for Finish<'_> {
    type Output = ();
    const ONLY_FLOATS: bool = true;

    #[inline(always)]
    fn run<V: Lanes>(mut self) {
        let group = self.out.columns().len() / self.dim;
        let width = self.total.values.len().checked_div(self.total.max.len()).unwrap_or(0);
        for query in 0..self.total.max.len() {
            let (row, head) = (query / group, query % group);
            let (mut sum, mut factor) = (self.total.sum[query], 1.0);
            if let Some(sinks) = self.sinks {
                let max = self.total.max[query].max(sinks[head]);
                factor = exp(self.total.max[query] - max);
                sum = sum.mul_add(factor, exp(sinks[head] - max));
            }
            let values = &self.total.values[query * width..][..self.dim];
            let out = &mut self.out.row(row)[head * self.dim..(head + 1) * self.dim];
            for (out, value) in out.iter_mut().zip(values) {
                // Adding 0.0 turns -0.0 into 0.0: whether slots not visible were added to -0.0 depends on
                // the chunking.
                *out = value * factor / sum + 0.0;
            }
        }
    }
}

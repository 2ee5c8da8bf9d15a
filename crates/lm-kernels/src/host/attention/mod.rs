//! Attention of new rows to the pages of their sequences.
//!
//! A task is a few rows of one sequence with the query heads of one KV head, so that a page is read once for all of them
//! and never repeated. Pages are gone through in order with a running maximum (online softmax): a row's result depends on
//! the slots it sees and on their places in their pages alone, and not on how the prompt was cut into calls.

#[cfg(test)]
mod tests;

use std::ops::Range;

use super::cpu::{Isa, Kernel};
use super::lanes::{Lanes, add_weighted, dot, exp};
use super::pages::{PAGE_LEN, PagedLayer, Storage};
use super::pool::Pool;
use super::ragged::{RaggedLayout, SequenceLayout};
use super::split::{Block, for_each_block};

/// Rows in a task, which share each page once it is widened to singles.
const ROWS: usize = 16;

/// What a layer's attention looks like.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct AttentionSpec {
    /// Query heads, a multiple of `num_kv_heads`.
    pub num_heads: usize,
    /// Heads of keys and values; query head `h` reads head `h / (num_heads / num_kv_heads)`.
    pub num_kv_heads: usize,
    /// Values of a head.
    pub head_dim: usize,
    /// Factor on the dot products, usually `1 / sqrt(head_dim)`.
    pub scale: f32,
    /// How many slots a query sees, its own included; all up to its own when there is none.
    pub window: Option<usize>,
}

/// Softmax attention of each row of `q` to the slots its sequence has in `pages`, those of the new rows included: they must
/// have been written ([`PagedLayer::write`]) before. [`SequenceLayout::visible`] says which slots a row sees.
///
/// The result has the same bits however the rows of a sequence are cut into calls, and in whatever company.
///
/// # Shapes
/// - `q`, `out`: `[rows, num_heads, head_dim]`; `out` is overwritten
///
/// # Panics
/// When a length does not fit, row ranges overlap, a block table is too short or names a page out of range.
///
/// # Source
/// Online softmax: arXiv 1805.02867; pages: PagedAttention, arXiv 2309.06180.
pub fn attention(
    pool: &Pool,
    q: &[f32],
    pages: &PagedLayer,
    layout: &RaggedLayout,
    spec: &AttentionSpec,
    out: &mut [f32],
) {
    attention_on(Isa::current(), pool, q, pages, layout, spec, out);
}

/// [`attention`] with the code for one instruction set.
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
    let parts: Vec<(&SequenceLayout, Range<usize>)> = layout.sequences.iter().flat_map(split_rows).collect();
    let rows: Vec<Range<usize>> = parts.iter().map(|(_, rows)| rows.clone()).collect();
    let group = spec.num_heads / spec.num_kv_heads * spec.head_dim;
    for_each_block(pool, out, width, &rows, group, |out| {
        let (sequence, rows) = &parts[out.part()];
        let kv_head = out.columns().start / group;
        let first = rows.start - sequence.rows.start;
        let task = Task { q, sequence, first, kv_head, spec, out };
        match &pages.storage {
            Storage::F16 { k, v } => isa.run(Attend { task, pages, k, v }),
            Storage::F32 { k, v } => isa.run(Attend { task, pages, k, v }),
        }
    });
}

/// A sequence's rows in pieces for one task each.
fn split_rows(sequence: &SequenceLayout) -> impl Iterator<Item = (&SequenceLayout, Range<usize>)> {
    let end = sequence.rows.end;
    sequence.rows.clone().step_by(ROWS).map(move |start| (sequence, start..(start + ROWS).min(end)))
}

/// Some rows of one sequence and the query heads of one KV head.
struct Task<'a> {
    q: &'a [f32],
    sequence: &'a SequenceLayout,
    /// The first row, counted from the sequence's first.
    first: usize,
    kv_head: usize,
    spec: &'a AttentionSpec,
    out: Block<'a, f32>,
}

/// A task on pages of one element type.
struct Attend<'a, E> {
    task: Task<'a>,
    pages: &'a PagedLayer,
    k: &'a [E],
    v: &'a [E],
}

/// An element type of pages.
trait Element: Copy {
    /// The elements as singles, in `scratch` where they are not singles already.
    fn widen<'a, V: Lanes>(page: &'a [Self], scratch: &'a mut [f32]) -> &'a [f32];
}

impl Element for f32 {
    #[inline(always)]
    fn widen<'a, V: Lanes>(page: &'a [f32], _: &'a mut [f32]) -> &'a [f32] {
        page
    }
}

impl Element for u16 {
    #[inline(always)]
    fn widen<'a, V: Lanes>(page: &'a [u16], scratch: &'a mut [f32]) -> &'a [f32] {
        // A page has 32 slots, so that its elements are a multiple of 16 whatever the size of a head.
        for (out, bits) in scratch.as_chunks_mut().0.iter_mut().zip(page.as_chunks().0) {
            V::load_f16(bits).store(out);
        }
        scratch
    }
}

/// The running softmax of one query.
#[derive(Clone, Copy)]
struct Running {
    max: f32,
    sum: f32,
}

impl<E: Element> Kernel for Attend<'_, E> {
    type Output = ();

    #[inline(always)]
    fn run<V: Lanes>(self) {
        let Attend { mut task, pages, k, v } = self;
        let (head_dim, group) = (task.spec.head_dim, task.spec.num_heads / task.spec.num_kv_heads);
        let visible: Vec<Range<usize>> = (0..task.out.rows())
            .map(|row| task.sequence.visible(task.first + row, task.spec.window))
            .collect();
        let first_page = visible.iter().map(|slots| slots.start).min().unwrap_or(0) / PAGE_LEN;
        let end_page = visible.iter().map(|slots| slots.end).max().unwrap_or(0).div_ceil(PAGE_LEN);
        let page_len = PAGE_LEN * head_dim;
        let (mut k_scratch, mut v_scratch) = (vec![0.0; page_len], vec![0.0; page_len]);
        let mut running = vec![Running { max: f32::NEG_INFINITY, sum: 0.0 }; visible.len() * group];
        (0..task.out.rows()).for_each(|row| task.out.row(row).fill(0.0));
        for page in first_page..end_page {
            let start = pages.slot(task.sequence.block_table[page], task.kv_head, 0);
            let keys = E::widen::<V>(&k[start..start + page_len], &mut k_scratch);
            let values = E::widen::<V>(&v[start..start + page_len], &mut v_scratch);
            for (row, visible) in visible.iter().enumerate() {
                let slots = visible.start.max(page * PAGE_LEN)..visible.end.min((page + 1) * PAGE_LEN);
                if slots.is_empty() {
                    continue;
                }
                let slots = slots.start - page * PAGE_LEN..slots.end - page * PAGE_LEN;
                for head in 0..group {
                    let query = task.query(row, head);
                    let out = &mut task.out.row(row)[head * head_dim..(head + 1) * head_dim];
                    let running = &mut running[row * group + head];
                    running.add_page::<V>(query, task.spec.scale, keys, values, slots.clone(), out);
                }
            }
        }
        for (index, running) in running.iter().enumerate() {
            let (row, head) = (index / group, index % group);
            let out = &mut task.out.row(row)[head * head_dim..(head + 1) * head_dim];
            out.iter_mut().for_each(|out| *out /= running.sum);
        }
    }
}

impl<'a> Task<'a> {
    #[inline(always)]
    fn query(&self, row: usize, head: usize) -> &'a [f32] {
        let row = self.sequence.rows.start + self.first + row;
        let head = row * self.spec.num_heads + self.out.columns().start / self.spec.head_dim + head;
        &self.q[head * self.spec.head_dim..(head + 1) * self.spec.head_dim]
    }
}

impl Running {
    /// Adds the slots of one page: `out` is the sum of values weighted by `exp(score - max)`, `self.sum` that of the weights.
    #[inline(always)]
    fn add_page<V: Lanes>(
        &mut self,
        query: &[f32],
        scale: f32,
        keys: &[f32],
        values: &[f32],
        slots: Range<usize>,
        out: &mut [f32],
    ) {
        let rows = slots.start * query.len()..slots.end * query.len();
        let mut scores = [f32::NEG_INFINITY; PAGE_LEN];
        for (score, key) in scores[slots.clone()].iter_mut().zip(keys[rows.clone()].chunks_exact(query.len()))
        {
            *score = dot::<V>(query, key) * scale;
        }
        let max = scores.iter().fold(self.max, |max, &score| max.max(score));
        let mut weights = [0.0; PAGE_LEN];
        for (weight, score) in weights.iter_mut().zip(&scores) {
            *weight = exp(score - max);
        }
        let correction = exp(self.max - max);
        let sum = dot::<V>(&weights, &[1.0; PAGE_LEN]);
        self.sum = self.sum.mul_add(correction, sum);
        self.max = max;
        add_weighted::<V>(out, correction, &weights[slots], &values[rows]);
    }
}

//! The recurrence, token by token.
//!
//! Columns of a head's state matrix are independent: each belongs to one element of the values. A unit of
//! work is a sequence, a head and a few columns, whose part of the state stays in the L1 cache over all rows.

// Loops over registers are plain indexed loops: closures are compiled with the target features of their
// caller only if the compiler happens to inline them.
#![allow(clippy::needless_range_loop)]

use std::ops::Range;

use super::super::isa::Isa;
use super::super::lanes::{Kernel, LANES, Lanes, dot, load_part, store_part};
use super::super::pages::StateRun;
use super::super::pool::Pool;
use super::super::split::{Block, SharedMatrix};
use super::DeltaNetSpec;

/// Blocks of 16 columns per unit: 32 KiB of state with a key dimension of 128.
const BLOCKS: usize = 4;

/// Gates of a head for a token.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Gate {
    /// Decay factor of the state.
    pub alpha: f32,
    /// Strength of the delta-rule update.
    pub beta: f32,
}

/// All heads of all rows.
pub(super) struct Heads<'a> {
    pub spec: DeltaNetSpec,
    /// Offset of the heads' matrices in a state.
    pub first: usize,
    /// `[rows, width]`: normalised queries and keys, and values.
    pub mixed: &'a [f32],
    /// `[rows, num_value_heads]`.
    pub gates: &'a [Gate],
    pub sequences: &'a [Vec<StateRun>],
}

impl Heads<'_> {
    pub fn run(&self, isa: Isa, pool: &Pool, states: &SharedMatrix<'_, f32>, out: &mut [f32]) {
        let out = SharedMatrix::new(out, self.spec.num_value_heads * self.spec.value_dim);
        let parts = self.spec.value_blocks().div_ceil(BLOCKS);
        let units = self.spec.num_value_heads * parts;
        pool.run(self.sequences.len() * units, |index| {
            let (runs, unit) = (&self.sequences[index / units], index % units);
            let first = unit % parts * BLOCKS;
            let blocks = first..self.spec.value_blocks().min(first + BLOCKS);
            isa.run(Unit { heads: self, runs, head: unit / parts, blocks, states, out: &out });
        });
    }
}

/// Some columns of one head over all rows of a sequence.
struct Unit<'a> {
    heads: &'a Heads<'a>,
    runs: &'a [StateRun],
    head: usize,
    /// Blocks of 16 columns.
    blocks: Range<usize>,
    states: &'a SharedMatrix<'a, f32>,
    out: &'a SharedMatrix<'a, f32>,
}

impl Kernel for Unit<'_> {
    type Output = ();
    const ONLY_FLOATS: bool = true;

    #[inline(always)]
    fn run<V: Lanes>(self) {
        let DeltaNetSpec { key_dim, value_dim, .. } = self.heads.spec;
        let block = |block: usize| {
            self.heads.first + (self.head * self.heads.spec.value_blocks() + block) * key_dim * LANES
        };
        let columns = block(self.blocks.start)..block(self.blocks.end);
        let values = self.blocks.start * LANES..value_dim.min(self.blocks.end * LANES);
        let results = self.head * value_dim + values.start..self.head * value_dim + values.end;
        for (index, run) in self.runs.iter().enumerate() {
            // SAFETY: sequences write to distinct pages (`StatePages::check`), units of a sequence to
            // distinct columns.
            let mut state = unsafe { run.state(index, self.states, columns.clone()) };
            // SAFETY: as above, for rows.
            let mut out = unsafe { self.out.block(run.rows.clone(), results.clone()) };
            let state = state.row(0).as_chunks_mut::<LANES>().0;
            self.run_columns::<V>(run.rows.clone(), state, values.start, &mut out);
        }
    }
}

impl Unit<'_> {
    /// Processes the rows, as many columns at a time as fit the registers.
    #[inline(always)]
    fn run_columns<V: Lanes>(
        &self,
        rows: Range<usize>,
        mut state: &mut [[f32; LANES]],
        first: usize,
        out: &mut Block<'_, f32>,
    ) {
        let (key_dim, mut done) = (self.heads.spec.key_dim, 0);
        while done < self.blocks.len() {
            let count = match self.blocks.len() - done {
                _ if !V::IN_REGISTERS => 1,
                1 => 1,
                2 | 3 => 2,
                _ if V::MANY_REGISTERS => 4,
                _ => 2,
            };
            let columns;
            (columns, state) = state.split_at_mut(count * key_dim);
            for (index, row) in rows.clone().enumerate() {
                let (column, out) = (first + done * LANES, &mut out.row(index)[done * LANES..]);
                match count {
                    1 => self.token::<V, 1>(row, columns, column, out),
                    2 => self.token::<V, 2>(row, columns, column, out),
                    _ => self.token::<V, 4>(row, columns, column, out),
                }
            }
            done += count;
        }
    }

    /// Processes one row for `16 · N` columns of the matrix, whose blocks of 16 columns are contiguous.
    ///
    /// The output of the updated state is `alpha · Sᵀq + (k · q) · correction` with the state before the
    /// update: one pass reads, another writes.
    #[inline(always)]
    fn token<V: Lanes, const N: usize>(
        &self,
        row: usize,
        state: &mut [[f32; LANES]],
        column: usize,
        out: &mut [f32],
    ) {
        let DeltaNetSpec { num_key_heads, num_value_heads, key_dim, value_dim, .. } = self.heads.spec;
        let mixed = &self.heads.mixed[row * self.heads.spec.width()..];
        let key_head = self.heads.spec.key_head(self.head);
        let q = &mixed[key_head * key_dim..][..key_dim];
        let k = &mixed[(num_key_heads + key_head) * key_dim..][..key_dim];
        let values = &mixed[2 * num_key_heads * key_dim + self.head * value_dim..][..value_dim][column..];
        let gate = self.heads.gates[row * num_value_heads + self.head];

        let (mut s_k, mut s_q) = ([V::splat(0.0); N], [V::splat(0.0); N]);
        for i in 0..key_dim {
            let (k, q) = (V::splat(k[i]), V::splat(q[i]));
            for n in 0..N {
                let state = V::load(&state[n * key_dim + i]);
                s_k[n] = state.mul_add(k, s_k[n]);
                s_q[n] = state.mul_add(q, s_q[n]);
            }
        }
        let (alpha, kq) = (V::splat(gate.alpha), V::splat(dot::<V>(k, q)));
        let mut corrections = [V::splat(0.0); N];
        for n in 0..N {
            let values = load_part::<V>(&values[n * LANES..]);
            let error = s_k[n].mul_add(V::splat(-gate.alpha), values);
            corrections[n] = error.mul(V::splat(gate.beta));
            let result = corrections[n].mul_add(kq, s_q[n].mul(alpha));
            store_part(result, &mut out[n * LANES..]);
        }
        for i in 0..key_dim {
            let k = V::splat(k[i]);
            for n in 0..N {
                let state = &mut state[n * key_dim + i];
                corrections[n].mul_add(k, V::load(state).mul(alpha)).store(state);
            }
        }
    }
}

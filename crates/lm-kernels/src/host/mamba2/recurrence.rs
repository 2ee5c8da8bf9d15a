//! The recurrence, several tokens of a few columns at a time.
//!
//! Columns of a head's state matrix are independent: each belongs to one element of the head. A unit of work
//! is a sequence and a head. Of 16 columns, a row of the matrix is loaded once for as many tokens as the
//! registers hold sums of; each token's sum has the same order however many they are.

// Loops over registers are plain indexed loops: closures are compiled with the target features of their
// caller only if the compiler happens to inline them.
#![allow(clippy::needless_range_loop)]

use std::ops::Range;

use super::super::isa::Isa;
use super::super::lanes::{Kernel, LANES, Lanes, load_part, store_part};
use super::super::pages::StateRun;
use super::super::pool::Pool;
use super::super::split::{Block, SharedMatrix};
use super::{Mamba2, Mamba2Spec};

/// Time step of a head for a token.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Step {
    /// Decay factor of the state.
    pub alpha: f32,
    /// Factor on the input.
    pub dt: f32,
}

/// All heads of all rows.
pub(super) struct Heads<'a> {
    pub net: &'a Mamba2,
    /// `[rows, conv_width]`: the heads' inputs, `B` and `C`.
    pub mixed: &'a [f32],
    /// `[rows, num_heads]`.
    pub steps: &'a [Step],
    pub sequences: &'a [Vec<StateRun>],
}

impl Heads<'_> {
    pub fn run(&self, isa: Isa, pool: &Pool, states: &SharedMatrix<'_, f32>, out: &mut [f32]) {
        let Mamba2Spec { num_heads, .. } = self.net.spec;
        let out = SharedMatrix::new(out, self.net.spec.inner_width());
        pool.run(self.sequences.len() * num_heads, |index| {
            let (runs, head) = (&self.sequences[index / num_heads], index % num_heads);
            isa.run(Unit { heads: self, runs, head, states, out: &out });
        });
    }
}

/// One head over all rows of a sequence.
struct Unit<'a> {
    heads: &'a Heads<'a>,
    runs: &'a [StateRun],
    head: usize,
    states: &'a SharedMatrix<'a, f32>,
    out: &'a SharedMatrix<'a, f32>,
}

impl Kernel for Unit<'_> {
    type Output = ();
    const ONLY_FLOATS: bool = true;

    #[inline(always)]
    fn run<V: Lanes>(self) {
        let Mamba2Spec { head_dim, state_dim, .. } = self.heads.net.spec;
        let matrix = self.heads.net.spec.blocks() * state_dim * LANES;
        let first = self.heads.net.conv.state_len() + self.head * matrix;
        for (index, run) in self.runs.iter().enumerate() {
            // SAFETY: sequences write to distinct pages (`StatePages::check`), units of a sequence to
            // distinct columns.
            let mut state = unsafe { run.state(index, self.states, first..first + matrix) };
            let results = self.head * head_dim..(self.head + 1) * head_dim;
            // SAFETY: as above, for rows.
            let mut out = unsafe { self.out.block(run.rows.clone(), results) };
            let columns = state.row(0).as_chunks_mut::<LANES>().0.chunks_exact_mut(state_dim);
            for (block, columns) in columns.enumerate() {
                self.run_columns::<V>(run.rows.clone(), columns, block * LANES, &mut out);
            }
        }
    }
}

impl Unit<'_> {
    /// Processes the rows for 16 columns, as many rows at a time as fit the registers.
    #[inline(always)]
    fn run_columns<V: Lanes>(
        &self,
        rows: Range<usize>,
        columns: &mut [[f32; LANES]],
        column: usize,
        out: &mut Block<'_, f32>,
    ) {
        let mut done = 0;
        while done < rows.len() {
            let (row, left) = (rows.start + done, rows.len() - done);
            done += match left {
                8.. if V::MANY_REGISTERS => self.tokens::<V, 8>(row, columns, column, done, out),
                4.. if V::MANY_REGISTERS => self.tokens::<V, 4>(row, columns, column, done, out),
                2.. if V::IN_REGISTERS => self.tokens::<V, 2>(row, columns, column, done, out),
                _ => self.tokens::<V, 1>(row, columns, column, done, out),
            };
        }
    }

    /// Processes `N` rows from `row` on for 16 columns of the matrix; returns `N`. The results are rows of
    /// `out` from `first` on.
    #[inline(always)]
    fn tokens<V: Lanes, const N: usize>(
        &self,
        row: usize,
        columns: &mut [[f32; LANES]],
        column: usize,
        first: usize,
        out: &mut Block<'_, f32>,
    ) -> usize {
        let Heads { net, mixed, steps, .. } = self.heads;
        let Mamba2Spec { num_heads, head_dim, num_groups, state_dim, .. } = net.spec;
        let (width, inner) = (net.spec.conv_width(), net.spec.inner_width());
        let b_start = inner + self.head / (num_heads / num_groups) * state_dim;
        let c_start = b_start + num_groups * state_dim;

        let (mut x, mut dt_x, mut alpha) = ([V::splat(0.0); N], [V::splat(0.0); N], [V::splat(0.0); N]);
        let (mut b, mut c): ([&[f32]; N], [&[f32]; N]) = ([&[]; N], [&[]; N]);
        for n in 0..N {
            let mixed = &mixed[(row + n) * width..][..width];
            let step = steps[(row + n) * num_heads + self.head];
            x[n] = load_part::<V>(&mixed[self.head * head_dim..][..head_dim][column..]);
            dt_x[n] = x[n].mul(V::splat(step.dt));
            alpha[n] = V::splat(step.alpha);
            b[n] = &mixed[b_start..][..columns.len()];
            c[n] = &mixed[c_start..][..columns.len()];
        }
        let mut sums = [V::splat(0.0); N];
        for i in 0..columns.len() {
            let mut state = V::load(&columns[i]);
            for n in 0..N {
                state = state.mul_add(alpha[n], dt_x[n].mul(V::splat(b[n][i])));
                sums[n] = state.mul_add(V::splat(c[n][i]), sums[n]);
            }
            state.store(&mut columns[i]);
        }
        let skip = V::splat(net.skips[self.head]);
        for n in 0..N {
            store_part(x[n].mul_add(skip, sums[n]), &mut out.row(first + n)[column..]);
        }
        N
    }
}

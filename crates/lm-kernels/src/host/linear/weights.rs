//! How one unit of packed weights is multiplied, by format.

use super::super::lanes::{LANES, Lanes};
use super::super::pack::{BLOCK, Bf16Unit, Block, F16Unit, Q4Block, Q8Block};
use super::activations::{Activation, QuantizedBlock};

/// Sixteen rows of a weight, one or more columns wide.
pub(super) trait Weights: Copy + Sync {
    /// Columns of a unit.
    const COLUMNS: usize;
    /// What the activations of these columns become.
    type Activation: Activation;
    /// Adds the products with `M` rows of activations to their sums.
    fn multiply<V: Lanes, const M: usize>(&self, x: &[Self::Activation; M], sums: &mut [V; M]);
}

impl Weights for [f32; LANES] {
    const COLUMNS: usize = 1;
    type Activation = f32;

    #[inline(always)]
    fn multiply<V: Lanes, const M: usize>(&self, x: &[f32; M], sums: &mut [V; M]) {
        multiply_column(V::load(self), x, sums);
    }
}

impl Weights for F16Unit {
    const COLUMNS: usize = 1;
    type Activation = f32;

    #[inline(always)]
    fn multiply<V: Lanes, const M: usize>(&self, x: &[f32; M], sums: &mut [V; M]) {
        multiply_column(V::load_f16(&self.0), x, sums);
    }
}

impl Weights for Bf16Unit {
    const COLUMNS: usize = 1;
    type Activation = f32;

    #[inline(always)]
    fn multiply<V: Lanes, const M: usize>(&self, x: &[f32; M], sums: &mut [V; M]) {
        multiply_column(V::load_bf16(&self.0), x, sums);
    }
}

impl Weights for Q8Block {
    const COLUMNS: usize = BLOCK;
    type Activation = QuantizedBlock;

    #[inline(always)]
    fn multiply<V: Lanes, const M: usize>(&self, x: &[QuantizedBlock; M], sums: &mut [V; M]) {
        multiply_block(self, x, sums);
    }
}

impl Weights for Q4Block {
    const COLUMNS: usize = BLOCK;
    type Activation = QuantizedBlock;

    #[inline(always)]
    fn multiply<V: Lanes, const M: usize>(&self, x: &[QuantizedBlock; M], sums: &mut [V; M]) {
        multiply_block(self, x, sums);
    }
}

#[inline(always)]
fn multiply_column<V: Lanes, const M: usize>(w: V, x: &[f32; M], sums: &mut [V; M]) {
    for (x, sum) in x.iter().zip(sums) {
        *sum = w.mul_add(V::splat(*x), *sum);
    }
}

/// `sum += (Σ w·x) · (w's scale · x's scale)`; the sum of the integers, at most 32 · 127 · 127, is exact.
#[inline(always)]
fn multiply_block<V: Lanes, B: Block, const M: usize>(w: &B, x: &[QuantizedBlock; M], sums: &mut [V; M]) {
    let (quants, scales) = (w.quants(), V::load_f16(w.scales()));
    for (x, sum) in x.iter().zip(sums) {
        let mut dot = V::zeros();
        for (pair, x) in quants.iter().zip(&x.pairs) {
            dot = V::add_pairs(dot, pair, *x);
        }
        *sum = V::from_ints(dot).mul_add(scales.mul(V::splat(x.scale)), *sum);
    }
}

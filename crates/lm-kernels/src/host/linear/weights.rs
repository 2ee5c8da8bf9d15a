//! How one unit of packed weights is multiplied, by format.

use super::super::lanes::{F32x16, LANES, bf16_to_f32, f16_to_f32};
use super::super::pack::{BLOCK, Bf16Unit, Block, F16Unit, Q4Block, Q8Block};
use super::activations::{Activation, QuantizedBlock};

/// Sixteen rows of a weight, one or more columns wide.
pub(super) trait Weights: Copy + Sync {
    /// Columns of a unit.
    const COLUMNS: usize;
    /// What the activations of these columns become.
    type Activation: Activation;
    /// Adds the products with `M` rows of activations to their sums.
    fn multiply<const M: usize>(&self, x: &[Self::Activation; M], sums: &mut [F32x16; M]);
}

impl Weights for [f32; LANES] {
    const COLUMNS: usize = 1;
    type Activation = f32;

    #[inline(always)]
    fn multiply<const M: usize>(&self, x: &[f32; M], sums: &mut [F32x16; M]) {
        multiply_column(F32x16(*self), x, sums);
    }
}

impl Weights for F16Unit {
    const COLUMNS: usize = 1;
    type Activation = f32;

    #[inline(always)]
    fn multiply<const M: usize>(&self, x: &[f32; M], sums: &mut [F32x16; M]) {
        multiply_column(F32x16(self.0.map(f16_to_f32)), x, sums);
    }
}

impl Weights for Bf16Unit {
    const COLUMNS: usize = 1;
    type Activation = f32;

    #[inline(always)]
    fn multiply<const M: usize>(&self, x: &[f32; M], sums: &mut [F32x16; M]) {
        multiply_column(F32x16(self.0.map(bf16_to_f32)), x, sums);
    }
}

impl Weights for Q8Block {
    const COLUMNS: usize = BLOCK;
    type Activation = QuantizedBlock;

    #[inline(always)]
    fn multiply<const M: usize>(&self, x: &[QuantizedBlock; M], sums: &mut [F32x16; M]) {
        multiply_block(self, x, sums);
    }
}

impl Weights for Q4Block {
    const COLUMNS: usize = BLOCK;
    type Activation = QuantizedBlock;

    #[inline(always)]
    fn multiply<const M: usize>(&self, x: &[QuantizedBlock; M], sums: &mut [F32x16; M]) {
        multiply_block(self, x, sums);
    }
}

#[inline(always)]
fn multiply_column<const M: usize>(w: F32x16, x: &[f32; M], sums: &mut [F32x16; M]) {
    for (x, sum) in x.iter().zip(sums) {
        *sum = w.mul_add(F32x16::splat(*x), *sum);
    }
}

/// `sum += (Σ w·x) · (w's scale · x's scale)`, the sum of the integers exact.
#[inline(always)]
fn multiply_block<B: Block, const M: usize>(w: &B, x: &[QuantizedBlock; M], sums: &mut [F32x16; M]) {
    let (quants, scales) = (w.quants(), w.scales());
    for (x, sum) in x.iter().zip(sums) {
        let mut dot = [0_i32; LANES];
        for (pair, x) in quants.iter().zip(&x.pairs) {
            for lane in 0..LANES {
                let products = [0, 1].map(|j| i32::from(pair[2 * lane + j]) * i32::from(x[j]));
                dot[lane] += products[0] + products[1];
            }
        }
        let scale = scales.zip(F32x16::splat(x.scale), |w, x| w * x);
        *sum = F32x16(dot.map(|dot| dot as f32)).mul_add(scale, *sum);
    }
}

//! Activations in the form that a weight format multiplies with.

use super::super::cpu::{Isa, Kernel};
use super::super::lanes::Lanes;
use super::super::pack::{BLOCK, round};
use super::super::pool::Pool;
use super::super::split::for_each_chunk;

/// One or more neighbouring activations of a row.
pub(super) trait Activation: Copy + Default + Send + Sync {
    /// How many.
    const COLUMNS: usize;
    /// Converts up to [`Self::COLUMNS`] of them; missing ones are zeros.
    fn new(x: &[f32]) -> Self;
}

impl Activation for f32 {
    const COLUMNS: usize = 1;

    #[inline(always)]
    fn new(x: &[f32]) -> Self {
        x[0]
    }
}

/// 32 activations as `scale * integer`, the integers from -127 to 127.
#[derive(Clone, Copy, Default)]
#[repr(C, align(4))]
pub(super) struct QuantizedBlock {
    /// The integers, two columns together as in [`Block`](super::super::pack::Block).
    pub pairs: [[i16; 2]; BLOCK / 2],
    /// NaN or infinite when an activation is, so that results are too.
    pub scale: f32,
}

impl Activation for QuantizedBlock {
    const COLUMNS: usize = BLOCK;

    #[inline(always)]
    fn new(x: &[f32]) -> Self {
        let mut padded = [0.0; BLOCK];
        padded[..x.len()].copy_from_slice(x);
        // Without their sign, floats are ordered like their bits, and NaN is the largest.
        let largest = padded.iter().fold(0, |largest, x| largest.max(x.abs().to_bits()));
        let scale = f32::from_bits(largest) / 127.0;
        // A block this small is as good as zero; its inverse would be infinite.
        let inverse = if scale < 1e-36 { 0.0 } else { 1.0 / scale };
        let mut pairs = [[0; 2]; BLOCK / 2];
        for (column, x) in padded.iter().enumerate() {
            pairs[column / 2][column % 2] = round(x * inverse) as i16;
        }
        Self { pairs, scale }
    }
}

/// The `m` rows of `x` in panels of `M`: for each panel and column (or block), the panel's rows side by side. The rows that the
/// last panel lacks are zeros.
pub(super) fn panels<A: Activation, const M: usize>(
    isa: Isa,
    pool: &Pool,
    x: &[f32],
    m: usize,
    cols: usize,
) -> Vec<[A; M]> {
    let depth = cols.div_ceil(A::COLUMNS);
    let mut out = vec![[A::default(); M]; m.div_ceil(M) * depth];
    for_each_chunk(pool, &mut out, depth, |panel, out| {
        let x = &x[panel * M * cols..((panel + 1) * M).min(m) * cols];
        isa.run(FillPanel { x, cols, out });
    });
    out
}

struct FillPanel<'a, A, const M: usize> {
    x: &'a [f32],
    cols: usize,
    out: &'a mut [[A; M]],
}

impl<A: Activation, const M: usize> Kernel for FillPanel<'_, A, M> {
    type Output = ();

    #[inline(always)]
    fn run<V: Lanes>(self) {
        for (member, row) in self.x.chunks_exact(self.cols).enumerate() {
            for (out, x) in self.out.iter_mut().zip(row.chunks(A::COLUMNS)) {
                out[member] = A::new(x);
            }
        }
    }
}

//! Quantised blocks: 16 rows × 32 columns with one scale per row.
//!
//! Columns come in pairs and rows side by side: entry `2 r + j` of pair `p` is column `2 p + j` of row `r`. Two products
//! of a pair are summed into the lane of their row, which is one instruction on wide registers.

use bytemuck::{Pod, Zeroable};

use super::super::lanes::{F32x16, LANES, Lanes, f16_to_f32};

/// Columns of a block.
pub(in crate::host) const BLOCK: usize = 32;

/// Quants of a block, widened: pair, then row and member of the pair.
pub(in crate::host) type Quants = [[i16; 2 * LANES]; BLOCK / 2];

/// A quantised block: `weight = scale * quant`.
pub(in crate::host) trait Block: Pod {
    /// The integers.
    fn quants(&self) -> Quants;
    /// Each row's scale, as the bits of a half.
    fn scales(&self) -> &[u16; LANES];
    /// Puts together a block.
    fn new(quants: &Quants, scales: [u16; LANES]) -> Self;
    /// Finds scales (as bits of halves) and integers for the values in `x`, column by column.
    fn quantize(x: &[F32x16; BLOCK]) -> (Quants, [u16; LANES]);
}

/// 8 bits: integers from -127 to 127, `f16` scales; 8.5 bits a weight.
#[derive(Clone, Copy)]
#[repr(C)]
pub(in crate::host) struct Q8Block {
    quants: [[i8; 2 * LANES]; BLOCK / 2],
    scales: [u16; LANES],
}

/// 4 bits: integers from -8 to 7, `f16` scales; 4.5 bits a weight. Each byte holds a quant, plus 8, of the first 16 columns in
/// its low half and one of the last 16 in its high half.
#[derive(Clone, Copy)]
#[repr(C)]
pub(in crate::host) struct Q4Block {
    quants: [[u8; 2 * LANES]; BLOCK / 4],
    scales: [u16; LANES],
}

// SAFETY: arrays of integers whose sizes are multiples of the alignment of 2: no padding, any bytes will do.
unsafe impl Zeroable for Q8Block {}
// SAFETY: as above; `Copy`, no niches, no references.
unsafe impl Pod for Q8Block {}
// SAFETY: as for `Q8Block`.
unsafe impl Zeroable for Q4Block {}
// SAFETY: as for `Q8Block`.
unsafe impl Pod for Q4Block {}

impl Block for Q8Block {
    #[inline(always)]
    fn quants(&self) -> Quants {
        let mut out = [[0; 2 * LANES]; BLOCK / 2];
        for (out, pair) in out.iter_mut().zip(&self.quants) {
            for (out, quant) in out.iter_mut().zip(pair) {
                *out = i16::from(*quant);
            }
        }
        out
    }

    #[inline(always)]
    fn scales(&self) -> &[u16; LANES] {
        &self.scales
    }

    #[inline(always)]
    fn new(quants: &Quants, scales: [u16; LANES]) -> Self {
        Self { quants: quants.map(|pair| pair.map(|quant| quant as i8)), scales }
    }

    /// The largest magnitude becomes 127; the scale is rounded up, so that nothing is cut off.
    #[inline(always)]
    fn quantize(x: &[F32x16; BLOCK]) -> (Quants, [u16; LANES]) {
        let largest = x.iter().fold(F32x16::ZERO, |largest, x| largest.zip(*x, |a, b| a.max(b.abs())));
        let scales = largest.map(|largest| largest / 127.0).0.map(half_not_below);
        (rounded(x, F32x16(scales.map(f16_to_f32)), -127.0, 127.0), scales)
    }
}

impl Block for Q4Block {
    #[inline(always)]
    fn quants(&self) -> Quants {
        let mut out = [[0; 2 * LANES]; BLOCK / 2];
        let (low, high) = out.split_at_mut(BLOCK / 4);
        for ((low, high), bytes) in low.iter_mut().zip(high).zip(&self.quants) {
            for ((low, high), byte) in low.iter_mut().zip(high).zip(bytes) {
                *low = i16::from(byte & 15) - 8;
                *high = i16::from(byte >> 4) - 8;
            }
        }
        out
    }

    #[inline(always)]
    fn scales(&self) -> &[u16; LANES] {
        &self.scales
    }

    #[inline(always)]
    fn new(quants: &Quants, scales: [u16; LANES]) -> Self {
        let mut out = Self { quants: [[0; 2 * LANES]; BLOCK / 4], scales };
        let (low, high) = quants.split_at(BLOCK / 4);
        for ((low, high), bytes) in low.iter().zip(high).zip(&mut out.quants) {
            for ((low, high), byte) in low.iter().zip(high).zip(bytes) {
                *byte = (low + 8) as u8 | ((high + 8) as u8) << 4;
            }
        }
        out
    }

    /// The scale with the least squared error of a few that take the largest magnitude to about -8.
    ///
    /// For given integers the best scale is Σxq / Σq², and it lowers the error by (Σxq)² / Σq².
    #[inline(always)]
    fn quantize(x: &[F32x16; BLOCK]) -> (Quants, [u16; LANES]) {
        let largest = x
            .iter()
            .fold(F32x16::ZERO, |largest, x| largest.zip(*x, |a, b| if b.abs() > a.abs() { b } else { a }));
        let mut best_gain = F32x16::ZERO;
        let mut best_scale = F32x16::ZERO;
        for target in [8.0_f32, 7.7, 7.4, 7.1, 6.8, 6.4, 6.0, 8.3, 8.6, 9.0] {
            let inverse = largest.map(|largest| if largest.abs() > TINY { -target / largest } else { 0.0 });
            let (mut xq, mut qq) = (F32x16::ZERO, F32x16::ZERO);
            for x in x {
                let q = x.zip(inverse, |x, inverse| round(x * inverse).clamp(-8.0, 7.0));
                xq = x.mul_add(q, xq);
                qq = q.mul_add(q, qq);
            }
            for lane in 0..LANES {
                let gain = xq.0[lane] * (xq.0[lane] / qq.0[lane]); // NaN without any quant: never the best
                if gain > best_gain.0[lane] {
                    best_gain.0[lane] = gain;
                    best_scale.0[lane] = xq.0[lane] / qq.0[lane];
                }
            }
        }
        let scales = best_scale.0.map(|scale| half::f16::from_f32(scale).to_bits());
        (rounded(x, F32x16(scales.map(f16_to_f32)), -8.0, 7.0), scales)
    }
}

/// Blocks whose largest magnitude is below this are zeros: a half could not hold their scale.
const TINY: f32 = 1e-8;

/// The nearest integers to `x / scale` between `low` and `high`; zeros where the scale is zero.
#[inline(always)]
fn rounded(x: &[F32x16; BLOCK], scale: F32x16, low: f32, high: f32) -> Quants {
    let inverse = scale.map(|scale| if scale == 0.0 { 0.0 } else { 1.0 / scale });
    let mut quants = [[0; 2 * LANES]; BLOCK / 2];
    for (column, x) in x.iter().enumerate() {
        let q = x.zip(inverse, |x, inverse| round(x * inverse).clamp(low, high));
        for lane in 0..LANES {
            quants[column / 2][2 * lane + column % 2] = q.0[lane] as i16;
        }
    }
    quants
}

/// The nearest integer, ties to even, of a number below 2^22.
#[inline(always)]
pub(in crate::host) fn round(x: f32) -> f32 {
    const SHIFT: f32 = 12_582_912.0; // 1.5 * 2^23: one unit in the last place is 1
    (x + SHIFT) - SHIFT
}

/// The bits of the smallest half that is not below a number without sign.
fn half_not_below(x: f32) -> u16 {
    let half = half::f16::from_f32(x);
    if half.to_f32() < x { half.to_bits() + 1 } else { half.to_bits() }
}

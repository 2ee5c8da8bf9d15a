//! Q4 layout: `weight = D · s · quant`, with a bf16 `D` per 256 columns of a row and an integer `s` of at
//! most ±15 per 32; 4.22 bits per weight.
//!
//! Byte `4 r + i` of line `j` of a group holds column `4 j + i` of row `r` in its low nibble and column
//! `16 + 4 j + i` in its high nibble, each with zero point 8. `s · quant` fits a signed byte.

use bytemuck::{Pod, Zeroable};

use super::super::lanes::{F32x16, LANES, Lanes, Line, bf16_to_f32};
use super::integer::{GROUP, IntegerLayout, Tile};
use super::quantize::{Quantize, inverse, low_bits};
use super::scale_search::Group;

/// Maximum magnitude of an integer scale.
pub(in crate::host) const MAX_SCALE: i8 = 15;

/// Groups per block.
const GROUPS: usize = 8;

/// Marker type of Q4.
pub(in crate::host) struct Q4;

/// Scales of 16 rows of a block.
#[derive(Clone, Copy)]
#[repr(C)]
pub(in crate::host) struct Q4Scales {
    /// `D` of each row, as bf16 bits.
    pub steps: [u16; LANES],
    /// Magnitudes of `s`, a byte per row: of group `2 i` in the low nibbles of entry `i`, of `2 i + 1` in the
    /// high ones.
    pub magnitudes: [[u8; LANES]; GROUPS / 2],
    /// Signs of each group: bit `r` is set if `s` of row `r` is negative.
    pub signs: [u16; GROUPS],
}

// SAFETY: arrays of integers, 32, 64 and 16 bytes long with an alignment of 2: no padding, any bytes are
// valid.
unsafe impl Zeroable for Q4Scales {}
// SAFETY: as above; `Copy`, no niches, no references.
unsafe impl Pod for Q4Scales {}

impl Q4Scales {
    /// Integer scale `s` of a row in one of the block's groups.
    pub(super) fn factor(&self, lane: usize, group: usize) -> i8 {
        let magnitude = (self.magnitudes[group / 2][lane] >> (group % 2 * 4) & 15) as i8;
        if self.signs[group] >> lane & 1 == 1 { -magnitude } else { magnitude }
    }

    /// Sets `s` of a row in one of the block's groups, which must be zero.
    #[inline(always)]
    pub(super) fn set_factor(&mut self, lane: usize, group: usize, factor: i8) {
        self.magnitudes[group / 2][lane] |= factor.unsigned_abs() << (group % 2 * 4);
        self.signs[group] |= u16::from(factor < 0) << lane;
    }
}

impl IntegerLayout for Q4 {
    const BLOCK: usize = 256;
    const GROUP_LINES: usize = 4;
    type Scales = Q4Scales;

    #[inline(always)]
    fn steps(scales: &Q4Scales) -> &[u16; LANES] {
        &scales.steps
    }

    fn quant(tile: &Tile<'_, Self>, lane: usize, group: usize, column: usize) -> i8 {
        let (half, column) = (column / (GROUP / 2), column % (GROUP / 2));
        let byte = tile.lines[group * Self::GROUP_LINES + column / 4][4 * lane + column % 4];
        (byte >> (4 * half) & 15) as i8 - 8
    }

    fn group_scale(tile: &Tile<'_, Self>, lane: usize, group: usize) -> i8 {
        tile.scales[group / GROUPS].factor(lane, group % GROUPS)
    }
}

impl Q4 {
    /// Writes the quants of one column of a group whose lines are zero; integers from -8 to 7.
    #[inline(always)]
    pub(super) fn set(lines: &mut [Line], column: usize, quants: F32x16) {
        let (half, column) = (column / (GROUP / 2), column % (GROUP / 2));
        let shift = 8 * (column % 4) + 4 * half;
        for (word, quant) in lines[column / 4].as_chunks_mut().0.iter_mut().zip(quants.0) {
            let nibble = low_bits(quant + 8.0) << shift;
            *word = (u32::from_le_bytes(*word) | nibble).to_le_bytes();
        }
    }
}

impl Quantize for Q4 {
    /// Each group finds its best scale; the block's largest becomes 15 steps, and the others take the best of
    /// the nearest step counts. With importances that is done for both weightings of the errors, and each row
    /// takes the scales with the lesser error by importance.
    #[inline(always)]
    fn quantize<V: Lanes>(x: &[F32x16], importances: &[F32x16], scales: &mut Q4Scales, lines: &mut [Line]) {
        let mut groups = [Group::EMPTY; GROUPS];
        let (x, importances) = (x.as_chunks::<GROUP>().0, importances.as_chunks::<GROUP>().0);
        for (group, x) in groups.iter_mut().zip(x) {
            *group = Group::new::<V>(x);
        }
        let mut chosen = BlockScales::search::<V>(&groups);
        if !importances.is_empty() {
            let mut weighted = groups;
            for (group, importances) in weighted.iter_mut().zip(importances) {
                *group = group.weighted(importances);
            }
            chosen.keep_best::<V>(&BlockScales::search::<V>(&weighted), &weighted);
        }
        scales.steps = chosen.steps;
        for (index, lines) in lines.chunks_mut(Self::GROUP_LINES).enumerate() {
            for (lane, factor) in chosen.factors[index].0.into_iter().enumerate() {
                scales.set_factor(lane, index, factor as i8);
            }
            groups[index].quants::<V>(&chosen.scale(index), |column, quants| {
                Self::set(lines, column, quants);
            });
        }
    }
}

/// Scales of 16 rows of a block, as floats.
struct BlockScales {
    /// `D` of each row, as bf16 bits.
    steps: [u16; LANES],
    /// `s` of each row in each group.
    factors: [F32x16; GROUPS],
}

impl BlockScales {
    /// Searches the scales with the least weighted error.
    #[inline(always)]
    fn search<V: Lanes>(groups: &[Group; GROUPS]) -> Self {
        let mut best = [F32x16::ZERO; GROUPS];
        for (best, group) in best.iter_mut().zip(groups) {
            *best = group.best_scale::<V>();
        }
        let largest = best.iter().fold(F32x16::ZERO, |a, b| a.zip(*b, |a, b| a.max(b.abs())));
        let step = largest.map(|largest| largest / f32::from(MAX_SCALE));
        let steps = step.0.map(|step| half::bf16::from_f32(step).to_bits());
        let mut scales = Self { steps, factors: [F32x16::ZERO; GROUPS] };
        let step = scales.step();
        for (index, group) in groups.iter().enumerate() {
            scales.factors[index] = group.best_factor::<V>(&best[index], &step);
        }
        scales
    }

    /// `D` of each row.
    #[inline(always)]
    fn step(&self) -> F32x16 {
        F32x16(self.steps.map(bf16_to_f32))
    }

    /// Scale of each row in a group.
    #[inline(always)]
    fn scale(&self, group: usize) -> F32x16 {
        self.factors[group].zip(self.step(), |factor, step| factor * step)
    }

    /// Takes the `others` in the rows where their weighted error is less.
    #[inline(always)]
    fn keep_best<V: Lanes>(&mut self, others: &Self, groups: &[Group; GROUPS]) {
        let largest = groups.iter().fold(F32x16::ZERO, |a, b| a.zip(*b.largest(), |a, b| a.max(b.abs())));
        let (mut gain, mut gain_of_others) = (F32x16::ZERO, F32x16::ZERO);
        for (index, group) in groups.iter().enumerate() {
            let unit = group.largest().zip(largest, |x, largest| (x * inverse(largest)).powi(2));
            for (sum, scales) in [(&mut gain, &*self), (&mut gain_of_others, others)] {
                let of_group = group.gain::<V>(&scales.scale(index));
                for lane in 0..LANES {
                    sum.0[lane] += of_group.0[lane] * unit.0[lane];
                }
            }
        }
        for lane in (0..LANES).filter(|&lane| gain_of_others.0[lane] > gain.0[lane]) {
            self.steps[lane] = others.steps[lane];
            for (factors, others) in self.factors.iter_mut().zip(&others.factors) {
                factors.0[lane] = others.0[lane];
            }
        }
    }
}

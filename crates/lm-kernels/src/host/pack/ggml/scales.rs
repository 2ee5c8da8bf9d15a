//! What the block types have beside their codes: one of seven forms.
//!
//! Integers of groups lie like codes: byte `4 r + i` of line `j` belongs to row `r` and group `4 j + i`.

use bytemuck::{Pod, Zeroable};
use half::f16;

use super::super::super::lanes::{LANES, Lanes, Line, f16_to_f32, power};
use super::{GROUP, RECORD};

/// Groups of 32 columns in a record.
const GROUPS: usize = RECORD / GROUP;

/// The scales of a record of 16 rows: a weight is `step · factor · quant + offset · min`.
pub(in crate::host) trait Scales: Pod + Sync {
    /// Columns that share them: 16 or 32.
    const COLUMNS: usize;

    /// The step of a group. Where there are factors, all groups have the same one.
    fn step<V: Lanes>(&self, group: usize) -> V;

    /// What the step is multiplied with, in each lane's bytes the integers of four groups; 1 if there are none.
    fn factors<V: Lanes>(&self, _quad: usize) -> Option<V::Bytes> {
        None
    }

    /// The offset of a group, if the type has offsets. Where there are factors, all groups have the same one.
    fn offset<V: Lanes>(&self, _group: usize) -> Option<V> {
        None
    }

    /// What the offset is multiplied with, like factors.
    fn mins<V: Lanes>(&self, _quad: usize) -> Option<V::Bytes> {
        None
    }

    /// For a group of a row `step · factor`, and `offset · min` if there are offsets.
    fn of_row(&self, lane: usize, group: usize) -> (f32, Option<f32>);
}

/// A half of each row for each group of 32 columns.
type HalfRows = [[u16; LANES]; GROUPS];

/// The bits of a half that a file has at a place, if it is finite.
fn half_at(block: &[u8], at: usize) -> Result<u16, f32> {
    let half = f16::from_le_bytes([block[at], block[at + 1]]);
    if half.is_finite() { Ok(half.to_bits()) } else { Err(half.to_f32()) }
}

macro_rules! scales_of_integers {
    ($($name:ident)+) => {$(
        // SAFETY: arrays of integers whose alignment of at most 2 divides the size of each: no padding, any bytes will do.
        unsafe impl Zeroable for $name {}
        // SAFETY: as above; `Copy`, no niches, no references.
        unsafe impl Pod for $name {}
        const _: () = assert!(size_of::<$name>().is_multiple_of(size_of::<Line>()));
    )+};
}

scales_of_integers!(Halves HalvesAndOffsets Exponents SixBits FactorsAndMins ShortFactors NibblePairs);

/// A half for each 32 columns.
#[derive(Clone, Copy)]
#[repr(C)]
pub(in crate::host) struct Halves(HalfRows);

impl Halves {
    /// Takes the step of a group of a row from a place in a block.
    pub fn set(&mut self, lane: usize, group: usize, block: &[u8], at: usize) -> Result<(), f32> {
        self.0[group][lane] = half_at(block, at)?;
        Ok(())
    }
}

impl Scales for Halves {
    const COLUMNS: usize = GROUP;

    #[inline(always)]
    fn step<V: Lanes>(&self, group: usize) -> V {
        V::load_f16(&self.0[group])
    }

    fn of_row(&self, lane: usize, group: usize) -> (f32, Option<f32>) {
        (f16_to_f32(self.0[group][lane]), None)
    }
}

/// Two halves for each 32 columns: step and offset.
#[derive(Clone, Copy)]
#[repr(C)]
pub(in crate::host) struct HalvesAndOffsets {
    steps: HalfRows,
    offsets: HalfRows,
}

impl HalvesAndOffsets {
    /// Takes step and offset of a group of a row from the first bytes of a block.
    pub fn set(&mut self, lane: usize, group: usize, block: &[u8]) -> Result<(), f32> {
        self.steps[group][lane] = half_at(block, 0)?;
        self.offsets[group][lane] = half_at(block, 2)?;
        Ok(())
    }
}

impl Scales for HalvesAndOffsets {
    const COLUMNS: usize = GROUP;

    #[inline(always)]
    fn step<V: Lanes>(&self, group: usize) -> V {
        V::load_f16(&self.steps[group])
    }

    #[inline(always)]
    fn offset<V: Lanes>(&self, group: usize) -> Option<V> {
        Some(V::load_f16(&self.offsets[group]))
    }

    fn of_row(&self, lane: usize, group: usize) -> (f32, Option<f32>) {
        (f16_to_f32(self.steps[group][lane]), Some(f16_to_f32(self.offsets[group][lane])))
    }
}

/// A power of two for each 32 columns: 2^(e - 128), since the table of quants is doubled.
#[derive(Clone, Copy)]
#[repr(C)]
pub(in crate::host) struct Exponents([[u8; LANES]; GROUPS]);

impl Exponents {
    /// Sets the exponent of a group of a row. The largest stands for no number.
    pub fn set(&mut self, lane: usize, group: usize, exponent: u8) -> Result<(), f32> {
        self.0[group][lane] = exponent;
        if exponent == u8::MAX { Err(f32::NAN) } else { Ok(()) }
    }
}

impl Scales for Exponents {
    const COLUMNS: usize = GROUP;

    #[inline(always)]
    fn step<V: Lanes>(&self, group: usize) -> V {
        V::load_powers(&self.0[group])
    }

    fn of_row(&self, lane: usize, group: usize) -> (f32, Option<f32>) {
        (power(self.0[group][lane]), None)
    }
}

/// 16 integers of 6 bits and two halves for each row.
#[derive(Clone, Copy)]
#[repr(C)]
struct SixBits {
    step: [u16; LANES],
    min_step: [u16; LANES],
    /// The low four bits: line `i` has those of line `2 i` in the low halves of its bytes, those of `2 i + 1` in the high ones.
    low: [Line; 2],
    /// The high two: of lines 0 to 3, lowest bits first.
    high: Line,
}

impl SixBits {
    fn set(&mut self, lane: usize, values: &[u8; 16]) {
        for (index, value) in values.iter().enumerate() {
            let (line, byte) = (index / 4, 4 * lane + index % 4);
            self.low[line / 2][byte] |= (value & 15) << (line % 2 * 4);
            self.high[byte] |= (value >> 4 & 3) << (2 * line);
        }
    }

    fn get(&self, lane: usize, index: usize) -> u8 {
        let (line, byte) = (index / 4, 4 * lane + index % 4);
        (self.low[line / 2][byte] >> (line % 2 * 4) & 15) | (self.high[byte] >> (2 * line) & 3) << 4
    }

    /// A line of the integers; `high` is what their high bits stand for.
    #[inline(always)]
    fn line<V: Lanes>(&self, line: usize, high: &[u8; 16]) -> V::Bytes {
        let low = V::bits_of(V::load_bytes(&self.low[line / 2]), line as i32 % 2 * 4, 15);
        V::join(low, V::look_up(high, V::bits_of(V::load_bytes(&self.high), 2 * line as i32, 3)))
    }
}

/// What the high two of six bits stand for: without sign, and for numbers that are 32 less.
const UNSIGNED: [u8; 16] = [0, 16, 32, 48, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0];
const SIGNED: [u8; 16] = [0xe0, 0xf0, 0, 16, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0];

/// The offsets that minimums are multiplied with.
#[inline(always)]
fn negative<V: Lanes>(min_step: &[u16; LANES]) -> Option<V> {
    Some(V::load_f16(min_step).mul(V::splat(-1.0)))
}

/// For each 32 columns a factor and a minimum of 6 bits without sign, for 256 the two floats that they are multiplied with.
#[derive(Clone, Copy)]
#[repr(transparent)]
pub(in crate::host) struct FactorsAndMins(SixBits);

impl FactorsAndMins {
    /// Takes the scales of a row from the first 16 bytes of a block: two halves, then 12 bytes. The first four of these have the
    /// factors of groups 0 to 3 in their low 6 bits, the next four their minimums, the last four the low four bits of
    /// factors (low halves) and minimums (high halves) of groups 4 to 7; whose high bits are those of the first eight.
    pub fn set(&mut self, lane: usize, block: &[u8]) -> Result<(), f32> {
        self.0.step[lane] = half_at(block, 0)?;
        self.0.min_step[lane] = half_at(block, 2)?;
        let bytes = &block[4..16];
        let mut values = [0; 16];
        for group in 0..4 {
            values[group] = bytes[group] & 63;
            values[8 + group] = bytes[4 + group] & 63;
            values[4 + group] = bytes[8 + group] & 15 | bytes[group] >> 6 << 4;
            values[12 + group] = bytes[8 + group] >> 4 | bytes[4 + group] >> 6 << 4;
        }
        self.0.set(lane, &values);
        Ok(())
    }
}

impl Scales for FactorsAndMins {
    const COLUMNS: usize = GROUP;

    #[inline(always)]
    fn step<V: Lanes>(&self, _: usize) -> V {
        V::load_f16(&self.0.step)
    }

    #[inline(always)]
    fn factors<V: Lanes>(&self, quad: usize) -> Option<V::Bytes> {
        Some(self.0.line::<V>(quad, &UNSIGNED))
    }

    #[inline(always)]
    fn offset<V: Lanes>(&self, _: usize) -> Option<V> {
        negative(&self.0.min_step)
    }

    #[inline(always)]
    fn mins<V: Lanes>(&self, quad: usize) -> Option<V::Bytes> {
        Some(self.0.line::<V>(2 + quad, &UNSIGNED))
    }

    fn of_row(&self, lane: usize, group: usize) -> (f32, Option<f32>) {
        let (step, min_step) = (f16_to_f32(self.0.step[lane]), f16_to_f32(self.0.min_step[lane]));
        let (factor, min) = (self.0.get(lane, group), self.0.get(lane, 8 + group));
        (step * f32::from(factor), Some(-(min_step * f32::from(min))))
    }
}

/// For each 16 columns a factor from -32 to 31, for 256 a half.
#[derive(Clone, Copy)]
#[repr(transparent)]
pub(in crate::host) struct ShortFactors(SixBits);

impl ShortFactors {
    /// Takes the scales of a row from the last 14 bytes of a block: 12 with the factors, plus 32 each, and a half. Byte `i` of the first
    /// eight has the low bits of factors `i` and `8 + i`, byte `i` of the other four the high bits of `i`, `4 + i`, `8 + i` and `12 + i`.
    pub fn set(&mut self, lane: usize, block: &[u8]) -> Result<(), f32> {
        self.0.step[lane] = half_at(block, 12)?;
        let mut values = [0; 16];
        for (i, value) in values.iter_mut().enumerate() {
            let low = block[i % 8] >> (i / 8 * 4) & 15;
            let high = block[8 + i % 4] >> (i / 4 * 2) & 3;
            *value = low | high << 4;
        }
        self.0.set(lane, &values);
        Ok(())
    }
}

impl Scales for ShortFactors {
    const COLUMNS: usize = 16;

    #[inline(always)]
    fn step<V: Lanes>(&self, _: usize) -> V {
        V::load_f16(&self.0.step)
    }

    #[inline(always)]
    fn factors<V: Lanes>(&self, quad: usize) -> Option<V::Bytes> {
        Some(self.0.line::<V>(quad, &SIGNED))
    }

    fn of_row(&self, lane: usize, group: usize) -> (f32, Option<f32>) {
        (f16_to_f32(self.0.step[lane]) * (f32::from(self.0.get(lane, group)) - 32.0), None)
    }
}

/// For each 16 columns (4 lines of them) or 32 (2 lines) a signed byte, for 256 a half that is divided by 2 to the power of `DOWN`.
#[derive(Clone, Copy)]
#[repr(C)]
pub(in crate::host) struct ByteFactors<const FACTOR_LINES: usize, const DOWN: u32> {
    factors: [Line; FACTOR_LINES],
    step: [u16; LANES],
    filling: [u16; LANES],
}

// SAFETY: lines of bytes, then a line of 16-bit integers: no padding, any bytes will do.
unsafe impl<const FACTOR_LINES: usize, const DOWN: u32> Zeroable for ByteFactors<FACTOR_LINES, DOWN> {}
// SAFETY: as above; `Copy`, no niches, no references.
unsafe impl<const FACTOR_LINES: usize, const DOWN: u32> Pod for ByteFactors<FACTOR_LINES, DOWN> {}
const _: () = assert!(size_of::<ByteFactors<2, 0>>() == 3 * size_of::<Line>());

impl<const FACTOR_LINES: usize, const DOWN: u32> ByteFactors<FACTOR_LINES, DOWN> {
    /// What the half is multiplied with.
    const UNIT: f32 = 1.0 / (1_u32 << DOWN) as f32;

    /// Takes the scales of a row: a half, and a factor for each group.
    pub fn set(&mut self, lane: usize, half: [u8; 2], factors: impl Fn(usize) -> i8) -> Result<(), f32> {
        self.step[lane] = half_at(&half, 0)?;
        for (index, line) in self.factors.iter_mut().enumerate() {
            line.as_chunks_mut::<4>().0[lane] = std::array::from_fn(|i| factors(4 * index + i) as u8);
        }
        Ok(())
    }
}

impl<const FACTOR_LINES: usize, const DOWN: u32> Scales for ByteFactors<FACTOR_LINES, DOWN> {
    const COLUMNS: usize = RECORD / (4 * FACTOR_LINES);

    #[inline(always)]
    fn step<V: Lanes>(&self, _: usize) -> V {
        let step = V::load_f16(&self.step);
        if DOWN == 0 { step } else { step.mul(V::splat(Self::UNIT)) }
    }

    #[inline(always)]
    fn factors<V: Lanes>(&self, quad: usize) -> Option<V::Bytes> {
        Some(V::load_bytes(&self.factors[quad]))
    }

    fn of_row(&self, lane: usize, group: usize) -> (f32, Option<f32>) {
        let factor = self.factors[group / 4][4 * lane + group % 4] as i8;
        (f16_to_f32(self.step[lane]) * Self::UNIT * f32::from(factor), None)
    }
}

/// For each 16 columns a factor and a minimum of 4 bits without sign, for 256 two halves.
#[derive(Clone, Copy)]
#[repr(C)]
pub(in crate::host) struct NibblePairs {
    /// Factors in the low halves of the bytes, minimums in the high ones.
    pairs: [Line; 4],
    step: [u16; LANES],
    min_step: [u16; LANES],
}

impl NibblePairs {
    /// Takes the scales of a row: 16 pairs from the first bytes of a block, step and minimums' step from its last four.
    pub fn set(&mut self, lane: usize, pairs: &[u8], halves: &[u8]) -> Result<(), f32> {
        self.step[lane] = half_at(halves, 0)?;
        self.min_step[lane] = half_at(halves, 2)?;
        for (line, pairs) in self.pairs.iter_mut().zip(pairs.as_chunks::<4>().0) {
            line.as_chunks_mut::<4>().0[lane] = *pairs;
        }
        Ok(())
    }
}

impl Scales for NibblePairs {
    const COLUMNS: usize = 16;

    #[inline(always)]
    fn step<V: Lanes>(&self, _: usize) -> V {
        V::load_f16(&self.step)
    }

    #[inline(always)]
    fn factors<V: Lanes>(&self, quad: usize) -> Option<V::Bytes> {
        Some(V::bits_of(V::load_bytes(&self.pairs[quad]), 0, 15))
    }

    #[inline(always)]
    fn offset<V: Lanes>(&self, _: usize) -> Option<V> {
        negative(&self.min_step)
    }

    #[inline(always)]
    fn mins<V: Lanes>(&self, quad: usize) -> Option<V::Bytes> {
        Some(V::bits_of(V::load_bytes(&self.pairs[quad]), 4, 15))
    }

    fn of_row(&self, lane: usize, group: usize) -> (f32, Option<f32>) {
        let pair = self.pairs[group / 4][4 * lane + group % 4];
        let (step, min_step) = (f16_to_f32(self.step[lane]), f16_to_f32(self.min_step[lane]));
        (step * f32::from(pair & 15), Some(-(min_step * f32::from(pair >> 4))))
    }
}

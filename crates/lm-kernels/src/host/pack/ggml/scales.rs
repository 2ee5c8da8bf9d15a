//! Scales of the block types, in one of seven layouts.
//!
//! Group integers are laid out like codes: byte `4 r + i` of line `j` belongs to row `r` and group `4 j + i`.

use bytemuck::{Pod, Zeroable};
use half::f16;

use super::super::super::lanes::{LANES, Lanes, Line, exp2, f16_to_f32};
use super::{GROUP, RECORD};

/// Groups of 32 columns per record.
const GROUPS: usize = RECORD / GROUP;

/// Scales of a record of 16 rows: a weight is `step · factor · quant + offset · min`.
pub(in crate::host) trait Scales: Pod + Sync {
    /// Columns per group: 16 or 32.
    const COLUMNS: usize;

    /// The scale of a group. With factors, it is the super-block scale and the same for all groups.
    fn step<V: Lanes>(&self, group: usize) -> V;

    /// Integer scales that the step is multiplied by, those of four groups in each lane's bytes; `None` if
    /// the type has none (factor 1).
    fn factors<V: Lanes>(&self, _quad: usize) -> Option<V::Bytes> {
        None
    }

    /// The offset of a group, if the type has offsets. With factors, all groups have the same one.
    fn offset<V: Lanes>(&self, _group: usize) -> Option<V> {
        None
    }

    /// Integer mins that the offset is multiplied by, laid out like the factors.
    fn mins<V: Lanes>(&self, _quad: usize) -> Option<V::Bytes> {
        None
    }

    /// For a group of a row, `step · factor`, and `offset · min` if there are offsets.
    fn of_row(&self, lane: usize, group: usize) -> (f32, Option<f32>);
}

/// Scales of one row of a record, from a group of 32 columns on.
pub(in crate::host) struct RowScales<'a, S> {
    pub scales: &'a mut S,
    pub lane: usize,
    pub group: usize,
}

/// An f16 of each row for each group of 32 columns.
type F16Rows = [[u16; LANES]; GROUPS];

/// Reads the bits of an f16 at an offset of a block, which must be finite.
fn f16_at(block: &[u8], at: usize) -> Result<u16, f32> {
    let half = f16::from_le_bytes([block[at], block[at + 1]]);
    if half.is_finite() { Ok(half.to_bits()) } else { Err(half.to_f32()) }
}

macro_rules! scales_of_integers {
    ($($name:ident)+) => {$(
        // SAFETY: arrays of integers whose alignment of at most 2 divides the size of each: no padding, any
        // bytes are valid.
        unsafe impl Zeroable for $name {}
        // SAFETY: as above; `Copy`, no niches, no references.
        unsafe impl Pod for $name {}
        const _: () = assert!(size_of::<$name>().is_multiple_of(size_of::<Line>()));
    )+};
}

scales_of_integers!(F16Scales F16ScalesAndOffsets E8M0Scales SixBits SixBitScalesAndMins SixBitScales FourBitScalesAndMins);

/// An f16 scale per 32 columns.
#[derive(Clone, Copy)]
#[repr(C)]
pub(in crate::host) struct F16Scales(F16Rows);

impl RowScales<'_, F16Scales> {
    /// Reads the scale of a group from the first bytes of a block.
    pub fn set(self, block: &[u8]) -> Result<(), f32> {
        self.scales.0[self.group][self.lane] = f16_at(block, 0)?;
        Ok(())
    }
}

impl Scales for F16Scales {
    const COLUMNS: usize = GROUP;

    #[inline(always)]
    fn step<V: Lanes>(&self, group: usize) -> V {
        V::load_f16(&self.0[group])
    }

    fn of_row(&self, lane: usize, group: usize) -> (f32, Option<f32>) {
        (f16_to_f32(self.0[group][lane]), None)
    }
}

/// An f16 scale and an f16 offset per 32 columns.
#[derive(Clone, Copy)]
#[repr(C)]
pub(in crate::host) struct F16ScalesAndOffsets {
    steps: F16Rows,
    offsets: F16Rows,
}

impl RowScales<'_, F16ScalesAndOffsets> {
    /// Reads scale and offset of a group from the first bytes of a block.
    pub fn set(self, block: &[u8]) -> Result<(), f32> {
        self.scales.steps[self.group][self.lane] = f16_at(block, 0)?;
        self.scales.offsets[self.group][self.lane] = f16_at(block, 2)?;
        Ok(())
    }
}

impl Scales for F16ScalesAndOffsets {
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

/// A power-of-two scale (E8M0) per 32 columns: 2^(e - 128), since the table of quants is doubled.
#[derive(Clone, Copy)]
#[repr(C)]
pub(in crate::host) struct E8M0Scales([[u8; LANES]; GROUPS]);

impl RowScales<'_, E8M0Scales> {
    /// Sets the exponent of a group. 255 is NaN, an error.
    pub fn set(self, exponent: u8) -> Result<(), f32> {
        self.scales.0[self.group][self.lane] = exponent;
        if exponent == u8::MAX { Err(f32::NAN) } else { Ok(()) }
    }
}

impl Scales for E8M0Scales {
    const COLUMNS: usize = GROUP;

    #[inline(always)]
    fn step<V: Lanes>(&self, group: usize) -> V {
        V::load_exp2(&self.0[group])
    }

    fn of_row(&self, lane: usize, group: usize) -> (f32, Option<f32>) {
        (exp2(self.0[group][lane]), None)
    }
}

/// 16 integers of 6 bits and two f16 values for each row.
#[derive(Clone, Copy)]
#[repr(C)]
struct SixBits {
    step: [u16; LANES],
    min_step: [u16; LANES],
    /// Low four bits: line `i` has those of line `2 i` in its low nibbles, those of `2 i + 1` in its high
    /// ones.
    low: [Line; 2],
    /// High two bits: of lines 0 to 3, lowest bits first.
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

    /// Unpacks a line of the integers; `high` maps their high bits to values.
    #[inline(always)]
    fn line<V: Lanes>(&self, line: usize, high: &[u8; 16]) -> V::Bytes {
        let low = V::bits_of(V::load_bytes(&self.low[line / 2]), line as i32 % 2 * 4, 15);
        V::or(low, V::shuffle(high, V::bits_of(V::load_bytes(&self.high), 2 * line as i32, 3)))
    }
}

/// Values of the high two of six bits: unsigned, and with a zero point of 32.
const UNSIGNED: [u8; 16] = [0, 16, 32, 48, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0];
const SIGNED: [u8; 16] = [0xe0, 0xf0, 0, 16, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0];

/// The negated scale of the mins: the offsets that they are multiplied by.
#[inline(always)]
fn negative<V: Lanes>(min_step: &[u16; LANES]) -> Option<V> {
    Some(V::load_f16(min_step).mul(V::splat(-1.0)))
}

/// An unsigned 6-bit scale and min per 32 columns, and two f16 super-block scales for them per 256.
#[derive(Clone, Copy)]
#[repr(transparent)]
pub(in crate::host) struct SixBitScalesAndMins(SixBits);

impl RowScales<'_, SixBitScalesAndMins> {
    /// Reads the scales from the first 16 bytes of a block: two f16 values, then 12 bytes. The first
    /// four of these have the scales of groups 0 to 3 in their low 6 bits, the next four their mins, the last
    /// four the low four bits of the scales (low nibbles) and mins (high nibbles) of groups 4 to 7, whose
    /// high bits are in the upper two bits of the first eight.
    pub fn set(self, block: &[u8]) -> Result<(), f32> {
        let (SixBitScalesAndMins(scales), lane) = (self.scales, self.lane);
        scales.step[lane] = f16_at(block, 0)?;
        scales.min_step[lane] = f16_at(block, 2)?;
        let bytes = &block[4..16];
        let mut values = [0; 16];
        for group in 0..4 {
            values[group] = bytes[group] & 63;
            values[8 + group] = bytes[4 + group] & 63;
            values[4 + group] = bytes[8 + group] & 15 | bytes[group] >> 6 << 4;
            values[12 + group] = bytes[8 + group] >> 4 | bytes[4 + group] >> 6 << 4;
        }
        scales.set(lane, &values);
        Ok(())
    }
}

impl Scales for SixBitScalesAndMins {
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

/// A 6-bit scale from -32 to 31 per 16 columns, and an f16 super-block scale per 256.
#[derive(Clone, Copy)]
#[repr(transparent)]
pub(in crate::host) struct SixBitScales(SixBits);

impl RowScales<'_, SixBitScales> {
    /// Reads the scales from the last 14 bytes of a block: 12 with the integers, plus 32 each, and
    /// an f16. Byte `i` of the first eight has the low bits of scales `i` and `8 + i`, byte `i` of the other
    /// four the high bits of `i`, `4 + i`, `8 + i` and `12 + i`.
    pub fn set(self, block: &[u8]) -> Result<(), f32> {
        let (SixBitScales(scales), lane) = (self.scales, self.lane);
        scales.step[lane] = f16_at(block, 12)?;
        let mut values = [0; 16];
        for (i, value) in values.iter_mut().enumerate() {
            let low = block[i % 8] >> (i / 8 * 4) & 15;
            let high = block[8 + i % 4] >> (i / 4 * 2) & 3;
            *value = low | high << 4;
        }
        scales.set(lane, &values);
        Ok(())
    }
}

impl Scales for SixBitScales {
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

/// A signed 8-bit scale per 16 columns (4 lines) or 32 (2 lines), and an f16 super-block scale per 256,
/// divided by 2^`LOG2_DIVISOR`.
#[derive(Clone, Copy)]
#[repr(C)]
pub(in crate::host) struct Int8Scales<const FACTOR_LINES: usize, const LOG2_DIVISOR: u32> {
    factors: [Line; FACTOR_LINES],
    step: [u16; LANES],
    filling: [u16; LANES],
}

// SAFETY: lines of bytes, then a line of 16-bit integers: no padding, any bytes are valid.
unsafe impl<const FACTOR_LINES: usize, const LOG2_DIVISOR: u32> Zeroable
    for Int8Scales<FACTOR_LINES, LOG2_DIVISOR>
{
}
// SAFETY: as above; `Copy`, no niches, no references.
unsafe impl<const FACTOR_LINES: usize, const LOG2_DIVISOR: u32> Pod
    for Int8Scales<FACTOR_LINES, LOG2_DIVISOR>
{
}
const _: () = assert!(size_of::<Int8Scales<2, 0>>() == 3 * size_of::<Line>());

impl<const FACTOR_LINES: usize, const LOG2_DIVISOR: u32> Int8Scales<FACTOR_LINES, LOG2_DIVISOR> {
    /// Factor of the f16 scale.
    const UNIT: f32 = 1.0 / (1_u32 << LOG2_DIVISOR) as f32;
}

impl<const FACTOR_LINES: usize, const LOG2_DIVISOR: u32>
    RowScales<'_, Int8Scales<FACTOR_LINES, LOG2_DIVISOR>>
{
    /// Sets the scales: an f16 from the first bytes of `half`, and an integer for each group.
    pub fn set(self, half: &[u8], factors: impl Fn(usize) -> i8) -> Result<(), f32> {
        self.scales.step[self.lane] = f16_at(half, 0)?;
        for (index, line) in self.scales.factors.iter_mut().enumerate() {
            line.as_chunks_mut::<4>().0[self.lane] = std::array::from_fn(|i| factors(4 * index + i) as u8);
        }
        Ok(())
    }
}

impl<const FACTOR_LINES: usize, const LOG2_DIVISOR: u32> Scales for Int8Scales<FACTOR_LINES, LOG2_DIVISOR> {
    const COLUMNS: usize = RECORD / (4 * FACTOR_LINES);

    #[inline(always)]
    fn step<V: Lanes>(&self, _: usize) -> V {
        let step = V::load_f16(&self.step);
        if LOG2_DIVISOR == 0 { step } else { step.mul(V::splat(Self::UNIT)) }
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

/// An unsigned 4-bit scale and min per 16 columns, and two f16 super-block scales per 256.
#[derive(Clone, Copy)]
#[repr(C)]
pub(in crate::host) struct FourBitScalesAndMins {
    /// Scales in the low nibbles, mins in the high ones.
    pairs: [Line; 4],
    step: [u16; LANES],
    min_step: [u16; LANES],
}

impl RowScales<'_, FourBitScalesAndMins> {
    /// Reads the scales: 16 pairs from the first bytes of a block, the super-block scales of scales
    /// and mins from its last four.
    pub fn set(self, pairs: &[u8], halves: &[u8]) -> Result<(), f32> {
        let (scales, lane) = (self.scales, self.lane);
        scales.step[lane] = f16_at(halves, 0)?;
        scales.min_step[lane] = f16_at(halves, 2)?;
        for (line, pairs) in scales.pairs.iter_mut().zip(pairs.as_chunks::<4>().0) {
            line.as_chunks_mut::<4>().0[lane] = *pairs;
        }
        Ok(())
    }
}

impl Scales for FourBitScalesAndMins {
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

//! Portable sixteen-lane vectors.

use super::super::matrix_unit::NoMatrixUnit;
use super::float::{bf16_to_f32, exp2, f16_to_f32};
use super::vector::{Kernel, LANES, Lanes, Line, ZeroPointCorrection};

/// Sixteen floats in an array; the reference implementation.
#[derive(Clone, Copy)]
#[repr(C, align(64))]
pub(in crate::host) struct F32x16(pub [f32; LANES]);

impl F32x16 {
    pub const ZERO: Self = Self([0.0; LANES]);

    #[inline(always)]
    pub fn map(self, f: impl Fn(f32) -> f32) -> Self {
        Self(each_lane(|lane| f(self.0[lane])))
    }

    #[inline(always)]
    pub fn zip(self, other: Self, f: impl Fn(f32, f32) -> f32) -> Self {
        Self(each_lane(|lane| f(self.0[lane], other.0[lane])))
    }
}

impl Lanes for F32x16 {
    type Unit = NoMatrixUnit;
    type Ints = [i32; LANES];
    type Bytes = Line;
    type Quad = [i8; 4];
    type CodeSums = [i32; LANES];
    type NibbleSums = [i32; LANES];
    type Factors = [i32; LANES];
    type Pairs = [[i16; 2]; LANES];
    const IN_REGISTERS: bool = false;
    const MANY_REGISTERS: bool = false;
    const PANELS: bool = false;

    #[inline(never)]
    fn call<K: Kernel>(kernel: K) -> K::Output {
        kernel.run::<Self>()
    }

    #[inline(always)]
    fn splat(value: f32) -> Self {
        Self([value; LANES])
    }

    #[inline(always)]
    fn load(x: &[f32; LANES]) -> Self {
        Self(*x)
    }

    #[inline(always)]
    fn load_f16(bits: &[u16; LANES]) -> Self {
        Self(each_lane(|lane| f16_to_f32(bits[lane])))
    }

    #[inline(always)]
    fn load_bf16(bits: &[u16; LANES]) -> Self {
        Self(each_lane(|lane| bf16_to_f32(bits[lane])))
    }

    #[inline(always)]
    fn load_exp2(exponents: &[u8; LANES]) -> Self {
        Self(each_lane(|lane| exp2(exponents[lane])))
    }

    #[inline(always)]
    fn store(self, out: &mut [f32; LANES]) {
        *out = self.0;
    }

    #[inline(always)]
    fn mul(self, factor: Self) -> Self {
        self.zip(factor, |x, factor| x * factor)
    }

    #[inline(always)]
    fn mul_add(self, factor: Self, addend: Self) -> Self {
        Self(each_lane(|lane| self.0[lane].mul_add(factor.0[lane], addend.0[lane])))
    }

    #[inline(always)]
    fn min(self, other: Self) -> Self {
        self.zip(other, |a, b| if a < b { a } else { b })
    }

    #[inline(always)]
    fn max(self, other: Self) -> Self {
        self.zip(other, |a, b| if a > b { a } else { b })
    }

    #[inline(always)]
    fn transpose(lines: [&Line; LANES]) -> [[u32; LANES]; LANES] {
        let mut out = [[0; LANES]; LANES];
        for (lane, line) in lines.into_iter().enumerate() {
            for (out, word) in out.iter_mut().zip(line.as_chunks().0) {
                out[lane] = u32::from_le_bytes(*word);
            }
        }
        out
    }

    #[inline(always)]
    fn halves(words: &[u32; LANES]) -> [[u16; LANES]; 2] {
        [each_lane(|lane| words[lane] as u16), each_lane(|lane| (words[lane] >> 16) as u16)]
    }

    #[inline(always)]
    fn sum(self) -> f32 {
        let mut lanes = self.0;
        for half in [8, 4, 2, 1] {
            for lane in 0..half {
                lanes[lane] += lanes[lane + half];
            }
        }
        lanes[0]
    }

    #[inline(always)]
    fn splat_int(value: i32) -> [i32; LANES] {
        [value; LANES]
    }

    #[inline(always)]
    fn load_bytes(line: &Line) -> Line {
        *line
    }

    #[inline(always)]
    fn store_bytes(bytes: Line, line: &mut Line) {
        *line = bytes;
    }

    #[inline(always)]
    fn load_nibbles(line: &Line) -> [Line; 2] {
        [line.map(|byte| byte & 15), line.map(|byte| byte >> 4)]
    }

    #[inline(always)]
    fn bits_of(bytes: Line, shift: i32, mask: u8) -> Line {
        let mut out = bytes;
        for byte in &mut out {
            *byte = (if shift >= 0 { *byte >> shift } else { *byte << -shift }) & mask;
        }
        out
    }

    #[inline(always)]
    fn or(a: Line, b: Line) -> Line {
        let mut out = a;
        for (out, b) in out.iter_mut().zip(b) {
            *out |= b;
        }
        out
    }

    #[inline(always)]
    fn shuffle(table: &[u8; 16], bytes: Line) -> Line {
        let mut out = bytes;
        for byte in &mut out {
            *byte = table[usize::from(*byte & 15)];
        }
        out
    }

    #[inline(always)]
    fn first_bytes(bytes: Line) -> [i32; LANES] {
        each_lane(|lane| i32::from(bytes[4 * lane] as i8))
    }

    #[inline(always)]
    fn next_bytes(bytes: Line) -> Line {
        let mut out = bytes;
        for word in out.as_chunks_mut::<4>().0 {
            *word = [word[1], word[2], word[3], 0];
        }
        out
    }

    #[inline(always)]
    fn pair(bytes: Line, which: [u8; 2]) -> [[i16; 2]; LANES] {
        let byte = |lane: usize, i: u8| i16::from(bytes[4 * lane + usize::from(i)]);
        each_lane(|lane| [byte(lane, which[0]), byte(lane, which[1])])
    }

    #[inline(always)]
    fn quad(x: [i8; 4]) -> [i8; 4] {
        x
    }

    #[inline(always)]
    fn start_bytes(correction: i32) -> [i32; LANES] {
        [correction; LANES]
    }

    #[inline(always)]
    fn dot_bytes(sums: [i32; LANES], w: Line, x: [i8; 4]) -> [i32; LANES] {
        let product = |lane: usize, i: usize| i32::from(w[4 * lane + i]) * i32::from(x[i]);
        each_lane(|lane| sums[lane] + (0..4).map(|i| product(lane, i)).sum::<i32>())
    }

    #[inline(always)]
    fn start_codes(sums: [i32; LANES]) -> [i32; LANES] {
        sums
    }

    #[inline(always)]
    fn dot_codes(sums: [i32; LANES], w: Line, x: [i8; 4]) -> [i32; LANES] {
        Self::dot_bytes(sums, w, x)
    }

    #[inline(always)]
    fn end_codes(_: [i32; LANES], products: [i32; LANES]) -> [i32; LANES] {
        products
    }

    #[inline(always)]
    fn start_bytes_of(parts: [[i16; 2]; LANES], sums: [i16; 2]) -> [i32; LANES] {
        Self::dot_pairs([0; LANES], parts, sums)
    }

    #[inline(always)]
    fn splat_pair(pair: [i16; 2]) -> [[i16; 2]; LANES] {
        [pair; LANES]
    }

    #[inline(always)]
    fn dot_pairs(sums: [i32; LANES], w: [[i16; 2]; LANES], x: [i16; 2]) -> [i32; LANES] {
        let product = |lane: usize, i: usize| i32::from(w[lane][i]) * i32::from(x[i]);
        each_lane(|lane| sums[lane] + product(lane, 0) + product(lane, 1))
    }

    #[inline(always)]
    fn add_products(sums: [i32; LANES], terms: [i32; LANES], factors: [i32; LANES]) -> [i32; LANES] {
        each_lane(|lane| sums[lane] + terms[lane] * factors[lane])
    }

    #[inline(always)]
    fn start_nibbles(correction: &ZeroPointCorrection) -> [i32; LANES] {
        [correction.whole; LANES]
    }

    #[inline(always)]
    fn dot_nibbles(sums: [i32; LANES], w: Line, x: [i8; 4]) -> [i32; LANES] {
        Self::dot_bytes(sums, w, x)
    }

    #[inline(always)]
    fn factors(magnitudes: &[u8; LANES], signs: [u16; 2]) -> [[i32; LANES]; 2] {
        let signed = |magnitude: u8, signs: u16, lane: usize| {
            let magnitude = i32::from(magnitude);
            if signs >> lane & 1 == 1 { -magnitude } else { magnitude }
        };
        [
            each_lane(|lane| signed(magnitudes[lane] & 15, signs[0], lane)),
            each_lane(|lane| signed(magnitudes[lane] >> 4, signs[1], lane)),
        ]
    }

    #[inline(always)]
    fn add_scaled(sums: [i32; LANES], terms: [i32; LANES], factors: [i32; LANES]) -> [i32; LANES] {
        each_lane(|lane| sums[lane] + terms[lane] * factors[lane])
    }

    #[inline(always)]
    fn load_ints(x: &[i32; LANES]) -> [i32; LANES] {
        *x
    }

    #[inline(always)]
    fn from_ints(ints: [i32; LANES]) -> Self {
        Self(each_lane(|lane| ints[lane] as f32))
    }
}

/// Builds an array by applying `f` to each lane's index.
#[inline(always)]
fn each_lane<T: Copy + Default>(f: impl Fn(usize) -> T) -> [T; LANES] {
    let mut out = [T::default(); LANES];
    for (lane, out) in out.iter_mut().enumerate() {
        *out = f(lane);
    }
    out
}

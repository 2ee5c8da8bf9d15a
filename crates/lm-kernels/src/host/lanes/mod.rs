//! Sixteen-lane vector abstraction for the kernels. Each CPU path is one file here.
//!
//! Sixteen floats are one AVX-512 register, two of AVX2, four of SSE or NEON. The lanes fix the order of every
//! float sum, so that wider registers cannot change a bit; integer sums are exact, and each path orders them
//! freely.

#[cfg(target_arch = "x86_64")]
mod avx2;
#[cfg(target_arch = "x86_64")]
mod avx512;
#[cfg(target_arch = "aarch64")]
mod neon;
mod portable;
#[cfg(test)]
mod tests;

use bytemuck::Pod;
use half::slice::{HalfBitsSliceExt, HalfFloatSliceExt};

#[cfg(target_arch = "x86_64")]
pub(super) use avx2::{Avx2, Evex, Vex, Vnni};
#[cfg(target_arch = "x86_64")]
pub(super) use avx512::Avx512;
#[cfg(target_arch = "aarch64")]
pub(super) use neon::{Baseline, ByteProducts, Dotprod, I8mm, Neon};
pub(super) use portable::F32x16;

use super::cpu::{self, Kernel};
use super::matrix_unit::MatrixUnit;

/// Number of lanes.
pub(super) const LANES: usize = 16;

/// A cache line: four bytes per lane.
pub(super) type Line = [u8; 4 * LANES];

/// Correction for the zero point 8 of the weights' nibbles: -8 times the sum of 32 activations.
#[derive(Clone, Copy)]
#[repr(C)]
pub(super) struct ZeroPointCorrection {
    /// For one 32-bit sum per lane.
    pub whole: i32,
    /// For two 16-bit sums per lane, half of it each.
    pub halves: i32,
}

impl ZeroPointCorrection {
    /// The correction for activations with this sum.
    #[inline(always)]
    pub fn of(sum: i32) -> Self {
        Self { whole: -8 * sum, halves: ((-4 * sum) & 0xffff).wrapping_mul(0x1_0001) }
    }
}

/// Sixteen floats in the registers of one instruction set. All implementations are bit-identical.
///
/// Only [`Isa::run`](super::cpu::Isa::run) may choose an implementation: those other than [`F32x16`] run instructions that the
/// processor must have.
pub(super) trait Lanes: Copy {
    /// Matrix unit of the path.
    type Unit: MatrixUnit;
    /// Sixteen 32-bit integers.
    type Ints: Copy;
    /// Four unsigned bytes in each lane.
    type Bytes: Copy;
    /// Four signed bytes, the same for all lanes.
    type Quad: Copy;
    /// Sums of products of nibbles over a group of 32 columns: at most 32 · 8 · 127 in magnitude.
    type NibbleSums: Copy;
    /// A factor from -15 to 15 per lane.
    type Factors: Copy;
    /// Two 16-bit integers per lane.
    type Pairs: Copy;
    /// True if the lanes are in registers, so that several rows share each load of weights. Arrays in memory gain nothing by it, and each kernel
    /// would be compiled once more for each number of rows.
    const IN_REGISTERS: bool;
    /// True if there are 32 registers of sixteen lanes, so that many rows can share each load of weights.
    const MANY_REGISTERS: bool;
    /// True if weights are expanded to bytes for products with many rows.
    const PANELS: bool;

    /// Runs a kernel that needs no matrix unit in a function of its own, compiled for these lanes: code called this
    /// way need not be inlined.
    fn call<K: Kernel>(kernel: K) -> K::Output;

    fn splat(value: f32) -> Self;
    fn load(x: &[f32; LANES]) -> Self;
    /// Loads f16 values, given as bits.
    fn load_f16(bits: &[u16; LANES]) -> Self;
    /// Loads bf16 values, given as bits.
    fn load_bf16(bits: &[u16; LANES]) -> Self;
    /// 2^(e - 128) for each exponent, exact for denormal results too.
    fn load_exp2(exponents: &[u8; LANES]) -> Self;
    fn store(self, out: &mut [f32; LANES]);
    fn mul(self, factor: Self) -> Self;
    /// `self * factor + addend`, rounded once.
    fn mul_add(self, factor: Self, addend: Self) -> Self;
    /// Minimum of each lane; no lane may be NaN.
    fn min(self, other: Self) -> Self;
    /// Maximum of each lane; no lane may be NaN.
    fn max(self, other: Self) -> Self;

    fn splat_int(value: i32) -> Self::Ints;
    fn load_ints(x: &[i32; LANES]) -> Self::Ints;
    /// Converts the integers to floats; exact below 2^24.
    fn from_ints(ints: Self::Ints) -> Self;

    fn load_bytes(line: &Line) -> Self::Bytes;
    #[cfg(test)]
    fn store_bytes(bytes: Self::Bytes, line: &mut Line);
    /// Loads the low and the high nibbles of the bytes.
    fn load_nibbles(line: &Line) -> [Self::Bytes; 2];
    /// Shifts each byte right, or left by a negative number, and masks it with `mask`; the masked bits must come
    /// from the same byte.
    fn bits_of(bytes: Self::Bytes, shift: i32, mask: u8) -> Self::Bytes;
    /// Bitwise OR.
    fn or(a: Self::Bytes, b: Self::Bytes) -> Self::Bytes;
    /// Table lookup for each byte, which is below 16.
    fn shuffle(table: &[u8; 16], bytes: Self::Bytes) -> Self::Bytes;
    /// The first byte of each lane, sign-extended.
    fn first_bytes(bytes: Self::Bytes) -> Self::Ints;
    /// Each lane shifted right by one byte.
    fn next_bytes(bytes: Self::Bytes) -> Self::Bytes;
    /// Two of each lane's bytes, zero-extended.
    fn pair(bytes: Self::Bytes, which: [u8; 2]) -> Self::Pairs;
    fn quad(x: [i8; 4]) -> Self::Quad;

    /// Initial value of [`Lanes::dot_bytes`] sums: -128 times the sum of the activations.
    fn start_bytes(correction: i32) -> Self::Ints;
    /// The same for a sum in two parts, each of which counts in lanes whose `parts` has -128, not 0.
    fn start_bytes_of(parts: Self::Pairs, sums: [i16; 2]) -> Self::Ints;
    /// Adds to each lane the dot product of its four bytes (weights from -127 to 127 with zero point 128) and `x`,
    /// from -127 to 127.
    fn dot_bytes(sums: Self::Ints, w: Self::Bytes, x: Self::Quad) -> Self::Ints;
    /// Adds to each lane the dot product of its four bytes, at most 127, and `x`, from -127 to 127.
    fn dot_small_bytes(sums: Self::Ints, w: Self::Bytes, x: Self::Quad) -> Self::Ints;
    fn splat_pair(pair: [i16; 2]) -> Self::Pairs;
    /// Adds to each lane the dot product of its pair and `x`.
    fn dot_pairs(sums: Self::Ints, w: Self::Pairs, x: [i16; 2]) -> Self::Ints;
    /// `sums + terms * factors`.
    fn add_products(sums: Self::Ints, terms: Self::Ints, factors: Self::Ints) -> Self::Ints;
    /// Initial value of [`Lanes::dot_nibbles`] sums.
    fn start_nibbles(correction: &ZeroPointCorrection) -> Self::NibbleSums;
    /// Adds to each lane the dot product of its four bytes (weights from -8 to 7 with zero point 8) and `x`, from
    /// -127 to 127; over at most 32 columns.
    fn dot_nibbles(sums: Self::NibbleSums, w: Self::Bytes, x: Self::Quad) -> Self::NibbleSums;
    /// Two factors per lane: the low and the high nibble of its byte, negative if the lane's sign bit is set.
    fn factors(magnitudes: &[u8; LANES], signs: [u16; 2]) -> [Self::Factors; 2];
    /// `sums + terms * factors`.
    fn add_scaled(sums: Self::Ints, terms: Self::NibbleSums, factors: Self::Factors) -> Self::Ints;

    /// Transposes the words of 16 lines, little-endian: row `i` of the result has word `i` of each line.
    fn transpose(lines: [&Line; LANES]) -> [[u32; LANES]; LANES];

    /// The low and the high halves of the words.
    fn halves(words: &[u32; LANES]) -> [[u16; LANES]; 2];

    /// Horizontal sum, always by halves: lane i and lane i + 8, then i and i + 4, and so on.
    fn sum(self) -> f32;
}

/// Distances in bytes at which a sequential pass over weights prefetches.
#[derive(Clone, Copy)]
pub(super) struct Ahead {
    /// To all caches.
    l1: usize,
    /// To the L2 cache.
    l2: usize,
}

impl Ahead {
    const FAR: Self = Self { l1: 4 << 10, l2: 12 << 10 };
    /// The second request is for the same line: it costs nothing, and a branch in the loop would.
    const NEAR: Self = Self { l1: 256, l2: 256 };

    /// The distances for `M` rows on this processor, to read once for each tile.
    #[inline(always)]
    pub fn of_rows<const M: usize>() -> Self {
        if M > 1 || cpu::prefetches_far() { Self::FAR } else { Self::NEAR }
    }
}

/// Prefetches for a sequential pass over weights that are in no cache, from `line` on.
///
/// An AMD processor prefetches for one row by itself as long as the requests are sequential and near: requests far ahead hold a core's
/// line-fill buffers, two dozen, for the whole latency of the memory. More rows, which take longer for each line, and one row on an Intel
/// processor request the line 12 KiB ahead for the L2 cache and the one 4 KiB ahead for the L1 cache.
#[inline(always)]
pub(super) fn prefetch_stream(line: &Line, ahead: Ahead) {
    prefetch_ahead(line, ahead.l1);
    prefetch_to_l2(line, ahead.l2);
}

/// Prefetches over the scales at the beginning of a tile, for one row. They are read later, and a gap between the lines that
/// [`prefetch_stream`] requests before and after them would stop the processor's own prefetching.
#[inline(always)]
pub(super) fn prefetch_over<const M: usize>(scales: &[impl Pod]) {
    if M == 1 && !cpu::prefetches_far() {
        let bytes: &[u8] = bytemuck::cast_slice(scales);
        for line in (0..bytes.len()).step_by(size_of::<Line>()) {
            prefetch_ahead(&bytes[line], Ahead::NEAR.l1);
        }
    }
}

/// Prefetches the cache line `distance` bytes after `place` to all caches; an unmapped address is ignored.
#[inline(always)]
pub(super) fn prefetch_ahead<T>(place: &T, distance: usize) {
    #[cfg(target_arch = "x86_64")]
    {
        use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
        // SAFETY: a hint, which reads nothing and faults nowhere; SSE belongs to x86-64.
        unsafe { _mm_prefetch::<_MM_HINT_T0>(std::ptr::from_ref(place).cast::<i8>().wrapping_add(distance)) };
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = (place, distance);
}

/// As [`prefetch_ahead`], to the L2 cache: for what is used so late that it would leave the L1 cache, which also has room for fewer
/// reads at a time.
#[inline(always)]
pub(super) fn prefetch_to_l2<T>(place: &T, distance: usize) {
    #[cfg(target_arch = "x86_64")]
    {
        use std::arch::x86_64::{_MM_HINT_T1, _mm_prefetch};
        // SAFETY: a hint, which reads nothing and faults nowhere; SSE belongs to x86-64.
        unsafe { _mm_prefetch::<_MM_HINT_T1>(std::ptr::from_ref(place).cast::<i8>().wrapping_add(distance)) };
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = (place, distance);
}

/// Byte shuffle control for [`Lanes::pair`]: two of each four bytes, each followed by a zero.
#[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
#[inline(always)]
fn places_of_pair(which: [u8; 2]) -> [u8; 16] {
    const ZERO: u8 = 0x80;
    let mut places = [ZERO; 16];
    for lane in 0..4 {
        places[4 * lane] = 4 * lane as u8 + which[0];
        places[4 * lane + 2] = 4 * lane as u8 + which[1];
    }
    places
}

/// Dot product of two slices of the same length: element `i` is added to lane `i % 16`.
#[inline(always)]
pub(super) fn dot<V: Lanes>(a: &[f32], b: &[f32]) -> f32 {
    let (a, a_rest) = a.as_chunks::<LANES>();
    let (b, b_rest) = b.as_chunks::<LANES>();
    let mut sum = V::splat(0.0);
    for (a, b) in a.iter().zip(b) {
        sum = V::load(a).mul_add(V::load(b), sum);
    }
    if !a_rest.is_empty() {
        sum = V::load(&padded(a_rest)).mul_add(V::load(&padded(b_rest)), sum);
    }
    sum.sum()
}

/// Loads the first sixteen floats, zero-padded if there are fewer.
#[inline(always)]
pub(super) fn load_part<V: Lanes>(x: &[f32]) -> V {
    match x.first_chunk() {
        Some(x) => V::load(x),
        None => V::load(&padded(x)),
    }
}

/// Stores as many lanes as fit `out`.
#[inline(always)]
pub(super) fn store_part<V: Lanes>(lanes: V, out: &mut [f32]) {
    if let Some(out) = out.first_chunk_mut() {
        lanes.store(out);
        return;
    }
    let mut all = [0.0; LANES];
    lanes.store(&mut all);
    for (out, lane) in out.iter_mut().zip(&all) {
        *out = *lane;
    }
}

/// Zero-pads the last lanes of a row.
#[inline(always)]
fn padded(x: &[f32]) -> [f32; LANES] {
    let mut out = [0.0; LANES];
    for (out, x) in out.iter_mut().zip(x) {
        *out = *x;
    }
    out
}

/// Rounds a number of a magnitude below 2^22 to the nearest integer, ties to even; any result for others.
#[inline(always)]
pub(super) fn round(x: f32) -> i32 {
    // The integer is in the lowest bits of the sum.
    const SHIFT: f32 = 12_582_912.0; // 1.5 * 2^23: one unit in the last place is 1
    (x + SHIFT).to_bits().wrapping_sub(SHIFT.to_bits()) as i32
}

/// e to the power of `x`, within 2 units in the last place; 0 below -87, so that no result is denormal, infinite above 88.72.
#[inline(always)]
pub(super) fn exp(x: f32) -> f32 {
    // x = n ln 2 + r with |r| <= ln 2 / 2. Adding and subtracting 1.5 * 2^23 rounds to an integer.
    const ROUND: f32 = 12_582_912.0;
    const LN_2_HIGH: f32 = 0.693_359_4;
    const LN_2_LOW: f32 = -2.121_944_4e-4;
    let clamped = x.clamp(-87.0, 88.72);
    let shifted = clamped.mul_add(std::f32::consts::LOG2_E, ROUND);
    let n = shifted - ROUND;
    let r = n.mul_add(-LN_2_LOW, n.mul_add(-LN_2_HIGH, clamped));
    // Taylor's polynomial of degree 7: its error on the interval, 5e-9, is below the rounding of the sum.
    let mut power = 1.0 / 5040.0;
    for coefficient in [1.0 / 720.0, 1.0 / 120.0, 1.0 / 24.0, 1.0 / 6.0, 0.5, 1.0, 1.0] {
        power = r.mul_add(power, coefficient);
    }
    // 2^n in two steps, since n may be 128.
    let exponent = shifted.to_bits().wrapping_sub(ROUND.to_bits()) as i32;
    let half = exponent >> 1;
    let two_to = |n: i32| f32::from_bits(((n + 127) << 23) as u32);
    let result = power * two_to(half) * two_to(exponent - half);
    if x < -87.0 {
        0.0
    } else if x > 88.72 {
        f32::INFINITY
    } else {
        result
    }
}

/// Converts the bits of an f16 to a float.
#[inline(always)]
pub(super) fn f16_to_f32(bits: u16) -> f32 {
    let magnitude = u32::from(bits & 0x7fff) << 13;
    // Rebiases the exponent; exact, denormals included.
    let scaled = f32::from_bits(magnitude) * f32::from_bits((127 + 112) << 23);
    let infinite_or_nan = if bits & 0x7c00 == 0x7c00 { 0x7f80_0000 } else { 0 };
    f32::from_bits(scaled.to_bits() | infinite_or_nan | (u32::from(bits & 0x8000) << 16))
}

/// Rounds a nonnegative number up to bf16 bits.
pub(super) fn bfloat_not_below(x: f32) -> u16 {
    let bfloat = half::bf16::from_f32(x);
    if bfloat.to_f32() < x { bfloat.to_bits() + 1 } else { bfloat.to_bits() }
}

/// 2^(e - 128): the exponent bits are `e - 1`; a denormal if that is 0 or less.
#[inline(always)]
pub(super) fn exp2(exponent: u8) -> f32 {
    let exponent = i32::from(exponent);
    let denormal = (1 + exponent.min(1)) << 21;
    f32::from_bits(((exponent - 1) << 23).max(denormal) as u32)
}

/// Converts the bits of a bf16 to a float.
#[inline(always)]
pub(super) fn bf16_to_f32(bits: u16) -> f32 {
    f32::from_bits(u32::from(bits) << 16)
}

/// Rounds floats to f16, ties to even; overflow gives infinity.
pub(super) fn f32_to_f16(x: &[f32], out: &mut [u16]) {
    out.reinterpret_cast_mut::<half::f16>().convert_from_f32_slice(x);
}

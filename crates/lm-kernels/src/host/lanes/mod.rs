//! Sixteen lanes side by side, and the few functions that kernels need of them. Each CPU path is one file here.
//!
//! Sixteen floats are one AVX-512 register, two of AVX2, four of SSE or NEON. The lanes fix the order of every sum of floats, so
//! that wider registers cannot change a bit; sums of integers are exact, and each path takes them in its own way.

#[cfg(target_arch = "x86_64")]
mod avx2;
#[cfg(target_arch = "x86_64")]
mod avx512;
mod portable;

use half::slice::{HalfBitsSliceExt, HalfFloatSliceExt};

#[cfg(target_arch = "x86_64")]
pub(super) use avx2::Avx2;
#[cfg(target_arch = "x86_64")]
pub(super) use avx512::Avx512;
pub(super) use portable::F32x16;

use super::cpu::Kernel;
use super::matrix_unit::MatrixUnit;

/// How many lanes there are.
pub(super) const LANES: usize = 16;

/// The bytes of a cache line: four for each lane.
pub(super) type Line = [u8; 4 * LANES];

/// What takes off the 8 that nibbles of weights have too much: -8 times the sum of 32 activations.
#[derive(Clone, Copy)]
#[repr(C)]
pub(super) struct NibbleOffset {
    /// For one sum in a lane.
    pub whole: i32,
    /// For two sums of 16 bits in a lane, half of it each.
    pub halves: i32,
}

impl NibbleOffset {
    /// Of activations with this sum.
    #[inline(always)]
    pub fn of(sum: i32) -> Self {
        Self { whole: -8 * sum, halves: ((-4 * sum) & 0xffff).wrapping_mul(0x1_0001) }
    }
}

/// Sixteen floats in the registers of one instruction set. All implementations give the same bits.
///
/// Only [`Isa::run`](super::cpu::Isa::run) may choose an implementation: those other than [`F32x16`] run instructions that the
/// processor must have.
pub(super) trait Lanes: Copy {
    /// The matrix unit beside the registers.
    type Unit: MatrixUnit;
    /// Sixteen integers of 32 bits.
    type Ints: Copy;
    /// Four unsigned bytes in each lane.
    type Bytes: Copy;
    /// Four signed bytes, the same for all lanes.
    type Quad: Copy;
    /// Sums of products of nibbles over a group of 32 columns: at most 32 · 8 · 127 in magnitude.
    type NibbleSums: Copy;
    /// A factor from -15 to 15 in each lane.
    type Factors: Copy;
    /// Two integers of 16 bits in each lane.
    type Pairs: Copy;
    /// Whether there are 32 registers of sixteen lanes, so that many rows can share what is loaded of the weights.
    const MANY_REGISTERS: bool;
    /// Whether many rows are multiplied with weights that were expanded to bytes for them.
    const PANELS: bool;

    /// Runs a kernel that needs no matrix unit in a function of its own, compiled for these lanes: what is called so need not be inlined.
    fn call<K: Kernel>(kernel: K) -> K::Output;

    fn splat(value: f32) -> Self;
    fn load(x: &[f32; LANES]) -> Self;
    /// Halves, by their bits.
    fn load_f16(bits: &[u16; LANES]) -> Self;
    /// Bfloat16, by their bits.
    fn load_bf16(bits: &[u16; LANES]) -> Self;
    fn load_i8(x: &[i8; LANES]) -> Self;
    /// 2^(e - 128) for each exponent, exact where it is denormal too.
    fn load_powers(exponents: &[u8; LANES]) -> Self;
    fn store(self, out: &mut [f32; LANES]);
    fn mul(self, factor: Self) -> Self;
    /// `self * factor + addend`, rounded once.
    fn mul_add(self, factor: Self, addend: Self) -> Self;
    /// The lesser in each lane, of lanes that are no NaN.
    fn min(self, other: Self) -> Self;
    /// The greater in each lane, of lanes that are no NaN.
    fn max(self, other: Self) -> Self;

    fn splat_int(value: i32) -> Self::Ints;
    fn load_ints(x: &[i32; LANES]) -> Self::Ints;
    /// The integers as floats; exact below 2^24.
    fn from_ints(ints: Self::Ints) -> Self;

    fn load_bytes(line: &Line) -> Self::Bytes;
    fn store_bytes(bytes: Self::Bytes, line: &mut Line);
    /// The low and the high halves of the bytes.
    fn load_nibbles(line: &Line) -> [Self::Bytes; 2];
    /// Each byte shifted down, or up by a negative number, of which only the bits of `mask` are kept; they are bits of the same byte.
    fn bits_of(bytes: Self::Bytes, shift: i32, mask: u8) -> Self::Bytes;
    /// The bits of both.
    fn join(a: Self::Bytes, b: Self::Bytes) -> Self::Bytes;
    /// The table's entry for each byte, which is below 16.
    fn look_up(table: &[u8; 16], bytes: Self::Bytes) -> Self::Bytes;
    /// The first byte of each lane as an integer with sign.
    fn first_bytes(bytes: Self::Bytes) -> Self::Ints;
    /// Each lane's bytes but the first, and a zero.
    fn next_bytes(bytes: Self::Bytes) -> Self::Bytes;
    /// Two of each lane's bytes, without sign.
    fn pair(bytes: Self::Bytes, which: [u8; 2]) -> Self::Pairs;
    fn quad(x: [i8; 4]) -> Self::Quad;

    /// Where sums of [`Lanes::dot_bytes`] begin: -128 times the sum of the activations.
    fn start_bytes(offset: i32) -> Self::Ints;
    /// The same for a sum in two parts, which count where `parts` has -128 and not 0.
    fn start_bytes_of(parts: Self::Pairs, sums: [i16; 2]) -> Self::Ints;
    /// Adds to each lane the dot product of its four bytes, each 128 more than a weight from -127 to 127, with `x`, from -127 to 127.
    fn dot_bytes(sums: Self::Ints, w: Self::Bytes, x: Self::Quad) -> Self::Ints;
    /// Adds to each lane the dot product of its four bytes, at most 127, with `x`, from -127 to 127.
    fn dot_small_bytes(sums: Self::Ints, w: Self::Bytes, x: Self::Quad) -> Self::Ints;
    fn splat_pair(pair: [i16; 2]) -> Self::Pairs;
    /// Adds to each lane the dot product of its pair with `x`.
    fn dot_pairs(sums: Self::Ints, w: Self::Pairs, x: [i16; 2]) -> Self::Ints;
    /// `sums + terms * factors`.
    fn add_products(sums: Self::Ints, terms: Self::Ints, factors: Self::Ints) -> Self::Ints;
    /// Where sums of [`Lanes::dot_nibbles`] begin.
    fn start_nibbles(offset: &NibbleOffset) -> Self::NibbleSums;
    /// Adds to each lane the dot product of its four bytes, each 8 more than a weight from -8 to 7, with `x`, from -127 to 127; over at
    /// most 32 columns.
    fn dot_nibbles(sums: Self::NibbleSums, w: Self::Bytes, x: Self::Quad) -> Self::NibbleSums;
    /// Two factors for each lane: the low and the high half of its byte, negative where the lane's bit is set.
    fn factors(magnitudes: &[u8; LANES], signs: [u16; 2]) -> [Self::Factors; 2];
    /// `sums + terms * factors`.
    fn add_scaled(sums: Self::Ints, terms: Self::NibbleSums, factors: Self::Factors) -> Self::Ints;

    /// The words of 16 lines, little-endian: row `i` of the result has word `i` of each line.
    fn transpose(lines: [&Line; LANES]) -> [[u32; LANES]; LANES];

    /// The low and the high halves of words.
    fn halves(words: &[u32; LANES]) -> [[u16; LANES]; 2];

    /// The lanes' sum, always by halves: lane i and lane i + 8, then i and i + 4, and so on.
    fn sum(self) -> f32;
}

/// Asks for the cache line where `x` begins.
#[inline(always)]
pub(super) fn fetch<T>(x: &T) {
    #[cfg(target_arch = "x86_64")]
    {
        use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
        // SAFETY: a hint, which reads nothing and faults nowhere; SSE belongs to x86-64.
        unsafe { _mm_prefetch::<_MM_HINT_T0>((&raw const *x).cast()) };
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = x;
}

/// Asks for the cache line that lies `ahead` bytes behind `line`, if there is memory; otherwise nothing happens.
#[inline(always)]
pub(super) fn prefetch(line: &Line, ahead: usize) {
    #[cfg(target_arch = "x86_64")]
    {
        use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
        // SAFETY: a hint, which reads nothing and faults nowhere; SSE belongs to x86-64.
        unsafe { _mm_prefetch::<_MM_HINT_T0>(line.as_ptr().wrapping_add(ahead).cast()) };
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = (line, ahead);
}

/// The dot product of two slices of one length: element `i` is added to lane `i % 16`.
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

/// Sixteen floats, or as many as there are and zeros behind them.
#[inline(always)]
pub(super) fn load_part<V: Lanes>(x: &[f32]) -> V {
    match x.first_chunk() {
        Some(x) => V::load(x),
        None => V::load(&padded(x)),
    }
}

/// Stores as many lanes as there is room for.
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

/// The last lanes of a row, filled up with zeros.
#[inline(always)]
fn padded(x: &[f32]) -> [f32; LANES] {
    let mut out = [0.0; LANES];
    for (out, x) in out.iter_mut().zip(x) {
        *out = *x;
    }
    out
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

/// The float with the bits of a half.
#[inline(always)]
pub(super) fn f16_to_f32(bits: u16) -> f32 {
    let magnitude = u32::from(bits & 0x7fff) << 13;
    // Moves the exponent by the difference of the two biases; exact, denormal halves included.
    let scaled = f32::from_bits(magnitude) * f32::from_bits((127 + 112) << 23);
    let infinite_or_nan = if bits & 0x7c00 == 0x7c00 { 0x7f80_0000 } else { 0 };
    f32::from_bits(scaled.to_bits() | infinite_or_nan | (u32::from(bits & 0x8000) << 16))
}

/// The bits of the smallest bfloat16 that is not below a number without sign.
pub(super) fn bfloat_not_below(x: f32) -> u16 {
    let bfloat = half::bf16::from_f32(x);
    if bfloat.to_f32() < x { bfloat.to_bits() + 1 } else { bfloat.to_bits() }
}

/// 2^(e - 128): the bits of an exponent one lower, or of a fraction where that would be 0 or less.
#[inline(always)]
pub(super) fn power(exponent: u8) -> f32 {
    let exponent = i32::from(exponent);
    let denormal = (1 + exponent.min(1)) << 21;
    f32::from_bits(((exponent - 1) << 23).max(denormal) as u32)
}

/// The float with the bits of a bfloat16.
#[inline(always)]
pub(super) fn bf16_to_f32(bits: u16) -> f32 {
    f32::from_bits(u32::from(bits) << 16)
}

/// Rounds floats to the nearest halves, ties to even; what is too large becomes infinite.
pub(super) fn f32_to_f16(x: &[f32], out: &mut [u16]) {
    out.reinterpret_cast_mut::<half::f16>().convert_from_f32_slice(x);
}

#[cfg(test)]
mod tests {
    use super::super::cpu::{Isa, Kernel};
    use super::*;

    #[test]
    fn every_half_and_bfloat_widens_exactly() {
        for bits in 0..=u16::MAX {
            let half = half::f16::from_bits(bits).to_f32();
            let ours = f16_to_f32(bits);
            assert!(ours.to_bits() == half.to_bits() || (ours.is_nan() && half.is_nan()), "{bits:#x}");
            let brain = half::bf16::from_bits(bits).to_f32();
            let ours = bf16_to_f32(bits);
            assert!(ours.to_bits() == brain.to_bits() || (ours.is_nan() && brain.is_nan()), "{bits:#x}");
        }
    }

    #[test]
    fn every_path_has_exact_powers_of_two() {
        struct Powers([u8; LANES]);

        impl Kernel for Powers {
            type Output = [f32; LANES];

            fn run<V: Lanes>(self) -> Self::Output {
                let mut out = [0.0; LANES];
                V::load_powers(&self.0).store(&mut out);
                out
            }
        }

        for first in (0..u8::MAX).step_by(LANES) {
            let exponents: [u8; LANES] =
                std::array::from_fn(|lane| first.saturating_add(lane as u8).min(254));
            let expected = exponents.map(|e| 2_f64.powi(i32::from(e) - 128) as f32);
            for isa in Isa::supported() {
                assert_eq!(isa.run(Powers(exponents)), expected, "{isa}");
            }
        }
    }

    #[test]
    fn exp_is_close_everywhere() {
        for i in -870_000..=887_000 {
            let x = i as f32 * 1e-4;
            let exact = f64::from(x).exp();
            let error = (f64::from(exp(x)) - exact).abs() / exact;
            assert!(error < 2.0 * f64::from(f32::EPSILON), "exp({x}) is off by {error:e}");
        }
        assert_eq!(exp(0.0), 1.0);
        assert_eq!(exp(f32::NEG_INFINITY), 0.0);
        assert_eq!(exp(-1e9), 0.0);
        assert_eq!(exp(1e9), f32::INFINITY);
        assert!(exp(f32::NAN).is_nan());
    }

    #[test]
    fn every_path_transposes_and_halves() {
        struct Halves([u32; LANES]);

        impl Kernel for Halves {
            type Output = [[u16; LANES]; 2];

            fn run<V: Lanes>(self) -> Self::Output {
                V::halves(&self.0)
            }
        }

        struct Transpose<'a>([&'a Line; LANES]);

        impl Kernel for Transpose<'_> {
            type Output = [[u32; LANES]; LANES];

            fn run<V: Lanes>(self) -> Self::Output {
                V::transpose(self.0)
            }
        }

        let bytes: Vec<u8> = (0..LANES * size_of::<Line>()).map(|i| (i * 7 % 251) as u8).collect();
        let lines: [&Line; LANES] = std::array::from_fn(|line| &bytes.as_chunks().0[line]);
        let word = |line: usize, index: usize| u32::from_le_bytes(lines[line].as_chunks().0[index]);
        let expected: [[u32; LANES]; LANES] =
            std::array::from_fn(|index| std::array::from_fn(|line| word(line, index)));
        for isa in Isa::supported() {
            assert_eq!(isa.run(Transpose(lines)), expected, "{isa}");
            let words = expected[1].map(|word| word.wrapping_mul(0x9e37_79b9));
            let [low, high] = isa.run(Halves(words));
            let joined: Vec<u32> =
                low.iter().zip(high).map(|(low, high)| u32::from(*low) | u32::from(high) << 16).collect();
            assert_eq!(joined, words, "{isa}");
        }
    }

    #[test]
    fn dot_takes_the_tail() {
        for len in [0, 1, 15, 16, 17, 40] {
            let x: Vec<f32> = (0..len).map(|i| i as f32).collect();
            let expected: f32 = x.iter().map(|x| x * x).sum();
            assert_eq!(dot::<F32x16>(&x, &x), expected);
        }
    }
}

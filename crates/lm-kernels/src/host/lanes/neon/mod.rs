//! Sixteen-lane vectors in four NEON registers.
//!
//! NEON is part of every AArch64 target with a standard library, so closures are compiled for it too. Byte
//! products, for which later versions of the architecture have more instructions, are in [`products`].

mod products;

use std::arch::aarch64::*;
use std::marker::PhantomData;

use super::vector::{Kernel, LANES, Lanes, Line, ZeroPointCorrection, places_of_pair};
pub(in crate::host) use products::{Baseline, ByteProducts, Dotprod, I8mm, run_dotprod, run_i8mm, run_neon};

/// Registers of sixteen lanes.
const REGISTERS: usize = 4;

/// Sixteen 32-bit integers.
type Ints = [int32x4_t; REGISTERS];
/// Four bytes in each of sixteen lanes.
type Bytes = [uint8x16_t; REGISTERS];

/// Sixteen floats in four NEON registers, with the byte products `P`.
///
/// Bit-identical to the portable lanes under QEMU; never run on hardware. [`ByteProducts::works`] compares
/// them before a path is selected.
#[derive(Clone, Copy)]
pub(in crate::host) struct Neon<P>([float32x4_t; REGISTERS], PhantomData<P>);

impl<P> From<[float32x4_t; REGISTERS]> for Neon<P> {
    #[inline(always)]
    fn from(registers: [float32x4_t; REGISTERS]) -> Self {
        Self(registers, PhantomData)
    }
}

/// One value for each register.
#[inline(always)]
fn each<T>(f: impl Fn(usize) -> T) -> [T; REGISTERS] {
    [f(0), f(1), f(2), f(3)]
}

/// The sixteen entries in fours.
#[inline(always)]
fn quarters<T>(x: &[T; LANES]) -> &[[T; LANES / REGISTERS]; REGISTERS] {
    x.as_chunks().0.first_chunk().expect("sixteen entries")
}

/// Zero-extends eight bits of each lane.
#[inline(always)]
fn widen_bytes(bytes: uint8x16_t) -> Ints {
    // SAFETY: NEON is available, see the module.
    unsafe {
        let (low, high) = (vmovl_u8(vget_low_u8(bytes)), vmovl_high_u8(bytes));
        let words = [
            vmovl_u16(vget_low_u16(low)),
            vmovl_high_u16(low),
            vmovl_u16(vget_low_u16(high)),
            vmovl_high_u16(high),
        ];
        bytemuck::cast(words)
    }
}

/// Negates the lanes whose bit is set.
#[inline(always)]
fn negate(x: Ints, signs: u16) -> Ints {
    const BITS: [u32; LANES] = [1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024, 2048, 4096, 8192, 16384, 32768];
    let bits: [uint32x4_t; REGISTERS] = bytemuck::cast(BITS);
    each(|q| {
        // SAFETY: NEON is there.
        unsafe {
            let negative = vtstq_u32(vdupq_n_u32(u32::from(signs)), bits[q]);
            vbslq_s32(negative, vnegq_s32(x[q]), x[q])
        }
    })
}

/// Widens four f16 values, given as bits.
#[inline(always)]
fn widen_halves(bits: [u16; LANES / REGISTERS]) -> float32x4_t {
    let bits: uint16x4_t = bytemuck::cast(bits);
    let wide;
    // SAFETY: the instruction is part of NEON; the intrinsic of the same name is not stable. A signalling NaN
    // sets a flag.
    unsafe {
        std::arch::asm!(
            "fcvtl {wide:v}.4s, {bits:v}.4h",
            wide = lateout(vreg) wide,
            bits = in(vreg) bits,
            options(pure, nomem, nostack)
        );
    }
    wide
}

/// Transposes four by four words.
#[inline(always)]
fn transpose_4(x: [uint32x4_t; REGISTERS]) -> [uint32x4_t; REGISTERS] {
    // SAFETY: NEON is there.
    unsafe {
        let [a, b] = [vzip1q_u32(x[0], x[2]), vzip2q_u32(x[0], x[2])];
        let [c, d] = [vzip1q_u32(x[1], x[3]), vzip2q_u32(x[1], x[3])];
        [vzip1q_u32(a, c), vzip2q_u32(a, c), vzip1q_u32(b, d), vzip2q_u32(b, d)]
    }
}

// All unsafe blocks below rely on NEON alone.
impl<P: ByteProducts> Lanes for Neon<P> {
    type Unit = P::Unit;
    type Ints = Ints;
    type Bytes = Bytes;
    type Quad = int8x16_t;
    type CodeSums = Ints;
    type NibbleSums = P::NibbleSums;
    type Factors = Ints;
    type Pairs = [int16x8_t; REGISTERS];
    const IN_REGISTERS: bool = true;
    const MANY_REGISTERS: bool = false;
    const PANELS: bool = P::PANELS;

    #[inline(always)]
    fn call<K: Kernel>(kernel: K) -> K::Output {
        P::call(kernel)
    }

    #[inline(always)]
    fn splat(value: f32) -> Self {
        // SAFETY: NEON is available, see the module.
        Self::from([unsafe { vdupq_n_f32(value) }; REGISTERS])
    }

    #[inline(always)]
    fn load(x: &[f32; LANES]) -> Self {
        Self::from(bytemuck::cast::<_, [float32x4_t; REGISTERS]>(*x))
    }

    #[inline(always)]
    fn load_f16(bits: &[u16; LANES]) -> Self {
        let bits = quarters(bits);
        Self::from(each(|q| widen_halves(bits[q])))
    }

    #[inline(always)]
    fn load_bf16(bits: &[u16; LANES]) -> Self {
        let bits = quarters(bits);
        // SAFETY: NEON is there.
        Self::from(each(|q| unsafe { vreinterpretq_f32_u32(vshll_n_u16::<16>(bytemuck::cast(bits[q]))) }))
    }

    #[inline(always)]
    fn load_exp2(exponents: &[u8; LANES]) -> Self {
        // The computation of `exp2`.
        let exponents = widen_bytes(bytemuck::cast(*exponents));
        Self::from(each(|q| {
            // SAFETY: NEON is there.
            unsafe {
                let one = vdupq_n_s32(1);
                let denormals = vshlq_n_s32::<21>(vaddq_s32(vminq_s32(exponents[q], one), one));
                let powers = vshlq_n_s32::<23>(vsubq_s32(exponents[q], one));
                vreinterpretq_f32_s32(vmaxq_s32(powers, denormals))
            }
        }))
    }

    #[inline(always)]
    fn store(self, out: &mut [f32; LANES]) {
        *out = bytemuck::cast(self.0);
    }

    #[inline(always)]
    fn mul(self, factor: Self) -> Self {
        // SAFETY: NEON is there.
        Self::from(each(|q| unsafe { vmulq_f32(self.0[q], factor.0[q]) }))
    }

    #[inline(always)]
    fn mul_add(self, factor: Self, addend: Self) -> Self {
        // SAFETY: NEON is there.
        Self::from(each(|q| unsafe { vfmaq_f32(addend.0[q], self.0[q], factor.0[q]) }))
    }

    /// Compares and selects: the instruction for minimums returns -0 of two zeros, other paths the second.
    #[inline(always)]
    fn min(self, other: Self) -> Self {
        let (a, b) = (self.0, other.0);
        // SAFETY: NEON is there.
        Self::from(each(|q| unsafe { vbslq_f32(vcltq_f32(a[q], b[q]), a[q], b[q]) }))
    }

    #[inline(always)]
    fn max(self, other: Self) -> Self {
        let (a, b) = (self.0, other.0);
        // SAFETY: NEON is there.
        Self::from(each(|q| unsafe { vbslq_f32(vcgtq_f32(a[q], b[q]), a[q], b[q]) }))
    }

    #[inline(always)]
    fn transpose(lines: [&Line; LANES]) -> [[u32; LANES]; LANES] {
        let mut out = [[0; LANES]; LANES];
        // Sixteen 4×4 blocks of lines and words.
        for first in (0..LANES).step_by(REGISTERS) {
            let rows: [Bytes; REGISTERS] = each(|line| bytemuck::cast(*lines[first + line]));
            for word in 0..LANES / REGISTERS {
                let block: [[u32; REGISTERS]; REGISTERS] =
                    bytemuck::cast(transpose_4(each(|line| bytemuck::cast(rows[line][word]))));
                for (out, block) in out[REGISTERS * word..].iter_mut().zip(&block) {
                    out[first..first + REGISTERS].copy_from_slice(block);
                }
            }
        }
        out
    }

    #[inline(always)]
    fn halves(words: &[u32; LANES]) -> [[u16; LANES]; 2] {
        let words: [uint32x4_t; REGISTERS] = bytemuck::cast(*words);
        // SAFETY: NEON is there.
        let low: [uint16x4_t; REGISTERS] = each(|q| unsafe { vmovn_u32(words[q]) });
        // SAFETY: NEON is there.
        let high: [uint16x4_t; REGISTERS] = each(|q| unsafe { vshrn_n_u32::<16>(words[q]) });
        bytemuck::cast([low, high])
    }

    #[inline(always)]
    fn sum(self) -> f32 {
        let [a, b, c, d] = self.0;
        // SAFETY: NEON is there.
        unsafe {
            let four = vaddq_f32(vaddq_f32(a, c), vaddq_f32(b, d));
            let two = vadd_f32(vget_low_f32(four), vget_high_f32(four));
            vget_lane_f32::<0>(two) + vget_lane_f32::<1>(two)
        }
    }

    #[inline(always)]
    fn splat_int(value: i32) -> Ints {
        // SAFETY: NEON is there.
        [unsafe { vdupq_n_s32(value) }; REGISTERS]
    }

    #[inline(always)]
    fn load_bytes(line: &Line) -> Bytes {
        bytemuck::cast(*line)
    }

    #[inline(always)]
    fn store_bytes(bytes: Bytes, line: &mut Line) {
        *line = bytemuck::cast(bytes);
    }

    #[inline(always)]
    fn load_nibbles(line: &Line) -> [Bytes; 2] {
        let bytes = Self::load_bytes(line);
        // SAFETY: NEON is there.
        let low = each(|q| unsafe { vandq_u8(bytes[q], vdupq_n_u8(15)) });
        // SAFETY: NEON is there.
        [low, each(|q| unsafe { vshrq_n_u8::<4>(bytes[q]) })]
    }

    #[inline(always)]
    fn bits_of(bytes: Bytes, shift: i32, mask: u8) -> Bytes {
        // SAFETY: NEON is there. The instruction shifts left, or right by a negative number.
        each(|q| unsafe { vandq_u8(vshlq_u8(bytes[q], vdupq_n_s8(-shift as i8)), vdupq_n_u8(mask)) })
    }

    #[inline(always)]
    fn or(a: Bytes, b: Bytes) -> Bytes {
        // SAFETY: NEON is there.
        each(|q| unsafe { vorrq_u8(a[q], b[q]) })
    }

    #[inline(always)]
    fn shuffle(table: &[u8; 16], bytes: Bytes) -> Bytes {
        let table: uint8x16_t = bytemuck::cast(*table);
        // SAFETY: NEON is there.
        each(|q| unsafe { vqtbl1q_u8(table, bytes[q]) })
    }

    #[inline(always)]
    fn first_bytes(bytes: Bytes) -> Ints {
        let words: Ints = bytemuck::cast(bytes);
        // SAFETY: NEON is there.
        each(|q| unsafe { vshrq_n_s32::<24>(vshlq_n_s32::<24>(words[q])) })
    }

    #[inline(always)]
    fn next_bytes(bytes: Bytes) -> Bytes {
        let words: [uint32x4_t; REGISTERS] = bytemuck::cast(bytes);
        // SAFETY: NEON is there.
        each(|q| unsafe { vreinterpretq_u8_u32(vshrq_n_u32::<8>(words[q])) })
    }

    #[inline(always)]
    fn pair(bytes: Bytes, which: [u8; 2]) -> Self::Pairs {
        // A place past the end of the register gives zero.
        let places: uint8x16_t = bytemuck::cast(places_of_pair(which));
        // SAFETY: NEON is there.
        each(|q| unsafe { vreinterpretq_s16_u8(vqtbl1q_u8(bytes[q], places)) })
    }

    #[inline(always)]
    fn quad(x: [i8; 4]) -> int8x16_t {
        // SAFETY: NEON is there.
        unsafe { vreinterpretq_s8_s32(vdupq_n_s32(bytemuck::cast(x))) }
    }

    #[inline(always)]
    fn start_bytes(correction: i32) -> Ints {
        Self::splat_int(if P::UNSIGNED { correction } else { 0 })
    }

    #[inline(always)]
    fn start_bytes_of(parts: Self::Pairs, sums: [i16; 2]) -> Ints {
        let zero = Self::splat_int(0);
        if P::UNSIGNED { Self::dot_pairs(zero, parts, sums) } else { zero }
    }

    #[inline(always)]
    fn dot_bytes(sums: Ints, w: Bytes, x: int8x16_t) -> Ints {
        P::dot_bytes(sums, w, x)
    }

    #[inline(always)]
    fn start_codes(sums: Ints) -> Ints {
        sums
    }

    #[inline(always)]
    fn dot_codes(sums: Ints, w: Bytes, x: int8x16_t) -> Ints {
        P::dot_small_bytes(sums, w, x)
    }

    #[inline(always)]
    fn end_codes(_: Ints, products: Ints) -> Ints {
        products
    }

    #[inline(always)]
    fn splat_pair(pair: [i16; 2]) -> Self::Pairs {
        bytemuck::cast(Self::splat_int(bytemuck::cast(pair)))
    }

    #[inline(always)]
    fn dot_pairs(sums: Ints, w: Self::Pairs, x: [i16; 2]) -> Ints {
        let [x, ..] = Self::splat_pair(x);
        each(|q| {
            // SAFETY: NEON is there.
            unsafe {
                let low = vmull_s16(vget_low_s16(w[q]), vget_low_s16(x));
                vaddq_s32(sums[q], vpaddq_s32(low, vmull_high_s16(w[q], x)))
            }
        })
    }

    #[inline(always)]
    fn add_products(sums: Ints, terms: Ints, factors: Ints) -> Ints {
        // SAFETY: NEON is there.
        each(|q| unsafe { vmlaq_s32(sums[q], terms[q], factors[q]) })
    }

    #[inline(always)]
    fn start_nibbles(correction: &ZeroPointCorrection) -> P::NibbleSums {
        P::start_nibbles(correction)
    }

    #[inline(always)]
    fn dot_nibbles(sums: P::NibbleSums, w: Bytes, x: int8x16_t) -> P::NibbleSums {
        P::dot_nibbles(sums, w, x)
    }

    #[inline(always)]
    fn factors(magnitudes: &[u8; LANES], signs: [u16; 2]) -> [Ints; 2] {
        let bytes: uint8x16_t = bytemuck::cast(*magnitudes);
        // SAFETY: NEON is there.
        let (low, high) = unsafe { (vandq_u8(bytes, vdupq_n_u8(15)), vshrq_n_u8::<4>(bytes)) };
        [negate(widen_bytes(low), signs[0]), negate(widen_bytes(high), signs[1])]
    }

    #[inline(always)]
    fn add_scaled(sums: Ints, terms: P::NibbleSums, factors: Ints) -> Ints {
        Self::add_products(sums, P::nibble_sums(terms), factors)
    }

    #[inline(always)]
    fn load_ints(x: &[i32; LANES]) -> Ints {
        bytemuck::cast(*x)
    }

    #[inline(always)]
    fn from_ints(ints: Ints) -> Self {
        // SAFETY: NEON is there.
        Self::from(each(|q| unsafe { vcvtq_f32_s32(ints[q]) }))
    }
}

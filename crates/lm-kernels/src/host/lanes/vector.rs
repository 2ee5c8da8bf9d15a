//! Interface of the sixteen-lane vectors, and of the kernels written for them.

use super::super::matrix_unit::MatrixUnit;

/// Number of lanes.
pub(in crate::host) const LANES: usize = 16;

/// A cache line: four bytes per lane.
pub(in crate::host) type Line = [u8; 4 * LANES];

/// A value that begins at a cache line, so that loads and stores of the lines in it do not cross one.
#[derive(Clone, Copy)]
#[repr(C, align(64))]
pub(in crate::host) struct Aligned<T>(pub T);

/// Correction for the zero point 8 of the weights' nibbles: -8 times the sum of 32 activations.
#[derive(Clone, Copy)]
#[repr(C)]
pub(in crate::host) struct ZeroPointCorrection {
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

/// A kernel over slices, written once and compiled for every [`Isa`](crate::host::Isa).
///
/// `run` and all that it calls in its loops must be `#[inline(always)]`: only code inlined into the function
/// with the target features is compiled with them. A kernel for a single instruction set goes beside this, by
/// a match on the `Isa` at dispatch.
pub(in crate::host) trait Kernel {
    /// Result of the kernel.
    type Output;
    /// True if the kernel has no products of bytes: paths that only add such products run it in the copy for
    /// the path below them.
    const ONLY_FLOATS: bool = false;
    /// Runs the kernel with floats in registers of type `V`.
    fn run<V: Lanes>(self) -> Self::Output;
}

/// Sixteen floats in the registers of one instruction set. All implementations are bit-identical.
///
/// Only [`Isa::run`](crate::host::Isa::run) may choose an implementation: all except
/// [`F32x16`](super::F32x16) run instructions that the processor must have.
pub(in crate::host) trait Lanes: Copy {
    /// Matrix unit of the path.
    type Unit: MatrixUnit;
    /// Sixteen 32-bit integers.
    type Ints: Copy;
    /// Four unsigned bytes in each lane.
    type Bytes: Copy;
    /// Four signed bytes, the same for all lanes.
    type Quad: Copy;
    /// Sums of products of codes, of 16 bits where these take fewer instructions.
    type CodeSums: Copy;
    /// Sums of products of nibbles over a group of 32 columns: at most 32 · 8 · 127 in magnitude.
    type NibbleSums: Copy;
    /// A factor from -15 to 15 per lane.
    type Factors: Copy;
    /// Two 16-bit integers per lane.
    type Pairs: Copy;
    /// True if the lanes are in registers, so that several rows share each load of weights. Arrays in memory
    /// do not gain from it, and each kernel would be compiled once more for each number of rows.
    const IN_REGISTERS: bool;
    /// True if there are 32 registers of sixteen lanes, so that many rows can share each load of weights.
    const MANY_REGISTERS: bool;
    /// True if weights are expanded to bytes for products with many rows.
    const PANELS: bool;

    /// Runs a kernel that needs no matrix unit in a function of its own, compiled for these lanes: code
    /// called this way need not be inlined.
    fn call<K: Kernel>(kernel: K) -> K::Output;
    /// As [`Lanes::call`], for a kernel that uses the matrix unit.
    fn call_with_unit<K: Kernel>(kernel: K) -> K::Output {
        Self::call(kernel)
    }

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
    fn store_bytes(bytes: Self::Bytes, line: &mut Line);
    /// Loads the low and the high nibbles of the bytes.
    fn load_nibbles(line: &Line) -> [Self::Bytes; 2];
    /// Shifts each byte right, or left by a negative number, and masks it with `mask`; the masked bits must
    /// come from the same byte.
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
    /// The same for a sum in two parts; each counts in lanes whose `parts` has -128, not 0.
    fn start_bytes_of(parts: Self::Pairs, sums: [i16; 2]) -> Self::Ints;
    /// Adds to each lane the dot product of its four bytes (weights from -127 to 127 with zero point 128) and
    /// `x`, from -127 to 127.
    fn dot_bytes(sums: Self::Ints, w: Self::Bytes, x: Self::Quad) -> Self::Ints;
    /// Initial value of [`Lanes::dot_codes`] sums that are added to `sums`.
    fn start_codes(sums: Self::Ints) -> Self::CodeSums;
    /// Adds to each lane the dot product of its four bytes, at most 127, and `x`, from -127 to 127; over so
    /// few quads that twice the largest byte times 127 times their number is below 2^15.
    fn dot_codes(sums: Self::CodeSums, w: Self::Bytes, x: Self::Quad) -> Self::CodeSums;
    /// `sums` plus the products since [`Lanes::start_codes`].
    fn end_codes(sums: Self::Ints, products: Self::CodeSums) -> Self::Ints;
    fn splat_pair(pair: [i16; 2]) -> Self::Pairs;
    /// Adds to each lane the dot product of its pair and `x`.
    fn dot_pairs(sums: Self::Ints, w: Self::Pairs, x: [i16; 2]) -> Self::Ints;
    /// `sums + terms * factors`.
    fn add_products(sums: Self::Ints, terms: Self::Ints, factors: Self::Ints) -> Self::Ints;
    /// Initial value of [`Lanes::dot_nibbles`] sums.
    fn start_nibbles(correction: &ZeroPointCorrection) -> Self::NibbleSums;
    /// Adds to each lane the dot product of its four bytes (weights from -8 to 7 with zero point 8) and `x`,
    /// from -127 to 127; over at most 32 columns.
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

/// Byte shuffle control for [`Lanes::pair`]: two of each four bytes, each followed by a zero.
#[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
#[inline(always)]
pub(super) fn places_of_pair(which: [u8; 2]) -> [u8; 16] {
    const ZERO: u8 = 0x80;
    let mut places = [ZERO; 16];
    for lane in 0..4 {
        places[4 * lane] = 4 * lane as u8 + which[0];
        places[4 * lane + 2] = 4 * lane as u8 + which[1];
    }
    places
}

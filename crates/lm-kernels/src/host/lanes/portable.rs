//! Sixteen floats for any processor.

use super::{LANES, Lanes, bf16_to_f32, f16_to_f32};

/// Sixteen floats in an array; the reference.
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
    type Ints = [i32; LANES];

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
    fn zeros() -> [i32; LANES] {
        [0; LANES]
    }

    #[inline(always)]
    fn add_pairs(sums: [i32; LANES], w: &[i16; 2 * LANES], x: [i16; 2]) -> [i32; LANES] {
        let [first, second] = x.map(i32::from);
        each_lane(|lane| sums[lane] + i32::from(w[2 * lane]) * first + i32::from(w[2 * lane + 1]) * second)
    }

    #[inline(always)]
    fn from_ints(ints: [i32; LANES]) -> Self {
        Self(each_lane(|lane| ints[lane] as f32))
    }
}

/// An array with what `f` makes of each lane's number.
#[inline(always)]
fn each_lane<T: Copy + Default>(f: impl Fn(usize) -> T) -> [T; LANES] {
    let mut out = [T::default(); LANES];
    for (lane, out) in out.iter_mut().enumerate() {
        *out = f(lane);
    }
    out
}

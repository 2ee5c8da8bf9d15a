//! Element types of the KV cache.

use super::super::lanes::{LANES, Lanes, bf16_to_f32, bfloat_not_below, f16_to_f32, f32_to_f16, round};

/// An element type of KV pages.
pub(in crate::host) trait Element: bytemuck::Pod + Send + Sync {
    /// True if the elements of a head vector share a scale.
    const SCALED: bool;
    /// Elements along a dot product that are adjacent: dimensions of a key, slots of values.
    const GROUP: usize;
    /// The element with the value 0.
    const ZERO: Self;
    /// Converts one element, without its scale.
    fn widen(self) -> f32;
    /// Quantises or rounds a head vector; returns the bf16 bits of its scale, or 0 if there is none.
    fn round(x: &[f32], out: &mut [Self]) -> u16;
}

/// An element type whose products are computed in f32.
pub(in crate::host) trait FloatElement: Element {
    /// Loads sixteen elements.
    fn load<V: Lanes>(x: &[Self; LANES]) -> V;
}

impl Element for f32 {
    const SCALED: bool = false;
    const GROUP: usize = 1;
    const ZERO: f32 = 0.0;

    fn widen(self) -> f32 {
        self
    }

    fn round(x: &[f32], out: &mut [f32]) -> u16 {
        out.copy_from_slice(x);
        0
    }
}

/// f16, as bits: zero-initialised memory from the system is valid.
impl Element for u16 {
    const SCALED: bool = false;
    const GROUP: usize = 1;
    const ZERO: u16 = 0;

    fn widen(self) -> f32 {
        f16_to_f32(self)
    }

    fn round(x: &[f32], out: &mut [u16]) -> u16 {
        f32_to_f16(x, out);
        0
    }
}

impl FloatElement for f32 {
    #[inline(always)]
    fn load<V: Lanes>(x: &[f32; LANES]) -> V {
        V::load(x)
    }
}

impl FloatElement for u16 {
    #[inline(always)]
    fn load<V: Lanes>(x: &[u16; LANES]) -> V {
        V::load_f16(x)
    }
}

/// Integers from -127 to 127 with a scale, stored with zero point 128 for products of bytes.
impl Element for u8 {
    const SCALED: bool = true;
    const GROUP: usize = 4;
    const ZERO: u8 = 128;

    fn widen(self) -> f32 {
        f32::from(self) - 128.0
    }

    fn round(x: &[f32], out: &mut [u8]) -> u16 {
        // The bits of nonnegative floats have the order of the floats; NaN is the largest.
        let largest = f32::from_bits(x.iter().fold(0, |largest, x| largest.max(x.abs().to_bits())));
        let scale = bfloat_not_below(largest / 127.0);
        let inverse = match bf16_to_f32(scale) {
            0.0 => 0.0,
            scale => 1.0 / scale,
        };
        for (out, x) in out.iter_mut().zip(x) {
            // At most 127 in magnitude, since the scale was rounded up.
            *out = (round(x * inverse) + 128) as u8;
        }
        scale
    }
}

//! Q5_K block layout: 16 bytes of scales, 32 bytes of fifth bits, and 128 bytes of nibbles.
//!
//! Nibbles are laid out as in Q4_K. Bit `j` of byte `i` of the fifth bits belongs to column `32 j + i`.

use super::{BlockFormat, GROUP, SixBitScalesAndMins, split_nibbles};

/// Marker type of Q5_K.
pub(in crate::host) struct Q5K;

impl BlockFormat for Q5K {
    const BLOCK: usize = 256;
    const BYTES: usize = 176;
    const BITS: usize = 5;
    const ZERO: u8 = 0;
    type Scales = SixBitScalesAndMins;

    fn read(
        block: &[u8],
        lane: usize,
        _: usize,
        scales: &mut SixBitScalesAndMins,
        codes: &mut [u8],
    ) -> Result<(), f32> {
        for (codes, nibbles) in codes.chunks_mut(64).zip(block[48..].chunks(32)) {
            split_nibbles(nibbles, codes);
        }
        for (group, codes) in codes.chunks_mut(GROUP).enumerate() {
            for (code, bits) in codes.iter_mut().zip(&block[16..48]) {
                *code |= (bits >> group & 1) << 4;
            }
        }
        scales.set(lane, block)
    }
}

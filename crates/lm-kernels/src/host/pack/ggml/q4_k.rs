//! Q4_K block layout: 16 bytes of scales and 128 bytes of nibbles.
//!
//! Byte `i` of each 32 bytes of nibbles holds those of columns `i` and `32 + i`.

use super::{BlockFormat, SixBitScalesAndMins, split_nibbles};

/// Marker type of Q4_K.
pub(in crate::host) struct Q4K;

impl BlockFormat for Q4K {
    const BLOCK: usize = 256;
    const BYTES: usize = 144;
    const BITS: usize = 4;
    const ZERO: u8 = 0;
    type Scales = SixBitScalesAndMins;

    fn read(
        block: &[u8],
        lane: usize,
        _: usize,
        scales: &mut SixBitScalesAndMins,
        codes: &mut [u8],
    ) -> Result<(), f32> {
        for (codes, nibbles) in codes.chunks_mut(64).zip(block[16..].chunks(32)) {
            split_nibbles(nibbles, codes);
        }
        scales.set(lane, block)
    }
}

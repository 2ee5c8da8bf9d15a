//! Q4_0: a block is a half and 16 bytes of nibbles.

use super::{BlockFormat, Halves, split_nibbles};

/// The type's mark.
pub(in crate::host) struct Q4_0;

impl BlockFormat for Q4_0 {
    const BLOCK: usize = 32;
    const BYTES: usize = 18;
    const BITS: usize = 4;
    const ZERO: u8 = 8;
    type Scales = Halves;

    fn read(
        block: &[u8],
        lane: usize,
        group: usize,
        scales: &mut Halves,
        codes: &mut [u8],
    ) -> Result<(), f32> {
        split_nibbles(&block[2..], codes);
        scales.set(lane, group, block, 0)
    }
}

//! Q8_0: a block is a half and 32 signed bytes.

use super::{BlockFormat, Halves};

/// The type's mark.
pub(in crate::host) struct Q8_0;

impl BlockFormat for Q8_0 {
    const BLOCK: usize = 32;
    const BYTES: usize = 34;
    const BITS: usize = 8;
    const ZERO: u8 = 128;
    type Scales = Halves;

    fn read(
        block: &[u8],
        lane: usize,
        group: usize,
        scales: &mut Halves,
        codes: &mut [u8],
    ) -> Result<(), f32> {
        for (code, byte) in codes.iter_mut().zip(&block[2..]) {
            *code = byte ^ 0x80;
        }
        scales.set(lane, group, block, 0)
    }
}

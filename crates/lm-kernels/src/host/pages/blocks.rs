//! Memory of the pages of several layers, in one mapping.

use std::ops::Range;
use std::slice;
use std::sync::Arc;

use super::super::lanes::Line;
use super::super::pack::Buffer;
use crate::error::{Error, Result};

/// Zeroed blocks of bytes with a single owner. Blocks of other owners with the same index lie between them.
#[derive(Debug)]
pub(super) struct Blocks {
    memory: Arc<Buffer>,
    /// Offset of the first block.
    start: usize,
    /// Bytes of a block.
    len: usize,
    /// Bytes from one block to the next.
    stride: usize,
    count: usize,
}

impl Blocks {
    /// Allocates `count` blocks of each of the lengths `lens`: first the first block of each length, then the
    /// second, and so on. Memory is committed when it is first written.
    ///
    /// # Errors
    /// [`Error::ShapeOverflow`] or [`Error::OutOfMemory`].
    pub fn interleaved(lens: &[usize], count: usize) -> Result<Vec<Self>> {
        let overflow = || Error::ShapeOverflow { shape: [lens, &[count]].concat() };
        let mut starts = vec![0_usize];
        for (index, len) in lens.iter().enumerate() {
            let end = starts[index].checked_add(*len).filter(|&end| end < isize::MAX as usize);
            starts.push(end.ok_or_else(overflow)?.next_multiple_of(size_of::<Line>()));
        }
        let stride = starts[lens.len()];
        let total = stride.checked_mul(count).filter(|&bytes| bytes < isize::MAX as usize);
        let memory = Arc::new(Buffer::zeroed(total.ok_or_else(overflow)?)?);
        let blocks = lens.iter().zip(starts).map(|(&len, start)| {
            let memory = Arc::clone(&memory);
            Self { memory, start, len, stride, count }
        });
        Ok(blocks.collect())
    }

    /// Memory address of a byte of the first block.
    #[cfg(feature = "burn")]
    pub fn address(&self, byte: usize) -> usize {
        self.memory.as_mut_ptr().addr() + self.start + byte
    }

    /// Some bytes of a block.
    ///
    /// # Panics
    /// When the range exceeds the block.
    #[inline(always)]
    pub fn get(&self, block: usize, bytes: Range<usize>) -> &[u8] {
        let (place, len) = self.place(block, bytes);
        // SAFETY: the place is inside the mapping, which lives as long as `self`. No other owner has bytes of
        // this block, and a writer has `&mut self` or keeps to bytes without another user. Anonymous memory
        // is initialised: it is zeros.
        unsafe { slice::from_raw_parts(self.memory.as_mut_ptr().add(place), len) }
    }

    /// Some bytes of a block, to be written.
    ///
    /// # Safety
    /// `self` is borrowed mutably, and while the result is alive, no other slice may have any of its bytes.
    ///
    /// # Panics
    /// When the range exceeds the block.
    #[allow(clippy::mut_from_ref, reason = "the caller keeps the parts apart")]
    #[inline(always)]
    pub unsafe fn get_mut(&self, block: usize, bytes: Range<usize>) -> &mut [u8] {
        let (place, len) = self.place(block, bytes);
        // SAFETY: as in `get`; the caller keeps the bytes disjoint.
        unsafe { slice::from_raw_parts_mut(self.memory.as_mut_ptr().add(place), len) }
    }

    #[inline(always)]
    fn place(&self, block: usize, bytes: Range<usize>) -> (usize, usize) {
        let Self { len, count, .. } = *self;
        assert!(block < count, "block {block} of {count}");
        assert!(bytes.start <= bytes.end && bytes.end <= len, "bytes {bytes:?} of {len}");
        (self.start + block * self.stride + bytes.start, bytes.len())
    }
}

impl Clone for Blocks {
    /// # Panics
    /// When memory runs out, as for any clone.
    fn clone(&self) -> Self {
        let copy = Self::interleaved(&[self.len], self.count).expect("memory for a copy").remove(0);
        for block in 0..self.count {
            // SAFETY: the copy has no other user.
            unsafe { copy.get_mut(block, 0..self.len) }.copy_from_slice(self.get(block, 0..self.len));
        }
        copy
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blocks_of_an_index_are_adjacent_and_aligned() {
        let owners = Blocks::interleaved(&[100, 0, 64], 3).unwrap();
        let address = |owner: usize, block| owners[owner].get(block, 0..0).as_ptr().addr();
        for block in 0..3 {
            assert_eq!(address(1, block) - address(0, block), 128);
            assert_eq!(address(2, block), address(1, block));
            assert_eq!(address(0, block) - address(0, 0), block * 192);
            assert!(address(0, block).is_multiple_of(size_of::<Line>()));
        }
    }

    #[test]
    fn owners_and_clones_do_not_share_bytes() {
        let owners = Blocks::interleaved(&[5, 7], 2).unwrap();
        for (owner, blocks) in owners.iter().enumerate() {
            for block in 0..2 {
                // SAFETY: the slice ends here.
                unsafe { blocks.get_mut(block, 0..blocks.len) }.fill((1 + 2 * owner + block) as u8);
            }
        }
        let copy = owners[1].clone();
        // SAFETY: as above.
        unsafe { owners[1].get_mut(1, 2..4) }.fill(9);
        assert_eq!((owners[0].get(0, 0..5), owners[0].get(1, 0..5)), (&[1; 5][..], &[2; 5][..]));
        assert_eq!((owners[1].get(0, 0..7), owners[1].get(1, 1..5)), (&[3; 7][..], &[4, 9, 9, 4][..]));
        assert_eq!((copy.get(0, 0..7), copy.get(1, 0..7)), (&[3; 7][..], &[4; 7][..]));
    }

    #[test]
    fn impossible_size_is_an_error() {
        for (lens, count) in [(&[usize::MAX, 1][..], 1), (&[usize::MAX / 4; 4], 1), (&[1 << 40], 1 << 40)] {
            assert!(matches!(Blocks::interleaved(lens, count), Err(Error::ShapeOverflow { .. })), "{lens:?}");
        }
        assert!(matches!(Blocks::interleaved(&[1 << 40], 1 << 20), Err(Error::OutOfMemory { .. })));
    }

    #[test]
    #[should_panic(expected = "block 2 of 2")]
    fn block_out_of_range_is_rejected() {
        Blocks::interleaved(&[5, 7], 2).unwrap()[0].get(2, 0..1);
    }

    #[test]
    #[should_panic(expected = "bytes 4..6 of 5")]
    fn bytes_of_another_owner_are_rejected() {
        Blocks::interleaved(&[5, 7], 2).unwrap()[0].get(0, 4..6);
    }
}

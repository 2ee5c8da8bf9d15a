//! The memory of a packed matrix.

use bytemuck::{Pod, Zeroable};

use crate::{Error, Result};

/// A cache line.
#[derive(Clone, Copy)]
#[repr(C, align(64))]
struct Line([u8; 64]);

// SAFETY: 64 bytes aligned to 64, without padding; any bytes will do, zeros among them.
unsafe impl Zeroable for Line {}
// SAFETY: as above; the type is `Copy`, has no niches and no references.
unsafe impl Pod for Line {}

/// Bytes that begin at a cache line.
#[derive(Clone)]
pub(in crate::host) struct Buffer {
    lines: Vec<Line>,
    len: usize,
}

impl Buffer {
    pub fn zeroed(len: usize) -> Result<Self> {
        let lines = bytemuck::allocation::try_zeroed_vec(len.div_ceil(size_of::<Line>()))
            .map_err(|()| Error::OutOfMemory { bytes: len })?;
        Ok(Self { lines, len })
    }

    pub fn bytes(&self) -> &[u8] {
        &bytemuck::cast_slice(&self.lines)[..self.len]
    }

    pub fn bytes_mut(&mut self) -> &mut [u8] {
        &mut bytemuck::cast_slice_mut(&mut self.lines)[..self.len]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_is_aligned_zeroed_and_as_long_as_asked() {
        for len in [0, 1, 64, 1000] {
            let mut buffer = Buffer::zeroed(len).unwrap();
            assert_eq!(buffer.bytes(), vec![0; len]);
            assert!(buffer.bytes_mut().as_ptr().addr().is_multiple_of(64));
        }
        assert!(matches!(Buffer::zeroed(usize::MAX / 2), Err(Error::OutOfMemory { .. })));
    }
}

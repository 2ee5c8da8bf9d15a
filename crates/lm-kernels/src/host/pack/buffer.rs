//! Memory of packed matrices and cached pages: cache-line aligned, in huge pages.

use std::fmt;
use std::ops::Range;
use std::slice;
use std::sync::{Arc, Mutex, PoisonError};

use memmap2::{MmapMut, MmapRaw};

use super::super::lanes::Line;
use crate::error::{Error, Result};

/// Huge page size of Linux on x86-64.
const HUGE_PAGE: usize = 2 << 20;
/// Address space reserved at a time; pages are committed when they are written to.
const REGION: usize = 64 << 20;

/// Arena for the weights of one model.
///
/// Buffers share a few large mappings, with huge pages if the system has them: reading weights through 4 KiB
/// pages takes a tenth longer. A buffer is zeroed and cache-line aligned. A mapping is freed with the last
/// matrix in it.
///
/// # Examples
/// ```
/// use lm_kernels::{Arena, Packing, Source, WeightFormat};
/// let arena = Arena::default();
/// let mut packing = Packing::new(&arena, WeightFormat::F32, 17, 1)?;
/// packing.push(16, Source::F32(&[1.0; 16]))?;
/// packing.push(1, Source::F32(&[2.0]))?;
/// assert_eq!(packing.finish().rows(), 17);
/// # Ok::<(), lm_kernels::Error>(())
/// ```
#[derive(Default)]
pub struct Arena {
    free: Mutex<Option<FreeRange>>,
}

/// Unused range of a region.
struct FreeRange {
    region: Arc<MmapRaw>,
    start: usize,
}

/// Zeroed, cache-line aligned buffer with a single owner.
pub(in crate::host) struct Buffer {
    region: Arc<MmapRaw>,
    start: usize,
    len: usize,
}

impl Arena {
    /// Allocates zeroed bytes, disjoint from all other buffers.
    pub(super) fn allocate(&self, len: usize) -> Result<Buffer> {
        let mut free = self.free.lock().unwrap_or_else(PoisonError::into_inner);
        let range = match free.take() {
            Some(free) if free.region.len() - free.start >= len => free,
            _ => FreeRange::map(len.max(REGION))?,
        };
        let buffer = Buffer { region: Arc::clone(&range.region), start: range.start, len };
        let end = range.start + len;
        // Whole lines only, so that the next buffer is aligned.
        if range.region.len() - end >= size_of::<Line>() {
            *free = Some(FreeRange { start: end.next_multiple_of(size_of::<Line>()), ..range });
        }
        Ok(buffer)
    }
}

impl fmt::Debug for Arena {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Arena").finish_non_exhaustive()
    }
}

impl FreeRange {
    /// Maps a region of at least `len` bytes after its start.
    fn map(len: usize) -> Result<Self> {
        let no_memory = || Error::OutOfMemory { bytes: len };
        // Slack to align the start to a huge page; small mappings have none.
        let slack = if len >= HUGE_PAGE { HUGE_PAGE } else { 0 };
        let bytes = len.checked_add(slack).ok_or_else(no_memory)?.max(1);
        let map = MmapMut::map_anon(bytes).map_err(|_| no_memory())?;
        #[cfg(target_os = "linux")]
        if slack > 0 {
            // Fails if the kernel has no huge pages, which leaves small ones.
            drop(map.advise(memmap2::Advice::HugePage));
        }
        let start = if slack > 0 { map.as_ptr().align_offset(HUGE_PAGE) } else { 0 };
        Ok(Self { region: Arc::new(map.into()), start })
    }
}

impl Buffer {
    /// Allocates zeroed bytes in a mapping of their own.
    pub fn zeroed(len: usize) -> Result<Self> {
        let FreeRange { region, start } = FreeRange::map(len)?;
        Ok(Self { region, start, len })
    }

    /// The first byte, for owners of parts of the buffer.
    pub fn as_mut_ptr(&self) -> *mut u8 {
        // SAFETY: `start` is inside the mapping.
        unsafe { self.region.as_mut_ptr().add(self.start) }
    }

    pub fn bytes(&self) -> &[u8] {
        // SAFETY: `start..start + len` is inside the mapping, which lives as long as `self`, and no other
        // buffer overlaps it (`Arena::allocate` advances past it, `zeroed` gives the mapping to one buffer).
        // Anonymous memory is initialised: it is zeros.
        unsafe { slice::from_raw_parts(self.as_mut_ptr(), self.len) }
    }

    pub fn bytes_mut(&mut self) -> &mut [u8] {
        // SAFETY: as above; the mapping is writable, and `&mut self` excludes other views of the range.
        unsafe { slice::from_raw_parts_mut(self.as_mut_ptr(), self.len) }
    }
}

impl fmt::Debug for Buffer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Buffer({} bytes)", self.len)
    }
}

/// A read-only buffer, or a slice of one.
pub(super) struct SharedBuffer(Buffer);

impl From<Buffer> for SharedBuffer {
    fn from(buffer: Buffer) -> Self {
        Self(buffer)
    }
}

impl SharedBuffer {
    pub fn bytes(&self) -> &[u8] {
        self.0.bytes()
    }

    /// Returns a view of `range` in the same memory.
    ///
    /// # Panics
    /// If `range` is out of bounds.
    pub fn part(&self, range: Range<usize>) -> Self {
        assert!(range.start <= range.end && range.end <= self.0.len, "{range:?} of {} bytes", self.0.len);
        let region = Arc::clone(&self.0.region);
        Self(Buffer { region, start: self.0.start + range.start, len: range.len() })
    }
}

impl Clone for SharedBuffer {
    /// # Panics
    /// When memory runs out, as for any clone.
    fn clone(&self) -> Self {
        let mut copy = Buffer::zeroed(self.0.len).expect("memory for a copy");
        copy.bytes_mut().copy_from_slice(self.bytes());
        Self(copy)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(buffer: &mut Buffer, len: usize) {
        assert_eq!(buffer.bytes(), vec![0; len]);
        assert!(buffer.bytes_mut().as_ptr().addr().is_multiple_of(size_of::<Line>()));
        buffer.bytes_mut().fill(0xff);
    }

    #[test]
    fn buffer_is_aligned_and_zeroed() {
        for len in [0, 1, 64, 1000, HUGE_PAGE + 1] {
            check(&mut Buffer::zeroed(len).unwrap(), len);
        }
        assert!(matches!(Buffer::zeroed(usize::MAX / 2), Err(Error::OutOfMemory { .. })));
        assert!(matches!(Buffer::zeroed(usize::MAX), Err(Error::OutOfMemory { .. })));
    }

    #[test]
    fn arena_buffers_do_not_overlap() {
        let arena = Arena::default();
        let lens = [1000, 0, 64, 1, REGION + 1, 63, 65];
        let mut buffers: Vec<Buffer> = lens.iter().map(|&len| arena.allocate(len).unwrap()).collect();
        for (buffer, &len) in buffers.iter_mut().zip(&lens) {
            check(buffer, len);
        }
        assert!(Arc::ptr_eq(&buffers[0].region, &buffers[3].region), "small ones share a map");
        drop(arena);
        assert_eq!(buffers[4].bytes().last(), Some(&0xff));
    }

    #[test]
    fn region_is_filled_to_its_end() {
        let arena = Arena::default();
        let first = arena.allocate(1).unwrap();
        let left = first.region.len() - first.start - size_of::<Line>();
        let last = arena.allocate(left).unwrap();
        assert!(Arc::ptr_eq(&first.region, &last.region));
        assert!(!Arc::ptr_eq(&first.region, &arena.allocate(1).unwrap().region));
    }

    #[test]
    fn clone_owns_its_memory() {
        let mut buffer = Arena::default().allocate(100).unwrap();
        buffer.bytes_mut().fill(1);
        let shared = SharedBuffer::from(buffer);
        let copy = shared.clone();
        assert_eq!(copy.bytes(), shared.bytes());
        assert!(!Arc::ptr_eq(&copy.0.region, &shared.0.region));
        let part = shared.part(10..30);
        assert_eq!(part.bytes().as_ptr(), shared.bytes()[10..].as_ptr());
        drop(shared);
        assert_eq!(part.bytes(), [1; 20]);
    }

    #[test]
    fn buffer_beyond_the_rest_gets_a_new_region() {
        for more in [1, 63, 64] {
            let arena = Arena::default();
            let first = arena.allocate(1).unwrap();
            let left = first.region.len() - first.start - size_of::<Line>();
            let last = arena.allocate(left + more).unwrap();
            assert!(!Arc::ptr_eq(&first.region, &last.region), "{more} bytes too many");
        }
    }
}

//! Prefetches of weights, at the distances of the [plan](super::super::PrefetchPlan) in use.

use bytemuck::Pod;

use super::super::prefetch_plan::is_far;
use super::vector::Line;

/// Distances in bytes at which a sequential pass over weights prefetches.
#[derive(Clone, Copy)]
pub(in crate::host) struct Ahead {
    /// To all caches.
    l1: usize,
    /// To the L2 cache.
    l2: usize,
}

impl Ahead {
    const FAR: Self = Self { l1: 4 << 10, l2: 12 << 10 };
    /// The second request is for the same line: it costs nothing, and a branch in the loop would.
    const NEAR: Self = Self { l1: 256, l2: 256 };

    /// The distances for `M` rows, to read once for each tile.
    #[inline(always)]
    pub fn of_rows<const M: usize>() -> Self {
        if M > 1 || is_far() { Self::FAR } else { Self::NEAR }
    }
}

/// Prefetches for a sequential pass over weights that are in no cache, from `line` on.
///
/// An AMD processor prefetches for one row by itself as long as the requests are sequential and near:
/// requests far ahead hold a core's line-fill buffers, two dozen, for the whole latency of the memory. More
/// rows, which take longer for each line, and one row on an Intel processor request the line 12 KiB ahead for
/// the L2 cache and the one 4 KiB ahead for the L1 cache.
#[inline(always)]
pub(in crate::host) fn prefetch_stream(line: &Line, ahead: Ahead) {
    prefetch_ahead(line, ahead.l1);
    prefetch_to_l2(line, ahead.l2);
}

/// Prefetches over the scales at the beginning of a tile, for one row. They are read later, and a gap between
/// the lines that [`prefetch_stream`] requests before and after them would stop the processor's own
/// prefetching.
#[inline(always)]
pub(in crate::host) fn prefetch_over<const M: usize>(scales: &[impl Pod]) {
    if M == 1 && !is_far() {
        let bytes: &[u8] = bytemuck::cast_slice(scales);
        for line in (0..bytes.len()).step_by(size_of::<Line>()) {
            prefetch_ahead(&bytes[line], Ahead::NEAR.l1);
        }
    }
}

/// Prefetches the cache line `distance` bytes after `place` to all caches; an unmapped address is ignored.
#[inline(always)]
pub(in crate::host) fn prefetch_ahead<T>(place: &T, distance: usize) {
    #[cfg(target_arch = "x86_64")]
    {
        use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
        // SAFETY: a hint, which reads nothing and faults nowhere; SSE belongs to x86-64.
        unsafe { _mm_prefetch::<_MM_HINT_T0>(std::ptr::from_ref(place).cast::<i8>().wrapping_add(distance)) };
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = (place, distance);
}

/// As [`prefetch_ahead`], to the L2 cache: for data that is used so late that it would leave the L1 cache,
/// which also has room for fewer reads at a time.
#[inline(always)]
pub(in crate::host) fn prefetch_to_l2<T>(place: &T, distance: usize) {
    #[cfg(target_arch = "x86_64")]
    {
        use std::arch::x86_64::{_MM_HINT_T1, _mm_prefetch};
        // SAFETY: a hint, which reads nothing and faults nowhere; SSE belongs to x86-64.
        unsafe { _mm_prefetch::<_MM_HINT_T1>(std::ptr::from_ref(place).cast::<i8>().wrapping_add(distance)) };
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = (place, distance);
}

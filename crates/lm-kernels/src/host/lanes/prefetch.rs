//! Prefetches of weights, at the distances that suit the processor.

use std::sync::atomic::{AtomicBool, Ordering};

use bytemuck::Pod;

use super::vector::Line;

/// True once [`detect_prefetching`] has found a processor that [prefetches far](prefetches_far).
static FAR_PREFETCH: AtomicBool = AtomicBool::new(false);

/// Returns true if products of one row read their weights faster with software prefetches 4 and 12 KiB ahead,
/// as on Intel processors; others use near ones. One row of 4-bit weights from memory: Xeon with AMX 18 to 21
/// GB/s far, 11 to 12 near; EPYC (Zen 4) 35 to 39 far, 41 to 53 near.
#[inline(always)]
pub(in crate::host) fn prefetches_far() -> bool {
    FAR_PREFETCH.load(Ordering::Relaxed)
}

/// Detects whether this processor [prefetches far](prefetches_far).
pub(in crate::host) fn detect_prefetching() {
    FAR_PREFETCH.store(is_intel(), Ordering::Relaxed);
}

fn is_intel() -> bool {
    #[cfg(target_arch = "x86_64")]
    {
        let leaf = std::arch::x86_64::__cpuid(0);
        [leaf.ebx, leaf.edx, leaf.ecx].map(u32::to_le_bytes).concat() == b"GenuineIntel"
    }
    #[cfg(not(target_arch = "x86_64"))]
    false
}

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

    /// The distances for `M` rows on this processor, to read once for each tile.
    #[inline(always)]
    pub fn of_rows<const M: usize>() -> Self {
        if M > 1 || prefetches_far() { Self::FAR } else { Self::NEAR }
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
    if M == 1 && !prefetches_far() {
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

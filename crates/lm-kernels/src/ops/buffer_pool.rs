//! Memory of large results, reused by later operations of the same thread.
//!
//! The system allocator gives large blocks back to the system as soon as they are free, layer by layer, and
//! each new one is zeroed and faulted in page by page. Here an operation that consumes a tensor keeps its
//! memory for the next result.

use std::cell::RefCell;

/// Minimum number of floats; the allocator itself keeps smaller blocks.
pub(super) const LARGE: usize = 32 << 10;
/// Maximum number of floats that a thread keeps: 64 MiB.
const MAX_KEPT: usize = 16 << 20;

thread_local! {
    /// Free memory, the oldest first.
    static FREE: RefCell<Vec<Vec<f32>>> = const { RefCell::new(Vec::new()) };
}

/// Floats that no operation has written yet. NaN in debug builds: a kernel that does not overwrite its whole
/// result fails the tests of any model.
const UNWRITTEN: f32 = if cfg!(debug_assertions) { f32::NAN } else { 0.0 };

/// Returns `len` floats to be overwritten: zeros or an earlier result; NaN in debug builds.
pub(super) fn take(len: usize) -> Vec<f32> {
    let fits = |room: &Vec<f32>| (len..=2 * len).contains(&room.capacity());
    let found = FREE.with_borrow_mut(|free| {
        let newest = if len < LARGE { None } else { free.iter().rposition(fits) };
        newest.map(|index| free.remove(index))
    });
    match found {
        None => vec![UNWRITTEN; len],
        Some(mut room) => {
            room.resize(len, UNWRITTEN);
            if cfg!(debug_assertions) {
                room.fill(UNWRITTEN);
            }
            room
        }
    }
}

/// Keeps unused memory for later results.
pub(super) fn give_back(room: Vec<f32>) {
    if !(LARGE..=MAX_KEPT).contains(&room.capacity()) {
        return;
    }
    FREE.with_borrow_mut(|free| {
        free.push(room);
        let mut total: usize = free.iter().map(Vec::capacity).sum();
        while total > MAX_KEPT {
            total -= free.remove(0).capacity();
        }
    });
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kept() -> usize {
        FREE.with_borrow(|free| free.iter().map(Vec::capacity).sum())
    }

    #[test]
    fn memory_is_reused_for_similar_sizes() {
        let (room, [small, large]) = (take(2 * LARGE), [LARGE - 1, 2 * LARGE + 1]);
        let address = room.as_ptr();
        give_back(room);
        let others = [take(small), take(large)];
        assert_eq!(kept(), 2 * LARGE, "one is the allocator's, the other too large");
        let again = take(2 * LARGE - 5);
        assert_eq!((again.as_ptr(), again.len()), (address, 2 * LARGE - 5));
        assert_eq!(kept(), 0);
        drop(others);
    }

    #[test]
    fn oldest_memory_is_freed_at_the_limit() {
        give_back(vec![0.0; LARGE - 1]);
        give_back(vec![0.0; MAX_KEPT + 1]);
        assert_eq!(kept(), 0);
        give_back(vec![0.0; LARGE]);
        give_back(vec![0.0; MAX_KEPT - LARGE]);
        assert_eq!(kept(), MAX_KEPT);
        let newest = vec![0.0; LARGE];
        let address = newest.as_ptr();
        give_back(newest);
        assert_eq!(kept(), MAX_KEPT);
        let again = take(LARGE);
        assert_eq!(again.as_ptr(), address);
        assert_eq!(kept(), MAX_KEPT - LARGE, "the first of them was dropped");
    }

    #[test]
    fn debug_builds_fill_unwritten_floats_with_nan() {
        give_back(vec![1.0; LARGE]);
        for floats in [take(LARGE), take(8)] {
            assert!(floats.iter().all(|float| float.is_nan() == cfg!(debug_assertions)));
            assert!(
                cfg!(debug_assertions) || floats.len() == LARGE || floats.iter().all(|&float| float == 0.0)
            );
        }
    }
}

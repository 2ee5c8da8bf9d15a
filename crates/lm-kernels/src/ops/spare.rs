//! Memory of large results, used again by later operations of the same thread.
//!
//! The system allocator gives large blocks back to the system as soon as they are free, layer by layer, and each new one
//! is zeroed and faulted in page by page. Here an operation that consumes a tensor keeps its memory for the next result.

use std::cell::RefCell;

/// Floats below which the allocator itself keeps the memory.
pub(super) const LARGE: usize = 32 << 10;
/// Floats that a thread keeps at most: 64 MiB.
const MOST: usize = 16 << 20;

thread_local! {
    /// Free memory, the oldest first.
    static SPARE: RefCell<Vec<Vec<f32>>> = const { RefCell::new(Vec::new()) };
}

/// Returns `len` floats to be overwritten: zeros or those of an earlier result.
pub(super) fn take(len: usize) -> Vec<f32> {
    let fits = |room: &Vec<f32>| (len..=2 * len).contains(&room.capacity());
    let found = SPARE.with_borrow_mut(|spare| {
        let newest = if len < LARGE { None } else { spare.iter().rposition(fits) };
        newest.map(|index| spare.remove(index))
    });
    match found {
        None => vec![0.0; len],
        Some(mut room) => {
            room.resize(len, 0.0);
            room
        }
    }
}

/// Keeps memory that is not used any more.
pub(super) fn give_back(room: Vec<f32>) {
    if !(LARGE..=MOST).contains(&room.capacity()) {
        return;
    }
    SPARE.with_borrow_mut(|spare| {
        spare.push(room);
        let mut total: usize = spare.iter().map(Vec::capacity).sum();
        while total > MOST {
            total -= spare.remove(0).capacity();
        }
    });
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kept() -> usize {
        SPARE.with_borrow(|spare| spare.iter().map(Vec::capacity).sum())
    }

    #[test]
    fn memory_comes_back_for_results_of_about_its_size() {
        let room = take(2 * LARGE);
        let address = room.as_ptr();
        give_back(room);
        assert_ne!(take(LARGE - 1).as_ptr(), address, "small ones are the allocator's");
        assert_ne!(take(2 * LARGE + 1).as_ptr(), address, "it is too small");
        let again = take(2 * LARGE - 5);
        assert_eq!((again.as_ptr(), again.len()), (address, 2 * LARGE - 5));
        assert_eq!(kept(), 0);
    }

    #[test]
    fn the_oldest_memory_goes_first_and_all_of_it_is_bounded() {
        give_back(vec![0.0; LARGE - 1]);
        give_back(vec![0.0; MOST + 1]);
        assert_eq!(kept(), 0);
        give_back(vec![1.0; LARGE]);
        give_back(vec![2.0; MOST - LARGE]);
        assert_eq!(kept(), MOST);
        give_back(vec![3.0; LARGE]);
        assert_eq!(kept(), MOST);
        assert_eq!(take(LARGE)[0], 3.0);
        assert_eq!(take(LARGE)[0], 0.0);
        assert_eq!(take(MOST - LARGE)[0], 2.0);
    }
}

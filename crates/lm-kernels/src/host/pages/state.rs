//! States of a fixed size, one a page.

use super::{PageId, zeroed};
use crate::{Error, Result};

/// One layer's states: a page holds the state after the last token that was written to it.
///
/// ```
/// let mut states = lm_kernels::StatePages::new(2, 3)?; // 2 pages, 3 elements
/// states.get_mut(1).copy_from_slice(&[1.0, 2.0, 3.0]);
/// states.copy_page(1, 0);
/// assert_eq!(states.get(0), [1.0, 2.0, 3.0]);
/// # Ok::<(), lm_kernels::Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct StatePages {
    values: Vec<f32>,
    len: usize,
}

impl StatePages {
    /// Pages of zeros with `len` elements each.
    ///
    /// # Errors
    /// [`Error::ShapeOverflow`] or [`Error::OutOfMemory`] for more than can be had.
    pub fn new(num_pages: usize, len: usize) -> Result<Self> {
        let elements = num_pages.checked_mul(len).filter(|&elements| elements < isize::MAX as usize / 8);
        let elements = elements.ok_or_else(|| Error::ShapeOverflow { shape: vec![num_pages, len] })?;
        Ok(Self { values: zeroed(elements)?, len })
    }

    /// A page's state.
    ///
    /// # Panics
    /// When there is no such page.
    pub fn get(&self, page: PageId) -> &[f32] {
        &self.values[page as usize * self.len..][..self.len]
    }

    /// A page's state, to be written.
    ///
    /// # Panics
    /// When there is no such page.
    pub fn get_mut(&mut self, page: PageId) -> &mut [f32] {
        &mut self.values[page as usize * self.len..][..self.len]
    }

    /// Makes page `to` a copy of page `from`.
    ///
    /// # Panics
    /// When either is out of range.
    pub fn copy_page(&mut self, from: PageId, to: PageId) {
        let from = from as usize * self.len;
        self.values.copy_within(from..from + self.len, to as usize * self.len);
    }
}

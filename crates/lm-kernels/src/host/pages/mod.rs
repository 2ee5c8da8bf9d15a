//! Paged KV cache of one layer.

mod blocks;
mod element;
mod kv_dtype;
mod state;
mod storage;
#[cfg(test)]
mod tests;

use super::lanes::LANES;
use super::page_id::{PAGE_LEN, PageId};
use super::pool::Pool;
use super::profile::{self, Work};
use super::ragged::RaggedLayout;
use crate::error::Result;

pub(super) use element::{Element, FloatElement};
pub use kv_dtype::KvDtype;
pub use state::{StatePages, StateRun};
use storage::zeroed;
pub(super) use storage::{Pages, Storage, with_pages};

/// Minimum number of rows for one task per head: fewer rows are written before another thread would start.
const PARALLEL_ROWS: usize = 16;

/// KV pages of one layer.
///
/// The keys of a page and head are `[head_dim, slot]`, so that slots are adjacent, and its values
/// `[slot, width]`, where `width` is `head_dim` rounded up to a multiple of 16. Four bytes of a dot product
/// are adjacent in 8-bit pages: four dimensions of a key, four slots of values. Of eight pages whose first id
/// is a multiple of eight, the keys of a head are adjacent, and so are its values: a sequence with
/// consecutive pages is read faster. Memory is committed when a page is first written, with huge pages for
/// its neighbours too. The caller assigns pages to sequences.
///
/// # Examples
/// ```
/// use lm_kernels::{KvDtype, PagedLayer, Pool, RaggedLayout, SequenceLayout};
/// let mut layer = PagedLayer::new(KvDtype::F32, 4, 1, 2)?; // 4 pages, 1 head of 2 values
/// let sequence = SequenceLayout { rows: 0..1, block_table: vec![3], ..Default::default() };
/// layer.write(Pool::global(), &RaggedLayout { sequences: vec![sequence] }, &[1.0, 2.0], &[3.0, 4.0]);
/// assert_eq!(layer.key(3, 0, 0), [1.0, 2.0]);
/// # Ok::<(), lm_kernels::Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct PagedLayer {
    num_pages: usize,
    num_kv_heads: usize,
    head_dim: usize,
    pub(super) storage: Storage,
}

impl PagedLayer {
    /// Allocates pages of zeros.
    ///
    /// # Errors
    /// [`crate::Error::ShapeOverflow`] or [`crate::Error::OutOfMemory`] when there is not enough memory.
    pub fn new(dtype: KvDtype, num_pages: usize, num_kv_heads: usize, head_dim: usize) -> Result<Self> {
        Ok(Self::for_layers(dtype, num_pages, &[(num_kv_heads, head_dim)])?.remove(0))
    }

    /// Allocates pages of zeros for several layers, given as KV heads and head dimensions: one mapping, with
    /// huge pages if the system has them, in which the pages of all layers grow together.
    ///
    /// # Errors
    /// As [`PagedLayer::new`].
    pub fn for_layers(dtype: KvDtype, num_pages: usize, layers: &[(usize, usize)]) -> Result<Vec<Self>> {
        let storages: Vec<Storage> = match dtype {
            KvDtype::F16 => Pages::for_layers(num_pages, layers)?.into_iter().map(Storage::F16).collect(),
            KvDtype::F32 => Pages::for_layers(num_pages, layers)?.into_iter().map(Storage::F32).collect(),
            KvDtype::Q8 => Pages::for_layers(num_pages, layers)?.into_iter().map(Storage::Q8).collect(),
        };
        let layers = layers.iter().zip(storages);
        Ok(layers
            .map(|(&(num_kv_heads, head_dim), storage)| Self { num_pages, num_kv_heads, head_dim, storage })
            .collect())
    }

    /// Number of pages.
    pub fn num_pages(&self) -> usize {
        self.num_pages
    }

    /// Number of KV heads.
    pub fn num_kv_heads(&self) -> usize {
        self.num_kv_heads
    }

    /// Head dimension.
    pub fn head_dim(&self) -> usize {
        self.head_dim
    }

    /// The element type.
    pub fn dtype(&self) -> KvDtype {
        match self.storage {
            Storage::F16(_) => KvDtype::F16,
            Storage::F32(_) => KvDtype::F32,
            Storage::Q8(_) => KvDtype::Q8,
        }
    }

    /// Bytes of one page, keys and values together, including scales and padding.
    pub fn bytes_per_page(&self) -> usize {
        Self::page_bytes(self.dtype(), self.num_kv_heads, self.head_dim)
    }

    /// Bytes of a page of a layer with this type and shape.
    pub fn page_bytes(dtype: KvDtype, num_kv_heads: usize, head_dim: usize) -> usize {
        let elements = head_dim + head_dim.next_multiple_of(LANES);
        let scales = if dtype == KvDtype::Q8 { 2 * size_of::<u16>() } else { 0 };
        num_kv_heads * PAGE_LEN * (elements * dtype.bytes() + scales)
    }

    /// Writes the rows of `k` and `v` to their slots in `layout`, rounded to the element type.
    ///
    /// # Shapes
    /// - `k`, `v`: `[rows, num_kv_heads, head_dim]`
    ///
    /// # Panics
    /// When a length does not fit, or a block table is too short or names a page out of range.
    pub fn write(&mut self, pool: &Pool, layout: &RaggedLayout, k: &[f32], v: &[f32]) {
        let _span = profile::span(Work::CacheWrite);
        let width = self.num_kv_heads * self.head_dim;
        assert_eq!(k.len(), layout.rows() * width, "keys are [{}, {width}]", layout.rows());
        assert_eq!(v.len(), k.len(), "values are as many as keys");
        let (num_pages, num_kv_heads, head_dim) = (self.num_pages, self.num_kv_heads, self.head_dim);
        let heads = if layout.rows() < PARALLEL_ROWS { num_kv_heads } else { 1 };
        with_pages!(&mut self.storage, pages => {
            let pages = pages.share();
            pool.run(num_kv_heads.div_ceil(heads.max(1)), |task| {
                let mut rounded = Vec::new();
                for (row, page, slot) in layout.places() {
                    assert!((page as usize) < num_pages, "page {page} of {num_pages}");
                    for head in task * heads..(task + 1) * heads {
                        let from = row * width + head * head_dim..row * width + (head + 1) * head_dim;
                        // SAFETY: a head belongs to one task, which writes one page at a time.
                        unsafe { pages.page(page, head) }.write(slot, &k[from.clone()], &v[from], &mut rounded);
                    }
                }
            });
        });
    }

    /// Copies page `from` to page `to`.
    ///
    /// # Panics
    /// When either is out of range.
    pub fn copy_page(&mut self, from: PageId, to: PageId) {
        self.check(from, 0, 0);
        self.check(to, 0, 0);
        with_pages!(&mut self.storage, pages => pages.copy_page(from, to));
    }

    /// Appends the [`bytes_per_page`](Self::bytes_per_page) bytes of a page to `out`, in the byte order of
    /// this machine. Slots from `slots` on are written as zeros.
    ///
    /// ```
    /// use lm_kernels::{KvDtype, PagedLayer};
    /// let mut layer = PagedLayer::new(KvDtype::F16, 2, 1, 16)?;
    /// let mut bytes = Vec::new();
    /// layer.read_page(0, 5, &mut bytes);
    /// assert_eq!(bytes.len(), layer.bytes_per_page());
    /// layer.write_page(1, &bytes);
    /// # Ok::<(), lm_kernels::Error>(())
    /// ```
    ///
    /// # Panics
    /// When `page` or `slots` is out of range.
    pub fn read_page(&self, page: PageId, slots: usize, out: &mut Vec<u8>) {
        self.check(page, 0, 0);
        assert!(slots <= PAGE_LEN, "{slots} of {PAGE_LEN} slots");
        with_pages!(&self.storage, pages => pages.read_page(page, slots, out));
    }

    /// Fills a page with the bytes of [`read_page`](Self::read_page).
    ///
    /// # Panics
    /// When the page is out of range, or the bytes are not [`bytes_per_page`](Self::bytes_per_page).
    pub fn write_page(&mut self, page: PageId, bytes: &[u8]) {
        self.check(page, 0, 0);
        assert_eq!(bytes.len(), self.bytes_per_page(), "bytes of a page");
        with_pages!(&mut self.storage, pages => pages.write_page(page, bytes));
    }

    /// One key vector, as attention reads it.
    ///
    /// # Panics
    /// When an index is out of range.
    pub fn key(&self, page: PageId, kv_head: usize, slot: usize) -> Vec<f32> {
        self.check(page, kv_head, slot);
        with_pages!(&self.storage, pages => pages.key(page, kv_head, slot))
    }

    /// One value vector, as attention reads it.
    ///
    /// # Panics
    /// When an index is out of range.
    pub fn value(&self, page: PageId, kv_head: usize, slot: usize) -> Vec<f32> {
        self.check(page, kv_head, slot);
        with_pages!(&self.storage, pages => pages.value(page, kv_head, slot))
    }

    /// Memory addresses of the first key and the first value, to check that they do not move.
    #[cfg(feature = "burn")]
    pub(crate) fn addresses(&self) -> [usize; 2] {
        with_pages!(&self.storage, pages => pages.addresses())
    }

    /// # Panics
    /// When an index is out of range.
    pub(super) fn check(&self, page: PageId, kv_head: usize, slot: usize) {
        assert!((page as usize) < self.num_pages, "page {page} of {}", self.num_pages);
        assert!(kv_head < self.num_kv_heads && slot < PAGE_LEN, "head {kv_head}, slot {slot}");
    }
}

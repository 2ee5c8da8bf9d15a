//! Paged KV cache of one layer.

mod blocks;
mod element;
mod kv_dtype;
mod state;
mod storage;

use super::lanes::LANES;
use super::pool::Pool;
use super::profile::{self, Work};
use super::ragged::RaggedLayout;
use crate::Result;

pub(super) use element::{Element, FloatElement};
pub use kv_dtype::KvDtype;
pub use state::{StatePages, StateRun};
use storage::zeroed;
pub(super) use storage::{Pages, Storage, with_pages};

/// Rows from which each head is a task: fewer are written before another thread would begin.
const PARALLEL_ROWS: usize = 16;

/// Slots (tokens) per page.
pub const PAGE_LEN: usize = 32;

/// Index of a page in its pool.
pub type PageId = u32;

/// Block-table entry of a freed page, none of whose slots is visible any more.
pub const NO_PAGE: PageId = PageId::MAX;

/// KV pages of one layer.
///
/// The keys of a page and head are `[head_dim, slot]`, so that slots are adjacent, and its values `[slot, width]`, where `width` is
/// `head_dim` rounded up to a multiple of 16. Four bytes of a dot product are adjacent in 8-bit pages: four dimensions of a key, four
/// slots of values. Of eight pages whose first id is a multiple of eight, the keys of a head are adjacent, and so are its values: a
/// sequence with consecutive pages is read faster. Memory is committed when a page is first written, with huge pages for its
/// neighbours too. The caller assigns pages to sequences.
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

    /// Allocates pages of zeros for several layers, given as KV heads and head dimensions: one mapping, with huge pages if the system
    /// has them, in which the pages of all layers grow together.
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

    /// Appends the [`bytes_per_page`](Self::bytes_per_page) bytes of a page to `out`, in the byte order of this machine. Slots from
    /// `slots` on are zeros, whatever they hold.
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

#[cfg(test)]
mod tests {
    use super::super::ragged::SequenceLayout;
    use super::super::testing::Random;
    use super::*;
    use crate::Error;

    #[test]
    fn rows_go_to_their_slots_and_nowhere_else() {
        for dtype in [KvDtype::F32, KvDtype::F16] {
            let mut random = Random(61);
            let (layout, pages) = random.layout(&[(30, 5), (0, 33)]);
            let mut layer = PagedLayer::new(dtype, pages, 2, 4).unwrap();
            let (k, v) = (random.normal(38 * 8), random.normal(38 * 8));
            layer.write(&Pool::new(2), &layout, &k, &v);
            let mut written = 0;
            for sequence in &layout.sequences {
                for (index, row) in sequence.rows.clone().enumerate() {
                    let (page, slot) = sequence.place(sequence.cached_len + index);
                    for head in 0..2 {
                        let from = row * 8 + head * 4;
                        let near =
                            |got: &[f32], x: &[f32]| got.iter().zip(x).all(|(a, b)| (a - b).abs() < 2e-3);
                        assert!(near(&layer.key(page, head, slot), &k[from..from + 4]));
                        assert!(near(&layer.value(page, head, slot), &v[from..from + 4]));
                        written += 4;
                    }
                }
            }
            let slots = (0..pages as PageId)
                .flat_map(|page| (0..2 * PAGE_LEN).map(move |i| (page, i / PAGE_LEN, i % PAGE_LEN)));
            let keys = slots.flat_map(|(page, head, slot)| layer.key(page, head, slot));
            assert_eq!(keys.filter(|&x| x != 0.0).count(), written, "{dtype}: other slots are untouched");
        }
    }

    #[test]
    fn a_copied_page_is_the_same_and_its_own() {
        for dtype in [KvDtype::F32, KvDtype::F16] {
            let mut layer = PagedLayer::new(dtype, 3, 2, 4).unwrap();
            let (layout, _) = Random(62).layout(&[(0, 32)]);
            layer.write(&Pool::new(2), &layout, &vec![1.5; 32 * 8], &vec![2.5; 32 * 8]);
            layer.copy_page(0, 2);
            layer.write(&Pool::new(2), &layout, &vec![0.0; 32 * 8], &vec![0.0; 32 * 8]);
            for slot in [0, 31] {
                assert_eq!((layer.key(2, 1, slot), layer.value(2, 1, slot)), (vec![1.5; 4], vec![2.5; 4]));
                assert_eq!(layer.key(1, 1, slot), [0.0; 4]);
            }
            assert_eq!(
                layer.bytes_per_page(),
                2 * 32 * (4 + 16) * dtype.bytes(),
                "values are filled up to 16"
            );
        }
    }

    /// Each slot has a different scale, so that a scale that is not copied is detected.
    #[test]
    fn a_copied_page_has_the_scales_of_its_integers() {
        let mut layer = PagedLayer::new(KvDtype::Q8, 3, 2, 4).unwrap();
        let (layout, _) = Random(62).layout(&[(0, 32)]);
        let numbers = |factor: f32| (1..=32 * 8).map(|i| factor * i as f32).collect::<Vec<_>>();
        layer.write(&Pool::new(2), &layout, &numbers(0.25), &numbers(-3.0));
        layer.copy_page(0, 2);
        for (head, slot) in (0..2).flat_map(|head| (0..PAGE_LEN).map(move |slot| (head, slot))) {
            assert_eq!(layer.key(2, head, slot), layer.key(0, head, slot), "key of head {head}, slot {slot}");
            let value = layer.value(2, head, slot);
            assert_eq!(value, layer.value(0, head, slot), "value of head {head}, slot {slot}");
            assert!(value.iter().any(|&x| x != 0.0), "head {head}, slot {slot} was written");
        }
    }

    #[test]
    fn a_page_written_from_its_bytes_is_the_same_and_unused_slots_are_zeros() {
        for dtype in [KvDtype::F32, KvDtype::F16, KvDtype::Q8] {
            let mut layer = PagedLayer::new(dtype, 3, 2, 4).unwrap();
            let (layout, _) = Random(63).layout(&[(0, 32)]);
            let numbers = |factor: f32| (1..=32 * 8).map(|i| factor * i as f32).collect::<Vec<_>>();
            layer.write(&Pool::new(2), &layout, &numbers(0.25), &numbers(-3.0));
            let source = layout.sequences[0].block_table[0];
            let target = (source + 1) % 3;
            for slots in [32, 7, 0] {
                let mut bytes = Vec::new();
                layer.read_page(source, slots, &mut bytes);
                assert_eq!(bytes.len(), layer.bytes_per_page());
                layer.write_page(target, &bytes);
                for (head, slot) in (0..2).flat_map(|head| (0..PAGE_LEN).map(move |slot| (head, slot))) {
                    let got = (layer.key(target, head, slot), layer.value(target, head, slot));
                    let expected = match slot < slots {
                        true => (layer.key(source, head, slot), layer.value(source, head, slot)),
                        false => (vec![0.0; 4], vec![0.0; 4]),
                    };
                    assert_eq!(got, expected, "{dtype} head {head} slot {slot} of {slots}");
                }
            }
        }
    }

    /// Saved sessions hold these bytes.
    #[test]
    fn the_bytes_of_a_page_have_one_order() {
        const SLOTS: usize = 20;
        // 127 is the largest of each vector, so that the scale is exact.
        let integer = |h: usize, s: usize, c: usize| if c == 15 { 127 } else { 50 * h + s + 2 * c };
        let scale = |part: usize, h: usize| (1_usize << (2 * part + h)) as f32;
        for dtype in [KvDtype::F32, KvDtype::Q8] {
            let mut layer = PagedLayer::new(dtype, 1, 2, 16).unwrap();
            let sequence = SequenceLayout { rows: 0..32, block_table: vec![0], ..Default::default() };
            let layout = RaggedLayout { sequences: vec![sequence] };
            let rows = |part| {
                let number = |i: usize| integer(i / 16 % 2, i / 32, i % 16) as f32 * scale(part, i / 16 % 2);
                (0..32 * 32).map(number).collect::<Vec<_>>()
            };
            layer.write(&Pool::new(1), &layout, &rows(0), &rows(1));
            let mut expected = Vec::new();
            for (part, h, i) in (0..2 * 2 * 512).map(|i| (i / 1024, i / 512 % 2, i % 512)) {
                let (s, c) = if part == 0 { (i % 32, i / 32) } else { (i / 16, i % 16) };
                let integer = if s < SLOTS { integer(h, s, c) } else { 0 };
                match dtype {
                    KvDtype::Q8 => expected.push(128 + integer as u8),
                    _ => expected.extend((integer as f32 * scale(part, h)).to_ne_bytes()),
                }
            }
            for (part, h, s) in (0..2 * 2 * 32).map(|i| (i / 64, i / 32 % 2, i % 32)) {
                let scale = if s < SLOTS { (scale(part, h).to_bits() >> 16) as u16 } else { 0 };
                expected.extend(scale.to_ne_bytes().into_iter().filter(|_| dtype == KvDtype::Q8));
            }
            let mut bytes = Vec::new();
            layer.read_page(0, SLOTS, &mut bytes);
            assert!(bytes == expected, "{dtype}");
        }
    }

    #[test]
    #[should_panic(expected = "page 3 of 3")]
    fn a_page_out_of_range_is_not_written() {
        let sequence = SequenceLayout { rows: 0..1, block_table: vec![3], ..Default::default() };
        let layout = RaggedLayout { sequences: vec![sequence] };
        PagedLayer::new(KvDtype::F32, 3, 1, 1).unwrap().write(&Pool::new(1), &layout, &[1.0], &[1.0]);
    }

    #[test]
    #[should_panic(expected = "33 of 32 slots")]
    fn more_slots_than_a_page_has_are_refused() {
        PagedLayer::new(KvDtype::F16, 1, 1, 1).unwrap().read_page(0, 33, &mut Vec::new());
    }

    #[test]
    fn layers_allocated_together_have_their_own_pages() {
        for dtype in [KvDtype::F32, KvDtype::F16, KvDtype::Q8] {
            let mut layers = PagedLayer::for_layers(dtype, 19, &[(2, 4), (1, 20), (3, 8)]).unwrap();
            let sequence =
                SequenceLayout { rows: 0..32 * 19, block_table: (0..19).collect(), ..Default::default() };
            let layout = RaggedLayout { sequences: vec![sequence] };
            for (index, layer) in layers.iter_mut().enumerate() {
                let len = 32 * 19 * layer.num_kv_heads() * layer.head_dim();
                layer.write(
                    &Pool::new(2),
                    &layout,
                    &vec![index as f32 + 1.0; len],
                    &vec![-(index as f32); len],
                );
            }
            for (index, layer) in layers.iter().enumerate() {
                let dim = layer.head_dim();
                for (page, head, slot) in
                    [(0, 0, 0), (7, 0, 31), (8, layer.num_kv_heads() - 1, 0), (18, 0, 31)]
                {
                    let near =
                        |got: Vec<f32>, x: f32| got.len() == dim && got.iter().all(|y| (y - x).abs() < 0.02);
                    assert!(near(layer.key(page, head, slot), index as f32 + 1.0), "{dtype} {index} {page}");
                    assert!(near(layer.value(page, head, slot), -(index as f32)), "{dtype} {index} {page}");
                }
            }
        }
    }

    #[test]
    fn more_than_there_can_be_is_an_error() {
        let overflow = PagedLayer::new(KvDtype::F16, usize::MAX, 2, 64);
        assert!(matches!(overflow, Err(Error::ShapeOverflow { .. })));
        let refused = PagedLayer::new(KvDtype::F16, 1 << 48, 1, 64);
        assert!(matches!(refused, Err(Error::OutOfMemory { .. })), "{:?}", refused.err());
    }

    #[test]
    #[should_panic(expected = "page 3 of 3")]
    fn a_page_out_of_range_is_refused() {
        PagedLayer::new(KvDtype::F32, 3, 1, 1).unwrap().copy_page(0, 3);
    }
}

//! Keys and values of one layer, in pages that sequences share out among themselves.

mod element;
mod state;

use std::fmt;
use std::str::FromStr;

use super::lanes::{LANES, bf16_to_f32};
use super::ragged::RaggedLayout;
use super::split::SharedMatrix;
use crate::{Error, Result};

pub(super) use element::Element;
pub use state::{StatePages, StateRun};

/// How many slots (tokens) a page holds.
pub const PAGE_LEN: usize = 32;

/// The number of a page in its pool.
pub type PageId = u32;

/// Stands in a block table where a page was given back: nothing that is still seen was in it.
pub const NO_PAGE: PageId = PageId::MAX;

/// The element type that keys and values are kept in.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub enum KvDtype {
    /// Half precision. The default: half the memory and half the reads, at an error far below that of 8-bit weights.
    #[default]
    F16,
    /// Single precision: nothing is rounded.
    F32,
    /// 8-bit integers with a scale for each head's vector: half the memory of halves again, at an error that shows.
    Q8,
}

impl KvDtype {
    /// Bytes of one element, without a scale.
    pub fn bytes(self) -> usize {
        match self {
            KvDtype::F16 => 2,
            KvDtype::F32 => 4,
            KvDtype::Q8 => 1,
        }
    }
}

impl fmt::Display for KvDtype {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            KvDtype::F16 => "f16",
            KvDtype::F32 => "f32",
            KvDtype::Q8 => "q8",
        })
    }
}

impl FromStr for KvDtype {
    type Err = Error;

    fn from_str(name: &str) -> Result<Self> {
        match name {
            "f16" => Ok(KvDtype::F16),
            "f32" => Ok(KvDtype::F32),
            "q8" => Ok(KvDtype::Q8),
            _ => Err(Error::UnknownName {
                what: "KV cache type",
                name: name.to_owned(),
                known: "f16, f32, q8",
            }),
        }
    }
}

/// The pages of one layer's keys and values.
///
/// Keys are `[page, kv_head, head_dim, slot]`, so that the slots of a page lie side by side, and values
/// `[page, kv_head, slot, width]`, `width` being `head_dim` filled up to a multiple of 16. Memory is taken from the system when
/// a page is first written. Whose page is whose is the caller's business.
///
/// # Examples
/// ```
/// use lm_kernels::{KvDtype, PagedLayer, RaggedLayout, SequenceLayout};
/// let mut layer = PagedLayer::new(KvDtype::F32, 4, 1, 2)?; // 4 pages, 1 head of 2 values
/// let sequence = SequenceLayout { rows: 0..1, block_table: vec![3], ..Default::default() };
/// layer.write(&RaggedLayout { sequences: vec![sequence] }, &[1.0, 2.0], &[3.0, 4.0]);
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

/// Keys and values in the one type they have.
#[derive(Clone, Debug)]
pub(super) enum Storage {
    F16(Pages<u16>),
    F32(Pages<f32>),
    Q8(Pages<i8>),
}

/// Keys and values of one type.
#[derive(Clone, Debug)]
pub(super) struct Pages<E> {
    keys: Vec<E>,
    values: Vec<E>,
    /// `[page, kv_head, slot]`, the bits of bfloat16; empty for types without scales.
    key_scales: Vec<u16>,
    value_scales: Vec<u16>,
    num_kv_heads: usize,
    head_dim: usize,
}

/// Runs the same code on the pages, whatever their type.
macro_rules! with_pages {
    ($storage:expr, $pages:ident => $body:expr) => {
        match $storage {
            $crate::host::pages::Storage::F16($pages) => $body,
            $crate::host::pages::Storage::F32($pages) => $body,
            $crate::host::pages::Storage::Q8($pages) => $body,
        }
    };
}

pub(super) use with_pages;

impl PagedLayer {
    /// Pages of zeros.
    ///
    /// # Errors
    /// [`Error::ShapeOverflow`] or [`Error::OutOfMemory`] for more than can be had.
    pub fn new(dtype: KvDtype, num_pages: usize, num_kv_heads: usize, head_dim: usize) -> Result<Self> {
        let storage = match dtype {
            KvDtype::F16 => Storage::F16(Pages::new(num_pages, num_kv_heads, head_dim)?),
            KvDtype::F32 => Storage::F32(Pages::new(num_pages, num_kv_heads, head_dim)?),
            KvDtype::Q8 => Storage::Q8(Pages::new(num_pages, num_kv_heads, head_dim)?),
        };
        Ok(Self { num_pages, num_kv_heads, head_dim, storage })
    }

    /// How many pages there are.
    pub fn num_pages(&self) -> usize {
        self.num_pages
    }

    /// How many heads keys and values have.
    pub fn num_kv_heads(&self) -> usize {
        self.num_kv_heads
    }

    /// How many values a head has.
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

    /// Bytes of one page, keys and values together, scales and filling included.
    pub fn bytes_per_page(&self) -> usize {
        Self::page_bytes(self.dtype(), self.num_kv_heads, self.head_dim)
    }

    /// Bytes of a page of such a layer.
    pub fn page_bytes(dtype: KvDtype, num_kv_heads: usize, head_dim: usize) -> usize {
        let elements = head_dim + head_dim.next_multiple_of(LANES);
        let scales = if dtype == KvDtype::Q8 { 2 * size_of::<u16>() } else { 0 };
        num_kv_heads * PAGE_LEN * (elements * dtype.bytes() + scales)
    }

    /// Writes the rows of `k` and `v` to the slots that `layout` gives them, rounded to the element type.
    ///
    /// # Shapes
    /// - `k`, `v`: `[rows, num_kv_heads, head_dim]`
    ///
    /// # Panics
    /// When a length does not fit, a block table is too short or names a page out of range.
    pub fn write(&mut self, layout: &RaggedLayout, k: &[f32], v: &[f32]) {
        let width = self.num_kv_heads * self.head_dim;
        assert_eq!(k.len(), layout.rows() * width, "keys are [{}, {width}]", layout.rows());
        assert_eq!(v.len(), k.len(), "values are as many as keys");
        let (num_pages, num_kv_heads, head_dim) = (self.num_pages, self.num_kv_heads, self.head_dim);
        with_pages!(&mut self.storage, pages => {
            let pages = pages.share();
            for sequence in &layout.sequences {
                for (index, row) in sequence.rows.clone().enumerate() {
                    let (page, slot) = sequence.place(sequence.cached_len + index);
                    assert!((page as usize) < num_pages, "page {page} of {num_pages}");
                    for head in 0..num_kv_heads {
                        let from = row * width + head * head_dim..row * width + (head + 1) * head_dim;
                        // SAFETY: one page at a time.
                        unsafe { pages.page(page, head) }.write(slot, &k[from.clone()], &v[from]);
                    }
                }
            }
        });
    }

    /// Makes page `to` a copy of page `from`.
    ///
    /// # Panics
    /// When either is out of range.
    pub fn copy_page(&mut self, from: PageId, to: PageId) {
        self.check(from, 0, 0);
        self.check(to, 0, 0);
        with_pages!(&mut self.storage, pages => pages.copy_page(from as usize, to as usize));
    }

    /// One key, as it is read by attention.
    ///
    /// # Panics
    /// When an index is out of range.
    pub fn key(&self, page: PageId, kv_head: usize, slot: usize) -> Vec<f32> {
        self.check(page, kv_head, slot);
        with_pages!(&self.storage, pages => pages.key(page, kv_head, slot))
    }

    /// One value, as it is read by attention.
    ///
    /// # Panics
    /// When an index is out of range.
    pub fn value(&self, page: PageId, kv_head: usize, slot: usize) -> Vec<f32> {
        self.check(page, kv_head, slot);
        with_pages!(&self.storage, pages => pages.value(page, kv_head, slot))
    }

    /// Where the first key and the first value lie in memory, to see that they stay there.
    #[cfg(feature = "burn")]
    pub(crate) fn addresses(&self) -> [usize; 2] {
        with_pages!(&self.storage, pages => [pages.keys.as_ptr().addr(), pages.values.as_ptr().addr()])
    }

    /// # Panics
    /// When an index is out of range.
    pub(super) fn check(&self, page: PageId, kv_head: usize, slot: usize) {
        assert!((page as usize) < self.num_pages, "page {page} of {}", self.num_pages);
        assert!(kv_head < self.num_kv_heads && slot < PAGE_LEN, "head {kv_head}, slot {slot}");
    }
}

impl<E: Element> Pages<E> {
    fn new(num_pages: usize, num_kv_heads: usize, head_dim: usize) -> Result<Self> {
        let width = head_dim.next_multiple_of(LANES);
        let elements = |width: usize| {
            let shape = [num_pages, num_kv_heads, PAGE_LEN, width];
            let product = shape.iter().try_fold(1_usize, |product, &dim| product.checked_mul(dim));
            product
                .filter(|&elements| elements < isize::MAX as usize / 8)
                .ok_or_else(|| Error::ShapeOverflow { shape: shape.to_vec() })
        };
        let scales = elements(usize::from(E::SCALED))?;
        Ok(Self {
            keys: zeroed(elements(head_dim)?)?,
            values: zeroed(elements(width)?)?,
            key_scales: zeroed(scales)?,
            value_scales: zeroed(scales)?,
            num_kv_heads,
            head_dim,
        })
    }

    /// Elements of a value's row.
    #[inline(always)]
    pub fn width(&self) -> usize {
        self.head_dim.next_multiple_of(LANES)
    }

    #[inline(always)]
    fn block(&self, page: PageId, kv_head: usize) -> usize {
        page as usize * self.num_kv_heads + kv_head
    }

    /// The keys of a page: for each of the head's values 32 slots.
    #[inline(always)]
    pub fn keys(&self, page: PageId, kv_head: usize) -> &[[E; PAGE_LEN]] {
        let (block, len) = (self.block(page, kv_head), self.head_dim * PAGE_LEN);
        self.keys[block * len..(block + 1) * len].as_chunks().0
    }

    /// The values of a page: for each slot [`Pages::width`].
    #[inline(always)]
    pub fn values(&self, page: PageId, kv_head: usize) -> &[E] {
        let (block, len) = (self.block(page, kv_head), self.width() * PAGE_LEN);
        &self.values[block * len..(block + 1) * len]
    }

    /// The scales of a page's keys, as the bits of bfloat16; nothing for types without scales.
    #[inline(always)]
    pub fn key_scales(&self, page: PageId, kv_head: usize) -> &[[u16; LANES]] {
        self.scales(&self.key_scales, page, kv_head)
    }

    /// The scales of a page's values.
    #[inline(always)]
    pub fn value_scales(&self, page: PageId, kv_head: usize) -> &[[u16; LANES]] {
        self.scales(&self.value_scales, page, kv_head)
    }

    #[inline(always)]
    fn scales<'a>(&self, scales: &'a [u16], page: PageId, kv_head: usize) -> &'a [[u16; LANES]] {
        let (block, len) = (self.block(page, kv_head), if E::SCALED { PAGE_LEN } else { 0 });
        scales[block * len..(block + 1) * len].as_chunks().0
    }

    fn key(&self, page: PageId, kv_head: usize, slot: usize) -> Vec<f32> {
        let scale = scale_of(self.key_scales(page, kv_head), slot);
        self.keys(page, kv_head).iter().map(|slots| slots[slot].widen() * scale).collect()
    }

    fn value(&self, page: PageId, kv_head: usize, slot: usize) -> Vec<f32> {
        let scale = scale_of(self.value_scales(page, kv_head), slot);
        let row = &self.values(page, kv_head)[slot * self.width()..][..self.head_dim];
        row.iter().map(|x| x.widen() * scale).collect()
    }

    fn copy_page(&mut self, from: usize, to: usize) {
        let blocks = |len: usize| from * self.num_kv_heads * len..(from + 1) * self.num_kv_heads * len;
        let (key_len, value_len) = (self.head_dim * PAGE_LEN, self.width() * PAGE_LEN);
        let (keys, values) = (blocks(key_len), blocks(value_len));
        self.keys.copy_within(keys, to * self.num_kv_heads * key_len);
        self.values.copy_within(values, to * self.num_kv_heads * value_len);
        if E::SCALED {
            let scales = from * self.num_kv_heads * PAGE_LEN..(from + 1) * self.num_kv_heads * PAGE_LEN;
            self.key_scales.copy_within(scales.clone(), to * self.num_kv_heads * PAGE_LEN);
            self.value_scales.copy_within(scales, to * self.num_kv_heads * PAGE_LEN);
        }
    }
}

/// Pages that several tasks write to.
pub(super) struct SharedPages<'a, E> {
    keys: SharedMatrix<'a, E>,
    values: SharedMatrix<'a, E>,
    key_scales: SharedMatrix<'a, u16>,
    value_scales: SharedMatrix<'a, u16>,
    num_kv_heads: usize,
}

/// A page's keys and values of one head, to be written.
pub(super) struct PageMut<'a, E> {
    keys: &'a mut [[E; PAGE_LEN]],
    values: &'a mut [E],
    key_scales: &'a mut [u16],
    value_scales: &'a mut [u16],
}

impl<E: Element> Pages<E> {
    pub fn share(&mut self) -> SharedPages<'_, E> {
        let width = self.width();
        SharedPages {
            keys: SharedMatrix::new(&mut self.keys, self.head_dim * PAGE_LEN),
            values: SharedMatrix::new(&mut self.values, width * PAGE_LEN),
            key_scales: SharedMatrix::new(&mut self.key_scales, PAGE_LEN),
            value_scales: SharedMatrix::new(&mut self.value_scales, PAGE_LEN),
            num_kv_heads: self.num_kv_heads,
        }
    }
}

impl<E: Element> SharedPages<'_, E> {
    /// A page's keys and values of one head.
    ///
    /// # Safety
    /// While it is there, no other one of the same page and head is.
    ///
    /// # Panics
    /// When there is no such page.
    pub unsafe fn page(&self, page: PageId, kv_head: usize) -> PageMut<'_, E> {
        let block = page as usize * self.num_kv_heads + kv_head;
        let scales = if E::SCALED { block..block + 1 } else { 0..0 };
        // SAFETY: the caller keeps the pages apart.
        unsafe {
            PageMut {
                keys: self.keys.rows(block..block + 1).as_chunks_mut().0,
                values: self.values.rows(block..block + 1),
                key_scales: self.key_scales.rows(scales.clone()),
                value_scales: self.value_scales.rows(scales),
            }
        }
    }
}

impl<E: Element> PageMut<'_, E> {
    /// Writes one slot.
    #[inline(always)]
    pub fn write(&mut self, slot: usize, key: &[f32], value: &[f32]) {
        let width = self.values.len() / PAGE_LEN;
        let row = &mut self.values[slot * width..(slot + 1) * width];
        let key_scale = E::round(key, &mut row[..key.len()]);
        for (slots, key) in self.keys.iter_mut().zip(&*row) {
            slots[slot] = *key;
        }
        let value_scale = E::round(value, &mut row[..value.len()]);
        if E::SCALED {
            (self.key_scales[slot], self.value_scales[slot]) = (key_scale, value_scale);
        }
    }
}

/// The scale of a slot, 1 where there are none.
fn scale_of(scales: &[[u16; LANES]], slot: usize) -> f32 {
    scales.get(slot / LANES).map_or(1.0, |scales| bf16_to_f32(scales[slot % LANES]))
}

fn zeroed<T: bytemuck::Zeroable>(elements: usize) -> Result<Vec<T>> {
    bytemuck::allocation::try_zeroed_vec(elements)
        .map_err(|()| Error::OutOfMemory { bytes: elements * size_of::<T>() })
}

#[cfg(test)]
mod tests {
    use super::super::testing::Random;
    use super::*;

    #[test]
    fn rows_go_to_their_slots_and_nowhere_else() {
        for dtype in [KvDtype::F32, KvDtype::F16] {
            let mut random = Random(61);
            let (layout, pages) = random.layout(&[(30, 5), (0, 33)]);
            let mut layer = PagedLayer::new(dtype, pages, 2, 4).unwrap();
            let (k, v) = (random.normal(38 * 8), random.normal(38 * 8));
            layer.write(&layout, &k, &v);
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
            layer.write(&layout, &vec![1.5; 32 * 8], &vec![2.5; 32 * 8]);
            layer.copy_page(0, 2);
            layer.write(&layout, &vec![0.0; 32 * 8], &vec![0.0; 32 * 8]);
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

//! Keys and values of one layer, in pages that sequences share out among themselves.

use std::fmt;
use std::str::FromStr;

use super::lanes::{f16_to_f32, f32_to_f16};
use super::ragged::RaggedLayout;
use crate::{Error, Result};

/// How many slots (tokens) a page holds.
pub const PAGE_LEN: usize = 32;

/// The number of a page in its pool.
pub type PageId = u32;

/// The element type that keys and values are kept in.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub enum KvDtype {
    /// Half precision. The default: half the memory and half the reads, at an error far below that of 8-bit weights.
    #[default]
    F16,
    /// Single precision: nothing is rounded.
    F32,
}

impl KvDtype {
    /// Bytes of one element.
    pub fn bytes(self) -> usize {
        match self {
            KvDtype::F16 => 2,
            KvDtype::F32 => 4,
        }
    }
}

impl fmt::Display for KvDtype {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            KvDtype::F16 => "f16",
            KvDtype::F32 => "f32",
        })
    }
}

impl FromStr for KvDtype {
    type Err = Error;

    fn from_str(name: &str) -> Result<Self> {
        match name {
            "f16" => Ok(KvDtype::F16),
            "f32" => Ok(KvDtype::F32),
            _ => Err(Error::UnknownName { what: "KV cache type", name: name.to_owned(), known: "f16, f32" }),
        }
    }
}

/// The pages of one layer's keys and values, `[page, kv_head, slot, head_dim]` each.
///
/// Memory is taken from the system when a page is first written. Whose page is whose is the caller's business.
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

/// Keys and values in the one type they have. Halves are kept as bits: those of zero come from the system as such.
#[derive(Clone, Debug)]
pub(super) enum Storage {
    F16 { k: Vec<u16>, v: Vec<u16> },
    F32 { k: Vec<f32>, v: Vec<f32> },
}

impl PagedLayer {
    /// Pages of zeros.
    ///
    /// # Errors
    /// [`Error::ShapeOverflow`] or [`Error::OutOfMemory`] for more than can be had.
    pub fn new(dtype: KvDtype, num_pages: usize, num_kv_heads: usize, head_dim: usize) -> Result<Self> {
        let shape = [num_pages, num_kv_heads, PAGE_LEN, head_dim];
        let elements = shape
            .iter()
            .try_fold(1_usize, |product, &dim| product.checked_mul(dim))
            .filter(|&elements| elements < isize::MAX as usize / 8)
            .ok_or_else(|| Error::ShapeOverflow { shape: shape.to_vec() })?;
        let storage = match dtype {
            KvDtype::F16 => Storage::F16 { k: zeroed(elements)?, v: zeroed(elements)? },
            KvDtype::F32 => Storage::F32 { k: zeroed(elements)?, v: zeroed(elements)? },
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
            Storage::F16 { .. } => KvDtype::F16,
            Storage::F32 { .. } => KvDtype::F32,
        }
    }

    /// Bytes of one page, keys and values together.
    pub fn bytes_per_page(&self) -> usize {
        2 * self.num_kv_heads * PAGE_LEN * self.head_dim * self.dtype().bytes()
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
        let (num_kv_heads, head_dim) = (self.num_kv_heads, self.head_dim);
        for sequence in &layout.sequences {
            for (index, row) in sequence.rows.clone().enumerate() {
                let (page, slot) = sequence.place(sequence.cached_len + index);
                for head in 0..num_kv_heads {
                    let from = row * width + head * head_dim..row * width + (head + 1) * head_dim;
                    let to = self.slot(page, head, slot);
                    match &mut self.storage {
                        Storage::F16 { k: keys, v: values } => {
                            f32_to_f16(&k[from.clone()], &mut keys[to..to + head_dim]);
                            f32_to_f16(&v[from], &mut values[to..to + head_dim]);
                        }
                        Storage::F32 { k: keys, v: values } => {
                            keys[to..to + head_dim].copy_from_slice(&k[from.clone()]);
                            values[to..to + head_dim].copy_from_slice(&v[from]);
                        }
                    }
                }
            }
        }
    }

    /// Makes page `to` a copy of page `from`.
    ///
    /// # Panics
    /// When either is out of range.
    pub fn copy_page(&mut self, from: PageId, to: PageId) {
        let len = self.num_kv_heads * PAGE_LEN * self.head_dim;
        let (from, to) = (self.slot(from, 0, 0), self.slot(to, 0, 0));
        match &mut self.storage {
            Storage::F16 { k, v } => [k, v].map(|data| data.copy_within(from..from + len, to)),
            Storage::F32 { k, v } => [k, v].map(|data| data.copy_within(from..from + len, to)),
        };
    }

    /// One key, as it is read by attention.
    ///
    /// # Panics
    /// When an index is out of range.
    pub fn key(&self, page: PageId, kv_head: usize, slot: usize) -> Vec<f32> {
        self.element(page, kv_head, slot, |storage, range| match storage {
            Storage::F16 { k, .. } => k[range].iter().map(|&bits| f16_to_f32(bits)).collect(),
            Storage::F32 { k, .. } => k[range].to_vec(),
        })
    }

    /// One value, as it is read by attention.
    ///
    /// # Panics
    /// When an index is out of range.
    pub fn value(&self, page: PageId, kv_head: usize, slot: usize) -> Vec<f32> {
        self.element(page, kv_head, slot, |storage, range| match storage {
            Storage::F16 { v, .. } => v[range].iter().map(|&bits| f16_to_f32(bits)).collect(),
            Storage::F32 { v, .. } => v[range].to_vec(),
        })
    }

    /// Where the first key and the first value lie in memory, to see that they stay there.
    #[cfg(all(test, feature = "burn"))]
    pub(crate) fn addresses(&self) -> [usize; 2] {
        match &self.storage {
            Storage::F16 { k, v } => [k.as_ptr() as usize, v.as_ptr() as usize],
            Storage::F32 { k, v } => [k.as_ptr() as usize, v.as_ptr() as usize],
        }
    }

    fn element<T>(
        &self,
        page: PageId,
        kv_head: usize,
        slot: usize,
        read: impl FnOnce(&Storage, std::ops::Range<usize>) -> T,
    ) -> T {
        let start = self.slot(page, kv_head, slot);
        read(&self.storage, start..start + self.head_dim)
    }

    /// Where a slot's `head_dim` elements begin.
    pub(super) fn slot(&self, page: PageId, kv_head: usize, slot: usize) -> usize {
        let page = page as usize;
        assert!(page < self.num_pages, "page {page} of {}", self.num_pages);
        assert!(kv_head < self.num_kv_heads && slot < PAGE_LEN, "head {kv_head}, slot {slot}");
        ((page * self.num_kv_heads + kv_head) * PAGE_LEN + slot) * self.head_dim
    }
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
            let nonzero = match &layer.storage {
                Storage::F16 { k, .. } => k.iter().filter(|&&bits| bits != 0).count(),
                Storage::F32 { k, .. } => k.iter().filter(|&&x| x != 0.0).count(),
            };
            assert_eq!(nonzero, written, "{dtype}: other slots are untouched");
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
            assert_eq!(layer.bytes_per_page(), 2 * 2 * 32 * 4 * dtype.bytes());
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

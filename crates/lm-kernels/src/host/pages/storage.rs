//! Storage of a layer's keys and values, by element type.

use super::super::lanes::{LANES, bf16_to_f32};
use super::super::split::SharedMatrix;
use super::{Element, PAGE_LEN, PageId};
use crate::{Error, Result};

/// Keys and values in one of the element types.
#[derive(Clone, Debug)]
pub(in crate::host) enum Storage {
    F16(Pages<u16>),
    F32(Pages<f32>),
    Q8(Pages<i8>),
}

/// Keys and values of element type `E`.
#[derive(Clone, Debug)]
pub(in crate::host) struct Pages<E> {
    keys: Vec<E>,
    values: Vec<E>,
    /// `[page, kv_head, slot]`, as bf16 bits; empty for types without scales.
    key_scales: Vec<u16>,
    value_scales: Vec<u16>,
    num_kv_heads: usize,
    head_dim: usize,
}

/// Runs the same code on the pages of any element type.
macro_rules! with_pages {
    ($storage:expr, $pages:ident => $body:expr) => {
        match $storage {
            $crate::host::pages::Storage::F16($pages) => $body,
            $crate::host::pages::Storage::F32($pages) => $body,
            $crate::host::pages::Storage::Q8($pages) => $body,
        }
    };
}

pub(in crate::host) use with_pages;

impl<E: Element> Pages<E> {
    pub(super) fn new(num_pages: usize, num_kv_heads: usize, head_dim: usize) -> Result<Self> {
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

    /// Memory addresses of the first key and the first value.
    #[cfg(feature = "burn")]
    pub(super) fn addresses(&self) -> [usize; 2] {
        [self.keys.as_ptr().addr(), self.values.as_ptr().addr()]
    }

    /// Elements of a value row: the head dimension rounded up to a multiple of 16.
    #[inline(always)]
    pub fn width(&self) -> usize {
        self.head_dim.next_multiple_of(LANES)
    }

    #[inline(always)]
    fn block(&self, page: PageId, kv_head: usize) -> usize {
        page as usize * self.num_kv_heads + kv_head
    }

    /// The keys of a page: 32 slots for each element of the head.
    #[inline(always)]
    pub fn keys(&self, page: PageId, kv_head: usize) -> &[[E; PAGE_LEN]] {
        let (block, len) = (self.block(page, kv_head), self.head_dim * PAGE_LEN);
        self.keys[block * len..(block + 1) * len].as_chunks().0
    }

    /// The values of a page: [`Pages::width`] elements for each slot.
    #[inline(always)]
    pub fn values(&self, page: PageId, kv_head: usize) -> &[E] {
        let (block, len) = (self.block(page, kv_head), self.width() * PAGE_LEN);
        &self.values[block * len..(block + 1) * len]
    }

    /// The scales of a page's keys, as bf16 bits; empty for types without scales.
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

    pub(super) fn key(&self, page: PageId, kv_head: usize, slot: usize) -> Vec<f32> {
        let scale = scale_of(self.key_scales(page, kv_head), slot);
        self.keys(page, kv_head).iter().map(|slots| slots[slot].widen() * scale).collect()
    }

    pub(super) fn value(&self, page: PageId, kv_head: usize, slot: usize) -> Vec<f32> {
        let scale = scale_of(self.value_scales(page, kv_head), slot);
        let row = &self.values(page, kv_head)[slot * self.width()..][..self.head_dim];
        row.iter().map(|x| x.widen() * scale).collect()
    }

    pub(super) fn copy_page(&mut self, from: usize, to: usize) {
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

    /// Appends a page to `out` in the memory's byte order: keys, values, scales. Slots from `slots` on are zeros, whatever they
    /// hold.
    pub(super) fn read_page(&self, page: usize, slots: usize, out: &mut Vec<u8>) {
        let blocks = |len: usize| page * self.num_kv_heads * len..(page + 1) * self.num_kv_heads * len;
        let mut keys = self.keys[blocks(self.head_dim * PAGE_LEN)].to_vec();
        keys.as_chunks_mut::<PAGE_LEN>().0.iter_mut().for_each(|row| row[slots..].fill(E::zeroed()));
        let mut values = self.values[blocks(self.width() * PAGE_LEN)].to_vec();
        values
            .chunks_mut(self.width() * PAGE_LEN)
            .for_each(|head| head[slots * self.width()..].fill(E::zeroed()));
        out.extend_from_slice(bytemuck::cast_slice(&keys));
        out.extend_from_slice(bytemuck::cast_slice(&values));
        for scales in [&self.key_scales, &self.value_scales].into_iter().filter(|_| E::SCALED) {
            let mut scales = scales[blocks(PAGE_LEN)].to_vec();
            scales.as_chunks_mut::<PAGE_LEN>().0.iter_mut().for_each(|row| row[slots..].fill(0));
            out.extend_from_slice(bytemuck::cast_slice(&scales));
        }
    }

    /// Fills a page with the bytes of [`Pages::read_page`].
    ///
    /// # Panics
    /// When they are fewer than those of a page.
    pub(super) fn write_page(&mut self, page: usize, mut bytes: &[u8]) {
        let blocks = |len: usize| page * self.num_kv_heads * len..(page + 1) * self.num_kv_heads * len;
        let (keys, values) = (blocks(self.head_dim * PAGE_LEN), blocks(self.width() * PAGE_LEN));
        let scales = blocks(if E::SCALED { PAGE_LEN } else { 0 });
        let mut fill = |target: &mut [u8]| {
            let (next, rest) = bytes.split_at(target.len());
            target.copy_from_slice(next);
            bytes = rest;
        };
        fill(bytemuck::cast_slice_mut(&mut self.keys[keys]));
        fill(bytemuck::cast_slice_mut(&mut self.values[values]));
        fill(bytemuck::cast_slice_mut(&mut self.key_scales[scales.clone()]));
        fill(bytemuck::cast_slice_mut(&mut self.value_scales[scales]));
    }

    /// The pages, to be written by several tasks.
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

/// Pages that several tasks write to.
pub(in crate::host) struct SharedPages<'a, E> {
    keys: SharedMatrix<'a, E>,
    values: SharedMatrix<'a, E>,
    key_scales: SharedMatrix<'a, u16>,
    value_scales: SharedMatrix<'a, u16>,
    num_kv_heads: usize,
}

/// Mutable keys and values of one head of a page.
pub(in crate::host) struct PageMut<'a, E> {
    keys: &'a mut [[E; PAGE_LEN]],
    values: &'a mut [E],
    key_scales: &'a mut [u16],
    value_scales: &'a mut [u16],
}

impl<E: Element> SharedPages<'_, E> {
    /// Keys and values of one head of a page.
    ///
    /// # Safety
    /// While the result is alive, there must be no other one of the same page and head.
    ///
    /// # Panics
    /// When there is no such page.
    pub unsafe fn page(&self, page: PageId, kv_head: usize) -> PageMut<'_, E> {
        let block = page as usize * self.num_kv_heads + kv_head;
        let scales = if E::SCALED { block..block + 1 } else { 0..0 };
        // SAFETY: the caller keeps the pages disjoint.
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

/// The scale of a slot, 1 for types without scales.
fn scale_of(scales: &[[u16; LANES]], slot: usize) -> f32 {
    scales.get(slot / LANES).map_or(1.0, |scales| bf16_to_f32(scales[slot % LANES]))
}

pub(super) fn zeroed<T: bytemuck::Zeroable>(elements: usize) -> Result<Vec<T>> {
    bytemuck::allocation::try_zeroed_vec(elements)
        .map_err(|()| Error::OutOfMemory { bytes: elements * size_of::<T>() })
}

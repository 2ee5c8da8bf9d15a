//! Storage of a layer's keys and values, by element type.

use std::ops::Range;

use super::super::lanes::{LANES, bf16_to_f32};
use super::super::split::SharedMatrix;
use super::{Element, PAGE_LEN, PageId};
use crate::{Error, Result};

/// Keys and values in one of the element types.
#[derive(Clone, Debug)]
pub(in crate::host) enum Storage {
    F16(Pages<u16>),
    F32(Pages<f32>),
    Q8(Pages<u8>),
}

/// Keys and values of element type `E`. Where the elements of a dot product are adjacent ([`Element::GROUP`]), the dimensions of a
/// key are padded to a multiple of it.
#[derive(Clone, Debug)]
pub(in crate::host) struct Pages<E> {
    /// `[page, kv_head, head_dim / GROUP, slot, GROUP]`.
    keys: Vec<E>,
    /// `[page, kv_head, slot / GROUP, width, GROUP]`.
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
            keys: zeroed(elements(head_dim.next_multiple_of(E::GROUP))?)?,
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

    /// Elements of the keys of a page and head.
    #[inline(always)]
    fn key_len(&self) -> usize {
        self.head_dim.next_multiple_of(E::GROUP) * PAGE_LEN
    }

    /// Elements of the values of a page and head.
    #[inline(always)]
    fn value_len(&self) -> usize {
        self.width() * PAGE_LEN
    }

    #[inline(always)]
    fn block(&self, page: PageId, kv_head: usize) -> usize {
        page as usize * self.num_kv_heads + kv_head
    }

    /// The keys of a page and head, `[head_dim / GROUP, slot, GROUP]`.
    #[inline(always)]
    pub fn keys(&self, page: PageId, kv_head: usize) -> &[E] {
        let (block, len) = (self.block(page, kv_head), self.key_len());
        &self.keys[block * len..(block + 1) * len]
    }

    /// The values of a page and head, `[slot / GROUP, width, GROUP]`.
    #[inline(always)]
    pub fn values(&self, page: PageId, kv_head: usize) -> &[E] {
        let (block, len) = (self.block(page, kv_head), self.value_len());
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
        let (keys, scale) = (self.keys(page, kv_head), scale_of(self.key_scales(page, kv_head), slot));
        (0..self.head_dim).map(|dim| keys[key_place::<E>(dim, slot)].widen() * scale).collect()
    }

    pub(super) fn value(&self, page: PageId, kv_head: usize, slot: usize) -> Vec<f32> {
        let (values, width) = (self.values(page, kv_head), self.width());
        let scale = scale_of(self.value_scales(page, kv_head), slot);
        (0..self.head_dim).map(|dim| values[value_place::<E>(width, slot, dim)].widen() * scale).collect()
    }

    pub(super) fn copy_page(&mut self, from: usize, to: usize) {
        let (key_len, value_len, heads) = (self.key_len(), self.value_len(), self.num_kv_heads);
        let (keys, values) = (self.blocks(from as PageId, key_len), self.blocks(from as PageId, value_len));
        self.keys.copy_within(keys, to * heads * key_len);
        self.values.copy_within(values, to * heads * value_len);
        if E::SCALED {
            let scales = self.blocks(from as PageId, PAGE_LEN);
            self.key_scales.copy_within(scales.clone(), to * heads * PAGE_LEN);
            self.value_scales.copy_within(scales, to * heads * PAGE_LEN);
        }
    }

    /// Appends a page to `out`: keys `[kv_head, head_dim, slot]`, values `[kv_head, slot, width]`, scales, in the memory's byte order
    /// and the same for every [`Element::GROUP`]. Slots from `slots` on are zeros, whatever they hold.
    pub(super) fn read_page(&self, page: usize, slots: usize, out: &mut Vec<u8>) {
        let (page, width) = (page as PageId, self.width());
        let mut push = |element: E, slot: usize| {
            let element = if slot < slots { element } else { E::ZERO };
            out.extend_from_slice(bytemuck::bytes_of(&element));
        };
        for kv_head in 0..self.num_kv_heads {
            let keys = self.keys(page, kv_head);
            each(self.head_dim, PAGE_LEN, |dim, slot| push(keys[key_place::<E>(dim, slot)], slot));
        }
        for kv_head in 0..self.num_kv_heads {
            let values = self.values(page, kv_head);
            each(PAGE_LEN, width, |slot, column| push(values[value_place::<E>(width, slot, column)], slot));
        }
        for scales in [&self.key_scales, &self.value_scales].into_iter().filter(|_| E::SCALED) {
            let mut scales = scales[self.blocks(page, PAGE_LEN)].to_vec();
            scales.as_chunks_mut::<PAGE_LEN>().0.iter_mut().for_each(|row| row[slots..].fill(0));
            out.extend_from_slice(bytemuck::cast_slice(&scales));
        }
    }

    /// Fills a page with the bytes of [`Pages::read_page`].
    ///
    /// # Panics
    /// When they are fewer than those of a page.
    pub(super) fn write_page(&mut self, page: usize, mut bytes: &[u8]) {
        let (key_len, value_len, width) = (self.key_len(), self.value_len(), self.width());
        let page = page as PageId;
        let (keys, values) = (self.blocks(page, key_len), self.blocks(page, value_len));
        let scales = self.blocks(page, if E::SCALED { PAGE_LEN } else { 0 });
        let mut next = || {
            let (element, rest) = bytes.split_at(size_of::<E>());
            bytes = rest;
            bytemuck::pod_read_unaligned(element)
        };
        for keys in self.keys[keys].chunks_exact_mut(key_len) {
            each(self.head_dim, PAGE_LEN, |dim, slot| keys[key_place::<E>(dim, slot)] = next());
        }
        for values in self.values[values].chunks_exact_mut(value_len) {
            each(PAGE_LEN, width, |slot, column| values[value_place::<E>(width, slot, column)] = next());
        }
        let (keys, values) = bytes.split_at(scales.len() * size_of::<u16>());
        bytemuck::cast_slice_mut(&mut self.key_scales[scales.clone()]).copy_from_slice(keys);
        bytemuck::cast_slice_mut(&mut self.value_scales[scales]).copy_from_slice(values);
    }

    /// Place of a page among blocks of `len` for each page and head.
    fn blocks(&self, page: PageId, len: usize) -> Range<usize> {
        let first = page as usize * self.num_kv_heads;
        first * len..(first + self.num_kv_heads) * len
    }

    /// The pages, to be written by several tasks.
    pub fn share(&mut self) -> SharedPages<'_, E> {
        let (key_len, value_len) = (self.key_len(), self.value_len());
        SharedPages {
            keys: SharedMatrix::new(&mut self.keys, key_len),
            values: SharedMatrix::new(&mut self.values, value_len),
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
    keys: &'a mut [E],
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
                keys: self.keys.rows(block..block + 1),
                values: self.values.rows(block..block + 1),
                key_scales: self.key_scales.rows(scales.clone()),
                value_scales: self.value_scales.rows(scales),
            }
        }
    }
}

impl<E: Element> PageMut<'_, E> {
    /// Writes one slot; `rounded` is scratch space.
    #[inline(always)]
    pub fn write(&mut self, slot: usize, key: &[f32], value: &[f32], rounded: &mut Vec<E>) {
        let width = self.values.len() / PAGE_LEN;
        rounded.resize(key.len(), E::ZERO);
        let key_scale = E::round(key, rounded);
        for (dim, key) in rounded.iter().enumerate() {
            self.keys[key_place::<E>(dim, slot)] = *key;
        }
        let value_scale = E::round(value, rounded);
        for (column, value) in rounded.iter().enumerate() {
            self.values[value_place::<E>(width, slot, column)] = *value;
        }
        if E::SCALED {
            (self.key_scales[slot], self.value_scales[slot]) = (key_scale, value_scale);
        }
    }
}

/// Index of a key's element in its page and head.
#[inline(always)]
fn key_place<E: Element>(dim: usize, slot: usize) -> usize {
    (dim / E::GROUP * PAGE_LEN + slot) * E::GROUP + dim % E::GROUP
}

/// Index of a value's element in its page and head.
#[inline(always)]
fn value_place<E: Element>(width: usize, slot: usize, column: usize) -> usize {
    (slot / E::GROUP * width + column) * E::GROUP + slot % E::GROUP
}

/// Calls `f` with all pairs of numbers below `rows` and `columns`, row by row.
fn each(rows: usize, columns: usize, mut f: impl FnMut(usize, usize)) {
    (0..rows).for_each(|row| (0..columns).for_each(|column| f(row, column)));
}

/// The scale of a slot, 1 for types without scales.
fn scale_of(scales: &[[u16; LANES]], slot: usize) -> f32 {
    scales.get(slot / LANES).map_or(1.0, |scales| bf16_to_f32(scales[slot % LANES]))
}

pub(super) fn zeroed<T: bytemuck::Zeroable>(elements: usize) -> Result<Vec<T>> {
    bytemuck::allocation::try_zeroed_vec(elements)
        .map_err(|()| Error::OutOfMemory { bytes: elements * size_of::<T>() })
}

//! Storage of a layer's keys and values, by element type.

use std::marker::PhantomData;
use std::ops::Range;

use bytemuck::Pod;

use super::super::lanes::{LANES, bf16_to_f32};
use super::super::page_id::{PAGE_LEN, PageId};
use super::Element;
use super::blocks::Blocks;
use crate::error::{Error, Result};

/// Keys and values in one of the element types.
#[derive(Clone, Debug)]
pub(in crate::host) enum Storage {
    F16(Pages<u16>),
    F32(Pages<f32>),
    Q8(Pages<u8>),
}

/// Adjacent pages of a head, as many as attention reads at a time.
const GROUP_PAGES: usize = 8;

/// Keys and values of element type `E`: for each group of pages and each head, the keys of these pages, their
/// values and their scales. So the keys of a sequence with consecutive pages are read as one stream, and so
/// are the values. Where the elements of a dot product are adjacent ([`Element::GROUP`]), the dimensions of a
/// key are padded to a multiple of it.
#[derive(Clone, Debug)]
pub(in crate::host) struct Pages<E> {
    /// A block for each group of pages: `[kv_head, part, page of the group]`.
    blocks: Blocks,
    /// By [`Part`], the first byte in the parts of a page and head, and their length.
    starts: [usize; 5],
    num_kv_heads: usize,
    head_dim: usize,
    element: PhantomData<E>,
}

/// Parts of a page and head.
#[derive(Clone, Copy)]
enum Part {
    /// `[head_dim / GROUP, slot, GROUP]`
    Keys,
    /// `[slot / GROUP, width, GROUP]`
    Values,
    /// `[slot]`, as bf16 bits; empty for types without scales.
    KeyScales,
    ValueScales,
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
    /// Allocates pages of zeros for layers with these KV heads and head dimensions. A group of pages is
    /// adjacent for all layers.
    pub(super) fn for_layers(num_pages: usize, layers: &[(usize, usize)]) -> Result<Vec<Self>> {
        let starts =
            layers.iter().map(|&(_, head_dim)| Self::starts(head_dim)).collect::<Result<Vec<_>>>()?;
        let lens = layers.iter().zip(&starts).map(|(&(num_kv_heads, _), starts)| {
            let shape = [GROUP_PAGES, num_kv_heads, starts[4]];
            let bytes = shape.iter().try_fold(1_usize, |product, &dim| product.checked_mul(dim));
            bytes.ok_or_else(|| Error::ShapeOverflow { shape: shape.to_vec() })
        });
        let blocks =
            Blocks::interleaved(&lens.collect::<Result<Vec<_>>>()?, num_pages.div_ceil(GROUP_PAGES))?;
        let pages = layers.iter().zip(starts).zip(blocks);
        Ok(pages
            .map(|((&(num_kv_heads, head_dim), starts), blocks)| Self {
                blocks,
                starts,
                num_kv_heads,
                head_dim,
                element: PhantomData,
            })
            .collect())
    }

    /// Offsets of the parts of a page and head, and their length.
    fn starts(head_dim: usize) -> Result<[usize; 5]> {
        let scales = if E::SCALED { PAGE_LEN * size_of::<u16>() } else { 0 };
        let row = |multiple: usize| {
            let elements = head_dim.checked_next_multiple_of(multiple)?;
            elements.checked_mul(PAGE_LEN * size_of::<E>()).filter(|&bytes| bytes < isize::MAX as usize / 8)
        };
        let overflow = || Error::ShapeOverflow { shape: vec![PAGE_LEN, head_dim] };
        let (keys, values) = row(E::GROUP).zip(row(LANES)).ok_or_else(overflow)?;
        let values_end = keys + values;
        Ok([0, keys, values_end, values_end + scales, values_end + 2 * scales])
    }

    /// Memory addresses of the first key and the first value.
    #[cfg(feature = "burn")]
    pub(super) fn addresses(&self) -> [usize; 2] {
        [0, GROUP_PAGES * self.starts[1]].map(|byte| self.blocks.address(byte))
    }

    /// Elements of a value row: the head dimension rounded up to a multiple of 16.
    #[inline(always)]
    pub fn width(&self) -> usize {
        self.head_dim.next_multiple_of(LANES)
    }

    /// The block of a page and the bytes of a part of it.
    #[inline(always)]
    fn place(&self, page: PageId, kv_head: usize, part: Part) -> (usize, Range<usize>) {
        let (page, part) = (page as usize, part as usize);
        let len = self.starts[part + 1] - self.starts[part];
        let of_head = kv_head * self.starts[4] + self.starts[part];
        let start = GROUP_PAGES * of_head + page % GROUP_PAGES * len;
        (page / GROUP_PAGES, start..start + len)
    }

    #[inline(always)]
    fn part<T: Pod>(&self, page: PageId, kv_head: usize, part: Part) -> &[T] {
        let (block, bytes) = self.place(page, kv_head, part);
        bytemuck::cast_slice(self.blocks.get(block, bytes))
    }

    fn part_mut<T: Pod>(&mut self, page: PageId, kv_head: usize, part: Part) -> &mut [T] {
        // SAFETY: `self` is borrowed as long as the result.
        unsafe { self.shared_part_mut(page, kv_head, part) }
    }

    /// # Safety
    /// As [`Blocks::get_mut`].
    #[allow(clippy::mut_from_ref, reason = "the caller keeps the parts apart")]
    #[inline(always)]
    unsafe fn shared_part_mut<T: Pod>(&self, page: PageId, kv_head: usize, part: Part) -> &mut [T] {
        let (block, bytes) = self.place(page, kv_head, part);
        // SAFETY: the caller keeps the parts disjoint.
        bytemuck::cast_slice_mut(unsafe { self.blocks.get_mut(block, bytes) })
    }

    /// The keys of a page and head, `[head_dim / GROUP, slot, GROUP]`.
    #[inline(always)]
    pub fn keys(&self, page: PageId, kv_head: usize) -> &[E] {
        self.part(page, kv_head, Part::Keys)
    }

    /// The values of a page and head, `[slot / GROUP, width, GROUP]`.
    #[inline(always)]
    pub fn values(&self, page: PageId, kv_head: usize) -> &[E] {
        self.part(page, kv_head, Part::Values)
    }

    /// The scales of a page's keys, as bf16 bits; empty for types without scales.
    #[inline(always)]
    pub fn key_scales(&self, page: PageId, kv_head: usize) -> &[[u16; LANES]] {
        self.part(page, kv_head, Part::KeyScales).as_chunks().0
    }

    /// The scales of a page's values.
    #[inline(always)]
    pub fn value_scales(&self, page: PageId, kv_head: usize) -> &[[u16; LANES]] {
        self.part(page, kv_head, Part::ValueScales).as_chunks().0
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

    pub(super) fn copy_page(&mut self, from: PageId, to: PageId) {
        for kv_head in 0..self.num_kv_heads {
            for part in Part::ALL {
                let bytes: Vec<u8> = self.part(from, kv_head, part).to_vec();
                self.part_mut(to, kv_head, part).copy_from_slice(&bytes);
            }
        }
    }

    /// Appends a page to `out`: keys `[kv_head, head_dim, slot]`, values `[kv_head, slot, width]`, scales, in
    /// the memory's byte order and the same for every [`Element::GROUP`]. Slots from `slots` on are written
    /// as zeros.
    pub(super) fn read_page(&self, page: PageId, slots: usize, out: &mut Vec<u8>) {
        let width = self.width();
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
        for part in [Part::KeyScales, Part::ValueScales] {
            for kv_head in 0..self.num_kv_heads {
                let mut scales: Vec<u16> = self.part(page, kv_head, part).to_vec();
                scales.iter_mut().skip(slots).for_each(|scale| *scale = 0);
                out.extend_from_slice(bytemuck::cast_slice(&scales));
            }
        }
    }

    /// Fills a page with the bytes of [`Pages::read_page`].
    ///
    /// # Panics
    /// When they are fewer than those of a page.
    pub(super) fn write_page(&mut self, page: PageId, mut bytes: &[u8]) {
        let (head_dim, width) = (self.head_dim, self.width());
        let mut next = || {
            let (element, rest) = bytes.split_at(size_of::<E>());
            bytes = rest;
            bytemuck::pod_read_unaligned(element)
        };
        for kv_head in 0..self.num_kv_heads {
            let keys: &mut [E] = self.part_mut(page, kv_head, Part::Keys);
            each(head_dim, PAGE_LEN, |dim, slot| keys[key_place::<E>(dim, slot)] = next());
        }
        for kv_head in 0..self.num_kv_heads {
            let values: &mut [E] = self.part_mut(page, kv_head, Part::Values);
            each(PAGE_LEN, width, |slot, column| values[value_place::<E>(width, slot, column)] = next());
        }
        for part in [Part::KeyScales, Part::ValueScales] {
            for kv_head in 0..self.num_kv_heads {
                let scales: &mut [u8] = self.part_mut(page, kv_head, part);
                let (own, rest) = bytes.split_at(scales.len());
                scales.copy_from_slice(own);
                bytes = rest;
            }
        }
    }

    /// The pages, to be written by several tasks.
    pub fn share(&mut self) -> SharedPages<'_, E> {
        SharedPages(self)
    }
}

impl Part {
    const ALL: [Self; 4] = [Self::Keys, Self::Values, Self::KeyScales, Self::ValueScales];
}

/// Pages that several tasks write to, borrowed mutably.
pub(in crate::host) struct SharedPages<'a, E>(&'a Pages<E>);

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
    /// While the result is alive, no other one of the same page and head may exist.
    ///
    /// # Panics
    /// When the page is out of range.
    pub unsafe fn page(&self, page: PageId, kv_head: usize) -> PageMut<'_, E> {
        // SAFETY: `Pages::share` has borrowed the pages mutably, and the caller keeps them disjoint.
        unsafe {
            PageMut {
                keys: self.0.shared_part_mut(page, kv_head, Part::Keys),
                values: self.0.shared_part_mut(page, kv_head, Part::Values),
                key_scales: self.0.shared_part_mut(page, kv_head, Part::KeyScales),
                value_scales: self.0.shared_part_mut(page, kv_head, Part::ValueScales),
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

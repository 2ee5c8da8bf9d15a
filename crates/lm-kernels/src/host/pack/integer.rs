//! Common memory layout of the integer formats.
//!
//! A tile is 16 rows: first the scales of its blocks, padded to a cache line, then its quants in groups of 32
//! columns. A line of quants holds four bytes of each row, in row order.

use bytemuck::Pod;

use super::super::lanes::{LANES, Line};

/// Columns per group: rows are zero-padded to a multiple of it.
pub(in crate::host) const GROUP: usize = 32;

/// Memory layout of an integer format with scales.
pub(in crate::host) trait IntegerLayout: 'static {
    /// Columns per block, which share a floating-point scale; a multiple of [`GROUP`].
    const BLOCK: usize;
    /// Lines per group.
    const GROUP_LINES: usize;
    /// Scales of 16 rows of a block.
    type Scales: Pod + Sync;

    /// The floating-point scale of each row, as bf16 bits: bf16 has the range that matrices of small weights
    /// need, and its low precision costs nothing, since quants are rounded with the stored scale.
    fn steps(scales: &Self::Scales) -> &[u16; LANES];
    /// Quant of row `lane` in a column of a group, to be multiplied by the group's integer scale of that row.
    fn quant(tile: &Tile<'_, Self>, lane: usize, group: usize, column: usize) -> i8;
    /// Integer scale of a group of row `lane`, 1 if the format has none.
    fn group_scale(tile: &Tile<'_, Self>, lane: usize, group: usize) -> i8;
}

/// Sixteen rows of a matrix.
pub(in crate::host) struct Tile<'a, F: IntegerLayout + ?Sized> {
    /// Scales of each block.
    pub scales: &'a [F::Scales],
    /// `F::GROUP_LINES` lines per group.
    pub lines: &'a [Line],
}

impl<F: IntegerLayout + ?Sized> Clone for Tile<'_, F> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<F: IntegerLayout + ?Sized> Copy for Tile<'_, F> {}

/// Bytes of the scales of a tile, padded to a full line; `None` on overflow.
fn scale_bytes<F: IntegerLayout>(cols: usize) -> Option<usize> {
    cols.div_ceil(F::BLOCK).checked_mul(size_of::<F::Scales>())?.checked_next_multiple_of(size_of::<Line>())
}

/// Bytes of a tile of `cols` columns; `None` on overflow.
pub(super) fn tile_bytes<F: IntegerLayout>(cols: usize) -> Option<usize> {
    let lines = cols.div_ceil(GROUP).checked_mul(F::GROUP_LINES * size_of::<Line>())?;
    scale_bytes::<F>(cols)?.checked_add(lines)
}

impl<'a, F: IntegerLayout> Tile<'a, F> {
    /// Tile `index` of a matrix of `cols` columns.
    #[inline(always)]
    pub fn of(bytes: &'a [u8], index: usize, cols: usize) -> Self {
        let len = tile_bytes::<F>(cols).unwrap_or(0);
        let tile = &bytes[index * len..(index + 1) * len];
        let (scales, lines) = tile.split_at(scale_bytes::<F>(cols).unwrap_or(0));
        let scales = &scales[..cols.div_ceil(F::BLOCK) * size_of::<F::Scales>()];
        Self { scales: bytemuck::cast_slice(scales), lines: bytemuck::cast_slice(lines) }
    }

    /// Number of groups of 32 columns.
    #[inline(always)]
    pub fn groups(&self) -> usize {
        self.lines.len() / F::GROUP_LINES
    }

    /// Groups of a block.
    #[inline(always)]
    pub fn groups_of(&self, block: usize) -> std::ops::Range<usize> {
        let groups = F::BLOCK / GROUP;
        block * groups..((block + 1) * groups).min(self.groups())
    }
}

/// Mutable scales and lines of a tile.
pub(super) fn tile_mut<F: IntegerLayout>(tile: &mut [u8], cols: usize) -> (&mut [F::Scales], &mut [Line]) {
    let (scales, lines) = tile.split_at_mut(scale_bytes::<F>(cols).unwrap_or(0));
    let scales = &mut scales[..cols.div_ceil(F::BLOCK) * size_of::<F::Scales>()];
    (bytemuck::cast_slice_mut(scales), bytemuck::cast_slice_mut(lines))
}

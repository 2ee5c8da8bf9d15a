//! The layout that the integer formats share.
//!
//! A tile is 16 rows: first the scales of its blocks, filled up to a cache line, then its quants in groups of 32 columns. A
//! line of quants holds for each row, one after another, four bytes.

use bytemuck::Pod;

use super::super::lanes::{LANES, Line};

/// Columns of a group: rows are filled up with zeros to a multiple of it.
pub(in crate::host) const GROUP: usize = 32;

/// How a format of integers with scales lies in memory.
pub(in crate::host) trait IntegerLayout: 'static {
    /// Columns of a block, which share a floating-point scale; a multiple of [`GROUP`].
    const BLOCK: usize;
    /// Lines of a group.
    const GROUP_LINES: usize;
    /// What a block of 16 rows has beside its quants.
    type Scales: Pod + Sync;

    /// The floating-point scale of each row, as the bits of a bfloat16: it has the range that matrices of small weights need,
    /// and its coarse steps cost nothing, since quants are rounded against the scale that is stored.
    fn steps(scales: &Self::Scales) -> &[u16; LANES];
    /// The integer that the row `lane` has in a column of a group, with the group's integer scale of that row.
    fn quant(tile: &Tile<'_, Self>, lane: usize, group: usize, column: usize) -> i8;
    /// The integer scale of a group, 1 where the format has none.
    fn group_scale(tile: &Tile<'_, Self>, lane: usize, group: usize) -> i8;
}

/// Sixteen rows of a matrix.
pub(in crate::host) struct Tile<'a, F: IntegerLayout + ?Sized> {
    /// By block.
    pub scales: &'a [F::Scales],
    /// `F::GROUP_LINES` for each group.
    pub lines: &'a [Line],
}

impl<F: IntegerLayout + ?Sized> Clone for Tile<'_, F> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<F: IntegerLayout + ?Sized> Copy for Tile<'_, F> {}

/// Bytes of the scales of a tile, with what fills up the last line.
fn scale_bytes<F: IntegerLayout>(cols: usize) -> Option<usize> {
    cols.div_ceil(F::BLOCK).checked_mul(size_of::<F::Scales>())?.checked_next_multiple_of(size_of::<Line>())
}

/// Bytes of a tile of `cols` columns.
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

    /// How many groups of 32 columns it has.
    #[inline(always)]
    pub fn groups(&self) -> usize {
        self.lines.len() / F::GROUP_LINES
    }

    /// The groups of a block.
    #[inline(always)]
    pub fn groups_of(&self, block: usize) -> std::ops::Range<usize> {
        let groups = F::BLOCK / GROUP;
        block * groups..((block + 1) * groups).min(self.groups())
    }
}

/// The scales and lines of a tile, to be written.
pub(super) fn tile_mut<F: IntegerLayout>(tile: &mut [u8], cols: usize) -> (&mut [F::Scales], &mut [Line]) {
    let (scales, lines) = tile.split_at_mut(scale_bytes::<F>(cols).unwrap_or(0));
    let scales = &mut scales[..cols.div_ceil(F::BLOCK) * size_of::<F::Scales>()];
    (bytemuck::cast_slice_mut(scales), bytemuck::cast_slice_mut(lines))
}

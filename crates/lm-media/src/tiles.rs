//! Pictures cut into tiles, which a vision tower encodes one by one.

use crate::picture::Picture;
use crate::size::PictureSize;

/// Views of a picture: a grid of tiles, row by row, and the whole picture after them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TileGrid {
    /// Rows of tiles; 0 when the whole picture is the only view.
    pub rows: usize,
    /// Tiles of a row; 0 when the whole picture is the only view.
    pub columns: usize,
    /// Size of each tile in pixels.
    pub tile: PictureSize,
    /// Size of the view of the whole picture, if there is one.
    pub overview: Option<PictureSize>,
}

impl TileGrid {
    /// A view of the whole picture and no tiles.
    pub const fn single(view: PictureSize) -> Self {
        Self { rows: 0, columns: 0, tile: view, overview: Some(view) }
    }

    /// Sizes of the views, in their order.
    pub fn views(&self) -> impl Iterator<Item = PictureSize> + use<> {
        std::iter::repeat_n(self.tile, self.rows * self.columns).chain(self.overview)
    }

    /// Size of the picture from which the tiles are cut.
    pub(crate) fn pixels(&self) -> PictureSize {
        PictureSize::new(self.columns * self.tile.width, self.rows * self.tile.height)
    }

    /// The tiles of a picture of [`Self::pixels`], row by row.
    pub(crate) fn cut(&self, picture: &Picture) -> impl Iterator<Item = Picture> {
        let tile = self.tile;
        let positions = (0..self.rows).flat_map(|row| (0..self.columns).map(move |column| (row, column)));
        positions.map(move |(row, column)| picture.cropped(column * tile.width, row * tile.height, tile))
    }
}

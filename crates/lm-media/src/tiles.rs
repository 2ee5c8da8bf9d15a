//! Images split into tiles, which a vision tower encodes one by one.

use crate::image::Image;
use crate::size::ImageSize;

/// Views of an image: a grid of tiles, row by row, followed by the whole image.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TileGrid {
    /// Rows of tiles; 0 when the whole image is the only view.
    pub rows: usize,
    /// Tiles of a row; 0 when the whole image is the only view.
    pub columns: usize,
    /// Size of each tile in pixels.
    pub tile: ImageSize,
    /// Size of the view of the whole image, if any.
    pub overview: Option<ImageSize>,
}

impl TileGrid {
    /// A view of the whole image and no tiles.
    pub const fn single(view: ImageSize) -> Self {
        Self { rows: 0, columns: 0, tile: view, overview: Some(view) }
    }

    /// Sizes of the views, in their order.
    pub fn views(&self) -> impl Iterator<Item = ImageSize> + use<> {
        std::iter::repeat_n(self.tile, self.rows * self.columns).chain(self.overview)
    }

    /// Size of the image that is split into tiles.
    pub(crate) fn pixels(&self) -> ImageSize {
        ImageSize::new(self.columns * self.tile.width, self.rows * self.tile.height)
    }

    /// Returns the tiles of an image of [`Self::pixels`], row by row.
    pub(crate) fn cut(&self, image: &Image) -> impl Iterator<Item = Image> {
        let tile = self.tile;
        let positions = (0..self.rows).flat_map(|row| (0..self.columns).map(move |column| (row, column)));
        positions.map(move |(row, column)| image.cropped(column * tile.width, row * tile.height, tile))
    }
}

//! SmolVLM, SmolVLM2 and Idefics3: images are resized to a fixed length and split into square tiles, with a
//! view of the whole image. Source: `SmolVLMImageProcessorPil` of transformers 5.23.0.

use crate::error::{Error, Result};
use crate::image::Image;
use crate::patches::{Normalization, PatchOrder, Patches};
use crate::resample::Filter;
use crate::settings::Settings;
use crate::size::ImageSize;
use crate::tiles::TileGrid;

const FAMILY: &str = "SmolVLM";

/// Maximum side of a resized image, for any configuration.
const MAX_SIDE: usize = 4096;

/// Maximum number of tiles in a row or column.
const MAX_TILES: usize = 64;

/// Preprocessing of SmolVLM, with the values of `preprocessor_config.json`.
///
/// In a prompt, each tile follows `<fake_token_around_image><row_r_col_c>`, counted from one; a row of tiles
/// ends with a newline. The view of the whole image follows `<fake_token_around_image><global-img>`, after
/// another newline if there are tiles, and a last `<fake_token_around_image>` ends the image.
///
/// ```
/// use lm_media::{ImageSize, families::SmolVlm};
///
/// let smol = SmolVlm::default();
/// let grid = smol.grid(ImageSize::new(640, 480))?;
/// assert_eq!((grid.rows, grid.columns), (3, 4));
/// assert_eq!(smol.tokens(ImageSize::new(640, 480))?, (3 * 4 + 1) * 64);
/// # Ok::<(), lm_media::Error>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct SmolVlm {
    /// Longest side after resizing (`size.longest_edge`) in pixels, 2,048.
    pub longest_edge: usize,
    /// Side of a tile (`max_image_size.longest_edge`) in pixels, 512.
    pub tile: usize,
    /// Side of a patch in pixels, 16. Remaining pixels at the right and the bottom of a tile are dropped, as
    /// in the tower.
    pub patch: usize,
    /// Patches of the side of a token (`scale_factor`), 4.
    pub scale: usize,
    /// True if images are split into tiles (`do_image_splitting`).
    pub splitting: bool,
    /// Values of the channels, from -1 to 1.
    pub normalization: Normalization,
}

impl Default for SmolVlm {
    fn default() -> Self {
        let normalization = Normalization::HALF;
        Self { longest_edge: 2048, tile: 512, patch: 16, scale: 4, splitting: true, normalization }
    }
}

impl SmolVlm {
    /// Returns the tiles of an image of this size, and the view of the whole image.
    ///
    /// # Errors
    /// [`Error::UnsuitableSize`] for an image without pixels; [`Error::InvalidSettings`].
    pub fn grid(&self, size: ImageSize) -> Result<TileGrid> {
        let (_, resized) = self.steps(size)?;
        let view = ImageSize::new(self.tile, self.tile);
        let single = !self.splitting || resized == view;
        Ok(match single {
            true => TileGrid::single(view),
            false => TileGrid {
                rows: resized.height / self.tile,
                columns: resized.width / self.tile,
                tile: view,
                overview: Some(view),
            },
        })
    }

    /// Number of tokens of each view.
    ///
    /// # Errors
    /// [`Error::InvalidSettings`].
    pub fn view_tokens(&self) -> Result<usize> {
        self.check()?;
        Ok((self.tile / self.patch / self.scale).pow(2))
    }

    /// Number of tokens of all views of an image of this size.
    ///
    /// # Errors
    /// The errors of [`Self::grid`].
    pub fn tokens(&self, size: ImageSize) -> Result<usize> {
        Ok(self.grid(size)?.views().count() * self.view_tokens()?)
    }

    /// Returns the patches of each view in the order of [`TileGrid::views`], `[channel, row, column]`.
    ///
    /// # Errors
    /// The errors of [`Self::grid`].
    pub fn patches(&self, image: &Image) -> Result<Vec<Patches>> {
        let grid = self.grid(image.size())?;
        let (longest, resized) = self.steps(image.size())?;
        let image = image.resized(longest, Filter::Lanczos).resized(resized, Filter::Lanczos);
        let overview = grid.overview.map(|view| image.resized(view, Filter::Lanczos));
        Ok(grid.cut(&image).chain(overview).map(|view| self.view_patches(&view)).collect())
    }

    fn view_patches(&self, view: &Image) -> Patches {
        let side = self.tile / self.patch * self.patch;
        let view = view.cropped(0, 0, ImageSize::new(side, side));
        Patches::of(&view, self.patch, PatchOrder::ChannelsFirst, &self.normalization)
    }

    /// Sizes of the two successive resizes: to the longest edge, then to a multiple of the tile.
    fn steps(&self, size: ImageSize) -> Result<(ImageSize, ImageSize)> {
        self.check()?;
        if size.pixels() == 0 {
            return Err(Error::UnsuitableSize { size, family: FAMILY, reason: "it has no pixels".into() });
        }
        let longest = bounded(scaled(size, self.longest_edge));
        let resized = if self.splitting { self.tiled(longest) } else { ImageSize::new(self.tile, self.tile) };
        Ok((longest, Settings(FAMILY).resized(size, resized)?))
    }

    /// The size rounded up to multiples of the tile.
    fn tiled(&self, size: ImageSize) -> ImageSize {
        let up = |side: usize| side.div_ceil(self.tile) * self.tile;
        with_ratio(size, up(size.width.max(size.height)), up)
    }

    fn check(&self) -> Result<()> {
        let settings = Settings(FAMILY);
        settings.tile(self.tile, self.patch)?;
        settings.within("scale", self.scale, 1..=self.tile / self.patch)?;
        settings.multiple("tile / patch", self.tile / self.patch, "scale", self.scale)?;
        settings.within("longest_edge", self.longest_edge, 1..=MAX_TILES * self.tile)?;
        settings.normalization(&self.normalization)
    }
}

/// The size whose longer side is `longest`, and whose shorter side is computed from it by the ratio and
/// `short`.
fn with_ratio(size: ImageSize, longest: usize, short: impl Fn(usize) -> usize) -> ImageSize {
    let ratio = size.width as f64 / size.height as f64;
    match size.width >= size.height {
        true => ImageSize::new(longest, short((longest as f64 / ratio) as usize)),
        false => ImageSize::new(short((longest as f64 * ratio) as usize), longest),
    }
}

/// The size with this longest side and an even shorter side.
fn scaled(size: ImageSize, longest: usize) -> ImageSize {
    with_ratio(size, longest, |side| side.next_multiple_of(2).max(1))
}

/// The size with sides of at most [`MAX_SIDE`].
fn bounded(size: ImageSize) -> ImageSize {
    match size.width.max(size.height) > MAX_SIDE {
        true => with_ratio(size, MAX_SIDE, |side| side.max(1)),
        false => size,
    }
}

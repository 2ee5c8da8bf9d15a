//! LFM2-VL: images keep their shape within a number of tokens; large images are split into tiles, with a
//! thumbnail. Source: `Lfm2VlImageProcessor` of transformers 5.23.0, which has no variant with Pillow's
//! arithmetic: it resizes with torchvision, whose bytes differ by one from Pillow's in places.

use std::ops::RangeInclusive;

use crate::error::{Error, Result};
use crate::image::Image;
use crate::patches::{Normalization, PatchOrder, Patches};
use crate::resample::Filter;
use crate::settings::{MAX_PIXELS, Settings};
use crate::size::ImageSize;
use crate::tiles::TileGrid;

const FAMILY: &str = "LFM2-VL";

/// Maximum number of tiles.
const MAX_TILES: usize = 256;

/// Preprocessing of LFM2-VL, with the values of `preprocessor_config.json`.
///
/// In a prompt, `<|image_start|>` starts the image and `<|image_end|>` ends it. Each tile follows
/// `<|img_row_r_col_c|>`, counted from one, and the thumbnail follows `<|img_thumbnail|>`. An image without
/// tiles has neither.
///
/// ```
/// use lm_media::{ImageSize, families::Lfm2Vl};
///
/// let lfm = Lfm2Vl::default();
/// assert_eq!(lfm.tokens(ImageSize::new(512, 512))?, 256);
/// let grid = lfm.grid(ImageSize::new(1920, 1080))?;
/// assert_eq!((grid.rows, grid.columns), (2, 4));
/// # Ok::<(), lm_media::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq)]
pub struct Lfm2Vl {
    /// Side of a patch in pixels (`encoder_patch_size`), 16.
    pub patch: usize,
    /// Patches of the side of a token (`downsample_factor`), 2.
    pub downsample: usize,
    /// Number of tokens of an image without tiles, and of the thumbnail (`min_image_tokens`,
    /// `max_image_tokens`): 64 to 256. Images of extreme shape may have more.
    pub image_tokens: RangeInclusive<usize>,
    /// Side of a tile in pixels (`tile_size`), 512.
    pub tile: usize,
    /// Number of tiles (`min_tiles`, `max_tiles`): 2 to 10. A range of 1 to 1 disables tiles, like
    /// `do_image_splitting`: false.
    pub tiles: RangeInclusive<usize>,
    /// Images of more than this multiple of the maximum number of tokens are split
    /// (`max_pixels_tolerance`), 2.
    pub tolerance: f64,
    /// True if the whole image follows the tiles (`use_thumbnail`).
    pub thumbnail: bool,
    /// Values of the channels, from -1 to 1.
    pub normalization: Normalization,
}

impl Default for Lfm2Vl {
    fn default() -> Self {
        Self {
            patch: 16,
            downsample: 2,
            image_tokens: 64..=256,
            tile: 512,
            tiles: 2..=10,
            tolerance: 2.0,
            thumbnail: true,
            normalization: Normalization::HALF,
        }
    }
}

impl Lfm2Vl {
    /// Returns the tiles of an image of this size, and the thumbnail. If a single tile fits best, which
    /// requires a minimum of 1, the image is one view in the size of a tile.
    ///
    /// # Errors
    /// [`Error::UnsuitableSize`] for an image without pixels, or a long and thin image that becomes larger
    /// than 2²⁶ pixels; [`Error::InvalidSettings`].
    pub fn grid(&self, size: ImageSize) -> Result<TileGrid> {
        self.check()?;
        if size.pixels() == 0 {
            return Err(Error::UnsuitableSize { size, family: FAMILY, reason: "it has no pixels".into() });
        }
        let whole = Settings(FAMILY).resized(size, self.whole(size))?;
        if self.tiles == (1..=1) || !self.is_large(size) {
            return Ok(TileGrid::single(whole));
        }
        let tile = ImageSize::new(self.tile, self.tile);
        Ok(match self.shape(size) {
            (1, 1) => TileGrid::single(tile),
            (columns, rows) => TileGrid { rows, columns, tile, overview: self.thumbnail.then_some(whole) },
        })
    }

    /// Number of tokens of a view: a tile or the thumbnail.
    pub fn view_tokens(&self, view: ImageSize) -> usize {
        let side = (self.patch * self.downsample).max(1);
        (view.width / side) * (view.height / side)
    }

    /// Number of tokens of all views of an image of this size.
    ///
    /// # Errors
    /// The errors of [`Self::grid`].
    pub fn tokens(&self, size: ImageSize) -> Result<usize> {
        Ok(self.grid(size)?.views().map(|view| self.view_tokens(view)).sum())
    }

    /// Returns the patches of each view in the order of [`TileGrid::views`], `[row, column, channel]`.
    ///
    /// # Errors
    /// The errors of [`Self::grid`].
    pub fn patches(&self, image: &Image) -> Result<Vec<Patches>> {
        let grid = self.grid(image.size())?;
        let tiled = (grid.rows > 0).then(|| image.resized(grid.pixels(), Filter::Bilinear));
        let overview = grid.overview.map(|view| image.resized(view, Filter::Bilinear));
        let views = tiled.iter().flat_map(|tiled| grid.cut(tiled)).chain(overview);
        let order = PatchOrder::ChannelsLast;
        Ok(views.map(|view| Patches::of(&view, self.patch, order, &self.normalization)).collect())
    }

    /// Side of a token in pixels.
    fn factor(&self) -> usize {
        self.patch * self.downsample
    }

    /// Pixels of the maximum number of tokens.
    fn max_pixels(&self) -> usize {
        self.image_tokens.end() * self.factor().pow(2)
    }

    /// Size of the resized whole image.
    fn whole(&self, size: ImageSize) -> ImageSize {
        let factor = self.factor() as f64;
        let least = |side: f64| factor.max(side * factor);
        let (width, height) = (size.width as f64, size.height as f64);
        let rounded = |side: f64| least((side / factor).round_ties_even());
        let (min, max) =
            ((self.image_tokens.start() * self.factor().pow(2)) as f64, self.max_pixels() as f64);
        let pixels = rounded(width) * rounded(height);
        let side = |side: f64| {
            if pixels > max {
                least((side / (height * width / max).sqrt() / factor).floor())
            } else if pixels < min {
                (side * (min / (height * width)).sqrt() / factor).ceil() * factor
            } else {
                rounded(side)
            }
        };
        ImageSize::new(side(width) as usize, side(height) as usize)
    }

    /// Returns true for an image too large for one view.
    fn is_large(&self, size: ImageSize) -> bool {
        let factor = self.factor() as f64;
        let rounded =
            |side: usize| (self.patch as f64).max((side as f64 / factor).round_ties_even() * factor);
        rounded(size.width) * rounded(size.height) > self.max_pixels() as f64 * self.tolerance
    }

    /// Columns and rows of the grid whose shape is nearest to the image's. Among grids of one shape, the
    /// largest is used that the image fills by more than half.
    fn shape(&self, size: ImageSize) -> (usize, usize) {
        let ratio = size.width as f64 / size.height as f64;
        let (mut best, mut least) = ((1, 1), f64::INFINITY);
        for (columns, rows) in grids(&self.tiles) {
            let difference = (ratio - columns as f64 / rows as f64).abs();
            let half = 0.5 * (self.tile * self.tile * columns * rows) as f64;
            if difference < least || (difference == least && size.pixels() as f64 > half) {
                (best, least) = ((columns, rows), difference);
            }
        }
        best
    }

    fn check(&self) -> Result<()> {
        let settings = Settings(FAMILY);
        settings.token("patch", self.patch, "downsample", self.downsample)?;
        let most = MAX_PIXELS / self.factor().pow(2);
        settings.within("max_image_tokens", *self.image_tokens.end(), 1..=most)?;
        settings.within("min_image_tokens", *self.image_tokens.start(), 1..=*self.image_tokens.end())?;
        settings.tile(self.tile, self.factor())?;
        settings.multiple("tile", self.tile, "patch * downsample", self.factor())?;
        settings.within("max_tiles", *self.tiles.end(), 1..=MAX_TILES)?;
        settings.within("min_tiles", *self.tiles.start(), 1..=*self.tiles.end())?;
        settings.within("tolerance", self.tolerance, 0.0..=1e6)?;
        settings.normalization(&self.normalization)
    }
}

/// Grids of columns and rows with a number of tiles in the range, the smallest number first.
fn grids(tiles: &RangeInclusive<usize>) -> impl Iterator<Item = (usize, usize)> + use<> {
    tiles.clone().flat_map(|count| {
        let divides = move |columns: &usize| count.is_multiple_of(*columns);
        (1..=count).filter(divides).map(move |columns| (columns, count / columns))
    })
}

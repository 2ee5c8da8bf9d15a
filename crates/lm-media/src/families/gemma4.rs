//! Gemma 4: images keep their shape and fill as much of a token budget as possible.
//! Source: `Gemma4ImageProcessorPil` of transformers 5.23.0. Padding to the budget is left to the batch.

use crate::error::{Error, Result};
use crate::image::Image;
use crate::patches::{Normalization, PatchOrder, Patches};
use crate::resample::Filter;
use crate::settings::{MAX_PIXELS, Settings};
use crate::size::ImageSize;

const FAMILY: &str = "Gemma 4";

/// Preprocessing of Gemma 4's images.
///
/// ```
/// use lm_media::{ImageSize, families::Gemma4};
///
/// let gemma = Gemma4::default();
/// assert_eq!(gemma.resized_size(ImageSize::new(1000, 1000))?, ImageSize::new(768, 768));
/// assert_eq!(gemma.tokens(ImageSize::new(1000, 1000))?, 256);
/// # Ok::<(), lm_media::Error>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Gemma4 {
    /// Side of a patch in pixels, 16.
    pub patch: usize,
    /// Patches of the side of a token, 3.
    pub pool: usize,
    /// Maximum number of tokens of an image: 280; the model supports 70, 140, 280, 560 and 1,120.
    pub budget: usize,
}

impl Default for Gemma4 {
    fn default() -> Self {
        Self { patch: 16, pool: 3, budget: 280 }
    }
}

impl Gemma4 {
    /// Size of the resized image: sides are multiples of a token's side, and the tokens stay within the
    /// budget.
    ///
    /// # Errors
    /// [`Error::UnsuitableSize`] for an image without pixels, or one so long and thin that one row exceeds
    /// the budget; [`Error::InvalidSettings`].
    pub fn resized_size(&self, size: ImageSize) -> Result<ImageSize> {
        self.check()?;
        if size.pixels() == 0 {
            return Err(self.unsuitable(size));
        }
        let token = self.patch * self.pool;
        let pixels = self.budget * token * token;
        let factor = (pixels as f64 / size.pixels() as f64).sqrt();
        let tokens = |side: usize| (factor * side as f64 / token as f64).floor() as usize;
        let longest = |long: usize, short: usize| (long / short).min(self.budget);
        let (columns, rows) = match (tokens(size.width), tokens(size.height)) {
            (0, 0) => return Err(self.unsuitable(size)),
            (_, 0) => (longest(size.width, size.height), 1),
            (0, _) => (1, longest(size.height, size.width)),
            several => several,
        };
        match columns * rows > self.budget {
            true => Err(self.unsuitable(size)),
            false => Ok(ImageSize::new(columns * token, rows * token)),
        }
    }

    /// Number of tokens of an image of this size.
    ///
    /// # Errors
    /// The errors of [`Self::resized_size`].
    pub fn tokens(&self, size: ImageSize) -> Result<usize> {
        let token = self.patch * self.pool;
        self.resized_size(size).map(|size| (size.width / token) * (size.height / token))
    }

    /// Returns the patches of an image, `[row, column, channel]`.
    ///
    /// # Errors
    /// The errors of [`Self::resized_size`].
    pub fn patches(&self, image: &Image) -> Result<Patches> {
        let image = image.resized(self.resized_size(image.size())?, Filter::Bicubic);
        Ok(Patches::of(&image, self.patch, PatchOrder::ChannelsLast, &Normalization::NONE))
    }

    fn check(&self) -> Result<()> {
        Settings(FAMILY).token("patch", self.patch, "pool", self.pool)?;
        let token = self.patch * self.pool;
        Settings(FAMILY).within("budget", self.budget, 1..=MAX_PIXELS / (token * token))
    }

    fn unsuitable(&self, size: ImageSize) -> Error {
        let reason = format!("it does not fit in {} tokens", self.budget);
        Error::UnsuitableSize { size, family: FAMILY, reason }
    }
}

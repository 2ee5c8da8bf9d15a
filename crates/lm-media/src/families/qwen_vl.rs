//! Qwen2-VL, Qwen2.5-VL, Qwen3-VL and the vision part of Qwen3.5: images keep their shape, within a number of
//! pixels. Source: `Qwen2VLImageProcessorPil` of transformers 5.23.0.

use crate::error::{Error, Result};
use crate::image::Image;
use crate::patches::{Normalization, PatchOrder, Patches};
use crate::resample::Filter;
use crate::settings::{MAX_PIXELS, Settings};
use crate::size::ImageSize;

const FAMILY: &str = "Qwen's vision models";

/// Maximum ratio of the sides.
const MAX_RATIO: f64 = 200.0;

/// Preprocessing of Qwen's vision models, with the values of `preprocessor_config.json`.
///
/// ```
/// use lm_media::{ImageSize, families::QwenVl};
///
/// let qwen = QwenVl::default();
/// assert_eq!(qwen.resized_size(ImageSize::new(640, 480))?, ImageSize::new(644, 476));
/// assert_eq!(qwen.tokens(ImageSize::new(640, 480))?, 23 * 17);
/// # Ok::<(), lm_media::Error>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct QwenVl {
    /// Side of a patch in pixels: 14, or 16 since Qwen3-VL.
    pub patch: usize,
    /// Patches of the side of a token, 2.
    pub merge: usize,
    /// Number of frames of a still image, 2.
    pub frames: usize,
    /// Minimum number of pixels after resizing (`shortest_edge` of the configuration), 56².
    pub min_pixels: usize,
    /// Maximum number of pixels after resizing (`longest_edge`), 28² · 1,280.
    pub max_pixels: usize,
    /// Values of the channels: those of CLIP, or from -1 to 1 since Qwen3-VL.
    pub normalization: Normalization,
}

impl Default for QwenVl {
    fn default() -> Self {
        let (min_pixels, max_pixels) = (56 * 56, 28 * 28 * 1280);
        Self { patch: 14, merge: 2, frames: 2, min_pixels, max_pixels, normalization: Normalization::CLIP }
    }
}

impl QwenVl {
    /// Size of the resized image: sides are multiples of a token's side.
    ///
    /// # Errors
    /// [`Error::UnsuitableSize`] for an image without pixels, or when one side is more than 200 times the
    /// other; [`Error::InvalidSettings`].
    pub fn resized_size(&self, size: ImageSize) -> Result<ImageSize> {
        self.check()?;
        let (width, height) = (size.width as f64, size.height as f64);
        if size.pixels() == 0 || width.max(height) / width.min(height) > MAX_RATIO {
            let reason = format!("it has no pixels, or one side is more than {MAX_RATIO} times the other");
            return Err(Error::UnsuitableSize { size, family: FAMILY, reason });
        }
        let factor = (self.patch * self.merge) as f64;
        let rounded = |side: f64| (side / factor).round_ties_even() * factor;
        let (min, max) = (self.min_pixels as f64, self.max_pixels as f64);
        let pixels = rounded(width) * rounded(height);
        let side = |side: f64| {
            if pixels > max {
                let shrink = (height * width / max).sqrt();
                factor.max((side / shrink / factor).floor() * factor)
            } else if pixels < min {
                let grow = (min / (height * width)).sqrt();
                (side * grow / factor).ceil() * factor
            } else {
                rounded(side)
            }
        };
        Ok(ImageSize::new(side(width) as usize, side(height) as usize))
    }

    /// Number of tokens of an image of this size.
    ///
    /// # Errors
    /// The errors of [`Self::resized_size`].
    pub fn tokens(&self, size: ImageSize) -> Result<usize> {
        let side = self.patch * self.merge;
        self.resized_size(size).map(|size| (size.width / side) * (size.height / side))
    }

    /// Returns the patches of an image in blocks of one token each, `[channel, frame, row, column]`.
    ///
    /// # Errors
    /// The errors of [`Self::resized_size`].
    pub fn patches(&self, image: &Image) -> Result<Patches> {
        let image = image.resized(self.resized_size(image.size())?, Filter::Bicubic);
        let order = PatchOrder::Blocks { merge: self.merge, frames: self.frames };
        Ok(Patches::of(&image, self.patch, order, &self.normalization))
    }

    fn check(&self) -> Result<()> {
        let settings = Settings(FAMILY);
        settings.token("patch", self.patch, "merge", self.merge)?;
        settings.within("frames", self.frames, 1..=16)?;
        settings.within("max_pixels", self.max_pixels, 1..=MAX_PIXELS)?;
        settings.within("min_pixels", self.min_pixels, 0..=self.max_pixels)?;
        settings.normalization(&self.normalization)
    }
}

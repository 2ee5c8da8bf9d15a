//! Gemma 3: each image in one square size. Source: `Gemma3ImageProcessorPil` of transformers 5.23.0, without
//! pan and scan, which its checkpoints leave off.

use crate::error::Result;
use crate::image::Image;
use crate::patches::{Normalization, PatchOrder, Patches};
use crate::resample::Filter;
use crate::settings::Settings;
use crate::size::ImageSize;

const FAMILY: &str = "Gemma 3";

/// Preprocessing of Gemma 3.
///
/// ```
/// use lm_media::{Image, ImageSize, families::Gemma3};
///
/// let image = Image::from_rgb(ImageSize::new(2, 1), vec![255; 6])?;
/// let patches = Gemma3::default().patches(&image)?;
/// assert_eq!((patches.rows, patches.columns), (64, 64));
/// # Ok::<(), lm_media::Error>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Gemma3 {
    /// Side of the resized image in pixels, 896 in the published checkpoints.
    pub side: usize,
    /// Side of a patch in pixels, 14.
    pub patch: usize,
    /// Tokens of an image, 256.
    pub tokens: usize,
}

impl Default for Gemma3 {
    fn default() -> Self {
        Self { side: 896, patch: 14, tokens: 256 }
    }
}

impl Gemma3 {
    /// Returns the patches of an image, `[channel, row, column]`.
    ///
    /// # Errors
    /// [`Error::InvalidSettings`](crate::Error::InvalidSettings).
    pub fn patches(&self, image: &Image) -> Result<Patches> {
        Settings(FAMILY).tile(self.side, self.patch)?;
        Settings(FAMILY).multiple("side", self.side, "patch", self.patch)?;
        let image = image.resized(ImageSize::new(self.side, self.side), Filter::Bilinear);
        Ok(Patches::of(&image, self.patch, PatchOrder::ChannelsFirst, &Normalization::HALF))
    }
}

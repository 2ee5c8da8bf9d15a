//! Gemma 3: each picture in one square size.
//! Source: `Gemma3ImageProcessorPil` of transformers 5.23.0, without pan and scan, which its checkpoints leave off.

use crate::error::Result;
use crate::patches::{Normalization, PatchOrder, Patches};
use crate::picture::Picture;
use crate::resample::Filter;
use crate::settings::Settings;
use crate::size::PictureSize;

const FAMILY: &str = "Gemma 3";

/// Preprocessing of Gemma 3.
///
/// ```
/// use lm_media::{Picture, PictureSize, families::Gemma3};
///
/// let picture = Picture::from_rgb(PictureSize::new(2, 1), vec![255; 6])?;
/// let patches = Gemma3::default().patches(&picture)?;
/// assert_eq!((patches.rows, patches.columns), (64, 64));
/// # Ok::<(), lm_media::Error>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Gemma3 {
    /// Side of the resized picture in pixels, 896 in the published checkpoints.
    pub side: usize,
    /// Side of a patch in pixels, 14.
    pub patch: usize,
    /// Tokens of a picture, 256.
    pub tokens: usize,
}

impl Default for Gemma3 {
    fn default() -> Self {
        Self { side: 896, patch: 14, tokens: 256 }
    }
}

impl Gemma3 {
    /// The patches of a picture, `[channel, row, column]`.
    ///
    /// # Errors
    /// [`Error::InvalidSettings`](crate::Error::InvalidSettings).
    pub fn patches(&self, picture: &Picture) -> Result<Patches> {
        Settings(FAMILY).tile(self.side, self.patch)?;
        Settings(FAMILY).multiple("side", self.side, "patch", self.patch)?;
        let picture = picture.resized(PictureSize::new(self.side, self.side), Filter::Bilinear);
        Ok(Patches::of(&picture, self.patch, PatchOrder::ChannelsFirst, &Normalization::HALF))
    }
}

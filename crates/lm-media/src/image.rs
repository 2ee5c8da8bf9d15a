//! Images in 8-bit RGB.

use std::fmt;

use crate::error::{Error, Result};
use crate::resample::{Filter, resampled};
use crate::size::ImageSize;

/// An image of at least one pixel: red, green and blue in one byte each, row by row from the top left.
///
/// ```
/// use lm_media::{Filter, Image, ImageSize};
///
/// let image = Image::from_rgb(ImageSize::new(2, 1), vec![255, 0, 0, 0, 0, 255])?;
/// let wide = image.resized(ImageSize::new(4, 1), Filter::Bilinear);
/// assert_eq!(wide.rgb(), [255, 0, 0, 191, 0, 64, 64, 0, 191, 0, 0, 255]);
/// # Ok::<(), lm_media::Error>(())
/// ```
#[derive(Clone, PartialEq, Eq)]
pub struct Image {
    size: ImageSize,
    rgb: Vec<u8>,
}

impl Image {
    /// Creates an image of these pixels, three bytes each.
    ///
    /// # Errors
    /// [`Error::WrongLength`].
    pub fn from_rgb(size: ImageSize, rgb: Vec<u8>) -> Result<Self> {
        if rgb.is_empty() || size.pixels().checked_mul(3) != Some(rgb.len()) {
            return Err(Error::WrongLength { size, bytes: rgb.len() });
        }
        Ok(Self { size, rgb })
    }

    /// Width and height.
    pub fn size(&self) -> ImageSize {
        self.size
    }

    /// The pixels, `[height, width, 3]`.
    pub fn rgb(&self) -> &[u8] {
        &self.rgb
    }

    /// Returns the image in another size, with the same bytes as Pillow's `Image.resize`.
    ///
    /// # Panics
    /// When `size` has no pixels.
    #[must_use]
    pub fn resized(&self, size: ImageSize, filter: Filter) -> Self {
        assert!(size.pixels() > 0, "expected at least one pixel, got {size}");
        Self { size, rgb: resampled(&self.rgb, self.size, size, filter) }
    }

    /// Returns the part of the image of `size` pixels whose top left pixel is in column `left` and row `top`.
    ///
    /// # Panics
    /// When the part has no pixels or exceeds the image.
    #[must_use]
    pub fn cropped(&self, left: usize, top: usize, size: ImageSize) -> Self {
        assert!(size.pixels() > 0, "expected at least one pixel, got {size}");
        let row = |row: usize| &self.rgb[(row * self.size.width + left) * 3..][..size.width * 3];
        assert!(left + size.width <= self.size.width, "{left} + {size} exceeds {}", self.size);
        Self { size, rgb: (top..top + size.height).flat_map(row).copied().collect() }
    }
}

impl fmt::Debug for Image {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Image({})", self.size)
    }
}

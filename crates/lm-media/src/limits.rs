//! Limits on the files and sizes of images.

use crate::error::{Error, Result};
use crate::size::ImageSize;

/// Limits of decoding.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DecodeLimits {
    /// Maximum size of a file in bytes; 64 MiB by default.
    pub max_bytes: usize,
    /// Maximum number of pixels; 64 million by default. Besides the file, decoding holds up to eight bytes
    /// per pixel (PNG of 16-bit RGBA), and twelve for lossy WebP with transparency and progressive JPEG of
    /// four colours: 770 MB at most.
    pub max_pixels: u64,
    /// Maximum side in pixels; 65,535 by default. An image up to 100 times as high as wide keeps its rows
    /// while its width is resized.
    pub max_side: usize,
}

impl Default for DecodeLimits {
    fn default() -> Self {
        Self { max_bytes: 64 << 20, max_pixels: 64_000_000, max_side: 65_535 }
    }
}

/// Rejects a size above the limits.
pub(crate) fn check_size(size: ImageSize, limits: &DecodeLimits) -> Result<()> {
    if size.width.max(size.height) > limits.max_side {
        return Err(Error::SideTooLong { size, limit: limits.max_side });
    }
    if size.pixels() as u64 > limits.max_pixels {
        return Err(Error::TooManyPixels { size, limit: limits.max_pixels });
    }
    Ok(())
}

//! Sizes of images.

use std::fmt;

/// Width and height in pixels.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct ImageSize {
    /// Pixels of a row.
    pub width: usize,
    /// Number of rows.
    pub height: usize,
}

impl ImageSize {
    /// Creates a size of `width` by `height` pixels.
    pub const fn new(width: usize, height: usize) -> Self {
        Self { width, height }
    }

    /// Number of pixels; saturates at `usize::MAX`.
    pub const fn pixels(self) -> usize {
        self.width.saturating_mul(self.height)
    }
}

impl fmt::Display for ImageSize {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} × {}", self.width, self.height)
    }
}

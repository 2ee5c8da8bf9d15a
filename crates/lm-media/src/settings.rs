//! Checks of preprocessing settings from untrusted configuration files.

use std::fmt::Display;
use std::ops::RangeInclusive;

use crate::error::{Error, Result};
use crate::patches::Normalization;
use crate::size::ImageSize;

/// Maximum number of pixels of a resized image.
pub const MAX_PIXELS: usize = 1 << 26;

/// Maximum side of a tile or of an image of fixed size.
const MAX_SIDE: usize = 4096;

/// Checks of the settings of the family with this name.
pub struct Settings(pub &'static str);

impl Settings {
    /// Checks that a setting is in a range.
    pub fn within<T: PartialOrd + Display>(
        &self,
        name: &str,
        value: T,
        range: RangeInclusive<T>,
    ) -> Result<()> {
        let expected = || format!("`{name}` is {value}, expected {} to {}", range.start(), range.end());
        self.ensure(range.contains(&value), expected)
    }

    /// Checks that a setting is a multiple of another one.
    pub fn multiple(&self, name: &str, value: usize, of: &str, divisor: usize) -> Result<()> {
        let expected = || format!("`{name}` is {value}, expected a multiple of {divisor} (`{of}`)");
        self.ensure(value.is_multiple_of(divisor), expected)
    }

    /// Checks that `side` is in `1..=MAX_SIDE` and `patch` in `1..=side`.
    pub fn tile(&self, side: usize, patch: usize) -> Result<()> {
        self.within("side", side, 1..=MAX_SIDE)?;
        self.within("patch", patch, 1..=side)
    }

    /// Checks the side of a patch in pixels and of a token in patches.
    pub fn token(&self, patch_name: &str, patch: usize, name: &str, patches: usize) -> Result<()> {
        self.within(patch_name, patch, 1..=256)?;
        self.within(name, patches, 1..=16)
    }

    /// Checks the statistics of the channels.
    pub fn normalization(&self, of: &Normalization) -> Result<()> {
        let usable = of.mean.iter().all(|mean| mean.is_finite()) && of.std.iter().all(|std| std.is_normal());
        self.ensure(usable, || format!("expected finite means and deviations other than zero, got {of:?}"))
    }

    /// Checks that a resized image is not larger than [`MAX_PIXELS`].
    pub fn resized(&self, original: ImageSize, resized: ImageSize) -> Result<ImageSize> {
        if resized.pixels() <= MAX_PIXELS {
            return Ok(resized);
        }
        let reason = format!("it would be resized to {resized} pixels, more than {MAX_PIXELS} in all");
        Err(Error::UnsuitableSize { size: original, family: self.0, reason })
    }

    fn ensure(&self, condition: bool, problem: impl FnOnce() -> String) -> Result<()> {
        match condition {
            true => Ok(()),
            false => Err(Error::InvalidSettings { family: self.0, problem: problem() }),
        }
    }
}

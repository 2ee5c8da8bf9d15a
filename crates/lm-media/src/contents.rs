//! Image files in the form that the decoder receives.

use std::borrow::Cow;

use image::ColorType;

use crate::orientation::Metadata;
use crate::rgb::into_rgb;

/// A file for the decoder, and corrections where the decoder differs from Pillow.
pub(crate) struct Contents<'a> {
    pub bytes: Cow<'a, [u8]>,
    pub metadata: Metadata<'a>,
    /// Converts decoded pixels to RGB bytes.
    pub reduce: fn(ColorType, Vec<u8>) -> Option<Vec<u8>>,
}

impl<'a> Contents<'a> {
    /// A file without metadata.
    pub(crate) fn plain(bytes: &'a [u8]) -> Self {
        Self { bytes: bytes.into(), metadata: Metadata::default(), reduce: into_rgb }
    }
}

//! Image files as the formats hand them to the decoder.

use std::borrow::Cow;

use image::ColorType;

use crate::orientation::Metadata;
use crate::rgb::into_rgb;

/// A file for the decoder, and what the decoder does as Pillow does not.
pub(crate) struct Contents<'a> {
    pub bytes: Cow<'a, [u8]>,
    pub metadata: Metadata<'a>,
    /// Makes RGB bytes of decoded pixels.
    pub reduce: fn(ColorType, Vec<u8>) -> Option<Vec<u8>>,
}

impl<'a> Contents<'a> {
    /// A file without metadata.
    pub(crate) fn plain(bytes: &'a [u8]) -> Self {
        Self { bytes: bytes.into(), metadata: Metadata::default(), reduce: into_rgb }
    }
}

//! Decoding of picture files, within limits: they come from strangers.

use std::io::Cursor;

use image::metadata::Orientation;
use image::{ImageDecoder, ImageFormat, ImageReader};

use crate::gif::FirstFrame;
use crate::rgb::{into_rgb, oriented, oriented_size};
use crate::{Error, Picture, PictureSize, Result};

/// Limits of decoding.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DecodeLimits {
    /// Largest file in bytes; 64 MiB by default.
    pub max_bytes: usize,
    /// Largest number of pixels; 64 million by default. Beside the file, decoding holds up to eight bytes a pixel (PNG of 16-bit RGBA), and twelve
    /// for lossy WebP with transparency and progressive JPEG of four colours: 770 MB at most.
    pub max_pixels: u64,
    /// Longest side in pixels; 65,535 by default. A picture up to 100 times as high as wide keeps its rows while it gets its new width.
    pub max_side: usize,
}

impl Default for DecodeLimits {
    fn default() -> Self {
        Self { max_bytes: 64 << 20, max_pixels: 64_000_000, max_side: 65_535 }
    }
}

/// Formats that are read, with their names.
const FORMATS: [(ImageFormat, &str); 5] = [
    (ImageFormat::Png, "PNG"),
    (ImageFormat::Jpeg, "JPEG"),
    (ImageFormat::WebP, "WebP"),
    (ImageFormat::Gif, "GIF"),
    (ImageFormat::Bmp, "BMP"),
];

/// Size of the picture in a file, after its rotation, without decoding the pixels.
///
/// # Errors
/// Those of [`Picture::decode`] that the beginning of the file shows.
pub fn picture_size(bytes: &[u8], limits: &DecodeLimits) -> Result<PictureSize> {
    let (format, name) = format_of(bytes, limits)?;
    if format == ImageFormat::Gif {
        return Ok(FirstFrame::open(bytes, limits)?.size());
    }
    let mut decoder = open(bytes, (format, name), limits)?;
    let (size, orientation) = header(name, &mut decoder)?;
    Ok(oriented_size(size, orientation))
}

impl Picture {
    /// Decodes PNG, JPEG, WebP, BMP, or the first frame of a GIF on its canvas, as transformers loads a picture with Pillow: rotated as its EXIF data
    /// says, in RGB; transparency is dropped; of 16 bits of a colour the upper eight stay, and grey values of 16 bits above 255 become 255.
    ///
    /// # Errors
    /// [`Error::UnknownFormat`], [`Error::TooManyBytes`], [`Error::TooManyPixels`] and [`Error::SideTooLong`] before anything is decoded, [`Error::Invalid`], also for a file
    /// that breaks off.
    pub fn decode(bytes: &[u8], limits: &DecodeLimits) -> Result<Self> {
        let (format, name) = format_of(bytes, limits)?;
        if format == ImageFormat::Gif {
            return FirstFrame::open(bytes, limits)?.decode();
        }
        let mut decoder = open(bytes, (format, name), limits)?;
        let (size, orientation) = header(name, &mut decoder)?;
        let rgb = rgb(name, decoder, orientation)?;
        Self::from_rgb(oriented_size(size, orientation), rgb)
    }
}

/// Format of a file and its name.
fn format_of(bytes: &[u8], limits: &DecodeLimits) -> Result<(ImageFormat, &'static str)> {
    if bytes.len() > limits.max_bytes {
        return Err(Error::TooManyBytes { bytes: bytes.len(), limit: limits.max_bytes });
    }
    let found = image::guess_format(bytes).ok();
    let known = found.and_then(|found| FORMATS.into_iter().find(|(format, _)| *format == found));
    known.ok_or_else(|| Error::UnknownFormat { start: bytes.iter().take(8).copied().collect() })
}

/// Opens a file, and checks its size.
fn open<'a>(
    bytes: &'a [u8],
    (format, name): (ImageFormat, &'static str),
    limits: &DecodeLimits,
) -> Result<Box<dyn ImageDecoder + 'a>> {
    if format == ImageFormat::Jpeg && !has_end(bytes) {
        return Err(Error::Invalid { format: name, message: "it is truncated".to_owned() });
    }
    let mut reader = ImageReader::with_format(Cursor::new(bytes), format);
    reader.limits(library_limits(bytes, format, limits));
    let decoder = reader.into_decoder().map_err(|error| invalid(name, &error))?;
    let (width, height) = decoder.dimensions();
    check_size(PictureSize::new(width as usize, height as usize), limits)?;
    Ok(Box::new(decoder))
}

/// Refuses a size above the limits.
pub(crate) fn check_size(size: PictureSize, limits: &DecodeLimits) -> Result<()> {
    if size.width.max(size.height) > limits.max_side {
        return Err(Error::SideTooLong { size, limit: limits.max_side });
    }
    if size.pixels() as u64 > limits.max_pixels {
        return Err(Error::TooManyPixels { size, limit: limits.max_pixels });
    }
    Ok(())
}

/// Returns true unless a JPEG file breaks off within its pixels, which the decoder takes as grey: after the first start of scan there is
/// an end of image. Other segments, which may hold a picture of their own, are skipped.
fn has_end(bytes: &[u8]) -> bool {
    const START_OF_SCAN: u8 = 0xda;
    const END_OF_IMAGE: [u8; 2] = [0xff, 0xd9];
    let mut rest = bytes.get(2..).unwrap_or_default();
    while let [0xff, marker, high, low, ..] = *rest {
        if marker == START_OF_SCAN {
            return rest.windows(2).any(|pair| pair == END_OF_IMAGE);
        }
        // Fill bytes may come before a marker.
        let skipped = if marker == 0xff { 1 } else { 2 + usize::from(u16::from_be_bytes([high, low])) };
        rest = rest.get(skipped..).unwrap_or_default();
    }
    // The decoder reports what is wrong.
    true
}

/// Memory of a decoder: eight bytes a pixel, as 16-bit RGBA takes, and what a colour profile takes. The size of a PNG file comes first, so
/// that a profile that was compressed a thousandfold cannot take the memory of the largest picture.
fn library_limits(bytes: &[u8], format: ImageFormat, limits: &DecodeLimits) -> image::Limits {
    const PROFILE: u64 = 4 << 20;
    const PNG_SIZE: usize = 16;
    let side = |at: usize| bytes.get(at..)?.first_chunk().map(|side| u64::from(u32::from_be_bytes(*side)));
    let pixels = match (side(PNG_SIZE), side(PNG_SIZE + 4)) {
        (Some(width), Some(height)) if format == ImageFormat::Png => width.saturating_mul(height),
        _ => limits.max_pixels,
    };
    let mut own = image::Limits::no_limits();
    let of_pixels = pixels.min(limits.max_pixels).saturating_mul(8);
    own.max_alloc = Some(of_pixels.saturating_add(bytes.len() as u64 + PROFILE));
    own
}

fn header(format: &'static str, decoder: &mut dyn ImageDecoder) -> Result<(PictureSize, Orientation)> {
    let (width, height) = decoder.dimensions();
    let orientation = decoder.orientation().map_err(|error| invalid(format, &error))?;
    Ok((PictureSize::new(width as usize, height as usize), orientation))
}

fn invalid(format: &'static str, error: &image::ImageError) -> Error {
    Error::Invalid { format, message: error.to_string() }
}

/// Decodes the pixels, in one buffer; it is reduced to RGB before it is rotated, which takes a second one.
fn rgb(
    format: &'static str,
    decoder: Box<dyn ImageDecoder + '_>,
    orientation: Orientation,
) -> Result<Vec<u8>> {
    let (size, color) = (decoder.dimensions(), decoder.color_type());
    let unsuitable = || Error::Invalid { format, message: format!("it has pixels of type {color:?}") };
    let mut pixels = vec![0; usize::try_from(decoder.total_bytes()).map_err(|_| unsuitable())?];
    decoder.read_image_boxed(&mut pixels).map_err(|error| invalid(format, &error))?;
    into_rgb(color, pixels).and_then(|rgb| oriented(size, rgb, orientation)).ok_or_else(unsuitable)
}

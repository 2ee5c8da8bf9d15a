//! Decoding of untrusted image files within limits.

use std::io::Cursor;

use image::metadata::Orientation;
use image::{ColorType, ImageDecoder, ImageFormat, ImageReader};

use crate::contents::Contents;
use crate::error::{Error, Result};
use crate::gif::FirstFrame;
use crate::guard::guarded;
use crate::image::Image;
use crate::limits::{DecodeLimits, check_size};
use crate::rgb::{oriented, oriented_size};
use crate::size::ImageSize;
use crate::{bmp, jpeg, png, signature, webp};

/// A supported format.
struct Format {
    kind: ImageFormat,
    name: &'static str,
    /// Reads the file without its pixels; an error rejects the file.
    contents: for<'a> fn(&'a [u8]) -> Result<Contents<'a>, &'static str>,
}

const FORMATS: [Format; 5] = [
    Format { kind: ImageFormat::Png, name: "PNG", contents: png::contents },
    Format { kind: ImageFormat::Jpeg, name: "JPEG", contents: jpeg::contents },
    Format { kind: ImageFormat::WebP, name: "WebP", contents: webp::contents },
    Format { kind: ImageFormat::Gif, name: "GIF", contents: |bytes| Ok(Contents::plain(bytes)) },
    Format { kind: ImageFormat::Bmp, name: "BMP", contents: bmp::contents },
];

/// Size of the image in a file, after its rotation, without decoding the pixels.
///
/// # Errors
/// The errors of [`Image::decode`] that can be detected at the start of the file.
pub fn image_size(bytes: &[u8], limits: &DecodeLimits) -> Result<ImageSize> {
    let format = format_of(bytes, limits)?;
    guarded(format.name, || match format.kind {
        ImageFormat::Gif => Ok(FirstFrame::open(bytes, limits)?.size()),
        _ => Ok(Opened::open(bytes, format, limits)?.size()),
    })
}

impl Image {
    /// Decodes PNG, JPEG, WebP, BMP, or the first frame of a GIF on its canvas, as transformers loads an
    /// image with Pillow: rotated as its EXIF or XMP data specify, in RGB. Transparency is dropped, 16-bit
    /// colours keep their upper eight bits, and 16-bit grey values above 255 become 255.
    ///
    /// # Errors
    /// [`Error::UnknownFormat`], [`Error::TooManyBytes`], [`Error::TooManyPixels`] and [`Error::SideTooLong`]
    /// before anything is decoded, [`Error::Invalid`], also for a file that ends within its pixels.
    pub fn decode(bytes: &[u8], limits: &DecodeLimits) -> Result<Self> {
        let format = format_of(bytes, limits)?;
        guarded(format.name, || match format.kind {
            ImageFormat::Gif => FirstFrame::open(bytes, limits)?.decode(),
            _ => Opened::open(bytes, format, limits)?.decode(),
        })
    }
}

/// Format of a file.
fn format_of(bytes: &[u8], limits: &DecodeLimits) -> Result<&'static Format> {
    if bytes.len() > limits.max_bytes {
        return Err(Error::TooManyBytes { bytes: bytes.len(), limit: limits.max_bytes });
    }
    let found = image::guess_format(bytes).ok();
    let known = found.and_then(|found| FORMATS.iter().find(|format| format.kind == found));
    known.ok_or_else(|| Error::UnknownFormat { start: signature::start(bytes) })
}

/// A file that is not a GIF, with its header read.
struct Opened<'a> {
    format: &'static Format,
    decoder: Box<dyn ImageDecoder + 'a>,
    orientation: Orientation,
    reduce: fn(ColorType, Vec<u8>) -> Option<Vec<u8>>,
}

impl<'a> Opened<'a> {
    /// Opens a file, and checks its size.
    fn open(bytes: &'a [u8], format: &'static Format, limits: &DecodeLimits) -> Result<Self> {
        let name = format.name;
        let rejected = |reason: &str| Error::Invalid { format: name, message: reason.to_owned() };
        let Contents { bytes, metadata, reduce } = (format.contents)(bytes).map_err(rejected)?;
        let (orientation, library_limits) =
            (metadata.orientation(), library_limits(&bytes, format.kind, limits));
        drop(metadata);
        let mut reader = ImageReader::with_format(Cursor::new(bytes), format.kind);
        reader.limits(library_limits);
        let decoder = reader.into_decoder().map_err(|error| invalid(name, &error))?;
        let opened = Self { format, decoder: Box::new(decoder), orientation, reduce };
        check_size(opened.size(), limits)?;
        Ok(opened)
    }

    /// Size after the rotation.
    fn size(&self) -> ImageSize {
        let (width, height) = self.decoder.dimensions();
        oriented_size(ImageSize::new(width as usize, height as usize), self.orientation)
    }

    /// Decodes the pixels in one buffer; it is reduced to RGB before it is rotated, which takes a second one.
    fn decode(self) -> Result<Image> {
        let (format, size) = (self.format.name, self.size());
        let (dimensions, color) = (self.decoder.dimensions(), self.decoder.color_type());
        let unsuitable = || Error::Invalid { format, message: format!("it has pixels of type {color:?}") };
        let mut pixels = vec![0; usize::try_from(self.decoder.total_bytes()).map_err(|_| unsuitable())?];
        self.decoder.read_image_boxed(&mut pixels).map_err(|error| invalid(format, &error))?;
        let rgb = (self.reduce)(color, pixels).and_then(|rgb| oriented(dimensions, rgb, self.orientation));
        Image::from_rgb(size, rgb.ok_or_else(unsuitable)?)
    }
}

/// Memory of a decoder: eight bytes per pixel for 16-bit RGBA, and the size of a colour profile. The size of
/// a PNG file precedes its profile, so that a profile compressed a thousandfold cannot take the memory of the
/// largest image.
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

fn invalid(format: &'static str, error: &image::ImageError) -> Error {
    Error::Invalid { format, message: error.to_string() }
}

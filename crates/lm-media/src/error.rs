//! Error type of this crate.

use crate::signature::described;
use crate::size::ImageSize;

/// Result with this crate's [`Error`].
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// Errors of decoding and preparing media.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The format of the bytes is not supported.
    #[error("{}", described(start, "image", "PNG, JPEG, WebP, GIF or BMP"))]
    UnknownFormat {
        /// Up to 36 leading bytes.
        start: Vec<u8>,
    },
    /// The audio format of the bytes is not supported.
    #[error("{}", described(start, "audio", "WAV, MP3, FLAC or Ogg Vorbis"))]
    UnknownAudio {
        /// Up to 36 leading bytes.
        start: Vec<u8>,
    },
    /// The file is larger than [`DecodeLimits::max_bytes`](crate::DecodeLimits::max_bytes) or
    /// [`AudioLimits::max_bytes`](crate::AudioLimits::max_bytes).
    #[error("the file has {bytes} bytes, and at most {limit} are read")]
    TooManyBytes {
        /// Size of the file.
        bytes: usize,
        /// The limit.
        limit: usize,
    },
    /// A side of the image is longer than [`DecodeLimits::max_side`](crate::DecodeLimits::max_side).
    #[error("the image has {size} pixels, and sides of at most {limit} are decoded")]
    SideTooLong {
        /// Size of the image.
        size: ImageSize,
        /// The limit.
        limit: usize,
    },
    /// The image has more pixels than [`DecodeLimits::max_pixels`](crate::DecodeLimits::max_pixels).
    #[error("the image has {size} pixels, and at most {limit} in all are decoded")]
    TooManyPixels {
        /// Size of the image.
        size: ImageSize,
        /// The limit.
        limit: u64,
    },
    /// The audio is longer than [`AudioLimits::max_seconds`](crate::AudioLimits::max_seconds), or than the
    /// model's preprocessing reads.
    #[error("the audio is longer than {limit} seconds, which is the limit")]
    TooLong {
        /// The limit in seconds.
        limit: u32,
    },
    /// The file is truncated, or contradicts its format.
    #[error("the {format} file cannot be decoded: {message}")]
    Invalid {
        /// Name of the format.
        format: &'static str,
        /// Message of the decoder.
        message: String,
    },
    /// A width or a height is zero, or the pixels are not three bytes each.
    #[error("an image of {size} pixels has {bytes} bytes; expected three a pixel, and at least one pixel")]
    WrongLength {
        /// Size of the image.
        size: ImageSize,
        /// Number of bytes.
        bytes: usize,
    },
    /// The model's preprocessing does not support the size of the image.
    #[error("an image of {size} pixels cannot be shown to {family}: {reason}")]
    UnsuitableSize {
        /// Size of the image.
        size: ImageSize,
        /// Name of the model family.
        family: &'static str,
        /// Reason.
        reason: String,
    },
    /// The model's preprocessing does not support the length of the audio.
    #[error("an audio clip of {samples} samples cannot be given to {family}: {reason}")]
    UnsuitableLength {
        /// Number of samples at 16 kHz.
        samples: usize,
        /// Name of the model family.
        family: &'static str,
        /// Reason.
        reason: String,
    },
    /// A setting of a model's preprocessing is out of range.
    #[error("{family}'s preprocessing has unusable settings: {problem}")]
    InvalidSettings {
        /// Name of the model family.
        family: &'static str,
        /// The setting, its value and the expected range.
        problem: String,
    },
}

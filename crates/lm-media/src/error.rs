//! Error type of this crate.

use crate::beginnings::described;
use crate::size::PictureSize;

/// Result with this crate's [`Error`].
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// Errors of decoding and preparing media.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The bytes are in no format that this crate reads.
    #[error("{}", described(start, "picture", "PNG, JPEG, WebP, GIF or BMP"))]
    UnknownFormat {
        /// Up to 36 bytes of the beginning.
        start: Vec<u8>,
    },
    /// The bytes are in no format of sounds that this crate reads.
    #[error("{}", described(start, "sound", "WAV, MP3, FLAC or Ogg Vorbis"))]
    UnknownSound {
        /// Up to 36 bytes of the beginning.
        start: Vec<u8>,
    },
    /// The file is larger than [`DecodeLimits::max_bytes`](crate::DecodeLimits::max_bytes) or
    /// [`SoundLimits::max_bytes`](crate::SoundLimits::max_bytes).
    #[error("the file has {bytes} bytes, and at most {limit} are read")]
    TooManyBytes {
        /// Size of the file.
        bytes: usize,
        /// The limit.
        limit: usize,
    },
    /// A side of the picture is longer than [`DecodeLimits::max_side`](crate::DecodeLimits::max_side).
    #[error("the picture has {size} pixels, and sides of at most {limit} are decoded")]
    SideTooLong {
        /// Size of the picture.
        size: PictureSize,
        /// The limit.
        limit: usize,
    },
    /// The picture has more pixels than [`DecodeLimits::max_pixels`](crate::DecodeLimits::max_pixels).
    #[error("the picture has {size} pixels, and at most {limit} in all are decoded")]
    TooManyPixels {
        /// Size of the picture.
        size: PictureSize,
        /// The limit.
        limit: u64,
    },
    /// The sound is longer than [`SoundLimits::max_seconds`](crate::SoundLimits::max_seconds), or than the model's preprocessing reads.
    #[error("the sound is longer than {limit} seconds, which is the limit")]
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
    #[error("a picture of {size} pixels has {bytes} bytes; expected three a pixel, and at least one pixel")]
    WrongLength {
        /// Size of the picture.
        size: PictureSize,
        /// Number of bytes.
        bytes: usize,
    },
    /// The picture has a size that the model's preprocessing refuses.
    #[error("a picture of {size} pixels cannot be shown to {family}: {reason}")]
    UnsuitableSize {
        /// Size of the picture.
        size: PictureSize,
        /// Name of the model family.
        family: &'static str,
        /// Reason of the refusal.
        reason: String,
    },
    /// The sound has a length that the model's preprocessing refuses.
    #[error("a sound of {samples} samples cannot be given to {family}: {reason}")]
    UnsuitableLength {
        /// Number of samples at 16 kHz.
        samples: usize,
        /// Name of the model family.
        family: &'static str,
        /// Reason of the refusal.
        reason: String,
    },
    /// A setting of a model's preprocessing is out of range.
    #[error("{family}'s preprocessing has unusable settings: {problem}")]
    InvalidSettings {
        /// Name of the model family.
        family: &'static str,
        /// The setting, its value and the range that is expected.
        problem: String,
    },
}

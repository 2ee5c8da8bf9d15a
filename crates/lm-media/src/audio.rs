//! Audio in one channel at 16 kHz, decoded from untrusted files within limits.

use std::fmt;
use std::io::Cursor;

use symphonia::core::codecs::CodecParameters;
use symphonia::core::codecs::audio::{AudioDecoder, AudioDecoderOptions};
use symphonia::core::errors::{Error as SymphoniaError, Result as SymphoniaResult};
use symphonia::core::formats::{FormatReader, Track};
use symphonia::core::io::{MediaSource, MediaSourceStream, ReadOnlySource};
use symphonia::default::formats::{FlacReader, MpaReader, OggReader, WavReader};

use crate::error::{Error, Result};
use crate::guard::guarded;
use crate::sinc::{Resampler, length_at_sample_rate};
use crate::{signature, wav};

/// Sample rate of [`Audio`] in hertz.
pub const SAMPLE_RATE: usize = 16_000;

/// Supported sample rates.
const RATES: std::ops::RangeInclusive<u32> = 4_000..=192_000;

/// Limits for decoding audio. Decoding takes 64,000 bytes per second of audio and some megabytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AudioLimits {
    /// Maximum size of a file in bytes; 64 MiB by default.
    pub max_bytes: usize,
    /// Maximum length of the audio in seconds; 600 by default.
    pub max_seconds: u32,
}

impl Default for AudioLimits {
    fn default() -> Self {
        Self { max_bytes: 64 << 20, max_seconds: 600 }
    }
}

/// An audio clip of at least one sample: one channel, 16,000 samples per second, full scale from -1 to 1.
///
/// ```
/// use lm_media::{Audio, AudioLimits};
///
/// # let file: &[u8] = include_bytes!("../../../testdata/sound/one_sample.wav");
/// let audio = Audio::decode(file, &AudioLimits::default())?;
/// assert_eq!(audio.samples(), [0.25]);
/// # Ok::<(), lm_media::Error>(())
/// ```
#[derive(Clone, PartialEq)]
pub struct Audio {
    samples: Vec<f32>,
}

impl Audio {
    /// Creates an audio clip of these samples at 16 kHz.
    ///
    /// # Errors
    /// [`Error::Invalid`] when there are no samples, or one is not finite.
    pub fn from_samples(samples: Vec<f32>) -> Result<Self> {
        checked("raw", samples)
    }

    /// Decodes WAV and RF64 (integers of 8 to 32 bits, floats, A-law, µ-law), MP3, FLAC or Ogg Vorbis.
    /// Channels are averaged; rates other than 16 kHz are resampled like torchaudio's `functional.resample`.
    /// The silence added by an MP3 encoder is removed if the file declares its length.
    ///
    /// # Errors
    /// [`Error::UnknownAudio`]; [`Error::TooManyBytes`]; [`Error::TooLong`], before decoding if the file
    /// declares its length; [`Error::Invalid`], also for a WAV or FLAC file that is shorter than declared.
    pub fn decode(bytes: &[u8], limits: &AudioLimits) -> Result<Self> {
        guarded("audio", || decoded(AudioFile::open(bytes, limits)?))
    }

    /// The samples.
    pub fn samples(&self) -> &[f32] {
        &self.samples
    }
}

impl fmt::Debug for Audio {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Audio({} samples)", self.samples.len())
    }
}

/// Decodes a whole file.
fn decoded(mut file: AudioFile<'_>) -> Result<Audio> {
    let mut resampler = Resampler::new(file.rate as usize);
    let (mut frames, mut mono, mut interleaved) = (0_u64, Vec::new(), Vec::new());
    while let Some(channels) = file.next(&mut interleaved)? {
        average(&interleaved, channels, &mut mono);
        frames += mono.len() as u64;
        file.check_length(frames)?;
        resampler.push(&mono);
    }
    if let Some(expected) = file.exact_frames().filter(|expected| *expected != frames) {
        return Err(file.invalid(format!("it declares {expected} samples and has {frames}")));
    }
    checked(file.format.name, resampler.finish())
}

/// Number of samples at 16 kHz of the audio in a file, without decoding it; `None` if it requires decoding:
/// for MP3, Ogg Vorbis, and FLAC files that were written as a stream.
///
/// # Errors
/// The errors of [`Audio::decode`] that can be detected at the start of the file.
pub fn audio_length(bytes: &[u8], limits: &AudioLimits) -> Result<Option<usize>> {
    let file = guarded("audio", || AudioFile::open(bytes, limits))?;
    Ok(file.exact_frames().map(|frames| length_at_sample_rate(frames as usize, file.rate as usize)))
}

/// A file format.
struct Format {
    name: &'static str,
    begins: fn(&[u8]) -> bool,
    open: for<'a> fn(&'a [u8]) -> SymphoniaResult<Box<dyn FormatReader + 'a>>,
    /// True if the header has the exact length of the audio.
    length: Length,
}

#[derive(PartialEq)]
enum Length {
    Exact,
    Hint,
}

const FORMATS: [Format; 4] = [
    Format {
        name: "WAV",
        begins: wav::begins,
        open: |bytes| {
            Ok(Box::new(WavReader::try_new(
                stream(Cursor::new(wav::with_length(bytes))),
                Default::default(),
            )?))
        },
        length: Length::Exact,
    },
    Format {
        name: "FLAC",
        begins: |bytes| bytes.starts_with(b"fLaC"),
        open: |bytes| Ok(Box::new(FlacReader::try_new(stream(Cursor::new(bytes)), Default::default())?)),
        length: Length::Exact,
    },
    Format {
        name: "Ogg",
        begins: |bytes| bytes.starts_with(b"OggS") && !signature::is_opus(bytes),
        open: |bytes| Ok(Box::new(OggReader::try_new(stream(Cursor::new(bytes)), Default::default())?)),
        length: Length::Hint,
    },
    Format {
        name: "MP3",
        // The marker of a frame, and layer III.
        begins: |bytes| matches!(bytes, [0xff, second, ..] if second & 0xe6 == 0xe2),
        // Without seeking: the decoder would estimate a length and truncate the audio to it.
        open: |bytes| {
            Ok(Box::new(MpaReader::try_new(stream(ReadOnlySource::new(bytes)), Default::default())?))
        },
        length: Length::Hint,
    },
];

fn stream<'a>(source: impl MediaSource + 'a) -> MediaSourceStream<'a> {
    MediaSourceStream::new(Box::new(source), Default::default())
}

/// An opened file.
struct AudioFile<'a> {
    format: &'static Format,
    reader: Box<dyn FormatReader + 'a>,
    decoder: Box<dyn AudioDecoder>,
    track: u32,
    rate: u32,
    /// Samples of each channel, according to the header.
    frames: Option<u64>,
    max_seconds: u32,
}

impl<'a> AudioFile<'a> {
    fn open(bytes: &'a [u8], limits: &AudioLimits) -> Result<Self> {
        if bytes.len() > limits.max_bytes {
            return Err(Error::TooManyBytes { bytes: bytes.len(), limit: limits.max_bytes });
        }
        let audio = without_tags(bytes);
        let Some(format) = FORMATS.iter().find(|format| (format.begins)(audio)) else {
            return Err(Error::UnknownAudio { start: signature::start(bytes) });
        };
        let invalid = |error: SymphoniaError| invalid(format, &error);
        let reader = (format.open)(audio).map_err(invalid)?;
        let (track, params) = reader.tracks().iter().find_map(audio_track).ok_or_else(|| Error::Invalid {
            format: format.name,
            message: "it has no audio that can be decoded".into(),
        })?;
        let rate = params.sample_rate.unwrap_or(0);
        let decoder = symphonia::default::get_codecs()
            .make_audio_decoder(params, &AudioDecoderOptions::default())
            .map_err(invalid)?;
        let (track, frames, max_seconds) = (track.id, track.num_frames, limits.max_seconds);
        let file = Self { format, reader, decoder, track, rate, frames, max_seconds };
        if !RATES.contains(&rate) {
            return Err(file.invalid(format!("it has {rate} samples a second, expected {RATES:?}")));
        }
        file.check_length(frames.unwrap_or(0))?;
        Ok(file)
    }

    /// Decodes the next samples of all channels and returns the number of channels; `None` at the end.
    fn next(&mut self, interleaved: &mut Vec<f32>) -> Result<Option<usize>> {
        let invalid = |error: SymphoniaError| invalid(self.format, &error);
        loop {
            let Some(packet) = self.reader.next_packet().map_err(invalid)? else { return Ok(None) };
            if packet.track_id != self.track {
                continue;
            }
            let decoded = self.decoder.decode(&packet).map_err(invalid)?;
            let (rate, channels) = (decoded.spec().rate(), decoded.spec().channels().count());
            if rate != self.rate || channels == 0 {
                let problem = format!("{rate} samples a second in {channels} channels follow others");
                return Err(self.invalid(problem));
            }
            decoded.copy_to_vec_interleaved(interleaved);
            return Ok(Some(channels));
        }
    }

    /// Samples of each channel, if the header has their exact number.
    fn exact_frames(&self) -> Option<u64> {
        self.frames.filter(|_| self.format.length == Length::Exact)
    }

    fn check_length(&self, frames: u64) -> Result<()> {
        match frames > u64::from(self.max_seconds) * u64::from(self.rate) {
            true => Err(Error::TooLong { limit: self.max_seconds }),
            false => Ok(()),
        }
    }

    fn invalid(&self, message: String) -> Error {
        Error::Invalid { format: self.format.name, message }
    }
}

fn audio_track(track: &Track) -> Option<(&Track, &symphonia::core::codecs::audio::AudioCodecParameters)> {
    match &track.codec_params {
        Some(CodecParameters::Audio(params)) => Some((track, params)),
        _ => None,
    }
}

fn invalid(format: &Format, error: &SymphoniaError) -> Error {
    Error::Invalid { format: format.name, message: error.to_string() }
}

/// The file after its ID3v2 tags, which precede MP3 and some FLAC files.
fn without_tags(mut bytes: &[u8]) -> &[u8] {
    while let [b'I', b'D', b'3', _, _, flags, a, b, c, d, ..] = bytes {
        // Seven bits in each byte; a footer repeats the header of ten bytes.
        let size = [a, b, c, d].into_iter().fold(0, |size, byte| size << 7 | usize::from(byte & 0x7f));
        let footer = if flags & 0x10 == 0 { 0 } else { 10 };
        bytes = bytes.get(10 + size + footer..).unwrap_or_default();
    }
    bytes
}

/// Average of the channels.
fn average(interleaved: &[f32], channels: usize, mono: &mut Vec<f32>) {
    mono.clear();
    let frames = interleaved.chunks_exact(channels);
    mono.extend(frames.map(|frame| frame.iter().sum::<f32>() / channels as f32));
}

fn checked(format: &'static str, samples: Vec<f32>) -> Result<Audio> {
    let problem = match samples.iter().position(|sample| !sample.is_finite()) {
        Some(index) => format!("sample {index} is {}, expected a finite number", samples[index]),
        None if samples.is_empty() => "it has no samples".into(),
        None => return Ok(Audio { samples }),
    };
    Err(Error::Invalid { format, message: problem })
}

//! Whisper, and the encoders that take its spectrograms (Voxtral, Qwen2-Audio).
//! Source: `WhisperFeatureExtractor` (its variant in NumPy) and `VoxtralProcessor` of transformers 5.23.0.

use std::borrow::Cow;

use crate::audio::{Audio, SAMPLE_RATE};
use crate::error::Result;
use crate::mel::{AudioFrames, MelLog, MelScale, MelSpectrogram, Spectrum, mirrored};

/// Samples of a chunk: 30 seconds.
const CHUNK: usize = 30 * SAMPLE_RATE;

/// Samples from one frame to the next.
const HOP: usize = 160;

/// Samples of a frame.
const WINDOW: usize = 400;

/// Preprocessing of Whisper: chunks of 30 seconds with 3,000 frames each; the last one is padded with
/// silence.
///
/// ```
/// use lm_media::{Audio, families::Whisper};
///
/// let chunks = Whisper::default().chunks(&Audio::from_samples(vec![0.0; 16_000])?)?;
/// assert_eq!((chunks.len(), chunks[0].frames(), chunks[0].bins), (1, 3000, 80));
/// # Ok::<(), lm_media::Error>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Whisper {
    /// Number of mel bands (`feature_size`): 80, or 128 in Whisper large-v3 and Voxtral.
    pub mels: usize,
    /// Treatment of audio of more than 30 seconds.
    pub long: LongAudio,
}

/// Treatment of audio of more than 30 seconds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LongAudio {
    /// The rest is dropped, the default of Whisper's feature extractor.
    Cut,
    /// Further chunks follow, as in Voxtral.
    Chunks,
}

impl Default for Whisper {
    fn default() -> Self {
        Self { mels: 80, long: LongAudio::Cut }
    }
}

impl Whisper {
    /// Number of chunks of an audio clip of this many samples.
    pub fn chunk_count(&self, samples: usize) -> usize {
        match self.long {
            LongAudio::Cut => 1,
            LongAudio::Chunks => samples.div_ceil(CHUNK).max(1),
        }
    }

    /// Returns the log-mel spectrograms of the chunks.
    ///
    /// # Errors
    /// [`Error::InvalidSettings`](crate::Error::InvalidSettings).
    pub fn chunks(&self, audio: &Audio) -> Result<Vec<AudioFrames>> {
        let spectrogram = MelSpectrogram {
            window: WINDOW,
            hop: HOP,
            fft: WINDOW,
            mels: self.mels,
            frequencies: 0.0..8000.0,
            scale: MelScale::Slaney,
            spectrum: Spectrum::Power,
            log: MelLog::Log10,
        };
        let chunks = filled(audio.samples(), self.chunk_count(audio.samples().len()) * CHUNK);
        let padded = mirrored(&chunks, WINDOW / 2);
        // One frame more would fit.
        let frames = spectrogram.compute(&padded[..padded.len() - HOP])?;
        let chunk = |values: &[f32]| AudioFrames { bins: self.mels, values: values.to_vec() };
        Ok(frames.values.chunks_exact(CHUNK / HOP * self.mels).map(chunk).collect())
    }
}

/// The samples, truncated or followed by silence.
fn filled(samples: &[f32], length: usize) -> Cow<'_, [f32]> {
    match samples.get(..length) {
        Some(beginning) => Cow::Borrowed(beginning),
        None => Cow::Owned(samples.iter().copied().chain(std::iter::repeat(0.0)).take(length).collect()),
    }
}

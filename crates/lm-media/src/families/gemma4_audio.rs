//! Audio preprocessing of Gemma 4. Source: `Gemma4AudioFeatureExtractor` and `Gemma4Processor` of
//! transformers 5.23.0. Padding to a batch is omitted: the frames are those that its mask keeps.

use std::ops::Range;

use crate::audio::Audio;
use crate::error::{Error, Result};
use crate::mel::{AudioFrames, MAX_WINDOW, MelLog, MelScale, MelSpectrogram, Spectrum};
use crate::settings::Settings;

const FAMILY: &str = "Gemma 4";

/// Preprocessing of Gemma 4's audio. Audio beyond 30 seconds is dropped, as in transformers.
///
/// ```
/// use lm_media::families::Gemma4Audio;
///
/// assert_eq!(Gemma4Audio::default().tokens(16_000)?, 25);
/// # Ok::<(), lm_media::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq)]
pub struct Gemma4Audio {
    /// Number of mel bands (`feature_size`), 128.
    pub mels: usize,
    /// Samples of a frame (`frame_length_ms`), 320.
    pub window: usize,
    /// Samples from one frame to the next (`hop_length_ms`), 160.
    pub hop: usize,
    /// Lower end of the first band and upper end of the last one in hertz, 0 to 8,000.
    pub frequencies: Range<f64>,
    /// Offset added before the logarithm (`mel_floor`), 0.001.
    pub floor: f64,
    /// Maximum number of samples, 480,000.
    pub max_samples: usize,
    /// Maximum number of tokens (`audio_seq_length`), 750.
    pub max_tokens: usize,
}

impl Default for Gemma4Audio {
    fn default() -> Self {
        let frequencies = 0.0..8000.0;
        Self {
            mels: 128,
            window: 320,
            hop: 160,
            frequencies,
            floor: 1e-3,
            max_samples: 480_000,
            max_tokens: 750,
        }
    }
}

impl Gemma4Audio {
    /// Number of frames of an audio clip of this many samples.
    ///
    /// # Errors
    /// [`Error::UnsuitableLength`] for an audio clip shorter than a frame and its padding;
    /// [`Error::InvalidSettings`].
    pub fn frames(&self, samples: usize) -> Result<usize> {
        Settings(FAMILY).within("window", self.window, 2..=MAX_WINDOW)?;
        Settings(FAMILY).within("hop", self.hop, 1..=self.window)?;
        // Half a frame of silence before the first sample, and one sample after the last frame.
        let padded = samples.min(self.max_samples).saturating_add(self.window / 2);
        match padded.checked_sub(self.window + 1) {
            Some(rest) => Ok(rest / self.hop + 1),
            None => {
                let reason = format!("it fills no frame of {} samples", self.window);
                Err(Error::UnsuitableLength { samples, family: FAMILY, reason })
            }
        }
    }

    /// Number of tokens of an audio clip of this many samples: one per four frames.
    ///
    /// # Errors
    /// The errors of [`Self::frames`].
    pub fn tokens(&self, samples: usize) -> Result<usize> {
        Ok(self.frames(samples)?.div_ceil(4).min(self.max_tokens))
    }

    /// Returns the log-mel spectrogram of an audio clip.
    ///
    /// # Errors
    /// The errors of [`Self::frames`].
    pub fn features(&self, audio: &Audio) -> Result<AudioFrames> {
        let frames = self.frames(audio.samples().len())?;
        let spectrogram = MelSpectrogram {
            window: self.window,
            hop: self.hop,
            fft: self.window.next_power_of_two(),
            mels: self.mels,
            frequencies: self.frequencies.clone(),
            scale: MelScale::Htk,
            spectrum: Spectrum::Magnitude,
            log: MelLog::LnPlus(self.floor),
        };
        let silence = std::iter::repeat_n(0.0, self.window / 2);
        let length = (frames - 1) * self.hop + self.window;
        let padded: Vec<f32> = silence.chain(audio.samples().iter().copied()).take(length).collect();
        spectrogram.compute(&padded)
    }
}

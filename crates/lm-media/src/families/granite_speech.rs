//! Granite Speech.
//! Source: `GraniteSpeechFeatureExtractor` of transformers 5.23.0 with torchaudio 2.11.

use crate::audio::Audio;
use crate::error::{Error, Result};
use crate::mel::{AudioFrames, MelLog, MelScale, MelSpectrogram, Spectrum, mirrored};
use crate::settings::Settings;

const FAMILY: &str = "Granite Speech";

/// Samples from one frame to the next.
const HOP: usize = 160;

/// Samples of a frame.
const WINDOW: usize = 400;

/// Samples of the Fourier transform.
const FFT: usize = 512;

/// Preprocessing of Granite Speech: two frames form one frame of the encoder.
///
/// ```
/// use lm_media::families::GraniteSpeech;
///
/// assert_eq!(GraniteSpeech::default().tokens(16_000)?, 12);
/// # Ok::<(), lm_media::Error>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct GraniteSpeech {
    /// Number of mel bands, 80.
    pub mels: usize,
    /// Encoder frames of a window of the projector (`projector_window_size`), 15.
    pub projector_window: usize,
    /// Encoder frames of a token (`projector_downsample_rate`), 5.
    pub downsample: usize,
}

impl Default for GraniteSpeech {
    fn default() -> Self {
        Self { mels: 80, projector_window: 15, downsample: 5 }
    }
}

impl GraniteSpeech {
    /// Number of tokens of an audio clip of this many samples.
    ///
    /// # Errors
    /// [`Error::InvalidSettings`].
    pub fn tokens(&self, samples: usize) -> Result<usize> {
        Settings(FAMILY).within("projector_window_size", self.projector_window, 1..=1 << 12)?;
        Settings(FAMILY).within("projector_downsample_rate", self.downsample, 1..=self.projector_window)?;
        let frames = (samples / HOP).div_ceil(2);
        Ok(frames.div_ceil(self.projector_window) * (self.projector_window / self.downsample))
    }

    /// Checks that an audio clip of this many samples has frames.
    ///
    /// # Errors
    /// [`Error::UnsuitableLength`] for an audio clip of 256 samples or less.
    pub fn check_length(&self, samples: usize) -> Result<()> {
        match samples > FFT / 2 {
            true => Ok(()),
            false => {
                let reason = format!("expected more than {}", FFT / 2);
                Err(Error::UnsuitableLength { samples, family: FAMILY, reason })
            }
        }
    }

    /// Returns the frames of the encoder.
    ///
    /// # Errors
    /// The errors of [`Self::check_length`]; [`Error::InvalidSettings`].
    pub fn features(&self, audio: &Audio) -> Result<AudioFrames> {
        self.check_length(audio.samples().len())?;
        let spectrogram = MelSpectrogram {
            window: WINDOW,
            hop: HOP,
            fft: FFT,
            mels: self.mels,
            frequencies: 0.0..8000.0,
            scale: MelScale::Htk,
            spectrum: Spectrum::Power,
            log: MelLog::Log10,
        };
        let mut values = spectrogram.compute(&mirrored(audio.samples(), WINDOW / 2))?.values;
        let bins = 2 * self.mels;
        values.truncate(values.len() / bins * bins);
        Ok(AudioFrames { bins, values })
    }
}

//! Log-mel spectrograms, the input of audio encoders. Sums are in double precision.
//! Source: `audio_utils.py` of transformers 5.23.0.

use std::f64::consts::PI;
use std::ops::Range;

use realfft::RealFftPlanner;
use realfft::num_complex::Complex;

use crate::audio::SAMPLE_RATE;
use crate::error::Result;
use crate::settings::Settings;

/// Maximum number of samples of a frame and of a Fourier transform.
pub const MAX_WINDOW: usize = 1 << 14;

/// Settings of a log-mel spectrogram of audio at 16 kHz. The window is a periodic Hann window.
#[derive(Debug, Clone, PartialEq)]
pub struct MelSpectrogram {
    /// Samples of a frame.
    pub window: usize,
    /// Samples from one frame to the next.
    pub hop: usize,
    /// Samples of the Fourier transform, at least those of a frame; frames are zero-padded.
    pub fft: usize,
    /// Number of mel bands.
    pub mels: usize,
    /// Lower end of the first band and upper end of the last one in hertz.
    pub frequencies: Range<f64>,
    /// Spacing and weights of the bands.
    pub scale: MelScale,
    /// Quantity that the bands sum up.
    pub spectrum: Spectrum,
    /// Logarithm of the sums.
    pub log: MelLog,
}

/// Spacing of mel bands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MelScale {
    /// Logarithmic, after the Hidden Markov Model Toolkit; triangles of height 1.
    Htk,
    /// Linear below 1 kHz, after Slaney's Auditory Toolbox; triangles of one area.
    Slaney,
}

/// Quantity of a frequency.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Spectrum {
    /// Absolute value.
    Magnitude,
    /// Square of the absolute value.
    Power,
}

/// Logarithm of a band.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum MelLog {
    /// `ln(x + offset)`.
    LnPlus(f64),
    /// `(log10(max(x, 1e-10)) + 4) / 4`, clamped to at most two below the largest value of the spectrogram.
    Log10,
}

/// Frames of an audio clip, the input of an audio encoder.
#[derive(Debug, Clone, PartialEq)]
pub struct AudioFrames {
    /// Numbers of a frame.
    pub bins: usize,
    /// Numbers, `[frames, bins]`.
    pub values: Vec<f32>,
}

impl AudioFrames {
    /// Number of frames.
    pub fn frames(&self) -> usize {
        self.values.len() / self.bins
    }
}

impl MelSpectrogram {
    /// Number of frames of this many samples.
    pub fn frames(&self, samples: usize) -> usize {
        samples.checked_sub(self.window).map_or(0, |rest| rest / self.hop.max(1) + 1)
    }

    /// Returns the spectrogram of the frames that the samples fill.
    ///
    /// # Errors
    /// [`Error::InvalidSettings`](crate::Error::InvalidSettings).
    pub fn compute(&self, samples: &[f32]) -> Result<AudioFrames> {
        self.check()?;
        let (window, bands) = (hann(self.window), self.bands());
        let transform = RealFftPlanner::new().plan_fft_forward(self.fft);
        let (mut input, mut spectrum) = (transform.make_input_vec(), transform.make_output_vec());
        let mut values = Vec::with_capacity(self.frames(samples.len()) * self.mels);
        for frame in samples.windows(self.window).step_by(self.hop) {
            input.fill(0.0);
            for ((input, sample), weight) in input.iter_mut().zip(frame).zip(&window) {
                *input = f64::from(*sample) * weight;
            }
            transform.process(&mut input, &mut spectrum).expect("the buffers are the transform's own");
            let quantities: Vec<f64> = spectrum.iter().map(|value| self.spectrum.of(value)).collect();
            values.extend(bands.iter().map(|band| self.log.of(band.sum(&quantities))));
        }
        self.log.finish(&mut values);
        Ok(AudioFrames { bins: self.mels, values })
    }

    fn check(&self) -> Result<()> {
        let settings = Settings("the mel spectrogram");
        settings.within("window", self.window, 2..=MAX_WINDOW)?;
        settings.within("hop", self.hop, 1..=self.window)?;
        settings.within("fft", self.fft, self.window..=MAX_WINDOW)?;
        settings.within("mels", self.mels, 1..=1024)?;
        settings.within("max_frequency", self.frequencies.end, 1.0..=SAMPLE_RATE as f64 / 2.0)?;
        settings.within("min_frequency", self.frequencies.start, 0.0..=self.frequencies.end - 1.0)?;
        match self.log {
            MelLog::LnPlus(offset) => settings.within("mel_floor", offset, 1e-30..=1e30),
            MelLog::Log10 => Ok(()),
        }
    }

    /// The bands as triangles between three points with equal distances on the mel scale.
    fn bands(&self) -> Vec<Band> {
        let (low, high) = (self.scale.mel(self.frequencies.start), self.scale.mel(self.frequencies.end));
        let step = (high - low) / (self.mels + 1) as f64;
        let point = |index: usize| self.scale.hertz(low + step * index as f64);
        let bin = (SAMPLE_RATE / 2) as f64 / (self.fft / 2) as f64;
        (0..self.mels)
            .map(|index| {
                Band::new([point(index), point(index + 1), point(index + 2)], bin, self.fft / 2, self.scale)
            })
            .collect()
    }
}

/// Weights of neighbouring frequencies.
struct Band {
    first: usize,
    weights: Vec<f64>,
}

impl Band {
    /// A triangle over the frequencies `0, bin, …, last * bin`.
    fn new([left, middle, right]: [f64; 3], bin: f64, last: usize, scale: MelScale) -> Self {
        let first = (left / bin).ceil() as usize;
        let end = ((right / bin).floor() as usize).min(last);
        let height = scale.height(right - left);
        let weight = |index: usize| {
            let frequency = index as f64 * bin;
            let side = ((frequency - left) / (middle - left)).min((right - frequency) / (right - middle));
            side.max(0.0) * height
        };
        Self { first, weights: (first..=end).map(weight).collect() }
    }

    fn sum(&self, quantities: &[f64]) -> f64 {
        let own = quantities.get(self.first..).unwrap_or_default();
        own.iter().zip(&self.weights).map(|(quantity, weight)| quantity * weight).sum()
    }
}

impl MelScale {
    /// The mel of a frequency.
    fn mel(self, hertz: f64) -> f64 {
        match self {
            Self::Htk => 2595.0 * (1.0 + hertz / 700.0).log10(),
            Self::Slaney if hertz >= 1000.0 => 15.0 + (hertz / 1000.0).ln() * 27.0 / 6.4_f64.ln(),
            Self::Slaney => 3.0 * hertz / 200.0,
        }
    }

    /// The frequency of a mel.
    fn hertz(self, mel: f64) -> f64 {
        match self {
            Self::Htk => 700.0 * (10_f64.powf(mel / 2595.0) - 1.0),
            Self::Slaney if mel >= 15.0 => 1000.0 * (6.4_f64.ln() / 27.0 * (mel - 15.0)).exp(),
            Self::Slaney => 200.0 * mel / 3.0,
        }
    }

    /// Height of a triangle of this width in hertz.
    fn height(self, width: f64) -> f64 {
        match self {
            Self::Htk => 1.0,
            Self::Slaney => 2.0 / width,
        }
    }
}

impl Spectrum {
    fn of(self, value: &Complex<f64>) -> f64 {
        match self {
            Self::Magnitude => value.norm(),
            Self::Power => value.norm_sqr(),
        }
    }
}

impl MelLog {
    fn of(self, sum: f64) -> f32 {
        (match self {
            Self::LnPlus(offset) => (sum + offset).ln(),
            Self::Log10 => sum.max(1e-10).log10(),
        }) as f32
    }

    fn finish(self, values: &mut [f32]) {
        if self == Self::Log10 {
            let least = values.iter().copied().fold(f32::NEG_INFINITY, f32::max) - 8.0;
            values.iter_mut().for_each(|value| *value = (value.max(least) + 4.0) / 4.0);
        }
    }
}

fn hann(length: usize) -> Vec<f64> {
    (0..length).map(|index| 0.5 - 0.5 * (2.0 * PI * index as f64 / length as f64).cos()).collect()
}

/// Returns the samples with `padding` more at each end, mirrored at the first and the last one.
///
/// # Panics
/// When there are `padding` samples or fewer.
pub fn mirrored(samples: &[f32], padding: usize) -> Vec<f32> {
    let before = samples[1..=padding].iter().rev();
    let after = samples[samples.len() - 1 - padding..samples.len() - 1].iter().rev();
    before.chain(samples).chain(after).copied().collect()
}

//! Results of transformers for the folders of `testdata/audio`.

use std::path::PathBuf;

use lm_media::Audio;
use lm_model::{ALL_AUDIO_FAMILIES, TokenId};
use serde::Deserialize;
use serde_json::Value;

use crate::golden_folder::GoldenFolder;

/// Results of the reference for one folder of `testdata/audio`.
pub struct Golden {
    pub path: PathBuf,
    pub json: GoldenJson,
    /// `model_types[0]` of the family.
    pub family: &'static str,
    pub folder: GoldenFolder,
}

#[derive(Deserialize)]
pub struct GoldenJson {
    /// Relative to the largest value of a tensor.
    pub tolerance: f32,
    /// Settings of the features.
    pub preprocessing: Value,
    #[serde(rename = "sounds")]
    pub audios: Vec<GoldenAudio>,
    pub prompts: Vec<GoldenPrompt>,
    /// Samples and tokens; no tokens where the reference fails.
    pub counts: Vec<[usize; 2]>,
}

#[derive(Deserialize)]
pub struct GoldenAudio {
    samples: usize,
    /// Of the noise; `None` is silence.
    seed: Option<u32>,
    /// Stride of the recorded frames and rows.
    pub steps: [usize; 2],
}

#[derive(Deserialize)]
pub struct GoldenPrompt {
    /// With a placeholder for each image and audio, the images before the audio clips.
    pub text: String,
    /// Indices of the audio clips.
    #[serde(rename = "sounds")]
    pub audios: Vec<usize>,
    pub ids: Vec<TokenId>,
    pub greedy: Vec<TokenId>,
    /// Stride of the recorded rows of logits.
    pub step: usize,
}

impl GoldenAudio {
    /// The audio that `generate.py` describes.
    pub fn audio(&self) -> Audio {
        let mut state = self.seed.unwrap_or(0);
        let noise = |index: usize| {
            state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            ((state >> 16) as f32 / 32_768.0 - 1.0) * (index / 800 % 4) as f32 / 4.0
        };
        let samples = match self.seed {
            None => vec![0.0; self.samples],
            Some(_) => (0..self.samples).map(noise).collect(),
        };
        Audio::from_samples(samples).unwrap()
    }
}

impl Golden {
    pub fn read(family: &'static str, name: &str) -> Self {
        let folder = GoldenFolder::read("audio", name);
        Self { path: folder.path.clone(), json: folder.json(), family, folder }
    }

    pub fn all() -> impl Iterator<Item = Self> {
        let of_family = |family: &&'static lm_model::AudioFamily| {
            family.goldens.iter().map(|name| (family.model_types[0], *name))
        };
        ALL_AUDIO_FAMILIES.iter().flat_map(of_family).map(|(family, name)| Self::read(family, name))
    }

    pub fn name(&self) -> String {
        self.folder.name()
    }

    /// Asserts that values are those of a tensor, within the tolerance.
    pub fn assert_close(&self, tensor: &str, values: &[f32]) {
        self.folder.assert_close(tensor, values, self.json.tolerance);
    }
}

/// Every `step`-th row of `width` numbers.
pub fn every(step: usize, width: usize, values: &[f32]) -> Vec<f32> {
    values.chunks(width).step_by(step).flatten().copied().collect()
}

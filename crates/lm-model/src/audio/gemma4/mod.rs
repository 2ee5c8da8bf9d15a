//! Gemma 4: a conformer over a mel spectrogram, four frames per row: attention within half a second, relative
//! positions, capped scores. Source: `config.json` of google/gemma-4-E2B-it; `modeling_gemma4.py`,
//! `processing_gemma4.py` of transformers 5.23.0.

mod layer;
mod settings;

use std::sync::Arc;

use burn::tensor::activation::relu;
use burn::tensor::{Device as BurnDevice, Tensor};
use lm_kernels::{Device, from_host};
use lm_media::families::Gemma4Audio as Preprocessing;
use lm_media::{Audio, AudioFrames};

use self::layer::Layer;
use self::settings::Sizes;
use super::AudioFamily;
use crate::batch::{AttentionKind, EncodedMedia};
use crate::encoders::blocks::{Bias, LayerNorm, Linear, RmsNorm, StridedConv, TensorReader, in_turn, turn};
use crate::encoders::encoded;
use crate::encoders::settings::EncoderSettings;
use crate::error::{Error, Result};
use crate::media::{AudioEncoder, MediaLayout, MediaRows};

pub(super) const FAMILY: AudioFamily = AudioFamily {
    model_types: &["gemma4"],
    goldens: &["gemma4-tiny", "gemma4-tiny-bf16"],
    prefixes: &["model.audio_tower.", "model.embed_audio."],
    first_weights: &["model.audio_tower.subsample_conv_projection.layer0.conv.weight"],
    gguf: None,
    load,
};

const TOWER: &str = "model.audio_tower";
const PROJECTION: &str = "model.embed_audio.embedding_projection";

/// Audio encoder of Gemma 4.
struct Gemma4 {
    preprocessing: Preprocessing,
    convs: [Subsampling; 2],
    input: Linear,
    layers: Vec<Layer>,
    output: Linear,
    norm: RmsNorm,
    projection: Linear,
    device: Device,
    burn_device: BurnDevice,
}

/// Convolution that halves frames and bands, with a norm of its channels.
struct Subsampling {
    conv: StridedConv,
    norm: LayerNorm,
}

fn load(settings: &EncoderSettings, tensors: &mut TensorReader<'_>) -> Result<Arc<dyn AudioEncoder>> {
    let sizes = Sizes::read(settings)?;
    let preprocessing = settings::preprocessing(settings, &sizes)?;
    let Sizes { hidden, channels: [first, second], eps, .. } = sizes;
    let name = |part: &str| format!("{TOWER}.subsample_conv_projection.{part}");
    let mut subsampling = |layer: &str, widths: [usize; 2]| {
        let conv = StridedConv::load(tensors, &name(&format!("{layer}.conv")), widths)?;
        let norm = LayerNorm::unbiased(tensors, &name(&format!("{layer}.norm")), widths[1], eps)?;
        Ok::<_, Error>(Subsampling { conv, norm })
    };
    let convs = [subsampling("layer0", [1, first])?, subsampling("layer1", [first, second])?];
    let input = [sizes.bands * second, hidden];
    let input = Linear::load(tensors, &name("input_proj_linear"), input, Bias::Absent)?;
    let layers =
        (0..sizes.num_layers).map(|index| Layer::load(tensors, &format!("{TOWER}.layers.{index}"), &sizes));
    let layers = layers.collect::<Result<_>>()?;
    let output = [hidden, sizes.output];
    let output = Linear::load(tensors, &format!("{TOWER}.output_proj"), output, Bias::Present)?;
    let projection = [sizes.output, settings.text_width];
    Ok(Arc::new(Gemma4 {
        preprocessing,
        convs,
        input,
        layers,
        output,
        norm: RmsNorm::unweighted(tensors.burn_device(), sizes.output, eps),
        projection: Linear::load(tensors, PROJECTION, projection, Bias::Absent)?,
        device: tensors.device(),
        burn_device: tensors.burn_device().clone(),
    }))
}

impl Subsampling {
    /// `[frames, bands, inputs]` to `[frames / 2, bands / 2, outputs]`, both rounded up.
    fn forward(&self, x: Tensor<3>) -> Tensor<3> {
        let x = self.conv.forward(x);
        let [frames, bands, channels] = x.dims();
        let normed = self.norm.forward(x.reshape([frames * bands, channels]));
        relu(normed).reshape([frames, bands, channels])
    }
}

impl Gemma4 {
    /// Rows of the first layer: `[frames / 4, hidden]`.
    fn embedded(&self, features: AudioFrames) -> Tensor<2> {
        let shape = [features.frames(), features.bins, 1];
        let x = from_host(features.values, shape, &self.burn_device);
        let x = self.convs.iter().fold(x, |x, conv| conv.forward(x));
        let [frames, bands, channels] = x.dims();
        self.input.forward(x.reshape([frames, bands * channels]))
    }
}

impl AudioEncoder for Gemma4 {
    fn placeholder(&self) -> &str {
        "<|audio|>"
    }

    fn token(&self) -> &str {
        "<|audio|>"
    }

    fn layout(&self, samples: usize) -> Result<MediaLayout> {
        let rows = MediaRows::sequential(self.preprocessing.tokens(samples)?, AttentionKind::Causal);
        Ok(MediaLayout::enclosed("<|audio>", rows, "<audio|>"))
    }

    fn max_samples(&self) -> Option<usize> {
        Some(self.preprocessing.max_samples)
    }

    fn encode(&self, audio: &Audio) -> Result<EncodedMedia> {
        let features = self.preprocessing.features(audio)?;
        let mut x = in_turn(self.device, || self.embedded(features));
        for layer in &self.layers {
            x = in_turn(self.device, || layer.forward(x));
        }
        let _turn = turn(self.device);
        let x = self.norm.forward(self.output.forward(x));
        encoded(self.projection.forward(x))
    }
}

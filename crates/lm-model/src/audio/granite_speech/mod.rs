//! Granite Speech: a conformer over pairs of frames, with attention within blocks, and a Q-Former that
//! computes some rows from each window. Source: Granite-speech (arXiv 2505.08699); `config.json` of
//! ibm-granite/granite-speech-3.3-2b; `modeling_granite_speech.py`, `modeling_blip_2.py` of transformers
//! 5.23.0.

mod conformer;
mod projector;
mod settings;

use std::sync::Arc;

use burn::tensor::activation::softmax;
use burn::tensor::{Device as BurnDevice, Tensor};
use lm_kernels::{Device, from_host};
use lm_media::Audio;
use lm_media::families::GraniteSpeech as Preprocessing;

use self::conformer::Layer;
use self::projector::Projector;
use self::settings::Sizes;
use super::AudioFamily;
use crate::batch::{AttentionKind, EncodedMedia};
use crate::encoders::blocks::{Bias, Linear, TensorReader, in_turn, turn};
use crate::encoders::encoded;
use crate::encoders::settings::EncoderSettings;
use crate::error::Result;
use crate::media::{AudioEncoder, MediaLayout, MediaPiece, MediaRows};

pub(super) const FAMILY: AudioFamily = AudioFamily {
    model_types: &["granite_speech"],
    goldens: &["granite-speech-tiny", "granite-speech-tiny-bf16"],
    prefixes: &["encoder.", "projector.", "model.encoder.", "model.projector."],
    first_weights: &["encoder.input_linear.weight", "model.encoder.input_linear.weight"],
    gguf: None,
    load,
};

/// Audio encoder of Granite Speech.
struct GraniteSpeech {
    preprocessing: Preprocessing,
    input: Linear,
    layers: Vec<Layer>,
    /// Projections to the classes of characters and back, after half of the layers.
    classes: [Linear; 2],
    projector: Projector,
    /// Factor on the rows: the decoder scales its input, and rows replace scaled embeddings.
    scale: f32,
    device: Device,
    burn_device: BurnDevice,
}

fn load(settings: &EncoderSettings, tensors: &mut TensorReader<'_>) -> Result<Arc<dyn AudioEncoder>> {
    let sizes = Sizes::read(settings)?;
    let preprocessing = sizes.preprocessing(settings)?;
    let prefix = tensors.prefix(&["encoder.", "model.encoder."], "input_linear.weight")?;
    let mut linear = |name: &str, widths: [usize; 2]| {
        Linear::load(tensors, &format!("{prefix}{name}"), widths, Bias::Present)
    };
    let input = linear("input_linear", [sizes.input, sizes.hidden])?;
    let classes =
        [linear("out", [sizes.hidden, sizes.classes])?, linear("out_mid", [sizes.classes, sizes.hidden])?];
    let layers =
        (0..sizes.num_layers).map(|index| Layer::load(tensors, &format!("{prefix}layers.{index}"), &sizes));
    let layers = layers.collect::<Result<_>>()?;
    let projector = Projector::load(tensors, &sizes, settings.text_width)?;
    let scale = sizes.embedding_multiplier;
    let (device, burn_device) = (tensors.device(), tensors.burn_device().clone());
    Ok(Arc::new(GraniteSpeech {
        preprocessing,
        input,
        layers,
        classes,
        projector,
        scale,
        device,
        burn_device,
    }))
}

impl GraniteSpeech {
    /// Adds the projection of the class probabilities.
    fn with_classes(&self, x: Tensor<2>) -> Tensor<2> {
        let [out, back] = &self.classes;
        let probabilities = softmax(out.forward(x.clone()), 1);
        back.add_to(x, probabilities)
    }
}

impl AudioEncoder for GraniteSpeech {
    fn placeholder(&self) -> &str {
        "<|audio|>"
    }

    fn token(&self) -> &str {
        "<|audio|>"
    }

    fn layout(&self, samples: usize) -> Result<MediaLayout> {
        self.preprocessing.check_length(samples)?;
        let rows = MediaRows::sequential(self.preprocessing.tokens(samples)?, AttentionKind::Causal);
        Ok(MediaLayout { pieces: vec![MediaPiece::Rows(rows)] })
    }

    fn encode(&self, audio: &Audio) -> Result<EncodedMedia> {
        let features = self.preprocessing.features(audio)?;
        let shape = [features.frames(), features.bins];
        let mut x =
            in_turn(self.device, || self.input.forward(from_host(features.values, shape, &self.burn_device)));
        for (index, layer) in self.layers.iter().enumerate() {
            x = layer.forward(x, self.device);
            if index + 1 == self.layers.len() / 2 {
                x = in_turn(self.device, || self.with_classes(x));
            }
        }
        let rows = self.projector.forward(x, self.device);
        let _turn = turn(self.device);
        encoded(rows * self.scale)
    }
}

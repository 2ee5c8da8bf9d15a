//! Engines without weights for tests, and their fake models (feature `test-util`).

use std::sync::Arc;

pub use lm_model::testing::{FakeLm, Reply, tokenizer};

use crate::engine::Engine;
use crate::params::EngineSettings;
use lm_model::{CausalLm, CrossEncoderConfig, EmbeddingConfig, GenerationConfig, LoadedModel};

/// Wraps `model` with the tokenizer of [`tokenizer`] and no chat template.
pub fn loaded(model: impl CausalLm + 'static) -> LoadedModel {
    LoadedModel {
        model: Arc::new(model),
        tokenizer: Arc::new(tokenizer()),
        chat_template: None,
        generation_config: GenerationConfig::default(),
        embedding: Arc::new(EmbeddingConfig::default()),
        cross_encoder: CrossEncoderConfig::default(),
        name: "fake".to_owned(),
        adapters: Vec::new(),
        adapter_loader: None,
        audio_adapter: None,
        vision: None,
        audio: None,
    }
}

/// A BMP file of `width` by `height` pixels, whose colours depend on `seed`: the first pixel's blue is
/// `seed`.
pub fn image_file(width: u32, height: u32, seed: u8) -> Vec<u8> {
    let row_bytes = (width * 3).next_multiple_of(4);
    let mut file = b"BM".to_vec();
    for field in [54 + row_bytes * height, 0, 54, 40, width, height, 1 | 24 << 16, 0, 0, 0, 0, 0, 0] {
        file.extend(field.to_le_bytes());
    }
    let pixels = (0..height).flat_map(|row| (0..row_bytes).map(move |byte| (row * 31 + byte * 7) as u8));
    let first = file.len();
    file.extend(pixels);
    file[first] = seed;
    file
}

/// A WAV file of one channel at 16 kHz with `samples` samples, which depend on `seed`: the first is `seed`.
pub fn audio_file(samples: u32, seed: i16) -> Vec<u8> {
    let bytes = samples * 2;
    let mut file = b"RIFF".to_vec();
    file.extend((36 + bytes).to_le_bytes());
    file.extend(b"WAVEfmt ");
    // PCM in one channel, 16,000 samples and 32,000 bytes a second, two bytes and 16 bits a sample.
    for field in [16, 1 | 1 << 16, 16_000, 32_000, 2 | 16 << 16] {
        file.extend(u32::to_le_bytes(field));
    }
    file.extend(b"data");
    file.extend(bytes.to_le_bytes());
    let sample = |index| if index == 0 { seed } else { (index * 37) as i16 };
    file.extend((0..samples).flat_map(|index| sample(index).to_le_bytes()));
    file
}

/// Creates an engine whose greedy replies are `replies`, one after another; see [`FakeLm::scripted`].
///
/// A prefill that runs a token requests logits and so starts the next reply, which the following generation
/// yields.
///
/// # Panics
/// When a reply cannot be encoded.
pub fn scripted_engine<R: Into<Reply>>(replies: impl IntoIterator<Item = R>) -> Engine {
    let model = FakeLm::scripted(&tokenizer(), replies);
    Engine::new(loaded(model), EngineSettings::default()).expect("default settings fit a fake model")
}

//! Engines without weights for tests, and their fake models (feature `test-util`).

use std::sync::Arc;

pub use lm_model::testing::{FakeLm, Reply, tokenizer};

use crate::{CausalLm, Engine, EngineSettings, GenerationConfig, LoadedModel};

/// Wraps `model` with the tokenizer of [`tokenizer`] and no chat template.
pub fn loaded(model: impl CausalLm + 'static) -> LoadedModel {
    LoadedModel {
        model: Arc::new(model),
        tokenizer: Arc::new(tokenizer()),
        chat_template: None,
        generation_config: GenerationConfig::default(),
        name: "fake".to_owned(),
        adapters: Vec::new(),
        adapter_loader: None,
        vision: None,
    }
}

/// Creates an engine whose greedy replies are `replies`, one after another; see [`FakeLm::scripted`].
///
/// A prefill that runs a token asks for logits and so begins the next reply, which the following generation yields.
///
/// # Panics
/// When a reply cannot be encoded.
pub fn scripted_engine<R: Into<Reply>>(replies: impl IntoIterator<Item = R>) -> Engine {
    let model = FakeLm::scripted(&tokenizer(), replies);
    Engine::new(loaded(model), EngineSettings::default()).expect("default settings fit a fake model")
}

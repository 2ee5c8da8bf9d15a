//! SmolLM3: Llama in which some layers have no RoPE (NoPE). Source: `config.json` of
//! HuggingFaceTB/SmolLM3-3B; RoPE to NoPE and Back Again (arXiv 2501.18795); `SmolLM3Config` of transformers
//! for the defaults.

use lm_formats::Result;
use serde::Deserialize;
use serde_json::json;

use super::{Architecture, BASE};
use crate::config::{ModelConfig, invalid};
use crate::gguf::{GgufArchitecture, RopeLayout, put_biases};
use crate::spec::{DecoderSpec, windows};

pub(super) const ARCHITECTURE: Architecture = Architecture {
    model_types: &["smollm3"],
    goldens: &["smollm3-tiny", "smollm3-tiny-window", "smollm3-tiny-list"],
    spec,
    gguf: &[&GGUF],
    defaults: r#"{
        "num_key_value_heads": 4, "tie_word_embeddings": true, "rope_theta": 2000000.0, "no_rope_layer_interval": 4
    }"#,
    ..BASE
};

const GGUF: GgufArchitecture = GgufArchitecture {
    rope_layout: RopeLayout::Interleaved,
    read: |model, config| {
        put_biases(model, config);
        // Every fourth layer has no RoPE; files do not contain this.
        let rope: Vec<u8> = (1..=model.num_layers()?).map(|layer| u8::from(layer % 4 != 0)).collect();
        config.insert("no_rope_layers".to_owned(), json!(rope));
        Ok(())
    },
    ..GgufArchitecture::new("smollm3", "smollm3")
};

#[derive(Deserialize)]
struct Keys {
    /// 1 for a layer with RoPE, 0 for one without.
    no_rope_layers: Option<Vec<u8>>,
    /// Interval where the list is absent: every n-th layer has no RoPE.
    no_rope_layer_interval: usize,
}

fn spec(config: &ModelConfig) -> Result<DecoderSpec> {
    let rotates = config.read::<Keys>()?.rotates(config.num_hidden_layers)?;
    let window = config.sliding_window.filter(|_| config.use_sliding_window);
    let windows = windows(config, window, |layer| !rotates[layer])?;
    let mut spec = DecoderSpec::llama(config)?;
    for ((attention, window), rotates) in spec.attention_mut().zip(windows).zip(&rotates) {
        attention.window = window;
        attention.rope = attention.rope.filter(|_| *rotates);
    }
    Ok(spec)
}

impl Keys {
    /// Returns, for each layer, true if its queries and keys are rotated.
    fn rotates(self, layers: usize) -> Result<Vec<bool>> {
        let interval = self.no_rope_layer_interval;
        match self.no_rope_layers {
            Some(list) if list.len() < layers || list.iter().any(|&flag| flag > 1) => {
                let expected = format!("0 or 1 for each of the {layers} layers");
                Err(invalid("no_rope_layers", format!("{list:?}"), expected))
            }
            Some(list) => Ok(list.into_iter().take(layers).map(|flag| flag == 1).collect()),
            None if interval == 0 => Err(invalid("no_rope_layer_interval", interval, "a positive number")),
            None => Ok((1..=layers).map(|layer| !layer.is_multiple_of(interval)).collect()),
        }
    }
}

//! Llama (Mistral's files say so too) and what follows it closely.

use serde_json::{Map, Value, json};

use super::super::config::frequency_divisors;
use super::super::description::Description;
use super::{GgufArchitecture, RopeRows};

pub(super) const LLAMA: GgufArchitecture = GgufArchitecture {
    also: &["mistral"],
    rope_rows: RopeRows::Pairs,
    more: |model, config| {
        biases(model, config);
        frequency_divisors(model, config)
    },
    ..GgufArchitecture::new("llama", "llama")
};

pub(super) const GRANITE: GgufArchitecture = GgufArchitecture {
    keys: &[
        ("attention.scale", "attention_multiplier"),
        ("embedding_scale", "embedding_multiplier"),
        ("logit_scale", "logits_scaling"),
        ("residual_scale", "residual_multiplier"),
    ],
    rope_rows: RopeRows::Pairs,
    more: |model, config| {
        biases(model, config);
        Ok(())
    },
    ..GgufArchitecture::new("granite", "granite")
};

pub(super) const MISTRAL3: GgufArchitecture = GgufArchitecture {
    keys: &[("attention.temperature_scale", "llama_4_scaling_beta")],
    rope_rows: RopeRows::Pairs,
    more: |_, config| {
        let Some(Value::Object(mut rope)) = config.remove("rope_scaling") else { return Ok(()) };
        rope.extend(config.remove_entry("llama_4_scaling_beta"));
        // Files have one of the two factors; all checkpoints have both the same.
        if let Some(mscale) = rope.get("mscale_all_dim").cloned() {
            rope.insert("mscale".to_owned(), mscale);
        }
        rope.extend(config.remove_entry("rope_theta"));
        config.insert("rope_parameters".to_owned(), rope.into());
        Ok(())
    },
    ..GgufArchitecture::new("mistral3", "ministral3")
};

pub(super) const SMOLLM3: GgufArchitecture = GgufArchitecture {
    rope_rows: RopeRows::Pairs,
    more: |model, config| {
        biases(model, config);
        // Every fourth layer has no positions; files do not say so.
        let rope: Vec<u8> = (1..=model.num_layers()?).map(|layer| u8::from(layer % 4 != 0)).collect();
        config.insert("no_rope_layers".to_owned(), json!(rope));
        frequency_divisors(model, config)
    },
    ..GgufArchitecture::new("smollm3", "smollm3")
};

pub(super) const OLMO2: GgufArchitecture = GgufArchitecture {
    tensors: &[&[
        ("post_attention_norm", "post_attention_layernorm"),
        ("post_ffw_norm", "post_feedforward_layernorm"),
    ]],
    more: |model, config| {
        biases(model, config);
        Ok(())
    },
    ..GgufArchitecture::new("olmo2", "olmo2")
};

/// Whether there are biases follows from the tensors.
fn biases(model: &Description<'_>, config: &mut Map<String, Value>) {
    for (tensor, key) in [("blk.0.attn_q.bias", "attention_bias"), ("blk.0.ffn_gate.bias", "mlp_bias")] {
        config.insert(key.to_owned(), model.tensor(tensor).is_some().into());
    }
}

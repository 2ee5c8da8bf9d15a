//! StarCoder2: LayerNorm, an ungated feed-forward block, biases everywhere, one window for all layers.
//! Source: StarCoder 2 and The Stack v2 (arXiv 2402.19173); `config.json` of bigcode/starcoder2-3b;
//! `Starcoder2Config` of transformers for the defaults.

use lm_formats::Result;
use serde::Deserialize;

use super::{Architecture, BASE};
use crate::checkpoint::{LayerParam, Param, hugging_face_name};
use crate::config::ModelConfig;
use crate::gguf::GgufArchitecture;
use crate::spec::{Bias, DecoderSpec, Mlp, NormKind, Window};

pub(super) const ARCHITECTURE: Architecture = Architecture {
    model_types: &["starcoder2"],
    goldens: &["starcoder2-tiny", "starcoder2-tiny-plain", "starcoder2-tiny-relu2"],
    spec,
    weight_name,
    gguf: &[&GGUF],
    defaults: r#"{
        "num_key_value_heads": 2, "hidden_act": "gelu_pytorch_tanh", "max_position_embeddings": 4096,
        "norm_epsilon": 1e-5, "rms_norm_eps": 1e-5, "use_bias": true, "tie_word_embeddings": true
    }"#,
    ..BASE
};

const GGUF: GgufArchitecture = GgufArchitecture {
    keys: &[("attention.layer_norm_epsilon", "norm_epsilon")],
    read: |model, config| {
        let bias = model.tensor("blk.0.attn_q.bias").is_some();
        config.insert("use_bias".to_owned(), bias.into());
        Ok(())
    },
    tensors: &[&[("ffn_down", "mlp.c_proj"), ("ffn_up", "mlp.c_fc")]],
    ..GgufArchitecture::new("starcoder2", "starcoder2")
};

/// Keys of this architecture alone.
#[derive(Deserialize)]
struct Keys {
    /// True if all projections of attention and feed-forward blocks have a bias.
    use_bias: bool,
}

fn spec(config: &ModelConfig) -> Result<DecoderSpec> {
    let Keys { use_bias } = config.read()?;
    let config = &ModelConfig {
        attention_bias: use_bias,
        mlp_bias: use_bias,
        ..config.with_norm_eps("norm_epsilon")?
    };
    let mut spec = DecoderSpec::llama(config)?;
    spec.norm_kind = NormKind::Layer(Bias::Present);
    let mlp = Mlp::plain(config)?;
    spec.layers.iter_mut().for_each(|layer| layer.mlp = mlp.clone());
    for attention in spec.attention_mut() {
        attention.window = config.sliding_window.map_or(Window::Full, Window::Sliding);
    }
    Ok(spec)
}

fn weight_name(param: Param) -> String {
    match param {
        Param::Layer(layer, LayerParam::Up(piece)) => format!("model.layers.{layer}.mlp.c_fc.{piece}"),
        Param::Layer(layer, LayerParam::Down(piece)) => format!("model.layers.{layer}.mlp.c_proj.{piece}"),
        other => hugging_face_name(other),
    }
}

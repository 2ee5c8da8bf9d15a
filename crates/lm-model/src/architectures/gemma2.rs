//! Gemma 2: dense decoder with sandwich norms (before and after each block), GeGLU, a sliding window on every
//! other layer, and soft-capped attention scores and logits. Source: Gemma 2 (arXiv 2408.00118);
//! `config.json` of google/gemma-2-2b; `Gemma2Config` of transformers for the defaults.

use lm_formats::Result;
use lm_kernels::Activation;
use serde::Deserialize;
use serde_json::{Map, Value};

use super::{Architecture, BASE};
use crate::checkpoint::{LayerParam, Param, StoredValues, hugging_face_name};
use crate::config::{ModelConfig, invalid, unsupported};
use crate::gguf::{Description, GgufArchitecture, TensorNames, layer_types};
use crate::spec::{
    Bias, DecoderSpec, GatedSpec, Mlp, NormPlacement, NormWeight, Sparsity, activation, windows,
};

pub(super) const ARCHITECTURE: Architecture = Architecture {
    model_types: &["gemma2"],
    goldens: &["gemma2-tiny", "gemma2-tiny-plain", "gemma2-tiny-erf"],
    spec,
    weight_name,
    gguf: &[&GGUF],
    defaults: r#"{
        "vocab_size": 256000, "hidden_size": 2304, "intermediate_size": 9216, "num_hidden_layers": 26,
        "num_attention_heads": 8, "num_key_value_heads": 4, "head_dim": 256, "max_position_embeddings": 8192,
        "rms_norm_eps": 1e-6, "tie_word_embeddings": true, "hidden_activation": "gelu_pytorch_tanh",
        "query_pre_attn_scalar": 256, "sliding_window": 4096, "attn_logit_softcapping": 50.0, "final_logit_softcapping": 30.0
    }"#,
    ..BASE
};

const GGUF: GgufArchitecture = GgufArchitecture {
    keys: &[
        ("attention.sliding_window", "sliding_window"),
        ("attn_logit_softcapping", "attn_logit_softcapping"),
        ("final_logit_softcapping", "final_logit_softcapping"),
    ],
    read: |model, config| {
        layer_types(model, config, 2)?;
        put_gguf_defaults(model, config, GEMMA2_27B)
    },
    tensors: &[NORMS],
    values: NORMS_PLUS_ONE,
    ..GgufArchitecture::new("gemma2", "gemma2")
};

/// Norms of all generations.
pub(super) const NORMS: TensorNames = &[
    ("ffn_norm", "pre_feedforward_layernorm"),
    ("post_attention_norm", "post_attention_layernorm"),
    ("post_ffw_norm", "post_feedforward_layernorm"),
];
/// Norms whose weights are stored plus one in the file; Gemma 2 has no QK norm.
pub(super) const NORMS_PLUS_ONE: &[(&str, StoredValues)] = &[
    ("attn_k_norm.weight", StoredValues::PlusOne),
    ("attn_norm.weight", StoredValues::PlusOne),
    ("attn_q_norm.weight", StoredValues::PlusOne),
    ("ffn_norm.weight", StoredValues::PlusOne),
    ("output_norm.weight", StoredValues::PlusOne),
    ("post_attention_norm.weight", StoredValues::PlusOne),
    ("post_ffw_norm.weight", StoredValues::PlusOne),
];
/// Layers of Gemma 2 27B.
const GEMMA2_27B: usize = 46;

/// Sets keys that files omit: the activation, and the attention scale, which the largest size of a generation
/// derives from `hidden_size / num_attention_heads` in place of `head_dim`. As in llama.cpp, the number of
/// layers identifies that size.
pub(super) fn put_gguf_defaults(
    model: &Description<'_>,
    config: &mut Map<String, Value>,
    layers_27b: usize,
) -> Result<()> {
    let (heads, head_dim) = (model.required_size("attention.head_count")?, model.head_dim()?);
    let scalar = match model.num_layers()? {
        layers if layers == layers_27b && heads > 0 => {
            model.required_size("embedding_length")? as f64 / heads as f64
        }
        _ => head_dim as f64,
    };
    config.insert("query_pre_attn_scalar".to_owned(), scalar.into());
    config.insert("hidden_activation".to_owned(), "gelu_pytorch_tanh".into());
    Ok(())
}

/// Keys shared by all Gemma generations.
#[derive(Deserialize)]
pub(super) struct Keys {
    pub(super) hidden_activation: String,
    pub(super) query_pre_attn_scalar: Option<f64>,
    pub(super) attn_logit_softcapping: Option<f64>,
    final_logit_softcapping: Option<f64>,
}

fn spec(config: &ModelConfig) -> Result<DecoderSpec> {
    refuse_bidirectional(config)?;
    let keys: Keys = config.read()?;
    let mut spec = gemma(config, &keys)?;
    let soft_cap = positive("attn_logit_softcapping", keys.attn_logit_softcapping)?;
    let windows = windows(config, config.sliding_window, |layer| layer.is_multiple_of(2))?;
    for (attention, window) in spec.attention_mut().zip(windows) {
        (attention.window, attention.soft_cap) = (window, soft_cap);
    }
    spec.norm_weight = NormWeight::OnePlus;
    Ok(spec)
}

/// Builds the common part of all generations: scaled embeddings, sandwich norms, GeGLU, soft-capped logits.
pub(super) fn gemma(config: &ModelConfig, keys: &Keys) -> Result<DecoderSpec> {
    let mut spec = DecoderSpec::llama(config)?;
    spec.embedding_scale = Some((config.hidden_size as f64).sqrt() as f32);
    spec.logit_soft_cap = positive("final_logit_softcapping", keys.final_logit_softcapping)?;
    let scale =
        positive("query_pre_attn_scalar", keys.query_pre_attn_scalar)?.map(|scalar| scalar.sqrt().recip());
    let activation = activation("hidden_activation", &keys.hidden_activation)?;
    for layer in &mut spec.layers {
        layer.norms = NormPlacement::Sandwich;
        layer.mlp = geglu(config.intermediate_size, activation, None);
    }
    for attention in spec.attention_mut() {
        attention.scale = scale.unwrap_or(1.0);
    }
    Ok(spec)
}

/// The feed-forward block of all generations.
pub(super) fn geglu(intermediate_size: usize, activation: Activation, sparsity: Option<Sparsity>) -> Mlp {
    Mlp::Gated(GatedSpec { intermediate_size, activation, bias: Bias::Absent, sparsity })
}

/// Rejects bidirectional attention: some values of the key turn the decoder into an encoder.
pub(super) fn refuse_bidirectional(config: &ModelConfig) -> Result<()> {
    let key = "use_bidirectional_attention";
    match config.keys.get(key) {
        None | Some(serde_json::Value::Null | serde_json::Value::Bool(false)) => Ok(()),
        // Gemma 4's value for images only, whose rows a batch marks itself (attention spans).
        Some(serde_json::Value::String(kind)) if kind == "vision" => Ok(()),
        Some(other) => Err(unsupported(key, other, "null, false, \"vision\"")),
    }
}

fn positive(key: &str, value: Option<f64>) -> Result<Option<f32>> {
    match value {
        Some(value) if !(value.is_finite() && value > 0.0) => {
            Err(invalid(key, value, "a positive number, or null"))
        }
        value => Ok(value.map(|value| value as f32)),
    }
}

/// Each block has a norm before and after it. Llama's name for the norm before the feed-forward block belongs
/// here to the norm after the mixer.
pub(super) fn weight_name(param: Param) -> String {
    match param {
        Param::Layer(layer, LayerParam::MlpPreNorm) => {
            format!("model.layers.{layer}.pre_feedforward_layernorm.weight")
        }
        other => hugging_face_name(other),
    }
}

//! Gemma 3n.

use lm_formats::{GgufEntry, Result};
use serde_json::{Map, Value, json};

use super::super::config::layer_types;
use super::super::description::{Description, decimal};
use super::super::rope::{self, SlidingTheta};
use super::super::write::Settings;
use super::gemma::NORMS;
use super::{GgufArchitecture, TensorNames};
use crate::config::ModelConfig;
use crate::spec::{DecoderSpec, GatedSpec, LayerSpec, Mixer, Mlp, Window};

/// Per-layer embeddings, which Gemma 4 has too.
pub(super) const PER_LAYER_INPUTS: TensorNames = &[
    ("inp_gate", "per_layer_input_gate"),
    ("per_layer_model_proj", "model.per_layer_model_projection"),
    ("per_layer_proj_norm", "model.per_layer_projection_norm"),
    ("per_layer_token_embd", "model.embed_tokens_per_layer"),
    ("post_norm", "post_per_layer_input_norm"),
    ("proj", "per_layer_projection"),
];
/// AltUp (several streams between the layers) and LAuReL (the low-rank path parallel to attention).
const STREAMS: TensorNames = &[
    ("altup_correct_coef", "altup.correction_coefs"),
    ("altup_correct_scale.weight", "altup.correct_output_scale"),
    ("altup_predict_coef", "altup.prediction_coefs"),
    ("altup_proj", "model.altup_projections"),
    ("altup_router", "altup.modality_router"),
    ("altup_router_norm", "altup.router_norm"),
    ("altup_unembd_proj", "model.altup_unembed_projections"),
    ("laurel_l", "laurel.linear_left"),
    ("laurel_post_norm", "laurel.post_laurel_norm"),
    ("laurel_r", "laurel.linear_right"),
];
/// Number of layers with their own keys and values, where files do not give the number of those without.
const LAYERS_WITH_OWN_KV: usize = 20;

pub(super) const GEMMA3N: GgufArchitecture = GgufArchitecture {
    keys: &[
        ("altup.active_idx", "altup_active_idx"),
        ("altup.num_inputs", "altup_num_inputs"),
        ("attention.shared_kv_layers", "num_kv_shared_layers"),
        ("attention.sliding_window", "sliding_window"),
        ("embedding_length_per_layer_input", "hidden_size_per_layer_input"),
        ("final_logit_softcapping", "final_logit_softcapping"),
        ("rope.freq_base_swa", "rope_local_base_freq"),
    ],
    rope: |model, config| rope::by_layer_type(model, config, SlidingTheta::Default),
    more,
    write,
    tensors: &[NORMS, PER_LAYER_INPUTS, STREAMS],
    ..GgufArchitecture::new("gemma3n", "gemma3n_text")
};

fn write(_: &ModelConfig, spec: &DecoderSpec, settings: &mut Settings) -> Result<()> {
    put_windows(spec, settings);
    let deviations = |layer: &LayerSpec| match &layer.mlp {
        Mlp::Gated(GatedSpec { sparsity: Some(sparsity), .. }) => sparsity.deviations,
        _ => f32::NEG_INFINITY,
    };
    let deviations = spec.layers.iter().map(deviations).collect();
    settings.put("activation_sparsity_scale", GgufEntry::Floats(deviations));
    Ok(())
}

/// Writes which layers have a sliding window.
pub(super) fn put_windows(spec: &DecoderSpec, settings: &mut Settings) {
    let slides = |layer: &LayerSpec| match &layer.mixer {
        Mixer::Attention(attention) => attention.window != Window::Full,
        Mixer::ShortConv(_) | Mixer::DeltaNet(_) => false,
    };
    let slides = spec.layers.iter().map(slides).collect();
    settings.put("attention.sliding_window_pattern", GgufEntry::Bools(slides));
}

fn more(model: &Description<'_>, config: &mut Map<String, Value>) -> Result<()> {
    layer_types(model, config, 5)?;
    let shared = model.num_layers()?.saturating_sub(LAYERS_WITH_OWN_KV);
    config.entry("num_kv_shared_layers").or_insert(shared.into());
    sparsity(model, config)?;
    per_layer_vocabulary(model, config);
    if let Some((_, laurel)) = model.tensor("blk.0.laurel_l.weight") {
        config.insert("laurel_rank".to_owned(), laurel.shape[0].into());
    }
    Ok(())
}

/// Sets the number of rows of the per-layer embeddings, which may differ from the number of tokens.
pub(super) fn per_layer_vocabulary(model: &Description<'_>, config: &mut Map<String, Value>) {
    if let Some((_, embeddings)) = model.tensor("per_layer_token_embd.weight") {
        config.insert("vocab_size_per_layer_input".to_owned(), embeddings.shape[0].into());
    }
}

/// Converts the gates' thresholds, in standard deviations above the mean; minus infinity disables sparsity.
fn sparsity(model: &Description<'_>, config: &mut Map<String, Value>) -> Result<()> {
    const KEY: &str = "activation_sparsity_scale";
    let key = model.key(KEY);
    let Some(deviations) = model.floats(KEY)? else { return Ok(()) };
    let value = |&deviations: &f32| match decimal(deviations.into()) {
        Some(number) => Ok(number.into()),
        None if deviations == f32::NEG_INFINITY => Ok(Value::Null),
        None => Err(model.metadata.invalid(&key, deviations, "numbers, or minus infinity")),
    };
    let deviations = deviations.iter().map(value).collect::<Result<Vec<_>>>()?;
    config.insert("activation_sparsity_deviations".to_owned(), json!(deviations));
    Ok(())
}

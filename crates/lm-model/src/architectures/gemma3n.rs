//! Gemma 3n: Gemma 3 with several residual streams between the layers (AltUp), a low-rank path parallel to
//! attention (LAuReL), per-layer embeddings, sparse feed-forward blocks and last layers that share keys and
//! values. Also the text model of the multimodal checkpoints. Source: `config.json` of google/gemma-3n-E2B;
//! modelling code and `Gemma3nTextConfig` of transformers.

use lm_formats::{GgufEntry, Result};
use serde::Deserialize;
use serde_json::{Map, Value, json};

use super::gemma2::{Keys, NORMS, geglu, gemma, refuse_bidirectional, weight_name};
use super::{Architecture, BASE, gemma3};
use crate::checkpoint::{Param, TensorLocation};
use crate::config::{ModelConfig, invalid};
use crate::gguf::rope::SlidingTheta;
use crate::gguf::{Description, GgufArchitecture, Settings, TensorNames, decimal, layer_types, rope};
use crate::spec::{
    AltUpSpec, CorrectionScale, DecoderSpec, GatedSpec, KvSource, LayerSpec, Mlp, PerLayerInputs, QkNorm,
    RopesByType, Sparsity, activation, share_key_values, windows,
};

/// Prefixes of a checkpoint's vision and audio tensors.
pub(super) const MULTIMODAL_PREFIXES: &[&str] =
    &["model.audio_tower.", "model.embed_audio.", "model.embed_vision.", "model.vision_tower."];

pub(super) const ARCHITECTURE: Architecture = Architecture {
    model_types: &["gemma3n_text"],
    goldens: &["gemma3n-tiny", "gemma3n-tiny-nested", "gemma3n-tiny-three"],
    spec,
    weight_name,
    locations,
    ignored_prefixes: MULTIMODAL_PREFIXES,
    gguf: &[&GGUF],
    defaults: r#"{
        "vocab_size": 262400, "hidden_size": 2048, "intermediate_size": 16384, "num_hidden_layers": 35,
        "num_attention_heads": 8, "num_key_value_heads": 2, "head_dim": 256, "max_position_embeddings": 32768,
        "rms_norm_eps": 1e-6, "tie_word_embeddings": true, "hidden_activation": "gelu_pytorch_tanh",
        "sliding_window": 512, "final_logit_softcapping": 30.0, "vocab_size_per_layer_input": 262144,
        "hidden_size_per_layer_input": 256, "altup_active_idx": 0, "altup_correct_scale": true, "altup_num_inputs": 4,
        "num_kv_shared_layers": 15, "laurel_rank": 64
    }"#,
    ..BASE
};

const GGUF: GgufArchitecture = GgufArchitecture {
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
    read: read_gguf,
    write: write_gguf,
    tensors: &[NORMS, PER_LAYER_INPUTS, STREAMS],
    ..GgufArchitecture::new("gemma3n", "gemma3n_text")
};

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

fn write_gguf(_: &ModelConfig, spec: &DecoderSpec, settings: &mut Settings) -> Result<()> {
    settings.put_windows(spec);
    let deviations = |layer: &LayerSpec| match &layer.mlp {
        Mlp::Gated(GatedSpec { sparsity: Some(sparsity), .. }) => sparsity.deviations,
        _ => f32::NEG_INFINITY,
    };
    let deviations = spec.layers.iter().map(deviations).collect();
    settings.put("activation_sparsity_scale", GgufEntry::Floats(deviations));
    Ok(())
}

fn read_gguf(model: &Description<'_>, config: &mut Map<String, Value>) -> Result<()> {
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

#[derive(Deserialize)]
struct OwnKeys {
    intermediate_size: IntermediateSizes,
    vocab_size_per_layer_input: usize,
    hidden_size_per_layer_input: usize,
    altup_active_idx: usize,
    altup_correct_scale: bool,
    altup_num_inputs: usize,
    num_kv_shared_layers: usize,
    laurel_rank: usize,
    activation_sparsity_pattern: Option<Vec<f64>>,
    /// Not a key of published files: thresholds derived from the shares of `activation_sparsity_pattern`;
    /// takes precedence over it.
    activation_sparsity_deviations: Option<Vec<Option<f32>>>,
}

#[derive(Deserialize)]
#[serde(untagged)]
enum IntermediateSizes {
    OfAll(usize),
    OfEach(Vec<usize>),
}

/// Far beyond real models, and small enough for its cube, the number of prediction coefficients.
const MAX_STREAMS: usize = 64;
/// One layer in this many has full attention.
const PATTERN: usize = 5;
/// Default without `activation_sparsity_pattern`: number of first layers that are sparse, if the decoder has
/// more than that.
const SPARSE_LAYERS: usize = 10;
const SHARE: f64 = 0.95;

fn spec(config: &ModelConfig) -> Result<DecoderSpec> {
    let (keys, own) = (config.read::<Keys>()?, config.read::<OwnKeys>()?);
    let activation = activation("hidden_activation", &keys.hidden_activation)?;
    let ropes = RopesByType::from_config(config, gemma3::THETAS)?;
    refuse_bidirectional(config)?;
    let mut spec = gemma(&config.without_rope(), &keys)?;
    let windows = windows(config, config.sliding_window, |layer| !(layer + 1).is_multiple_of(PATTERN))?;
    for (attention, window) in spec.attention_mut().zip(windows) {
        attention.qk_norm = QkNorm::PerHead;
        attention.kv_source = KvSource::NormedValues;
        attention.window = window;
    }
    ropes.apply(&mut spec)?;
    if own.num_kv_shared_layers > 0 {
        share_key_values(&mut spec, own.num_kv_shared_layers)?;
    }
    let widths = own.intermediate_size.of_layers(config.num_hidden_layers)?;
    for ((layer, sparsity), width) in spec.layers.iter_mut().zip(sparsities(config, &own)?).zip(widths) {
        layer.mlp = geglu(width, activation, sparsity);
    }
    spec.streams = Some(streams(&own)?);
    spec.per_layer_inputs = Some(PerLayerInputs {
        vocab_size: size("vocab_size_per_layer_input", own.vocab_size_per_layer_input)?,
        size: size("hidden_size_per_layer_input", own.hidden_size_per_layer_input)?,
        of_embeddings: 0,
        activation,
    });
    Ok(spec)
}

impl IntermediateSizes {
    fn of_layers(&self, layers: usize) -> Result<Vec<usize>> {
        match self {
            Self::OfAll(width) => Ok(vec![*width; layers]),
            Self::OfEach(widths) if widths.len() == layers => {
                widths.iter().map(|&width| size("intermediate_size", width)).collect()
            }
            Self::OfEach(widths) => {
                let expected = format!("one for each of the {layers} layers");
                Err(invalid("intermediate_size", format!("a list of {}", widths.len()), expected))
            }
        }
    }
}

fn streams(own: &OwnKeys) -> Result<AltUpSpec> {
    if !(1..=MAX_STREAMS).contains(&own.altup_num_inputs) {
        return Err(invalid("altup_num_inputs", own.altup_num_inputs, format!("1 to {MAX_STREAMS}")));
    }
    if own.altup_active_idx >= own.altup_num_inputs {
        let expected = format!("less than altup_num_inputs = {}", own.altup_num_inputs);
        return Err(invalid("altup_active_idx", own.altup_active_idx, expected));
    }
    Ok(AltUpSpec {
        count: own.altup_num_inputs,
        active: own.altup_active_idx,
        correction_scale: if own.altup_correct_scale {
            CorrectionScale::Used
        } else {
            CorrectionScale::Unused
        },
        laurel_rank: size("laurel_rank", own.laurel_rank)?,
    })
}

fn sparsities(config: &ModelConfig, own: &OwnKeys) -> Result<Vec<Option<Sparsity>>> {
    const SHARES: &str = "activation_sparsity_pattern";
    const DEVIATIONS: &str = "activation_sparsity_deviations";
    let layers = config.num_hidden_layers;
    let check = |key: &str, count: usize| match count {
        count if count == layers => Ok(()),
        count => {
            Err(invalid(key, format!("a list of {count}"), format!("one for each of the {layers} layers")))
        }
    };
    if let Some(deviations) = &own.activation_sparsity_deviations {
        check(DEVIATIONS, deviations.len())?;
        let sparsity = |deviations: &Option<f32>| deviations.map(|deviations| Sparsity { deviations });
        return Ok(deviations.iter().map(sparsity).collect());
    }
    let sparse = if layers > SPARSE_LAYERS { SPARSE_LAYERS } else { 0 };
    let default = || (0..layers).map(|layer| if layer < sparse { SHARE } else { 0.0 }).collect();
    let shares = own.activation_sparsity_pattern.clone().unwrap_or_else(default);
    check(SHARES, shares.len())?;
    shares.into_iter().map(|share| Sparsity::of_share(SHARES, share)).collect()
}

/// Locations where the projections of all streams are one tensor; published checkpoints store each by itself.
fn locations(spec: &DecoderSpec, param: Param) -> Vec<TensorLocation> {
    let (stream, name) = match param {
        Param::AltUpProjection(stream) => (stream, "model.altup_projections.weight"),
        Param::AltUpUnembed(stream) => (stream, "model.altup_unembed_projections.weight"),
        _ => return Vec::new(),
    };
    let (hidden, others) = (spec.hidden_size, spec.streams.map_or(0, |streams| streams.count - 1));
    let rows = stream * hidden..(stream + 1) * hidden;
    vec![TensorLocation::whole(weight_name(param)), TensorLocation::part(name, rows, others * hidden)]
}

/// Checks a size; the product of two valid ones does not overflow.
pub(super) fn size(key: &str, value: usize) -> Result<usize> {
    const MOST: usize = 1 << 24;
    if (1..=MOST).contains(&value) { Ok(value) } else { Err(invalid(key, value, format!("1 to {MOST}"))) }
}

//! Gemma 4: Gemma 3 whose full-attention layers have another head width, partial rotary and optionally keys
//! as values; where the config asks for them, per-layer embeddings and shared keys and values as in Gemma 3n,
//! and experts parallel to each feed-forward block. Also the text model of the multimodal checkpoints.
//! Source: `config.json` of google/gemma-4-E2B-it; modelling code and `Gemma4TextConfig` of transformers.

use lm_formats::{GgufEntry, Result};
use lm_kernels::Activation;
use serde::Deserialize;
use serde_json::{Map, Value, json};

use super::gemma2::{self, Keys, NORMS, geglu, gemma, refuse_bidirectional};
use super::gemma3n::{MULTIMODAL_PREFIXES, PER_LAYER_INPUTS, per_layer_vocabulary, size};
use super::{Architecture, BASE, gemma3};
use crate::checkpoint::{LayerParam, Param, TensorLocation};
use crate::config::{ModelConfig, invalid, unsupported};
use crate::gguf::{Description, EXPERTS, GgufArchitecture, Settings, TensorNames, layer_types, rope};
use crate::spec::expert_tensors;
use crate::spec::{
    Bias, BidirectionalLayers, DecoderSpec, DenseBranch, ExpertKeys, ExpertsSpec, KvSource, LayerScalar,
    Mixer, Mlp, PerLayerInputs, QkNorm, RopeScaling, RopeSpec, RopesByType, RouterSpec, Window, activation,
    share_key_values, windows,
};

pub(super) const ARCHITECTURE: Architecture = Architecture {
    model_types: &["gemma4_text"],
    goldens: &["gemma4-tiny", "gemma4-tiny-experts", "gemma4-tiny-keys"],
    spec,
    weight_name,
    locations,
    ignored_prefixes: MULTIMODAL_PREFIXES,
    gguf: &[&GGUF],
    defaults: r#"{
        "vocab_size": 262144, "hidden_size": 2304, "intermediate_size": 9216, "num_hidden_layers": 30,
        "num_attention_heads": 8, "num_key_value_heads": 4, "head_dim": 256, "max_position_embeddings": 131072,
        "rms_norm_eps": 1e-6, "tie_word_embeddings": true, "hidden_activation": "gelu_pytorch_tanh",
        "sliding_window": 512, "vocab_size_per_layer_input": 262144, "hidden_size_per_layer_input": 256,
        "global_head_dim": 512, "pad_token_id": 0,
        "rope_parameters": {
            "sliding_attention": {"rope_type": "default", "rope_theta": 10000.0},
            "full_attention": {"rope_type": "proportional", "partial_rotary_factor": 0.25, "rope_theta": 1000000.0}
        }
    }"#,
    ..BASE
};

const GGUF: GgufArchitecture = GgufArchitecture {
    keys: &[
        ("attention.key_length_swa", "head_dim"),
        ("attention.shared_kv_layers", "num_kv_shared_layers"),
        ("attention.sliding_window", "sliding_window"),
        ("embedding_length_per_layer_input", "hidden_size_per_layer_input"),
        ("expert_count", "num_experts"),
        ("expert_feed_forward_length", "moe_intermediate_size"),
        ("expert_used_count", "top_k_experts"),
        ("final_logit_softcapping", "final_logit_softcapping"),
    ],
    rope: rope::proportional,
    read: read_gguf,
    write: write_gguf,
    tensors: &[
        &[("layer_output_scale.weight", "layer_scalar")],
        BESIDE_EXPERTS,
        EXPERTS,
        NORMS,
        PER_LAYER_INPUTS,
    ],
    ..GgufArchitecture::new("gemma4", "gemma4_text")
};

/// Experts parallel to a feed-forward block, with gate and up fused into one tensor ([`EXPERTS`] has two).
const BESIDE_EXPERTS: TensorNames = &[
    ("ffn_down_exps.scale", "router.per_expert_scale"),
    ("ffn_down_exps.weight", "experts.down_proj"),
    ("ffn_gate_inp.scale", "router.scale"),
    ("ffn_gate_inp.weight", "router.proj.weight"),
    ("ffn_gate_up_exps.weight", "experts.gate_up_proj"),
    ("post_ffw_norm_1", "post_feedforward_layernorm_1"),
    ("post_ffw_norm_2", "post_feedforward_layernorm_2"),
    ("pre_ffw_norm_2", "pre_feedforward_layernorm_2"),
];

fn write_gguf(_: &ModelConfig, spec: &DecoderSpec, settings: &mut Settings) -> Result<()> {
    settings.put_windows(spec);
    if spec.logit_soft_cap.is_none() {
        // llama.cpp caps logits at 30 where the key is missing.
        settings.put("final_logit_softcapping", GgufEntry::Float(0.0));
    }
    let attention = |full: bool| {
        spec.layers.iter().find_map(|layer| match &layer.mixer {
            Mixer::Attention(attention) if (attention.window == Window::Full) == full => Some(attention),
            _ => None,
        })
    };
    // In a model without layers of one kind, that kind has the sizes of the other.
    let (full, sliding) = (attention(true), attention(false));
    for (of_kind, suffix) in [(full.or(sliding), ""), (sliding.or(full), "_swa")] {
        let Some(layer) = of_kind else { continue };
        for key in ["attention.key_length", "attention.value_length", "rope.dimension_count"] {
            settings.put_size(&format!("{key}{suffix}"), "head_dim", layer.head_dim)?;
        }
        if let Some(rope) = layer.rope.map(|rope| &spec.ropes[rope]) {
            settings.put(&format!("rope.freq_base{suffix}"), GgufEntry::Float(rope.theta as f32));
        }
    }
    let rope = full.and_then(|layer| layer.rope).map(|rope| &spec.ropes[rope]);
    if let Some(RopeSpec { rotary_dim, scaling: RopeScaling::Proportional { pairs, .. }, .. }) = rope {
        let (name, divisors) = rope::proportional_divisors(*rotary_dim, *pairs);
        settings.put_vector(name, divisors);
    }
    Ok(())
}

fn read_gguf(model: &Description<'_>, config: &mut Map<String, Value>) -> Result<()> {
    let slides = layer_types(model, config, PATTERN)?;
    gemma3::remove_zero_soft_cap(config);
    read_gguf_heads(model, config, &slides)?;
    read_gguf_feed_forward(model, config)?;
    per_layer_vocabulary(model, config);
    let padding = model.metadata.token_id("padding")?;
    config.extend(padding.map(|id| ("pad_token_id".to_owned(), id.into())));
    let experts = model.size("expert_count")?.is_some_and(|experts| experts > 0);
    config.insert("enable_moe_block".to_owned(), experts.into());
    Ok(())
}

/// Converts the heads: full-attention layers have wider and possibly fewer ones; without value projections,
/// keys are the values.
fn read_gguf_heads(model: &Description<'_>, config: &mut Map<String, Value>, slides: &[bool]) -> Result<()> {
    let head_dims = [model.head_dim()?, model.required_size("attention.key_length_swa")?];
    let kv_heads = model.sizes_of_layers("attention.head_count_kv")?;
    let of_layer = |(layer, (&slides, heads)): (usize, (&bool, &usize))| {
        let heads = json!({"head_dim": head_dims[usize::from(slides)], "num_key_value_heads": heads});
        (layer.to_string(), heads)
    };
    let layers: Map<_, _> = slides.iter().zip(&kv_heads).enumerate().map(of_layer).collect();
    let keys_as_values = slides.iter().position(|&slides| !slides).is_some_and(|layer| {
        let has = |part| model.tensor(&format!("blk.{layer}.{part}.weight")).is_some();
        has("attn_k") && !has("attn_v")
    });
    config.insert("head_dim".to_owned(), head_dims[1].into());
    config.insert("num_key_value_heads".to_owned(), kv_heads[0].into());
    config.insert("per_layer_config".to_owned(), layers.into());
    config.insert("attention_k_eq_v".to_owned(), keys_as_values.into());
    Ok(())
}

/// Converts the feed-forward widths: layers that share keys and values may have twice the width.
fn read_gguf_feed_forward(model: &Description<'_>, config: &mut Map<String, Value>) -> Result<()> {
    const KEY: &str = "feed_forward_length";
    const SHARED: &str = "attention.shared_kv_layers";
    let widths = model.sizes_of_layers(KEY)?;
    let shared = model.size(SHARED)?.unwrap_or(0);
    let Some(own) = widths.len().checked_sub(shared) else {
        let expected = format!("at most {} layers", widths.len());
        return Err(model.metadata.invalid(&model.key(SHARED), shared, expected));
    };
    let (own, shared) = widths.split_at(own);
    let width = own.first().or(shared.first()).copied().unwrap_or(0);
    let double = shared.first().is_some_and(|&first| first != width);
    let expected = |factor: usize| move |&got: &usize| width.checked_mul(factor) == Some(got);
    if !own.iter().all(expected(1)) || !shared.iter().all(expected(1 + usize::from(double))) {
        let known = "one width, twice that in layers that share keys and values";
        return Err(model.metadata.unsupported(&model.key(KEY), format!("{widths:?}"), known));
    }
    config.insert("intermediate_size".to_owned(), width.into());
    config.insert("use_double_wide_mlp".to_owned(), double.into());
    Ok(())
}

#[derive(Deserialize)]
struct OwnKeys {
    vocab_size_per_layer_input: usize,
    /// 0: no per-layer inputs.
    hidden_size_per_layer_input: usize,
    pad_token_id: Option<u32>,
    global_head_dim: usize,
    num_global_key_value_heads: Option<usize>,
    per_layer_config: Option<Map<String, Value>>,
    #[serde(default)]
    attention_k_eq_v: bool,
    #[serde(default)]
    num_kv_shared_layers: usize,
    #[serde(default)]
    use_double_wide_mlp: bool,
    #[serde(default)]
    enable_moe_block: bool,
    num_experts: Option<usize>,
    top_k_experts: Option<usize>,
    moe_intermediate_size: Option<usize>,
}

/// Overrides of one layer's heads.
#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields)]
struct Heads {
    head_dim: Option<usize>,
    num_key_value_heads: Option<usize>,
}

/// One layer in this many has full attention; the last always has.
const PATTERN: usize = 6;

fn spec(config: &ModelConfig) -> Result<DecoderSpec> {
    let (keys, own) = (config.read::<Keys>()?, config.read::<OwnKeys>()?);
    if config.keys.get("rope_parameters").is_some_and(Value::is_null) {
        return Err(invalid("rope_parameters", "null", "absent, or an object"));
    }
    let activation = activation("hidden_activation", &keys.hidden_activation)?;
    let ropes = RopesByType::from_config(config, gemma3::THETAS)?;
    refuse_bidirectional(config)?;
    let mut spec = gemma(&config.without_rope(), &keys)?;
    attention_layers(config, &own, &mut spec)?;
    spec.bidirectional = BidirectionalLayers::Sliding;
    ropes.apply(&mut spec)?;
    if own.num_kv_shared_layers > 0 {
        share_key_values(&mut spec, own.num_kv_shared_layers)?;
    }
    feed_forward(config, &own, activation, &mut spec)?;
    for layer in &mut spec.layers {
        layer.scalar = LayerScalar::Present;
    }
    if own.hidden_size_per_layer_input > 0 {
        spec.per_layer_inputs = Some(per_layer_inputs(config, &own, activation)?);
    }
    Ok(spec)
}

/// Sets what differs from one feed-forward block for all layers: twice the width where keys and values are
/// shared, and experts.
fn feed_forward(
    config: &ModelConfig,
    own: &OwnKeys,
    activation: Activation,
    spec: &mut DecoderSpec,
) -> Result<()> {
    if own.use_double_wide_mlp {
        let first = spec.layers.len() - own.num_kv_shared_layers;
        for layer in &mut spec.layers[first..] {
            layer.mlp = geglu(2 * config.intermediate_size, activation, None);
        }
    }
    if own.enable_moe_block {
        let experts = expert_spec(config, own, activation)?;
        for layer in &mut spec.layers {
            if let Mlp::Gated(gated) = layer.mlp {
                layer.mlp = Mlp::DenseAndMoe(gated, experts.clone(), DenseBranch::OwnNorms);
            }
        }
    }
    Ok(())
}

fn expert_spec(config: &ModelConfig, own: &OwnKeys, activation: Activation) -> Result<ExpertsSpec> {
    let keys = ExpertKeys {
        num_experts: "num_experts",
        top_k: "top_k_experts",
        intermediate_size: "moe_intermediate_size",
    };
    let given = |key, size: Option<usize>| size.ok_or_else(|| invalid(key, "absent", "a number"));
    let experts = ExpertsSpec {
        num_experts: given(keys.num_experts, own.num_experts)?,
        top_k: given(keys.top_k, own.top_k_experts)?,
        intermediate_size: given(keys.intermediate_size, own.moe_intermediate_size)?,
        activation,
        bias: Bias::Absent,
        router: RouterSpec::softmax(true),
    };
    experts.check(keys, config.hidden_size)?;
    Ok(experts)
}

fn attention_layers(config: &ModelConfig, own: &OwnKeys, spec: &mut DecoderSpec) -> Result<()> {
    let mut windows = windows(config, config.sliding_window, |layer| !(layer + 1).is_multiple_of(PATTERN))?;
    if let Some(last) = windows.last_mut() {
        *last = Window::Full;
    }
    for (layer, (attention, window)) in spec.attention_mut().zip(windows).enumerate() {
        attention.qk_norm = QkNorm::PerHead;
        attention.window = window;
        attention.kv_source = match window {
            Window::Full if own.attention_k_eq_v => KvSource::KeysAsValues,
            _ => KvSource::NormedValues,
        };
        let heads = heads(own, layer, window)?;
        let name = |key: &str, global: &str| match window {
            _ if own.per_layer_config.is_some() => format!("per_layer_config.{layer}.{key}"),
            Window::Full => global.to_owned(),
            Window::Sliding(_) | Window::Symmetric(_) => key.to_owned(),
        };
        let head_dim = heads.head_dim.unwrap_or(attention.head_dim);
        let num_kv_heads = heads.num_key_value_heads.unwrap_or(attention.num_kv_heads);
        attention.head_dim = size(&name("head_dim", "global_head_dim"), head_dim)?;
        attention.num_kv_heads =
            size(&name("num_key_value_heads", "num_global_key_value_heads"), num_kv_heads)?;
        if !head_dim.is_multiple_of(2) {
            let expected = "an even number, whose halves RoPE rotates";
            return Err(invalid(&name("head_dim", "global_head_dim"), head_dim, expected));
        }
        if !attention.num_heads.is_multiple_of(num_kv_heads) {
            let expected = format!("a divisor of num_attention_heads = {}", attention.num_heads);
            let key = name("num_key_value_heads", "num_global_key_value_heads");
            return Err(invalid(&key, num_kv_heads, expected));
        }
    }
    Ok(())
}

/// Returns a layer's head overrides: from `per_layer_config`, which transformers writes, or from the keys of
/// published files, which apply to all full-attention layers.
fn heads(own: &OwnKeys, layer: usize, window: Window) -> Result<Heads> {
    if let Some(layers) = &own.per_layer_config {
        let key = format!("per_layer_config.{layer}");
        let Some(heads) = layers.get(&layer.to_string()) else { return Ok(Heads::default()) };
        return Heads::deserialize(heads)
            .map_err(|_| unsupported(&key, heads, "numbers under head_dim and num_key_value_heads"));
    }
    Ok(match window {
        Window::Sliding(_) | Window::Symmetric(_) => Heads::default(),
        Window::Full => Heads {
            head_dim: Some(own.global_head_dim),
            num_key_value_heads: own.num_global_key_value_heads.filter(|_| own.attention_k_eq_v),
        },
    })
}

fn per_layer_inputs(config: &ModelConfig, own: &OwnKeys, activation: Activation) -> Result<PerLayerInputs> {
    let vocab_size = size("vocab_size_per_layer_input", own.vocab_size_per_layer_input)?;
    if vocab_size < config.vocab_size {
        let expected = format!("at least vocab_size = {}", config.vocab_size);
        return Err(invalid("vocab_size_per_layer_input", vocab_size, expected));
    }
    let padding = own.pad_token_id.unwrap_or(0);
    if padding as usize >= config.vocab_size {
        return Err(invalid(
            "pad_token_id",
            padding,
            format!("less than vocab_size = {}", config.vocab_size),
        ));
    }
    Ok(PerLayerInputs {
        vocab_size,
        size: size("hidden_size_per_layer_input", own.hidden_size_per_layer_input)?,
        of_embeddings: padding,
        activation,
    })
}

fn weight_name(param: Param) -> String {
    match param {
        Param::Layer(layer, LayerParam::Router(_)) => format!("model.layers.{layer}.router.proj.weight"),
        other => gemma2::weight_name(other),
    }
}

fn locations(spec: &DecoderSpec, param: Param) -> Vec<TensorLocation> {
    expert_tensors::fused(spec, param, ["experts.gate_up_proj", "experts.down_proj"])
}

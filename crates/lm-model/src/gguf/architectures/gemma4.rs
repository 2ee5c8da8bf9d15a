//! Gemma 4.

use lm_formats::{Error, GgufEntry, Result};
use serde_json::{Map, Value, json};

use super::super::config::layer_types;
use super::super::description::Description;
use super::super::rope::{Scaling, scaling};
use super::super::write::Settings;
use super::gemma::NORMS;
use super::gemma3n::{PER_LAYER_INPUTS, per_layer_vocabulary, put_windows};
use super::{EXPERTS, GgufArchitecture, TensorNames};
use crate::config::ModelConfig;
use crate::spec::{DecoderSpec, Mixer, RopeScaling, RopeSpec, Window};

pub(super) const GEMMA4: GgufArchitecture = GgufArchitecture {
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
    rope,
    more,
    write,
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
/// Frequency divisor of pairs that are not rotated, in place of infinity.
const UNROTATED_DIVISOR: f32 = 1e30;

fn write(_: &ModelConfig, spec: &DecoderSpec, settings: &mut Settings) -> Result<()> {
    put_windows(spec, settings);
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
        let divisor = |pair| if pair < *pairs { 1.0 } else { UNROTATED_DIVISOR };
        settings.put_vector("rope_freqs.weight", (0..rotary_dim / 2).map(divisor).collect());
    }
    Ok(())
}

fn more(model: &Description<'_>, config: &mut Map<String, Value>) -> Result<()> {
    let slides = layer_types(model, config, 6)?;
    heads(model, config, &slides)?;
    feed_forward(model, config)?;
    per_layer_vocabulary(model, config);
    let padding = model.metadata.size("tokenizer.ggml.padding_token_id")?;
    config.extend(padding.map(|id| ("pad_token_id".to_owned(), id.into())));
    let experts = model.size("expert_count")?.is_some_and(|experts| experts > 0);
    config.insert("enable_moe_block".to_owned(), experts.into());
    Ok(())
}

/// Converts the heads: full-attention layers have wider and possibly fewer ones; without value projections, keys are the values.
fn heads(model: &Description<'_>, config: &mut Map<String, Value>, slides: &[bool]) -> Result<()> {
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

/// Converts RoPE: rotated pairs of a full-attention layer's head have the divisor 1, the others nearly infinity.
fn rope(model: &Description<'_>, config: &mut Map<String, Value>) -> Result<()> {
    const DIVISORS: &str = "rope_freqs.weight";
    for [rotated, head_dim] in [
        ["rope.dimension_count", "attention.key_length"],
        ["rope.dimension_count_swa", "attention.key_length_swa"],
        ["attention.value_length_swa", "attention.key_length_swa"],
    ] {
        if let Some(elements) = model.size(rotated)?.filter(|&n| model.size(head_dim).ok() != Some(Some(n))) {
            let known = format!("as many as {}", model.key(head_dim));
            return Err(model.metadata.unsupported(&model.key(rotated), elements, known));
        }
    }
    if scaling(model)? != Scaling::None {
        return Err(model.metadata.unsupported(&model.key("rope.scaling"), "there", "none"));
    }
    let missing =
        || Error::MissingTensor { location: model.metadata.file().to_owned(), tensor: DIVISORS.to_owned() };
    let divisors = model.vector(DIVISORS)?.ok_or_else(missing)?;
    let rotated = divisors.iter().take_while(|&&divisor| divisor == 1.0).count();
    if divisors.len().checked_mul(2) != Some(model.head_dim()?) {
        let expected = format!("half of {}", model.key("attention.key_length"));
        return Err(model.metadata.invalid(DIVISORS, format!("{} numbers", divisors.len()), expected));
    }
    if let Some(other) =
        divisors[rotated..].iter().find(|&&divisor| divisor < UNROTATED_DIVISOR || divisor.is_nan())
    {
        return Err(model.metadata.unsupported(DIVISORS, other, "ones, then 1e30"));
    }
    let mut fraction = rotated as f64 / divisors.len() as f64;
    if ((fraction * divisors.len() as f64) as usize) < rotated {
        fraction = fraction.next_up();
    }
    let theta = |key| Ok::<_, Error>(model.json(key)?.unwrap_or_else(|| json!(10_000.0)));
    config.insert(
        "rope_parameters".to_owned(),
        json!({
            "full_attention": {
                "rope_type": "proportional",
                "partial_rotary_factor": fraction,
                "rope_theta": theta("rope.freq_base")?,
            },
            "sliding_attention": {"rope_type": "default", "rope_theta": theta("rope.freq_base_swa")?},
        }),
    );
    Ok(())
}

/// Converts the feed-forward widths: layers that share keys and values may have twice the width.
fn feed_forward(model: &Description<'_>, config: &mut Map<String, Value>) -> Result<()> {
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

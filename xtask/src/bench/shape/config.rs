//! `config.json` of a shape.

use serde_json::{Value, json};

use super::{Family, IMAGE_TOKENS, Shape, Tower};

pub(super) fn of_shape(shape: &Shape) -> Value {
    let mut config = json!({
        "num_hidden_layers": shape.layers,
        "hidden_size": shape.hidden,
        "num_attention_heads": shape.heads,
        "num_key_value_heads": shape.kv_heads,
        "head_dim": shape.head_dim,
        "intermediate_size": shape.intermediate,
        "vocab_size": shape.vocab,
        "max_position_embeddings": shape.context,
        "rope_theta": shape.rope_theta,
        "rms_norm_eps": 1e-6,
        "hidden_act": "silu",
        "tie_word_embeddings": true,
        "attention_bias": false,
        "torch_dtype": "bfloat16",
        "eos_token_id": 0,
    });
    let own = of_family(shape);
    for (key, value) in own.as_object().into_iter().flatten() {
        config[key] = value.clone();
    }
    match shape.family {
        Family::SmolVlm(tower) => with_tower(config, tower, shape.vocab - IMAGE_TOKENS.len()),
        _ => config,
    }
}

/// The outer config of a decoder's and a tower's.
fn with_tower(text: Value, tower: Tower, image_token: usize) -> Value {
    json!({
        "model_type": "smolvlm",
        "image_token_id": image_token,
        "scale_factor": tower.scale,
        "tie_word_embeddings": true,
        "torch_dtype": "bfloat16",
        "text_config": text,
        "vision_config": {
            "model_type": "smolvlm_vision",
            "hidden_size": tower.hidden,
            "image_size": tower.image,
            "intermediate_size": tower.intermediate,
            "num_attention_heads": tower.heads,
            "num_hidden_layers": tower.layers,
            "patch_size": tower.patch,
        },
    })
}

/// `preprocessor_config.json`: images are shown in one view.
pub(super) fn image_processor(tower: Tower) -> Value {
    json!({
        "image_processor_type": "SmolVLMImageProcessor",
        "do_image_splitting": false,
        "size": {"longest_edge": tower.image},
        "max_image_size": {"longest_edge": tower.image},
        "image_mean": [0.5, 0.5, 0.5],
        "image_std": [0.5, 0.5, 0.5],
    })
}

/// Architecture-specific keys.
fn of_family(shape: &Shape) -> Value {
    match shape.family {
        Family::Gemma3 { window, full_every } => json!({
            "model_type": "gemma3_text",
            "hidden_activation": "gelu_pytorch_tanh",
            "query_pre_attn_scalar": shape.head_dim,
            "sliding_window": window,
            "sliding_window_pattern": full_every,
            "rope_local_base_freq": 10_000.0,
        }),
        Family::GptOss(experts) => json!({
            "model_type": "gpt_oss",
            "attention_bias": true,
            "num_local_experts": experts.count,
            "num_experts_per_tok": experts.per_row,
            "quantization_config": {"quant_method": "mxfp4"},
        }),
        Family::Lfm2 { taps, attention } => json!({
            "model_type": "lfm2",
            "norm_eps": 1e-6,
            "block_auto_adjust_ff_dim": false,
            "full_attn_idxs": attention,
            "conv_L_cache": taps,
        }),
        Family::Llama | Family::SmolVlm(_) => json!({"model_type": "llama"}),
        Family::Qwen3 => json!({"model_type": "qwen3"}),
        Family::Qwen3Moe(experts) => json!({
            "model_type": "qwen3_moe",
            "num_experts": experts.count,
            "num_experts_per_tok": experts.per_row,
            "moe_intermediate_size": shape.intermediate,
            "norm_topk_prob": true,
        }),
    }
}

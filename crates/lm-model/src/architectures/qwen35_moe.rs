//! Qwen3.5 MoE, the text model: Qwen3.5 with experts and a gated shared expert in place of the feed-forward
//! blocks. Source: `Qwen3_5MoeForCausalLM` of transformers 5.23; `config.json` of Qwen/Qwen3.5-35B-A3B.

use lm_formats::Result;

use super::{Architecture, qwen2_moe, qwen3_5};
use crate::config::ModelConfig;
use crate::gguf::{EXPERTS, GgufArchitecture, SHARED_EXPERT};
use crate::spec::DecoderSpec;
use crate::spec::expert_tensors::{self, PROJECTIONS};

pub(super) const ARCHITECTURE: Architecture = Architecture {
    model_types: &["qwen3_5_moe_text"],
    goldens: &["qwen3_5-moe-tiny", "qwen3_5-moe-tiny-odd", "qwen3_5-moe-tiny-vision"],
    spec,
    locations: |spec, param| {
        let fused = expert_tensors::fused(spec, param, ["mlp.experts.gate_up_proj", "mlp.experts.down_proj"]);
        [fused, expert_tensors::one_tensor_each(spec, param, "mlp.experts", PROJECTIONS)].concat()
    },
    gguf: &[&GGUF],
    defaults: r#"{
        "vocab_size": 248320, "hidden_size": 2048, "intermediate_size": 512, "num_hidden_layers": 40,
        "num_attention_heads": 16, "num_key_value_heads": 2, "head_dim": 256, "max_position_embeddings": 32768,
        "rms_norm_eps": 1e-6, "partial_rotary_factor": 0.25, "full_attention_interval": 4, "attn_output_gate": true,
        "linear_conv_kernel_dim": 4, "linear_key_head_dim": 128, "linear_num_key_heads": 16,
        "linear_num_value_heads": 32, "linear_value_head_dim": 128, "linear_head_order": "grouped",
        "num_experts": 256, "num_experts_per_tok": 8, "moe_intermediate_size": 512,
        "shared_expert_intermediate_size": 512
    }"#,
    ..qwen3_5::ARCHITECTURE
};

const GGUF: GgufArchitecture = GgufArchitecture {
    name: "qwen35moe",
    model_type: "qwen3_5_moe_text",
    keys: &[
        ("expert_count", "num_experts"),
        ("expert_feed_forward_length", "moe_intermediate_size"),
        ("expert_shared_feed_forward_length", "shared_expert_intermediate_size"),
        ("expert_used_count", "num_experts_per_tok"),
        ("full_attention_interval", "full_attention_interval"),
        ("ssm.conv_kernel", "linear_conv_kernel_dim"),
        ("ssm.group_count", "linear_num_key_heads"),
        ("ssm.state_size", "linear_key_head_dim"),
        ("ssm.time_step_rank", "linear_num_value_heads"),
    ],
    tensors: &[EXPERTS, SHARED_EXPERT, qwen3_5::TENSORS, qwen3_5::STEPS, &[("ffn_gate_inp", "mlp.gate")]],
    ..qwen3_5::GGUF
};

fn spec(config: &ModelConfig) -> Result<DecoderSpec> {
    let mut spec = qwen3_5::spec(config)?;
    let mut config = config.clone();
    // Not keys of Qwen3.5, whose layers all have experts with normed weights.
    config.keys.remove("decoder_sparse_step");
    config.keys.remove("mlp_only_layers");
    config.keys.insert("norm_topk_prob".to_owned(), true.into());
    qwen2_moe::add_experts(&config, &mut spec)?;
    Ok(spec)
}

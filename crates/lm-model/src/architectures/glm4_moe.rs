//! GLM-4.5: GQA with partial rotary and optional QK norm; experts with a sigmoid router and a shared expert
//! in all layers but the first. Source: GLM-4.5 (arXiv 2508.06471); `config.json` of zai-org/GLM-4.5-Air;
//! `modeling_glm4_moe.py` and `Glm4MoeConfig` of transformers. The router is that of DeepSeek-V3 (arXiv
//! 2412.19437).

use lm_formats::{GgufEntry, Result};
use serde::Deserialize;

use super::{Architecture, BASE};
use crate::config::ModelConfig;
use crate::gguf::{EXPERTS, GgufArchitecture, SIGMOID, check_sigmoid_router};
use crate::spec::deepseek_moe::{self, RouterKind};
use crate::spec::expert_tensors::{self, PROJECTIONS};
use crate::spec::{Bias, DecoderSpec, QkNorm};

pub(super) const ARCHITECTURE: Architecture = Architecture {
    model_types: &["glm4_moe"],
    goldens: &["glm4-moe-tiny", "glm4-moe-tiny-groups", "glm4-moe-tiny-plain"],
    spec,
    weight_name: deepseek_moe::weight_name,
    locations: |spec, param| expert_tensors::one_tensor_each(spec, param, "mlp.experts", PROJECTIONS),
    layers_ahead: true,
    gguf: &[&GGUF],
    defaults: r#"{
        "vocab_size": 151552, "hidden_size": 4096, "intermediate_size": 10944, "num_hidden_layers": 46,
        "num_attention_heads": 96, "num_key_value_heads": 8, "max_position_embeddings": 131072,
        "rms_norm_eps": 1e-5, "partial_rotary_factor": 0.5, "use_qk_norm": false, "first_k_dense_replace": 1,
        "moe_intermediate_size": 1408, "n_routed_experts": 128, "n_shared_experts": 1, "num_experts_per_tok": 8,
        "n_group": 1, "topk_group": 1, "norm_topk_prob": true, "routed_scaling_factor": 1.0
    }"#,
    ..BASE
};

const GGUF: GgufArchitecture = GgufArchitecture {
    keys: &[
        ("expert_count", "n_routed_experts"),
        ("expert_feed_forward_length", "moe_intermediate_size"),
        ("expert_group_count", "n_group"),
        ("expert_group_used_count", "topk_group"),
        ("expert_shared_count", "n_shared_experts"),
        ("expert_used_count", "num_experts_per_tok"),
        ("expert_weights_norm", "norm_topk_prob"),
        ("expert_weights_scale", "routed_scaling_factor"),
        ("leading_dense_block_count", "first_k_dense_replace"),
    ],
    read: |model, config| {
        check_sigmoid_router(model)?;
        config.insert("attention_bias".to_owned(), model.tensor("blk.0.attn_q.bias").is_some().into());
        config.insert("use_qk_norm".to_owned(), model.tensor("blk.0.attn_q_norm.weight").is_some().into());
        Ok(())
    },
    write: |_, _, settings| {
        settings.put("expert_gating_func", GgufEntry::Size(SIGMOID));
        Ok(())
    },
    tensors: &[
        EXPERTS,
        &[
            ("exp_probs_b.bias", "mlp.gate.e_score_correction_bias"),
            ("ffn_down_shexp", "mlp.shared_experts.down_proj"),
            ("ffn_gate_inp", "mlp.gate"),
            ("ffn_gate_shexp", "mlp.shared_experts.gate_proj"),
            ("ffn_up_shexp", "mlp.shared_experts.up_proj"),
            ("post_attention_norm", "post_attention_layernorm"),
        ],
    ],
    ..GgufArchitecture::new("glm4moe", "glm4_moe")
};

fn spec(config: &ModelConfig) -> Result<DecoderSpec> {
    #[derive(Deserialize)]
    struct Keys {
        use_qk_norm: bool,
    }
    let Keys { use_qk_norm } = config.read()?;
    let mut spec = DecoderSpec::partial_rotary(&ModelConfig { mlp_bias: false, ..config.clone() })?; // Not a key of GLM-4.5.
    for attention in spec.attention_mut() {
        attention.output_bias = Bias::Absent;
        attention.qk_norm = if use_qk_norm { QkNorm::PerHead } else { QkNorm::Absent };
    }
    deepseek_moe::add_experts(config, RouterKind::Sigmoid, &mut spec)?;
    Ok(spec)
}

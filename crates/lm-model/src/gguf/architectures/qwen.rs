//! Qwen 2 and 3.

use super::{EXPERTS, GgufArchitecture};

pub(super) const QWEN2: GgufArchitecture = GgufArchitecture::new("qwen2", "qwen2");

pub(super) const QWEN3: GgufArchitecture = GgufArchitecture {
    more: |model, config| {
        let bias = model.tensor("blk.0.attn_q.bias").is_some();
        config.insert("attention_bias".to_owned(), bias.into());
        Ok(())
    },
    ..GgufArchitecture::new("qwen3", "qwen3")
};

pub(super) const QWEN3MOE: GgufArchitecture = GgufArchitecture {
    keys: &[
        ("expert_count", "num_experts"),
        ("expert_feed_forward_length", "moe_intermediate_size"),
        ("expert_used_count", "num_experts_per_tok"),
    ],
    more: |_, config| {
        // True of all checkpoints, hence not in the files.
        config.insert("norm_topk_prob".to_owned(), true.into());
        Ok(())
    },
    tensors: &[EXPERTS, &[("ffn_gate_inp", "mlp.gate")]],
    ..GgufArchitecture::new("qwen3moe", "qwen3_moe")
};

//! GPT-OSS.

use super::super::config::layer_types;
use super::{EXPERTS, GgufArchitecture};

pub(super) const GPT_OSS: GgufArchitecture = GgufArchitecture {
    keys: &[
        ("attention.sliding_window", "sliding_window"),
        ("expert_count", "num_local_experts"),
        ("expert_feed_forward_length", "intermediate_size"),
        ("expert_used_count", "num_experts_per_tok"),
    ],
    more: |model, config| {
        layer_types(model, config, 2)?;
        // True of all checkpoints; files do not contain it.
        if let Some(rope) = config.get_mut("rope_parameters").and_then(|rope| rope.as_object_mut()) {
            rope.insert("truncate".to_owned(), false.into());
        }
        Ok(())
    },
    tensors: &[
        EXPERTS,
        &[
            ("attn_sinks.weight", "self_attn.sinks"),
            ("ffn_gate_inp", "mlp.router"),
            ("post_attention_norm", "post_attention_layernorm"),
        ],
    ],
    ..GgufArchitecture::new("gpt-oss", "gpt_oss")
};

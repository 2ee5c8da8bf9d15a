//! Phi 3 and 4.

use super::GgufArchitecture;

pub(super) const PHI3: GgufArchitecture = GgufArchitecture {
    keys: &[
        ("attention.sliding_window", "sliding_window"),
        ("rope.scaling.original_context_length", "original_max_position_embeddings"),
    ],
    more: |model, config| {
        // The key takes precedence over the value among the RoPE parameters, and has a default.
        if !model.has("rope.scaling.original_context_length") {
            let context = model.required_size("context_length")?;
            config.insert("original_max_position_embeddings".to_owned(), context.into());
        }
        // 0 means no sliding window.
        if config.get("sliding_window").is_some_and(|window| *window == 0) {
            config.remove("sliding_window");
        }
        Ok(())
    },
    tensors: &[&[("attn_qkv", "self_attn.qkv_proj"), ("ffn_up", "mlp.gate_up_proj")]],
    ..GgufArchitecture::new("phi3", "phi3")
};

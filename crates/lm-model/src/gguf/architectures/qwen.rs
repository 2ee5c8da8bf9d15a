//! Qwen 2 and 3.

use super::GgufArchitecture;

pub(super) const QWEN2: GgufArchitecture = GgufArchitecture::new("qwen2", "qwen2");

pub(super) const QWEN3: GgufArchitecture = GgufArchitecture {
    more: |model, config| {
        let bias = model.tensor("blk.0.attn_q.bias").is_some();
        config.insert("attention_bias".to_owned(), bias.into());
        Ok(())
    },
    ..GgufArchitecture::new("qwen3", "qwen3")
};

//! Llama dense decoder: pre-norm, GQA, SwiGLU, half-split RoPE with Llama 3 scaling, optional biases. The
//! text model of SmolVLM and Idefics 3 checkpoints. Source: The Llama 3 Herd of Models (arXiv 2407.21783);
//! `config.json` of meta-llama/Llama-3.2-1B.

use super::{Architecture, BASE};
use crate::gguf::{EXPERTS, GgufArchitecture, RopeLayout, put_biases};

pub(super) const ARCHITECTURE: Architecture = Architecture {
    model_types: &["llama"],
    goldens: &[
        "llama-tiny",
        "llama-tiny-bias",
        "llama-tiny-dynamic",
        "llama-tiny-relu2",
        "llama-tiny-vision",
    ],
    ignored_prefixes: &["model.connector.", "model.vision_model."],
    gguf: &[&GGUF],
    ..BASE
};

/// Name of files of Llama, of Mistral, and of Mixtral where there are experts.
pub(super) const GGUF: GgufArchitecture = GgufArchitecture {
    keys: &[("expert_count", NUM_EXPERTS), ("expert_used_count", "num_experts_per_tok")],
    rope_layout: RopeLayout::Interleaved,
    read: |model, config| {
        put_biases(model, config);
        if config.get(NUM_EXPERTS).is_some_and(|experts| *experts != 0) {
            config.insert("model_type".to_owned(), "mixtral".into());
        }
        Ok(())
    },
    tensors: &[EXPERTS, &[("ffn_gate_inp", "mlp.gate")]],
    ..GgufArchitecture::new("llama", "llama")
};

const NUM_EXPERTS: &str = "num_local_experts";

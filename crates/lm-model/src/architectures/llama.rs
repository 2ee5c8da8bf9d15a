//! Llama dense decoder: pre-norm, GQA, SwiGLU, half-split RoPE with Llama 3 scaling, optional biases. The
//! text model of SmolVLM and Idefics 3 checkpoints. Source: The Llama 3 Herd of Models (arXiv 2407.21783);
//! `config.json` of meta-llama/Llama-3.2-1B.

use super::{Architecture, BASE};
use crate::gguf::{GgufArchitecture, RopeLayout, put_biases};

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

pub(super) const GGUF: GgufArchitecture = GgufArchitecture {
    rope_layout: RopeLayout::Interleaved,
    read: |model, config| {
        put_biases(model, config);
        Ok(())
    },
    ..GgufArchitecture::new("llama", "llama")
};

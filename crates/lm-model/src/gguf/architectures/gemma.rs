//! Gemma 2 and 3.
//!
//! Files omit values that all checkpoints of a generation share, and the attention scale. One size of each generation derives the
//! scale from `hidden_size / num_attention_heads` in place of `head_dim`; llama.cpp recognises that size by its number of layers.

use lm_formats::Result;
use serde_json::{Map, Value};

use super::super::config::layer_types;
use super::super::description::Description;
use super::super::rope::{self, SlidingTheta};
use super::{GgufArchitecture, TensorNames};
use crate::weights::StoredValues;

/// Norms of all generations.
pub(super) const NORMS: TensorNames = &[
    ("ffn_norm", "pre_feedforward_layernorm"),
    ("post_attention_norm", "post_attention_layernorm"),
    ("post_ffw_norm", "post_feedforward_layernorm"),
];
/// Norms whose weights are stored plus one in the file; Gemma 2 has no QK norm.
const NORMS_PLUS_ONE: &[(&str, StoredValues)] = &[
    ("attn_k_norm.weight", StoredValues::PlusOne),
    ("attn_norm.weight", StoredValues::PlusOne),
    ("attn_q_norm.weight", StoredValues::PlusOne),
    ("ffn_norm.weight", StoredValues::PlusOne),
    ("output_norm.weight", StoredValues::PlusOne),
    ("post_attention_norm.weight", StoredValues::PlusOne),
    ("post_ffw_norm.weight", StoredValues::PlusOne),
];
/// Layers of Gemma 2 27B.
const GEMMA2_27B: usize = 46;
/// Layers of Gemma 3 27B.
const GEMMA3_27B: usize = 62;

pub(super) const GEMMA2: GgufArchitecture = GgufArchitecture {
    keys: &[
        ("attention.sliding_window", "sliding_window"),
        ("attn_logit_softcapping", "attn_logit_softcapping"),
        ("final_logit_softcapping", "final_logit_softcapping"),
    ],
    more: |model, config| {
        layer_types(model, config, 2)?;
        shared(model, config, GEMMA2_27B)
    },
    tensors: &[NORMS],
    values: NORMS_PLUS_ONE,
    ..GgufArchitecture::new("gemma2", "gemma2")
};

pub(super) const GEMMA3: GgufArchitecture = GgufArchitecture {
    keys: &[
        ("attention.sliding_window", "sliding_window"),
        ("final_logit_softcapping", "final_logit_softcapping"),
        ("rope.freq_base_swa", "rope_local_base_freq"),
    ],
    rope: |model, config| rope::by_layer_type(model, config, SlidingTheta::Default),
    more: |model, config| {
        layer_types(model, config, 6)?;
        shared(model, config, GEMMA3_27B)
    },
    tensors: &[NORMS],
    values: NORMS_PLUS_ONE,
    ..GgufArchitecture::new("gemma3", "gemma3_text")
};

fn shared(model: &Description<'_>, config: &mut Map<String, Value>, layers_27b: usize) -> Result<()> {
    let (heads, head_dim) = (model.required_size("attention.head_count")?, model.head_dim()?);
    let scalar = match model.num_layers()? {
        layers if layers == layers_27b && heads > 0 => {
            model.required_size("embedding_length")? as f64 / heads as f64
        }
        _ => head_dim as f64,
    };
    config.insert("query_pre_attn_scalar".to_owned(), scalar.into());
    config.insert("hidden_activation".to_owned(), "gelu_pytorch_tanh".into());
    Ok(())
}

//! Rules between the metadata of GGUF files and `config.json`, for the rows of [`crate::architectures`].
//!
//! Source: the converter of llama.cpp (`conversion/` of release 0.3.36 of the package `llama-cpp-python`).

mod clip;
mod config_keys;
mod description;
mod mamba2;
mod projector;
pub(crate) mod rope;
pub(crate) mod settings;

use lm_formats::Result;
use serde_json::{Map, Value};

use crate::checkpoint::StoredValues;
use crate::config::ModelConfig;
use crate::spec::{DecoderSpec, Direction};

pub(crate) use self::clip::Clip;
pub(crate) use self::config_keys::{
    GATING, SIGMOID, SOFTMAX, check_sigmoid_router, layer_types, put_biases, put_classifier, put_kv_heads,
    put_layer_types, put_size_of_some, rows,
};
pub(crate) use self::description::{Description, decimal};
pub(crate) use self::mamba2::{MAMBA2_TENSORS, has_tensor, put_inner_size};
pub(crate) use self::projector::{GgufProjector, Numbering, PatchOrder, ProjectorConfig, TensorList};
pub(crate) use self::settings::Settings;

/// Settings of all architectures: GGUF key, config.json key.
pub(crate) const SHARED: &[(&str, &str)] = &[
    ("attention.head_count", "num_attention_heads"),
    ("attention.head_count_kv", "num_key_value_heads"),
    ("attention.layer_norm_rms_epsilon", "rms_norm_eps"),
    ("context_length", "max_position_embeddings"),
    ("embedding_length", "hidden_size"),
    ("feed_forward_length", "intermediate_size"),
    ("rope.freq_base", "rope_theta"),
];

/// Key of the kind of a file.
pub(crate) const FILE_TYPE: &str = "general.type";
/// Its value for models.
pub(crate) const MODEL: &str = "model";

/// Tensor names in the file and in the model; those of layers without the layer number. A row without suffix
/// (`.weight`, `.bias`) applies to all suffixes.
pub(crate) type TensorNames = &'static [(&'static str, &'static str)];

/// Reading and writing rules for the files of one architecture.
#[derive(Debug)]
pub(crate) struct GgufArchitecture {
    /// `general.architecture`.
    pub(crate) name: &'static str,
    /// `model_type` of the config.json that the metadata is read as.
    pub(crate) model_type: &'static str,
    /// `model_type`s that are written in this form; all others are written in the first form of their
    /// architecture.
    pub(crate) written_for: &'static [&'static str],
    /// Settings beyond the shared ones: GGUF key, config.json key.
    pub(crate) keys: &'static [(&'static str, &'static str)],
    /// Writes the RoPE parameters.
    pub(crate) rope: fn(&Description<'_>, &mut Map<String, Value>) -> Result<()>,
    /// Converts settings that are not just renamed.
    pub(crate) read: fn(&Description<'_>, &mut Map<String, Value>) -> Result<()>,
    /// Inverse of `read`, for writing a file.
    pub(crate) write: fn(&ModelConfig, &DecoderSpec, &mut Settings) -> Result<()>,
    /// Tensors beyond the shared ones, or with other names.
    pub(crate) tensors: &'static [TensorNames],
    /// Row order of queries and keys.
    pub(crate) rope_layout: RopeLayout,
    /// Tensors whose stored values are transformed; those of layers without the layer number.
    pub(crate) values: &'static [(&'static str, StoredValues)],
    /// Direction of attention, which files state under `attention.causal`.
    pub(crate) direction: Direction,
}

/// Row order of queries and keys in a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum RopeLayout {
    /// The model's order (half-split RoPE): the two elements of a pair are half a head apart.
    HalfSplit,
    /// Interleaved: the two elements of a pair are adjacent.
    Interleaved,
}

/// Projections of experts, one tensor for all experts of a layer.
pub(crate) const EXPERTS: TensorNames = &[
    ("ffn_down_exps", "mlp.experts.down_proj"),
    ("ffn_gate_exps", "mlp.experts.gate_proj"),
    ("ffn_up_exps", "mlp.experts.up_proj"),
];

/// Shared experts and their gate.
pub(crate) const SHARED_EXPERT: TensorNames = &[
    ("ffn_down_shexp", "mlp.shared_expert.down_proj"),
    ("ffn_gate_inp_shexp", "mlp.shared_expert_gate"),
    ("ffn_gate_shexp", "mlp.shared_expert.gate_proj"),
    ("ffn_up_shexp", "mlp.shared_expert.up_proj"),
];

impl GgufArchitecture {
    /// An architecture that differs from Hugging Face's files in names only.
    pub(crate) const fn new(name: &'static str, model_type: &'static str) -> Self {
        Self {
            name,
            model_type,
            written_for: &[],
            keys: &[],
            rope: rope::of_all_layers,
            read: |_, _| Ok(()),
            write: |_, _, _| Ok(()),
            tensors: &[],
            rope_layout: RopeLayout::HalfSplit,
            values: &[],
            direction: Direction::Causal,
        }
    }
}

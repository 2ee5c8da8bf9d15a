//! GGUF names of architectures and tensors, and the transformations of values: one small table each.
//!
//! Source: the converter of llama.cpp (`conversion/` of release 0.3.36 of the package `llama-cpp-python`).

mod gemma;
mod gemma3n;
mod gemma4;
mod gpt_oss;
mod lfm2;
mod llama;
mod phi;
mod qwen;
mod qwen35;

use lm_formats::Result;
use serde_json::{Map, Value};

use super::description::Description;
use super::rope;
use super::write::Settings;
use crate::config::{ModelConfig, unsupported};
use crate::spec::DecoderSpec;
use crate::weights::StoredValues;

/// Tensor names in the file and in the model; those of layers without the layer number. A row without suffix (`.weight`, `.bias`)
/// applies to all suffixes.
pub(super) type TensorNames = &'static [(&'static str, &'static str)];

/// Reading and writing rules for the files of one architecture.
pub(super) struct GgufArchitecture {
    /// `general.architecture`.
    pub(super) name: &'static str,
    /// `model_type` of config.json.
    pub(super) model_type: &'static str,
    /// Further values of `model_type` that files store under the same name.
    pub(super) also: &'static [&'static str],
    /// Settings beyond the shared ones: GGUF key, config.json key.
    pub(super) keys: &'static [(&'static str, &'static str)],
    /// Writes the RoPE parameters.
    pub(super) rope: fn(&Description<'_>, &mut Map<String, Value>) -> Result<()>,
    /// Converts settings that are not just renamed.
    pub(super) more: fn(&Description<'_>, &mut Map<String, Value>) -> Result<()>,
    /// Inverse of `more`, for writing a file.
    pub(super) write: fn(&ModelConfig, &DecoderSpec, &mut Settings) -> Result<()>,
    /// Tensors beyond the shared ones, or with other names.
    pub(super) tensors: &'static [TensorNames],
    /// Row order of queries and keys.
    pub(super) rope_layout: RopeLayout,
    /// Tensors whose stored values are transformed; those of layers without the layer number.
    pub(super) values: &'static [(&'static str, StoredValues)],
}

/// Row order of queries and keys in a file.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum RopeLayout {
    /// The model's order (half-split RoPE): the two elements of a pair are half a head apart.
    HalfSplit,
    /// Interleaved: the two elements of a pair are adjacent.
    Interleaved,
}

/// Projections of experts, one tensor for all experts of a layer.
const EXPERTS: TensorNames = &[
    ("ffn_down_exps", "mlp.experts.down_proj"),
    ("ffn_gate_exps", "mlp.experts.gate_proj"),
    ("ffn_up_exps", "mlp.experts.up_proj"),
];

impl GgufArchitecture {
    /// An architecture that differs from Hugging Face's files in names only.
    const fn new(name: &'static str, model_type: &'static str) -> Self {
        Self {
            name,
            model_type,
            also: &[],
            keys: &[],
            rope: rope::of_all_layers,
            more: |_, _| Ok(()),
            write: |_, _, _| Ok(()),
            tensors: &[],
            rope_layout: RopeLayout::HalfSplit,
            values: &[],
        }
    }
}

/// All architectures, in alphabetical order of their GGUF names.
const ALL: &[&GgufArchitecture] = &[
    &gemma::GEMMA2,
    &gemma::GEMMA3,
    &gemma3n::GEMMA3N,
    &gemma4::GEMMA4,
    &gpt_oss::GPT_OSS,
    &llama::GRANITE,
    &lfm2::LFM2,
    &llama::LLAMA,
    &llama::MISTRAL3,
    &llama::OLMO2,
    &phi::PHI3,
    &qwen::QWEN2,
    &qwen::QWEN3,
    &qwen35::QWEN35,
    &qwen::QWEN3MOE,
    &llama::SMOLLM3,
];

/// Returns the architecture of a file.
pub(super) fn find(model: &Description<'_>) -> Result<&'static GgufArchitecture> {
    let names = || ALL.iter().map(|row| row.name).collect::<Vec<_>>().join(", ");
    let unknown = || model.metadata.unsupported("general.architecture", model.architecture, names());
    ALL.iter().copied().find(|row| row.name == model.architecture).ok_or_else(unknown)
}

/// Returns the GGUF architecture of a `model_type`.
pub(super) fn of_model_type(model_type: &str) -> Result<&'static GgufArchitecture> {
    let types = || ALL.iter().flat_map(|row| [&[row.model_type], row.also].concat());
    let known = || types().collect::<Vec<_>>().join(", ");
    let has = |row: &&GgufArchitecture| row.model_type == model_type || row.also.contains(&model_type);
    ALL.iter().copied().find(has).ok_or_else(|| unsupported("model_type", model_type, known()))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Writers need it: readers refuse a value of another type.
    #[test]
    fn keys_have_a_type() {
        let keys = ALL.iter().flat_map(|row| row.keys).chain(super::super::config::SHARED);
        let unknown: Vec<_> =
            keys.map(|row| row.0).filter(|key| !super::super::write::is_known(key)).collect();
        assert!(unknown.is_empty(), "add to gguf/write/key_types.rs: {unknown:?}");
    }

    #[test]
    fn rows_are_sorted_and_lead_to_an_architecture() {
        assert!(ALL.is_sorted_by_key(|row| row.name));
        for row in ALL {
            let known = crate::architectures::find(row.model_type);
            assert!(known.is_ok(), "{} is {}, which is no model_type", row.name, row.model_type);
            assert!(row.also.iter().all(|also| crate::architectures::find(also).is_ok()), "{:?}", row.also);
        }
    }
}

//! What GGUF files call the architectures and their tensors, and what they change: one small table each.
//!
//! Source: the converter of llama.cpp (`conversion/` of release 0.3.36 of the package `llama-cpp-python`).

mod gemma;
mod llama;
mod phi;
mod qwen;

use serde_json::{Map, Value};

use super::description::Description;
use crate::Result;

/// How the files of one architecture are to be read.
pub(super) struct GgufArchitecture {
    /// `general.architecture`.
    pub(super) name: &'static str,
    /// `model_type` of config.json.
    pub(super) model_type: &'static str,
    /// Settings beyond the shared ones, under their keys in both files.
    pub(super) keys: &'static [(&'static str, &'static str)],
    /// Settings that are more than a new name.
    pub(super) more: fn(&Description<'_>, &mut Map<String, Value>) -> Result<()>,
    /// Tensors beyond the shared ones, or with other names: in the file, in the model; those of layers without number.
    pub(super) tensors: &'static [(&'static str, &'static str)],
    /// The order of the rows of queries and keys.
    pub(super) rope_rows: RopeRows,
    /// What norms have as weights.
    pub(super) norms: Norms,
}

/// The order of the rows of queries and keys in a file.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum RopeRows {
    /// That of the model: what RoPE turns together is half a head apart.
    Halves,
    /// What RoPE turns together follows each other.
    Pairs,
}

/// What norms have as weights in a file.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Norms {
    /// The weights of the model.
    Same,
    /// Weights that are larger by one.
    PlusOne,
}

impl GgufArchitecture {
    /// An architecture that is as in Hugging Face's files but for the names.
    const fn new(name: &'static str, model_type: &'static str) -> Self {
        Self {
            name,
            model_type,
            keys: &[],
            more: |_, _| Ok(()),
            tensors: &[],
            rope_rows: RopeRows::Halves,
            norms: Norms::Same,
        }
    }
}

/// Every architecture, in alphabetical order of the names in files.
const ALL: &[&GgufArchitecture] = &[
    &gemma::GEMMA2,
    &gemma::GEMMA3,
    &llama::GRANITE,
    &llama::LLAMA,
    &llama::MISTRAL3,
    &llama::OLMO2,
    &phi::PHI3,
    &qwen::QWEN2,
    &qwen::QWEN3,
    &qwen::QWEN3MOE,
    &llama::SMOLLM3,
];

/// The architecture of a file.
pub(super) fn find(model: &Description<'_>) -> Result<&'static GgufArchitecture> {
    let names = || ALL.iter().map(|row| row.name).collect::<Vec<_>>().join(", ");
    let unknown = || model.metadata.unsupported("general.architecture", model.architecture, names());
    ALL.iter().copied().find(|row| row.name == model.architecture).ok_or_else(unknown)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_are_sorted_and_lead_to_an_architecture() {
        assert!(ALL.is_sorted_by_key(|row| row.name));
        for row in ALL {
            let known = crate::architectures::find(row.model_type);
            assert!(known.is_ok(), "{} is {}, which is no model_type", row.name, row.model_type);
        }
    }
}

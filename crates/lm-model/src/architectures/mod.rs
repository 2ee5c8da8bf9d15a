//! The architectures that can be loaded: one small file and one row each.

mod llama;
mod qwen3;

use crate::Result;
use crate::config::{ModelConfig, unsupported};
use crate::spec::DecoderSpec;
use crate::weights::{Param, Place};

/// What tells one architecture from another.
#[derive(Debug)]
pub struct Architecture {
    /// `model_type` values of config.json.
    pub model_types: &'static [&'static str],
    /// Folders under `testdata/models/`, each with a checkpoint and logits of the reference implementation.
    pub goldens: &'static [&'static str],
    /// Reads the config.
    pub(crate) spec: fn(&ModelConfig) -> Result<DecoderSpec>,
    /// A parameter's name in a checkpoint. No two have the same.
    pub(crate) weight_name: fn(Param) -> String,
    /// Where a parameter is that is not a whole tensor of its own name.
    pub(crate) place: fn(&DecoderSpec, Param) -> Option<Place>,
    /// Ends of tensor names that checkpoints carry and the forward pass does not need.
    pub(crate) ignored_suffixes: &'static [&'static str],
}

impl Architecture {
    /// Where a parameter is in a checkpoint.
    pub(crate) fn place(&self, spec: &DecoderSpec, param: Param) -> Place {
        (self.place)(spec, param).unwrap_or_else(|| Place::whole((self.weight_name)(param)))
    }
}

/// For architectures whose parameters are whole tensors.
const WHOLE_TENSORS: fn(&DecoderSpec, Param) -> Option<Place> = |_, _| None;

/// Every architecture, in alphabetical order.
pub const ALL_ARCHITECTURES: &[&Architecture] = &[&llama::ARCHITECTURE, &qwen3::ARCHITECTURE];

/// The architecture of a `model_type`.
pub(crate) fn find(model_type: &str) -> Result<&'static Architecture> {
    let known = || ALL_ARCHITECTURES.iter().flat_map(|architecture| architecture.model_types);
    ALL_ARCHITECTURES
        .iter()
        .find(|architecture| architecture.model_types.contains(&model_type))
        .copied()
        .ok_or_else(|| unsupported("model_type", model_type, known().copied().collect::<Vec<_>>().join(", ")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_are_sorted_and_found_by_each_of_their_names() {
        let names: Vec<_> =
            ALL_ARCHITECTURES.iter().map(|architecture| architecture.model_types[0]).collect();
        assert!(names.is_sorted(), "{names:?}");
        for architecture in ALL_ARCHITECTURES {
            for name in architecture.model_types {
                assert_eq!(find(name).unwrap().goldens, architecture.goldens);
            }
        }
    }

    #[test]
    fn an_unknown_architecture_lists_the_known() {
        let error = find("gpt2").unwrap_err().to_string();
        assert_eq!(error, "config.json: `model_type` is gpt2, supported: llama, qwen3");
    }
}

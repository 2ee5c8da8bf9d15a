//! The architectures that can be loaded: one small file and one row each.

mod gemma2;
mod gemma3;
mod gemma3n;
mod gemma4;
mod gpt_oss;
mod granite;
mod lfm2;
mod llama;
mod ministral3;
mod mistral;
mod olmo2;
mod olmo3;
mod phi3;
mod qwen2;
mod qwen3;
mod qwen3_5;
mod qwen3_moe;
mod smollm3;

use serde_json::{Map, Value};

use crate::config::{ModelConfig, unsupported};
use crate::spec::{DecoderSpec, OutputHead};
use crate::weights::{Checkpoint, Param, Place};
use crate::{Error, Result};

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
    /// Where else a parameter may be than in a tensor of its own name: the first of these whose tensors are there counts,
    /// and the very first is the one that published checkpoints of floats have.
    pub(crate) places: fn(&DecoderSpec, Param) -> Vec<Place>,
    /// Ends of tensor names that checkpoints carry and the forward pass does not need.
    pub(crate) ignored_suffixes: &'static [&'static str],
    /// Beginnings of such names: the other parts of a checkpoint that can do more than text.
    pub(crate) ignored_prefixes: &'static [&'static str],
    /// A JSON object: what the reference's config class holds under keys that files leave out.
    pub(crate) defaults: &'static str,
}

impl Architecture {
    /// The keys of [`Architecture::defaults`].
    pub(crate) fn default_keys(&self) -> Result<Map<String, Value>> {
        serde_json::from_str(self.defaults)
            .map_err(|source| Error::Json { file: format!("defaults of {}", self.model_types[0]), source })
    }

    /// Whether the forward pass can do without a tensor of this name.
    pub(crate) fn ignores(&self, name: &str) -> bool {
        self.ignored_suffixes.iter().any(|suffix| name.ends_with(suffix))
            || self.ignored_prefixes.iter().any(|prefix| name.starts_with(prefix))
    }

    /// Where a parameter is in a checkpoint; where published ones have it, if it is not there.
    pub(crate) fn place(&self, spec: &DecoderSpec, param: Param, checkpoint: &Checkpoint) -> Place {
        let own = Place::whole((self.weight_name)(param));
        if checkpoint.has(&own) {
            return own;
        }
        let there = (self.places)(spec, param).into_iter().find(|place| checkpoint.has(place));
        there.unwrap_or_else(|| self.published_place(spec, param))
    }

    /// Lets the files decide between a shared head and one of its own, as transformers does: a tied one that they have with other
    /// values than the embedding's is separate.
    pub(crate) fn choose_head(&self, spec: &mut DecoderSpec, checkpoint: &Checkpoint) {
        let [head, embedding] = [Param::OutputHead, Param::Embedding].map(|param| (self.weight_name)(param));
        if spec.output_head == OutputHead::Tied && checkpoint.differ(&head, &embedding) {
            tracing::warn!(head, "`tie_word_embeddings` is passed over: the files have another output head");
            spec.output_head = OutputHead::Separate;
        }
    }

    /// Where published checkpoints of floats have a parameter.
    pub(crate) fn published_place(&self, spec: &DecoderSpec, param: Param) -> Place {
        let places = (self.places)(spec, param);
        places.into_iter().next().unwrap_or_else(|| Place::whole((self.weight_name)(param)))
    }
}

/// For architectures whose parameters are whole tensors.
const WHOLE_TENSORS: fn(&DecoderSpec, Param) -> Vec<Place> = |_, _| Vec::new();

/// Every architecture, in alphabetical order.
pub const ALL_ARCHITECTURES: &[&Architecture] = &[
    &gemma2::ARCHITECTURE,
    &gemma3::ARCHITECTURE,
    &gemma3n::ARCHITECTURE,
    &gemma4::ARCHITECTURE,
    &gpt_oss::ARCHITECTURE,
    &granite::ARCHITECTURE,
    &lfm2::ARCHITECTURE,
    &llama::ARCHITECTURE,
    &ministral3::ARCHITECTURE,
    &mistral::ARCHITECTURE,
    &olmo2::ARCHITECTURE,
    &olmo3::ARCHITECTURE,
    &phi3::ARCHITECTURE,
    &qwen2::ARCHITECTURE,
    &qwen3::ARCHITECTURE,
    &qwen3_5::ARCHITECTURE,
    &qwen3_moe::ARCHITECTURE,
    &smollm3::ARCHITECTURE,
];

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
        let known = error.strip_prefix("config.json: `model_type` is gpt2, supported: ").expect(&error);
        for architecture in ALL_ARCHITECTURES {
            assert!(architecture.model_types.iter().all(|name| known.contains(name)), "{error}");
        }
    }

    #[test]
    fn defaults_are_objects() {
        for architecture in ALL_ARCHITECTURES {
            architecture.default_keys().unwrap();
        }
    }
}

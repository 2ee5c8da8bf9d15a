//! Registry of the supported architectures: one small file and one row each.

mod apertus;
mod bamba;
mod bert;
mod cohere;
mod cohere2;
mod deepseek;
mod distilbert;
mod ernie4_5;
mod ernie4_5_moe;
mod exaone4;
mod falcon;
mod gemma;
mod gemma2;
mod gemma3;
mod gemma3n;
mod gemma4;
mod glm;
mod glm4;
mod glm4_moe;
mod glm4_moe_lite;
mod gpt2;
mod gpt_oss;
mod granite;
mod granite_moe;
mod granitemoehybrid;
mod hunyuan_v1_dense;
mod lfm2;
mod lfm2_moe;
mod llama;
mod minimax_m2;
mod ministral3;
mod mistral;
mod mixtral;
mod modernbert;
mod nemotron_h;
mod nomic_bert;
mod olmo2;
mod olmo3;
mod olmoe;
mod phi;
mod phi3;
mod qwen2;
mod qwen2_moe;
mod qwen3;
mod qwen35_moe;
mod qwen3_5;
mod qwen3_moe;
mod qwen3_next;
mod roberta;
mod seed_oss;
mod smollm3;
mod stablelm;
mod starcoder2;
#[cfg(test)]
mod tests;

use std::collections::BTreeSet;

use lm_formats::{Error, Result};
use serde_json::{Map, Value};

use crate::checkpoint::{Checkpoint, Param, TensorLocation, hugging_face_name};
use crate::config::{MAX_LAYERS, ModelConfig, unsupported};
use crate::gguf::{Description, GgufArchitecture};
use crate::spec::{DecoderSpec, OutputHead};

/// Description of an architecture: config parser, tensor names and defaults.
#[derive(Debug)]
pub struct Architecture {
    /// `model_type` values of config.json.
    pub model_types: &'static [&'static str],
    /// Folders under `testdata/models/`, each with a checkpoint and logits of the reference implementation.
    pub goldens: &'static [&'static str],
    /// Builds the decoder spec from the config.
    pub(crate) spec: fn(&ModelConfig) -> Result<DecoderSpec>,
    /// Returns the unique name of a parameter's tensor in a checkpoint.
    pub(crate) weight_name: fn(Param) -> String,
    /// Returns alternatives to a tensor under the parameter's own name: the first whose tensors are present
    /// is used, and the first of all is the one of published float checkpoints.
    pub(crate) locations: fn(&DecoderSpec, Param) -> Vec<TensorLocation>,
    /// Suffixes of tensor names that checkpoints contain and the forward pass does not need.
    pub(crate) ignored_suffixes: &'static [&'static str],
    /// Prefixes of such names: the other parts of a checkpoint that is not text-only.
    pub(crate) ignored_prefixes: &'static [&'static str],
    /// True if checkpoints contain layers after the last one, which predict further tokens ahead: they are
    /// not run.
    pub(crate) layers_ahead: bool,
    /// Rules for its GGUF files, the first for those that are written; none if llama.cpp does not know the
    /// architecture.
    pub(crate) gguf: &'static [&'static GgufArchitecture],
    /// Keys that the reference config class reads under another name, which takes precedence: that name, and
    /// the key.
    pub(crate) renamed_keys: &'static [(&'static str, &'static str)],
    /// Keys that list the layers, by precedence: their length is the number of layers, whatever
    /// `num_hidden_layers` says.
    pub(crate) layer_lists: &'static [&'static str],
    /// JSON object with the reference config class's values of keys that files omit.
    pub(crate) defaults: &'static str,
}

impl Architecture {
    /// Renames keys, and adds the reference's values of absent ones.
    fn complete(&self, keys: &mut Map<String, Value>) -> Result<()> {
        for (name, key) in self.renamed_keys {
            if let Some(value) = keys.get(*name).filter(|value| !value.is_null()).cloned() {
                keys.insert((*key).to_owned(), value);
            }
        }
        let lists = self.layer_lists.iter().filter_map(|key| keys.get(*key));
        if let Some(layers) =
            lists.filter_map(length).next().filter(|layers| (1..=MAX_LAYERS).contains(layers))
        {
            keys.insert("num_hidden_layers".to_owned(), layers.into());
        }
        for (key, value) in self.default_keys()? {
            keys.entry(key).or_insert(value);
        }
        // Without a width of its own, the reference's feed-forward block is four times as wide as the rows.
        if let Some(hidden) = keys.get("hidden_size").and_then(Value::as_u64) {
            let absent = keys.get(WIDTH).is_none_or(Value::is_null);
            if absent && self.renamed_keys.iter().any(|row| row.1 == WIDTH) {
                keys.insert(WIDTH.to_owned(), hidden.saturating_mul(4).into());
            }
        }
        Ok(())
    }

    /// Parses [`Architecture::defaults`].
    pub(crate) fn default_keys(&self) -> Result<Map<String, Value>> {
        serde_json::from_str(self.defaults)
            .map_err(|source| Error::Json { file: format!("defaults of {}", self.model_types[0]), source })
    }

    /// Returns true if the forward pass of a model with this many layers does not need a tensor of this name.
    pub(crate) fn ignores(&self, name: &str, num_layers: usize) -> bool {
        let layer = || name.strip_prefix("model.layers.")?.split('.').next()?.parse::<usize>().ok();
        self.layers_ahead && layer().is_some_and(|layer| layer >= num_layers)
            || self.ignored_suffixes.iter().any(|suffix| name.ends_with(suffix))
            || self.ignored_prefixes.iter().any(|prefix| name.starts_with(prefix))
    }

    /// Returns the location of a parameter in a checkpoint; the published one if the checkpoint does not have
    /// it.
    pub(crate) fn location(
        &self,
        spec: &DecoderSpec,
        param: Param,
        checkpoint: &Checkpoint,
    ) -> TensorLocation {
        let own = TensorLocation::whole((self.weight_name)(param));
        if checkpoint.has(&own) {
            return own;
        }
        let there = (self.locations)(spec, param).into_iter().find(|location| checkpoint.has(location));
        there.unwrap_or_else(|| self.published_location(spec, param))
    }

    /// Chooses between a tied and a separate output head by the files, as transformers does: a tied head
    /// becomes separate if the files contain one whose values differ from the embedding's. A decoder stored
    /// without its head, for embeddings, has a tied one, which is not used.
    pub(crate) fn choose_head(&self, spec: &mut DecoderSpec, checkpoint: &Checkpoint) {
        let [head, embedding] = [Param::OutputHead, Param::Embedding].map(|param| (self.weight_name)(param));
        if spec.output_head == OutputHead::Tied && checkpoint.differ(&head, &embedding) {
            tracing::warn!(head, "`tie_word_embeddings` is passed over: the files have another output head");
            spec.output_head = OutputHead::Separate;
        }
        if spec.output_head == OutputHead::Separate
            && checkpoint.is_of_base_model()
            && !checkpoint.contains(&head)
        {
            spec.output_head = OutputHead::Tied;
        }
    }

    /// Returns the location of a parameter in published float checkpoints.
    pub(crate) fn published_location(&self, spec: &DecoderSpec, param: Param) -> TensorLocation {
        let locations = (self.locations)(spec, param);
        locations.into_iter().next().unwrap_or_else(|| TensorLocation::whole((self.weight_name)(param)))
    }
}

/// Length of a list, or of a text with a letter for each layer.
fn length(list: &Value) -> Option<usize> {
    list.as_array().map(Vec::len).or_else(|| list.as_str().map(|letters| letters.chars().count()))
}

/// Config.json key of the width inside the feed-forward block.
const WIDTH: &str = "intermediate_size";

/// Llama's fields, from which an architecture lists its differences. Every parameter is a whole tensor.
const BASE: Architecture = Architecture {
    model_types: &[],
    goldens: &[],
    spec: DecoderSpec::llama,
    weight_name: hugging_face_name,
    locations: |_, _| Vec::new(),
    ignored_suffixes: &["rotary_emb.inv_freq"],
    ignored_prefixes: &[],
    layers_ahead: false,
    gguf: &[],
    renamed_keys: &[],
    layer_lists: &[],
    defaults: "{}",
};

/// Every architecture, in alphabetical order.
pub const ALL_ARCHITECTURES: &[&Architecture] = &[
    &apertus::ARCHITECTURE,
    &bamba::ARCHITECTURE,
    &bert::ARCHITECTURE,
    &cohere::ARCHITECTURE,
    &cohere2::ARCHITECTURE,
    &deepseek::V2,
    &deepseek::V3,
    &distilbert::ARCHITECTURE,
    &ernie4_5::ARCHITECTURE,
    &ernie4_5_moe::ARCHITECTURE,
    &exaone4::ARCHITECTURE,
    &falcon::ARCHITECTURE,
    &gemma::ARCHITECTURE,
    &gemma2::ARCHITECTURE,
    &gemma3::ARCHITECTURE,
    &gemma3n::ARCHITECTURE,
    &gemma4::ARCHITECTURE,
    &glm::ARCHITECTURE,
    &glm4::ARCHITECTURE,
    &glm4_moe::ARCHITECTURE,
    &glm4_moe_lite::ARCHITECTURE,
    &gpt2::ARCHITECTURE,
    &gpt_oss::ARCHITECTURE,
    &granite::ARCHITECTURE,
    &granite_moe::ARCHITECTURE,
    &granitemoehybrid::ARCHITECTURE,
    &hunyuan_v1_dense::ARCHITECTURE,
    &lfm2::ARCHITECTURE,
    &lfm2_moe::ARCHITECTURE,
    &llama::ARCHITECTURE,
    &minimax_m2::ARCHITECTURE,
    &ministral3::ARCHITECTURE,
    &mistral::ARCHITECTURE,
    &mixtral::ARCHITECTURE,
    &modernbert::ARCHITECTURE,
    &nemotron_h::ARCHITECTURE,
    &nomic_bert::ARCHITECTURE,
    &olmo2::ARCHITECTURE,
    &olmo3::ARCHITECTURE,
    &olmoe::ARCHITECTURE,
    &phi::ARCHITECTURE,
    &phi3::ARCHITECTURE,
    &qwen2::ARCHITECTURE,
    &qwen2_moe::ARCHITECTURE,
    &qwen3::ARCHITECTURE,
    &qwen35_moe::ARCHITECTURE,
    &qwen3_5::ARCHITECTURE,
    &qwen3_moe::ARCHITECTURE,
    &qwen3_next::ARCHITECTURE,
    &roberta::ARCHITECTURE,
    &seed_oss::ARCHITECTURE,
    &smollm3::ARCHITECTURE,
    &stablelm::ARCHITECTURE,
    &starcoder2::ARCHITECTURE,
];

/// Reads the keys of a `config.json`; absent keys get the defaults of the architecture.
pub(crate) fn config(keys: Map<String, Value>) -> Result<ModelConfig> {
    ModelConfig::from_keys(keys, |model_type, keys| find(model_type)?.complete(keys))
}

/// Returns the architecture of a `model_type`.
pub(crate) fn find(model_type: &str) -> Result<&'static Architecture> {
    let known = || ALL_ARCHITECTURES.iter().flat_map(|architecture| architecture.model_types);
    ALL_ARCHITECTURES
        .iter()
        .find(|architecture| architecture.model_types.contains(&model_type))
        .copied()
        .ok_or_else(|| unsupported("model_type", model_type, known().copied().collect::<Vec<_>>().join(", ")))
}

/// Returns the rules of the file's `general.architecture`.
pub(crate) fn of_gguf(model: &Description<'_>) -> Result<&'static GgufArchitecture> {
    let known = || gguf_rows().map(|row| row.name).collect::<BTreeSet<_>>();
    let names = || known().into_iter().collect::<Vec<_>>().join(", ");
    let unknown = || model.metadata.unsupported("general.architecture", model.architecture, names());
    gguf_rows().find(|row| row.name == model.architecture).ok_or_else(unknown)
}

/// Returns the rules for GGUF files of a `model_type`.
pub(crate) fn gguf_of(model_type: &str) -> Result<&'static GgufArchitecture> {
    let has = |architecture: &&&Architecture| !architecture.gguf.is_empty();
    let types = || ALL_ARCHITECTURES.iter().filter(has).flat_map(|architecture| architecture.model_types);
    let known = || types().copied().collect::<Vec<_>>().join(", ");
    let forms = find(model_type)?.gguf;
    let own = forms.iter().find(|form| form.written_for.contains(&model_type));
    own.or(forms.first()).copied().ok_or_else(|| unsupported("model_type", model_type, known()))
}

/// Rules for GGUF files; a row that several architectures share occurs several times.
pub(crate) fn gguf_rows() -> impl Iterator<Item = &'static GgufArchitecture> {
    ALL_ARCHITECTURES.iter().flat_map(|architecture| architecture.gguf).copied()
}

//! Known model families, one file each.

use crate::processor::ModelDataProcessor;

mod apertus;
mod apriel;
mod base_thinking;
mod cohere_action;
mod command_r_action;
mod deepseek_dsml;
mod deepseek_v3;
mod deepseek_v31;
mod dots;
mod ernie45;
mod exaone4;
mod firefunction;
mod functionary_v31;
mod functionary_v32;
mod functiongemma;
mod functiongemma_preformatted;
mod gemma4;
mod generic;
mod generic_json;
mod gigachat3;
mod glm4_xml;
mod gpt_oss;
mod granite_20b_fc;
mod granite_json;
mod granite_prose;
mod hermes;
mod hf_response_template_invoke;
mod hf_response_template_kv_lines;
mod hunyuan_a13b;
mod hy_v3;
mod inkling;
mod internlm2;
mod jamba;
mod k2_horizon;
mod kimi_k2;
mod kimi_k3;
mod lfm2_pythonic;
mod ling3;
mod llama3_json;
mod llama4_pythonic;
mod longcat;
mod medgemma;
mod minicpm5_xml;
mod minimax_m2;
mod minimax_m2_append;
mod minimax_m3;
mod mistral_args;
mod mistral_json;
mod muse;
mod nemotron_toolcall;
mod olmo3_pythonic;
mod phi4_mini;
mod poolside_xml;
mod pythonic;
mod qwen;
mod qwen3_coder_xml;
mod reka;
mod seed_oss_xml;
mod spark;
mod step3;
mod step3p5;
mod think_opened;
mod think_tags;
mod tool_code;
mod xlam_json;

/// A registry entry: a family, and the evidence by which it is detected.
pub struct Family {
    /// Processor of the family.
    pub processor: &'static dyn ModelDataProcessor,
    /// Aliases of its format.
    pub names: &'static [&'static str],
    /// Sets of texts for detection: a chat template that contains all of a set belongs to the family, unless
    /// it contains a larger set of another family. Without any, the family is never detected by its template.
    pub markers: &'static [&'static [&'static str]],
    /// Lower-case substrings of model names, for templates without evidence.
    pub model_names: &'static [&'static str],
}

impl Family {
    const fn of(processor: &'static dyn ModelDataProcessor) -> Self {
        Self { processor, names: &[], markers: &[], model_names: &[] }
    }

    fn shows_calls(&self) -> bool {
        self.processor.dialect().is_none_or(|dialect| !dialect.calls.is_empty())
    }

    /// Size of the largest marker set that the template contains.
    fn markers_in(&self, template: &str) -> Option<usize> {
        let contains_all = |set: &&&[&str]| set.iter().all(|marker| template.contains(marker));
        self.markers.iter().filter(contains_all).map(|set| set.len()).max()
    }

    /// Length of the longest name part that the model's name contains.
    fn name_in(&self, model_name: &str) -> Option<usize> {
        self.model_names.iter().filter(|part| model_name.contains(**part)).map(|part| part.len()).max()
    }

    fn has_name(&self, name: &str) -> bool {
        self.processor.name() == name || self.names.contains(&name)
    }
}

/// All families, in alphabetical order.
pub const ALL: &[&Family] = &[
    &apertus::FAMILY,
    &apriel::FAMILY,
    &base_thinking::FAMILY,
    &cohere_action::FAMILY,
    &command_r_action::FAMILY,
    &deepseek_dsml::FAMILY,
    &deepseek_v3::FAMILY,
    &deepseek_v31::FAMILY,
    &dots::FAMILY,
    &ernie45::FAMILY,
    &exaone4::FAMILY,
    &firefunction::FAMILY,
    &functionary_v31::FAMILY,
    &functionary_v32::FAMILY,
    &functiongemma::FAMILY,
    &functiongemma_preformatted::FAMILY,
    &gemma4::FAMILY,
    &generic::FAMILY,
    &generic_json::FAMILY,
    &gigachat3::FAMILY,
    &glm4_xml::FAMILY,
    &gpt_oss::FAMILY,
    &granite_20b_fc::FAMILY,
    &granite_json::FAMILY,
    &granite_prose::FAMILY,
    &hermes::FAMILY,
    &hf_response_template_invoke::FAMILY,
    &hf_response_template_kv_lines::FAMILY,
    &hunyuan_a13b::FAMILY,
    &hy_v3::FAMILY,
    &inkling::FAMILY,
    &internlm2::FAMILY,
    &jamba::FAMILY,
    &k2_horizon::FAMILY,
    &kimi_k2::FAMILY,
    &kimi_k3::FAMILY,
    &lfm2_pythonic::FAMILY,
    &ling3::FAMILY,
    &llama3_json::FAMILY,
    &llama4_pythonic::FAMILY,
    &longcat::FAMILY,
    &medgemma::FAMILY,
    &minicpm5_xml::FAMILY,
    &minimax_m2::FAMILY,
    &minimax_m2_append::FAMILY,
    &minimax_m3::FAMILY,
    &mistral_args::FAMILY,
    &mistral_json::FAMILY,
    &muse::FAMILY,
    &nemotron_toolcall::FAMILY,
    &olmo3_pythonic::FAMILY,
    &phi4_mini::FAMILY,
    &poolside_xml::FAMILY,
    &pythonic::FAMILY,
    &qwen::FAMILY,
    &qwen3_coder_xml::FAMILY,
    &reka::FAMILY,
    &seed_oss_xml::FAMILY,
    &spark::FAMILY,
    &step3::FAMILY,
    &step3p5::FAMILY,
    &think_opened::FAMILY,
    &think_tags::FAMILY,
    &tool_code::FAMILY,
    &xlam_json::FAMILY,
];

/// Detects the family of a model: by the markers in its chat template, then by its name, else the generic
/// one. A template that shows no calls, only reasoning, has lower precedence than the name.
pub fn detect(template: &str, model_name: &str) -> &'static dyn ModelDataProcessor {
    let model_name = model_name.to_lowercase();
    let by_template = |calls: bool| {
        let shown = |family: &&&Family| family.shows_calls() == calls;
        best(ALL.iter().filter(shown).filter_map(|family| Some((family.markers_in(template)?, *family))))
    };
    let by_name = || best(ALL.iter().filter_map(|family| Some((family.name_in(&model_name)?, *family))));
    by_template(true).or_else(by_name).or_else(|| by_template(false)).unwrap_or(&generic::FAMILY).processor
}

/// Returns the family with the most evidence.
fn best<'a>(found: impl Iterator<Item = (usize, &'a Family)>) -> Option<&'a Family> {
    found.max_by_key(|(evidence, _)| *evidence).map(|(_, family)| family)
}

/// Looks up a family by its name or an alias.
pub fn by_name(name: &str) -> Option<&'static dyn ModelDataProcessor> {
    ALL.iter().find(|family| family.has_name(name)).map(|family| family.processor)
}

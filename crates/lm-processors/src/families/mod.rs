//! The known families, one file each.

use crate::processor::ModelDataProcessor;

mod channels;
mod dialect_processor;
mod dots;
mod functiongemma;
mod generic;
mod hermes;
mod llama4_pythonic;
mod minicpm5_xml;
mod pythonic;
mod qwen;
mod seed_oss_xml;
mod step3;
mod tool_code;

/// A row of the registry: a family, and how it is told from the others.
pub struct Family {
    /// The processor.
    pub processor: &'static dyn ModelDataProcessor,
    /// Texts that all stand in the chat templates of the family; without any, it is never found by its template.
    pub markers: &'static [&'static str],
    /// Lower-case parts of model names, for templates that say nothing.
    pub model_names: &'static [&'static str],
}

/// All families, in alphabetical order.
pub const ALL: &[&Family] = &[
    &dots::FAMILY,
    &functiongemma::FAMILY,
    &generic::FAMILY,
    &hermes::FAMILY,
    &llama4_pythonic::FAMILY,
    &minicpm5_xml::FAMILY,
    &pythonic::FAMILY,
    &qwen::FAMILY,
    &seed_oss_xml::FAMILY,
    &step3::FAMILY,
    &tool_code::FAMILY,
];

/// The family of a model: by the markers in its chat template first, by its name last, else the generic one.
pub fn detect(template: &str, model_name: &str) -> &'static dyn ModelDataProcessor {
    let by_template = |family: &&&Family| {
        !family.markers.is_empty() && family.markers.iter().all(|marker| template.contains(marker))
    };
    let model_name = model_name.to_lowercase();
    let by_name = |family: &&&Family| family.model_names.iter().any(|name| model_name.contains(name));
    let found = ALL.iter().filter(by_template).max_by_key(|family| family.markers.len());
    found.or_else(|| ALL.iter().find(by_name)).map_or(generic::FAMILY.processor, |family| family.processor)
}

//! The known families, one file each.

use crate::processor::ModelDataProcessor;

mod channels;
mod dialect_processor;
mod generic;
mod hermes;
mod qwen;

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
pub const ALL: &[&Family] = &[&generic::FAMILY, &hermes::FAMILY, &qwen::FAMILY];

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

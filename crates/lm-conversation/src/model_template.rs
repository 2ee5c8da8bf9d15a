//! The chat template of an engine's model, and the dialect of its tool calls.

use std::sync::OnceLock;

use lm_processors::{ModelDataProcessor, by_name, detect};
use lm_session::Engine;
use lm_template::{ChatTemplates, PolyfilledTemplate, Preface, PromptTemplate, TemplateChoice, ToolSpec};

use crate::error::{Error, Result};

/// Dialect in which [`PolyfilledTemplate`] declares tools if the template does not support them.
const TEXT_DIALECT: &str = "hermes";

/// Detects the dialect from the template's markers; if tools are declared in text instead of by the template,
/// it is the dialect of that text.
pub(crate) fn dialect(
    template: &PolyfilledTemplate,
    model: &str,
    tools: &[ToolSpec],
) -> &'static dyn ModelDataProcessor {
    let declared = by_name(TEXT_DIALECT).filter(|_| template.declares_in_text(tools));
    declared.unwrap_or_else(|| detect(template.template().source(), model))
}

/// The chat templates of a model, shared by all conversations of its engine: each is compiled and probed
/// once.
struct ModelTemplates {
    files: ChatTemplates,
    without_tools: OnceLock<PromptTemplate>,
    with_tools: OnceLock<PromptTemplate>,
}

/// Returns the model's own template, or its template for tools if there are tools.
pub(crate) fn model_template(engine: &Engine, preface: &Preface) -> Result<PromptTemplate> {
    engine.check_generation()?;
    let templates = engine.derived(|| {
        let files = engine.chat_template().into_iter().flat_map(|files| files.iter());
        let files = ChatTemplates::from_files(files)?;
        Ok::<_, Error>(ModelTemplates { files, without_tools: OnceLock::new(), with_tools: OnceLock::new() })
    })?;
    let ModelTemplates { files, without_tools, with_tools } = &*templates;
    if files.names().next().is_none() {
        return Err(Error::NoChatTemplate { model: engine.name().to_owned() });
    }
    let (known, choice) = match preface.tools.is_empty() {
        true => (without_tools, TemplateChoice::Default),
        false => (with_tools, TemplateChoice::Tools),
    };
    if let Some(template) = known.get() {
        return Ok(template.clone());
    }
    let template = files.get(choice)?;
    Ok(known.get_or_init(|| template).clone())
}

#[cfg(test)]
mod tests {
    use lm_session::{EngineSettings, LoadOptions, ModelFolder};

    use super::*;
    use crate::{Conversation, ConversationConfig};

    #[test]
    fn conversations_share_template_probes() {
        let folder = ModelFolder::embedded(lm_pocket::NAME, lm_pocket::FILES);
        let engine = Engine::load(&folder, &LoadOptions::default(), EngineSettings::default(), &mut |_| {});
        let engine = engine.expect("the embedded model loads");
        let made = |config| Conversation::new(&engine, config).expect("a conversation");
        let probes = |conversation: &Conversation| std::ptr::from_ref(conversation.template.capabilities());
        let (first, second) = (made(ConversationConfig::default()), made(ConversationConfig::default()));
        assert_eq!(probes(&first), probes(&second));
        let template = PromptTemplate::new("{{ messages[0].content }}").expect("it compiles");
        let own = || ConversationConfig { template: Some(template.clone()), ..ConversationConfig::default() };
        let (first, second) = (made(own()), made(own()));
        assert_eq!(probes(&first), probes(&second));
        assert_ne!(probes(&first), probes(&made(ConversationConfig::default())));
    }
}

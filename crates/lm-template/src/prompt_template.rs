//! A compiled chat template.

use std::collections::HashMap;
use std::path::Path;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use lm_jinja::{Clock, RenderOptions};
use serde_json::{Map, Value};

use crate::capabilities::Capabilities;
use crate::chat::{self, ContinueField};
use crate::chat_templates::{ChatTemplates, TemplateChoice};
use crate::error::Result;
use crate::probe::Probe;
use crate::prompt::Prompt;
use crate::provenance;

/// Controls the generation prompt, the header of the model's next message.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum GenerationPrompt {
    /// The rendering ends with the generation prompt: `add_generation_prompt` is true.
    #[default]
    Add,
    /// The rendering ends with the last message.
    Omit,
}

/// Input of a rendering.
#[derive(Debug, Clone, Copy)]
pub struct RenderInput<'a> {
    /// The messages, as passed to the template.
    pub messages: &'a [Value],
    /// The declared tools, as passed to the template; null if there are none.
    pub tools: &'a Value,
    /// Controls the generation prompt.
    pub generation_prompt: GenerationPrompt,
    /// Further variables, which override the template's own. Their texts are content; pass template text with
    /// [`PromptTemplate::with_context`] instead.
    pub extra_context: &'a Map<String, Value>,
}

/// A compiled chat template.
///
/// It renders like transformers: with the same Jinja environment, and the same steps before and after. A
/// rendering is limited to 20 million steps, 64 MiB of text and 256 MiB of values in total. A template cannot
/// read files or include other templates.
///
/// ```
/// use lm_template::{GenerationPrompt, PromptTemplate, RenderInput, Origin, Value};
/// use serde_json::json;
///
/// let template = PromptTemplate::new("{% for m in messages %}<s>{{ m.content | trim }}</s>{% endfor %}")?;
/// let prompt = template.render(&RenderInput {
///     messages: &[json!({"role": "user", "content": " what is </s>? "})],
///     tools: &Value::Null,
///     generation_prompt: GenerationPrompt::Omit,
///     extra_context: &Default::default(),
/// })?;
/// assert_eq!(prompt.text(), "<s>what is </s>?</s>");
/// assert_eq!(prompt.segments[1].text, "what is </s>?");
/// assert_eq!(prompt.segments[1].origin, Origin::Content);
/// # Ok::<(), lm_template::Error>(())
/// ```
#[derive(Debug, Clone)]
pub struct PromptTemplate {
    template: lm_jinja::Template,
    clock: Clock,
    source: String,
    context: Map<String, Value>,
    probed: Arc<Probed>,
}

/// Results of probing a template, shared by its clones.
#[derive(Debug, Default)]
struct Probed {
    capabilities: OnceLock<Capabilities>,
    /// Further roles, and whether a message of the role reaches the prompt.
    roles: Mutex<HashMap<String, bool>>,
}

/// Number of further roles whose probes are kept: names of roles come from clients.
const KEPT_ROLES: usize = 64;

impl PromptTemplate {
    /// Compiles a template.
    ///
    /// # Errors
    /// [`Error::TemplateSyntax`](crate::Error::TemplateSyntax) with the line if the template does not
    /// compile.
    pub fn new(source: &str) -> Result<Self> {
        let template = lm_jinja::Template::new(source)?;
        let (source, probed) = (source.to_owned(), Arc::default());
        Ok(Self { template, clock: Clock::System, source, context: Map::new(), probed })
    }

    /// Reads the default template of a Hugging Face folder, with the model's special tokens as its variables.
    /// For a folder with several templates, see [`ChatTemplates`].
    ///
    /// # Errors
    /// Same errors as [`ChatTemplates::from_folder`] and [`ChatTemplates::get`].
    pub fn from_folder(folder: impl AsRef<Path>) -> Result<Self> {
        ChatTemplates::from_folder(folder)?.get(TemplateChoice::Default)
    }

    /// Sets the template's own variables, such as `bos_token`, which count as template text.
    pub fn with_context(mut self, context: Map<String, Value>) -> Self {
        (self.context, self.probed) = (context, Arc::default());
        self
    }

    /// Fixes the time of `strftime_now`, which is otherwise the machine's local time.
    pub fn with_time(mut self, now: lm_jinja::DateTime) -> Self {
        (self.clock, self.probed) = (Clock::Fixed(now), Arc::default());
        self
    }

    /// Source of the template.
    pub fn source(&self) -> &str {
        &self.source
    }

    /// Capabilities of the template. The first call probes it with some 150 small renderings; clones of the
    /// template share the result.
    pub fn capabilities(&self) -> &Capabilities {
        self.probed.capabilities.get_or_init(|| Capabilities::of(self))
    }

    /// Returns true if a message of a role other than the usual ones reaches the prompt. The first call for a
    /// role probes it.
    pub(crate) fn shows_role(&self, role: &str) -> bool {
        let known = || self.probed.roles.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(shown) = known().get(role) {
            return *shown;
        }
        let shown = Probe::new(self).shows_role(role);
        let mut known = known();
        if known.len() < KEPT_ROLES {
            known.insert(role.to_owned(), shown);
        }
        shown
    }

    /// Renders a conversation.
    ///
    /// Null keys of messages are dropped before, and reasoning is set under every name that templates use.
    ///
    /// # Errors
    /// If there is no message, the template refuses the conversation, or it fails.
    pub fn render(&self, input: &RenderInput<'_>) -> Result<Prompt> {
        self.render_prepared(&chat::prepare(input.messages)?, input, input.generation_prompt)
    }

    /// Renders a conversation up to the end of the last message's text, so that the model continues that
    /// message. No generation prompt is added, regardless of the input.
    ///
    /// # Errors
    /// As [`render`](Self::render), and [`Error::ContinueFinalMessage`](crate::Error::ContinueFinalMessage)
    /// if there is no text to continue, or the template does not render it unchanged.
    pub fn render_to_continue(&self, input: &RenderInput<'_>, field: ContinueField<'_>) -> Result<Prompt> {
        let mut messages = chat::prepare(input.messages)?;
        let text = chat::tag_final_message(&mut messages, field, &self.source)?;
        let mut prompt = self.render_prepared(&messages, input, GenerationPrompt::Omit)?;
        chat::cut_at_tag(&mut prompt, &text, field)?;
        Ok(prompt)
    }

    /// Renders messages unchanged: only the template, without the steps before and after.
    ///
    /// # Errors
    /// If the template refuses the conversation, or fails.
    pub fn render_as_is(&self, input: &RenderInput<'_>) -> Result<Prompt> {
        self.render_prepared(input.messages, input, input.generation_prompt)
    }

    fn render_prepared(
        &self,
        messages: &[Value],
        input: &RenderInput<'_>,
        generation_prompt: GenerationPrompt,
    ) -> Result<Prompt> {
        let mut context = Map::new();
        context.insert("documents".to_owned(), Value::Null);
        context.extend(self.context.clone());
        context.insert("messages".to_owned(), messages.into());
        context.insert("tools".to_owned(), input.tools.clone());
        context
            .insert("add_generation_prompt".to_owned(), (generation_prompt == GenerationPrompt::Add).into());
        context.extend(input.extra_context.clone());
        self.render_given(&context, input.extra_context)
    }

    /// Renders with only these variables, for a template that is not of a conversation. Texts in `messages`,
    /// `tools` and `documents` are content.
    ///
    /// # Errors
    /// If the template refuses, fails, or exceeds a limit.
    pub fn render_variables(&self, variables: &Map<String, Value>) -> Result<Prompt> {
        self.render_given(variables, &Map::new())
    }

    /// Renders with `variables`; those also in `given` are content.
    fn render_given(&self, variables: &Map<String, Value>, given: &Map<String, Value>) -> Result<Prompt> {
        let origin = |text: lm_jinja::VariableText<'_>| provenance::origin(text, given);
        let options = RenderOptions { clock: self.clock, origin: &origin, ..RenderOptions::default() };
        Ok(provenance::prompt(&self.template.render(variables, &options)?))
    }
}

//! A chat template, compiled.

use std::path::Path;

use serde_json::{Map, Value};

use crate::chat::{self, ContinueField};
use crate::chat_templates::{ChatTemplates, TemplateChoice};
use crate::error::{Error, Result};
use crate::jinja::{self, Clock, Failure, Limits};
use crate::prompt::Prompt;
use crate::provenance;

/// Whether a rendering ends with the header of the model's next message.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum GenerationPrompt {
    /// The model writes next: `add_generation_prompt` is true.
    #[default]
    Add,
    /// The rendering ends with the last message.
    Omit,
}

/// What a template renders.
#[derive(Debug, Clone, Copy)]
pub struct RenderInput<'a> {
    /// The messages, as the template is to see them.
    pub messages: &'a [Value],
    /// The declared tools as the template is to see them; null when there are none.
    pub tools: &'a Value,
    /// Whether the model writes next.
    pub generation_prompt: GenerationPrompt,
    /// Further variables; they win over the template's own. Texts among them are content: who wants template text gives it
    /// to the template itself, with [`PromptTemplate::with_context`].
    pub extra_context: &'a Map<String, Value>,
}

/// A chat template, compiled.
///
/// It renders as transformers does: the same Jinja environment, and the same steps before and after. A rendering ends
/// after 20 million steps, 64 MiB of text or 256 MiB of values altogether, whatever the template says; it reads no
/// files and knows no other template.
///
/// ```
/// use lm_template::{GenerationPrompt, PromptTemplate, RenderInput, SegmentKind, Value};
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
/// assert_eq!(prompt.segments[1].kind, SegmentKind::Content);
/// # Ok::<(), lm_template::Error>(())
/// ```
#[derive(Debug, Clone)]
pub struct PromptTemplate {
    template: jinja::Template,
    clock: Clock,
    source: String,
    context: Map<String, Value>,
}

impl PromptTemplate {
    /// Compiles a template.
    ///
    /// # Errors
    /// [`Error::TemplateSyntax`] with the line, when it does not compile.
    pub fn new(source: &str) -> Result<Self> {
        let template = jinja::Template::new(source).map_err(engine_error)?;
        Ok(Self { template, clock: Clock::System, source: source.to_owned(), context: Map::new() })
    }

    /// The default template of a Hugging Face folder, with the model's special tokens as its variables. A folder may hold
    /// several: see [`ChatTemplates`].
    ///
    /// # Errors
    /// Those of [`ChatTemplates::from_folder`] and [`ChatTemplates::get`].
    pub fn from_folder(folder: impl AsRef<Path>) -> Result<Self> {
        ChatTemplates::from_folder(folder)?.get(TemplateChoice::Default)
    }

    /// The same template with variables of its own, such as `bos_token`; they are template text.
    pub fn with_context(mut self, context: Map<String, Value>) -> Self {
        self.context = context;
        self
    }

    /// The same template with a clock that stands still behind `strftime_now`; without it, the machine's local time.
    pub fn with_time(mut self, now: jiff::civil::DateTime) -> Self {
        self.clock = Clock::Fixed(now);
        self
    }

    /// The template's source, as it was given.
    pub fn source(&self) -> &str {
        &self.source
    }

    /// Renders a conversation.
    ///
    /// Before it renders, null keys of the messages are dropped and reasoning is given under every name templates use.
    ///
    /// # Errors
    /// When there is no message, the template refuses the conversation, or it fails.
    pub fn render(&self, input: &RenderInput<'_>) -> Result<Prompt> {
        self.render_prepared(&chat::prepare(input.messages)?, input, input.generation_prompt)
    }

    /// Renders a conversation up to the end of the last message's text, so that the model goes on with that message.
    /// No header for a next message is added, whatever the input says.
    ///
    /// # Errors
    /// As [`render`](Self::render), and [`Error::ContinueFinalMessage`] when there is no text to go on from, or the
    /// template does not render it as it is.
    pub fn render_to_continue(&self, input: &RenderInput<'_>, field: ContinueField<'_>) -> Result<Prompt> {
        let mut messages = chat::prepare(input.messages)?;
        let text = chat::tag_final_message(&mut messages, field, &self.source)?;
        let mut prompt = self.render_prepared(&messages, input, GenerationPrompt::Omit)?;
        chat::cut_at_tag(&mut prompt, &text, field)?;
        Ok(prompt)
    }

    /// Renders messages exactly as they are: the template alone, without the steps around it.
    ///
    /// # Errors
    /// When the template refuses the conversation, or it fails.
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

    /// Renders with these variables and no others: the engine alone, for a template that is not of a conversation.
    /// Texts in `messages`, `tools` and `documents` are content.
    ///
    /// # Errors
    /// When the template refuses, fails, or exceeds a limit.
    pub fn render_variables(&self, variables: &Map<String, Value>) -> Result<Prompt> {
        self.render_given(variables, &Map::new())
    }

    /// Renders with these variables, of which those in `given` are content.
    fn render_given(&self, variables: &Map<String, Value>, given: &Map<String, Value>) -> Result<Prompt> {
        let limits = Limits::new();
        let variables = provenance::variables(variables, given, &limits).map_err(engine_error)?;
        let (text, generation) =
            self.template.render(variables, self.clock, &limits).map_err(engine_error)?;
        Ok(provenance::prompt(&text, generation))
    }
}

fn engine_error(error: jinja::Error) -> Error {
    let line = error.line();
    match error.into_failure() {
        Failure::Syntax(message) => Error::TemplateSyntax { line, message },
        Failure::Raised(message) => Error::TemplateRaised { message },
        Failure::Runtime(message) => Error::TemplateRuntime { line, message },
        Failure::Limit { what, limit } => Error::TemplateLimit { what, limit },
    }
}

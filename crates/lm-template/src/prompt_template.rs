//! A chat template, compiled.

use std::error::Error as _;
use std::path::Path;

use minijinja::{Environment, ErrorKind};
use serde_json::{Map, Value};

use crate::chat::{self, ContinueField};
use crate::chat_templates::{ChatTemplates, TemplateChoice};
use crate::error::{Error, Result};
use crate::jinja::{self, Clock, MAX_INSTRUCTIONS, Raised, TEMPLATE};
use crate::prompt::Prompt;
use crate::provenance::Provenance;

/// The longest text a template may render, in bytes.
const MAX_OUTPUT_BYTES: u64 = 64 << 20;

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
    /// Further variables; they win over the template's own. Texts among them count as the template's, but for those
    /// in `documents`.
    pub extra_context: &'a Map<String, Value>,
}

/// A chat template, compiled.
///
/// It renders as transformers does: the same Jinja environment, and the same steps before and after. A rendering ends
/// after 20 million instructions or 64 MiB, whatever the template says.
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
    environment: Environment<'static>,
    source: String,
    context: Map<String, Value>,
}

impl PromptTemplate {
    /// Compiles a template.
    ///
    /// # Errors
    /// [`Error::TemplateSyntax`] with the line, when it does not compile.
    pub fn new(source: &str) -> Result<Self> {
        let environment = jinja::environment(source).map_err(|error| Error::TemplateSyntax {
            line: error.line().unwrap_or(0),
            message: message(&error),
        })?;
        Ok(Self { environment, source: source.to_owned(), context: Map::new() })
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
        jinja::set_clock(&mut self.environment, Clock::Fixed(now));
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
        let provenance = Provenance::new(&context, &self.source);
        provenance.prompt(|variables| self.render_text(variables))
    }

    fn render_text(&self, variables: minijinja::Value) -> Result<String> {
        let template = self.environment.get_template(TEMPLATE).map_err(|error| runtime(&error))?;
        let mut output = Output::default();
        let rendered = template.render_captured_to(variables, &mut output);
        if output.full {
            return Err(Error::TemplateLimit { what: "bytes of output", limit: MAX_OUTPUT_BYTES });
        }
        rendered.map_err(|error| runtime(&error))?;
        Ok(String::from_utf8_lossy(&output.bytes).into_owned())
    }
}

/// Output that ends at a limit.
#[derive(Default)]
struct Output {
    bytes: Vec<u8>,
    full: bool,
}

impl std::io::Write for Output {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.full |= (self.bytes.len() + bytes.len()) as u64 > MAX_OUTPUT_BYTES;
        if self.full {
            return Err(std::io::ErrorKind::WriteZero.into());
        }
        self.bytes.extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

/// What the engine says, without the place, which is a field of its own.
fn message(error: &minijinja::Error) -> String {
    match error.detail() {
        Some(detail) => format!("{}: {detail}", error.kind()),
        None => error.kind().to_string(),
    }
}

fn runtime(error: &minijinja::Error) -> Error {
    let mut cause = error.source();
    while let Some(source) = cause {
        if let Some(Raised(message)) = source.downcast_ref() {
            return Error::TemplateRaised { message: message.clone() };
        }
        cause = source.source();
    }
    if error.kind() == ErrorKind::OutOfFuel {
        return Error::TemplateLimit { what: "instructions", limit: MAX_INSTRUCTIONS };
    }
    Error::TemplateRuntime { line: error.line().unwrap_or(0), message: message(error) }
}

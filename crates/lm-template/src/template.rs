//! A chat template, compiled.

use minijinja::Environment;
use minijinja::value::Serde;
use serde_json::{Map, Value};

use crate::error::{Error, Result};
use crate::prompt::{Prompt, SegmentKind};

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
    /// Further variables; they win over the template's own.
    pub extra_context: &'a Map<String, Value>,
}

/// A chat template, compiled.
#[derive(Debug, Clone)]
pub struct PromptTemplate {
    environment: Environment<'static>,
    source: String,
    context: Map<String, Value>,
}

const NAME: &str = "chat_template";

impl PromptTemplate {
    /// Compiles a template.
    ///
    /// # Errors
    /// [`Error::TemplateSyntax`] with the line, when it does not compile.
    pub fn new(source: &str) -> Result<Self> {
        let mut environment = Environment::new();
        environment.add_template_owned(NAME, source.to_owned()).map_err(|error| Error::TemplateSyntax {
            line: error.line().unwrap_or(0),
            message: error.to_string(),
        })?;
        Ok(Self { environment, source: source.to_owned(), context: Map::new() })
    }

    /// The same template with variables of its own, such as `bos_token`; they are template text.
    pub fn with_context(mut self, context: Map<String, Value>) -> Self {
        self.context = context;
        self
    }

    /// The template's source, as it was given.
    pub fn source(&self) -> &str {
        &self.source
    }

    /// Renders a conversation.
    ///
    /// # Errors
    /// When there is no message, the template refuses the conversation, or it fails.
    pub fn render(&self, input: &RenderInput<'_>) -> Result<Prompt> {
        let mut context = self.context.clone();
        context.insert("messages".to_owned(), input.messages.into());
        context.insert("tools".to_owned(), input.tools.clone());
        context.insert(
            "add_generation_prompt".to_owned(),
            (input.generation_prompt == GenerationPrompt::Add).into(),
        );
        context.extend(input.extra_context.clone());
        let runtime = |error: minijinja::Error| Error::TemplateRuntime {
            line: error.line().unwrap_or(0),
            message: error.to_string(),
        };
        let template = self.environment.get_template(NAME).map_err(runtime)?;
        let text = template.render(minijinja::Value::from(Serde(&context))).map_err(runtime)?;
        let mut prompt = Prompt::default();
        prompt.push(SegmentKind::Template, &text);
        Ok(prompt)
    }
}

//! Conversations rendered part by part, with templates made for that.
//! Source: LiteRT-LM, `runtime/conversation/prompt_utils.cc` ("multi-prefill").

use serde_json::{Map, Value, json};

use crate::error::{Error, Result, json_type};
use crate::prompt::Prompt;
use crate::prompt_template::{GenerationPrompt, PromptTemplate, RenderInput};

/// Continuation after a part of a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AfterPart {
    /// Continuation of the same message, or a message of another role, which ends this one.
    More,
    /// Another message: this one ends here.
    Message,
    /// The model's message: this one ends here, and the generation prompt is written.
    Reply,
}

/// A conversation rendered part by part: each rendering is the text that a new part adds to the prompt.
///
/// The template sees one part as `message`, with `is_appending_to_prefill` true, and with `is_first_part` and
/// `is_last_part` for its position in the message.
/// [`Capabilities::single_turn`](crate::Capabilities::single_turn) is true for templates that read them.
///
/// ```
/// use lm_template::{AfterPart, PromptTemplate, SingleTurnPrompt};
/// use serde_json::json;
///
/// let source = "{% if is_first_part %}<{{ message.role }}>{% endif %}{{ message.content }}\
///               {% if is_last_part %}</>{% endif %}{% if add_generation_prompt %}<model>{% endif %}";
/// let template = PromptTemplate::new(source)?;
/// let mut prompt = SingleTurnPrompt::new(&template, Default::default());
/// let user = |text| json!({"role": "user", "content": text});
/// assert_eq!(prompt.push(&user("What is "), AfterPart::More)?.text(), "<user>What is ");
/// assert_eq!(prompt.push(&user("this?"), AfterPart::Reply)?.text(), "this?</><model>");
/// # Ok::<(), lm_template::Error>(())
/// ```
#[derive(Debug, Clone)]
pub struct SingleTurnPrompt<'a> {
    template: &'a PromptTemplate,
    extra_context: Map<String, Value>,
    /// Role of the message that is still open.
    open: Option<String>,
}

impl<'a> SingleTurnPrompt<'a> {
    /// Starts a conversation; `extra_context` holds template variables for every part.
    pub fn new(template: &'a PromptTemplate, extra_context: Map<String, Value>) -> Self {
        Self { template, extra_context, open: None }
    }

    /// Renders the first messages and tools, as a whole conversation without a generation prompt.
    ///
    /// # Errors
    /// Same errors as [`PromptTemplate::render_as_is`].
    pub fn preface(&self, messages: &[Value], tools: &Value) -> Result<Prompt> {
        let (generation_prompt, extra_context) = (GenerationPrompt::Omit, &self.extra_context);
        self.template.render_as_is(&RenderInput { messages, tools, generation_prompt, extra_context })
    }

    /// Renders a part: `{"role", "content", …}`. A part with another role than the last one ends the open
    /// message, unless that is the system's.
    ///
    /// # Errors
    /// [`Error::WrongType`] for a part without a role, and those of [`PromptTemplate::render_as_is`]. The
    /// state is then unchanged.
    pub fn push(&mut self, part: &Value, after: AfterPart) -> Result<Prompt> {
        let role = part["role"].as_str().ok_or_else(|| Error::WrongType {
            at: "message.role".to_owned(),
            expected: "a string",
            got: json_type(&part["role"]),
        })?;
        let mut prompt = Prompt::default();
        let continues = self.open.as_deref() == Some(role);
        if let Some(open) = self.open.as_deref().filter(|open| !continues && *open != "system") {
            let end = json!({"role": open, "content": ""});
            prompt = self.render(&end, PartPosition { first: false, last: true }, GenerationPrompt::Omit)?;
        }
        let position = PartPosition { first: !continues, last: after != AfterPart::More };
        let generation =
            if after == AfterPart::Reply { GenerationPrompt::Add } else { GenerationPrompt::Omit };
        prompt.extend(&self.render(part, position, generation)?);
        self.open = (after == AfterPart::More).then(|| role.to_owned());
        Ok(prompt)
    }

    fn render(
        &self,
        part: &Value,
        position: PartPosition,
        generation_prompt: GenerationPrompt,
    ) -> Result<Prompt> {
        let mut extra_context = self.extra_context.clone();
        extra_context.insert("message".to_owned(), part.clone());
        extra_context.insert("is_appending_to_prefill".to_owned(), true.into());
        extra_context.insert("is_first_part".to_owned(), position.first.into());
        extra_context.insert("is_last_part".to_owned(), position.last.into());
        let (messages, tools) = (&[], &Value::Null);
        self.template.render_as_is(&RenderInput {
            messages,
            tools,
            generation_prompt,
            extra_context: &extra_context,
        })
    }
}

/// Position of a part in its message.
#[derive(Clone, Copy)]
struct PartPosition {
    first: bool,
    last: bool,
}

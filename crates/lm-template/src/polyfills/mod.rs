//! Polyfills: changes to a conversation for features its template lacks.

mod content;
mod role;
mod template_input;
mod tool_calls;
mod tools;

use std::collections::BTreeSet;

use serde_json::Value;

use self::template_input::TemplateInput;
use crate::capabilities::Capabilities;
use crate::chat::ContinueField;
use crate::error::Result;
use crate::prompt::Prompt;
use crate::prompt_template::{PromptTemplate, RenderInput};
use crate::tool_spec::ToolSpec;

/// A change to a conversation for a feature its template lacks.
///
/// Calls and results as text take the form of Hermes models, which the processor `hermes` parses:
/// `<tool_call>{"name": …, "arguments": …}</tool_call>` and `<tool_response>{…}</tool_response>`, each on
/// separate lines.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum Polyfill {
    /// Role `assistant` becomes `model`.
    AssistantAsModel,
    /// Bare declarations `{name, …}` become `{"type": "function", "function": {name, …}}`.
    ToolsWrapped,
    /// Without tools, `tools` is an empty list, because the template fails on null.
    ToolsAsEmptyList,
    /// Tools are passed in the variable that the template reads instead of `tools`, such as `xml_tools`.
    ToolsRenamed,
    /// An empty system message is added, because the template declares tools only with one.
    SystemAdded,
    /// An empty message of the assistant is added between tool results and a user message, which the template
    /// refuses after them.
    AnswerAdded,
    /// Arguments that are JSON text become an object.
    ArgumentsAsObject,
    /// Arguments that are an object become JSON text.
    ArgumentsAsText,
    /// Argument values other than strings become JSON text.
    ArgumentValuesAsText,
    /// Tool call ids become nine letters and digits, and calls without an id get one.
    CallIdsShortened,
    /// Parallel calls become separate messages, each followed by its result.
    CallsSplit,
    /// Content that is a list of text parts becomes text.
    PartsAsText,
    /// A tool result that is an object or a list becomes JSON text.
    ResultAsJsonText,
    /// The assistant's tool calls become text in its message.
    CallsAsText,
    /// Tool results become user text.
    ResultsAsUserText,
    /// Tools are declared in the system message.
    ToolsInSystemText,
    /// A system message becomes the start of the next user message.
    SystemInUserText,
    /// Content that is text becomes a list of one part.
    TextAsParts,
}

/// Applies a polyfill; returns true if it changed something.
type Apply = fn(&mut TemplateInput, &Capabilities) -> bool;

/// All polyfills, in the order of application.
const ALL: [(Polyfill, Apply); 18] = [
    (Polyfill::AssistantAsModel, role::assistant_as_model),
    (Polyfill::ToolsWrapped, tools::wrap_tools),
    (Polyfill::ToolsRenamed, tools::rename_tools),
    (Polyfill::SystemAdded, role::add_system),
    (Polyfill::AnswerAdded, role::add_answer),
    (Polyfill::ArgumentsAsObject, tool_calls::arguments_as_object),
    (Polyfill::ArgumentsAsText, tool_calls::arguments_as_text),
    (Polyfill::ArgumentValuesAsText, tool_calls::argument_values_as_text),
    (Polyfill::CallIdsShortened, tool_calls::shorten_ids),
    (Polyfill::CallsSplit, tool_calls::split_calls),
    (Polyfill::PartsAsText, content::parts_as_text),
    (Polyfill::ResultAsJsonText, content::result_as_json_text),
    (Polyfill::CallsAsText, tool_calls::calls_as_text),
    (Polyfill::ResultsAsUserText, role::results_as_user_text),
    (Polyfill::ToolsInSystemText, tools::tools_in_system_text),
    (Polyfill::SystemInUserText, role::system_in_user_text),
    (Polyfill::ToolsAsEmptyList, tools::tools_as_empty_list),
    (Polyfill::TextAsParts, content::text_as_parts),
];

/// The set of enabled polyfills; all by default.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Polyfills(BTreeSet<Polyfill>);

impl Default for Polyfills {
    fn default() -> Self {
        Self(ALL.iter().map(|(polyfill, _)| *polyfill).collect())
    }
}

impl Polyfills {
    /// No polyfills: the template omits or refuses unsupported features.
    pub fn none() -> Self {
        Self(BTreeSet::new())
    }

    /// Returns the set without `polyfill`.
    pub fn without(mut self, polyfill: Polyfill) -> Self {
        self.0.remove(&polyfill);
        self
    }

    /// Returns the set with `polyfill`.
    pub fn with(mut self, polyfill: Polyfill) -> Self {
        self.0.insert(polyfill);
        self
    }

    /// Returns true if `polyfill` is enabled.
    pub fn contains(&self, polyfill: Polyfill) -> bool {
        self.0.contains(&polyfill)
    }
}

/// A rendered prompt, with the changes made to its conversation.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct PolyfilledPrompt {
    /// The prompt.
    pub prompt: Prompt,
    /// Polyfills applied to the conversation, in order; empty if the template renders it unchanged.
    pub polyfills: Vec<Polyfill>,
}

impl From<Prompt> for PolyfilledPrompt {
    fn from(prompt: Prompt) -> Self {
        Self { prompt, polyfills: Vec::new() }
    }
}

/// A chat template whose conversations are first changed to a form it can render.
///
/// [`PromptTemplate::capabilities`] probes the template once; [`PolyfilledPrompt::polyfills`] names the
/// changes made. For a conversation that needs no change, the result is that of [`PromptTemplate::render`].
///
/// ```
/// use lm_template::{GenerationPrompt, Polyfill, PolyfilledTemplate, Polyfills, PromptTemplate, RenderInput, Value};
/// use serde_json::json;
///
/// // No system role here: the template refuses it.
/// let source = "{% for m in messages %}{% if m.role == 'system' %}{{ raise_exception('no system role') }}{% endif %}\
///               <{{ m.role }}>{{ m.content }}{% endfor %}";
/// let template = PolyfilledTemplate::new(PromptTemplate::new(source)?, Polyfills::default());
/// let rendered = template.render(&RenderInput {
///     messages: &[json!({"role": "system", "content": "Be terse."}), json!({"role": "user", "content": "Hi."})],
///     tools: &Value::Null,
///     generation_prompt: GenerationPrompt::Omit,
///     extra_context: &Default::default(),
/// })?;
/// assert_eq!(rendered.prompt.text(), "<user>Be terse.\n\nHi.");
/// assert_eq!(rendered.polyfills, [Polyfill::SystemInUserText]);
/// # Ok::<(), lm_template::Error>(())
/// ```
#[derive(Debug, Clone)]
pub struct PolyfilledTemplate {
    template: PromptTemplate,
    polyfills: Polyfills,
}

impl PolyfilledTemplate {
    /// Creates a template that applies `polyfills` where [`PromptTemplate::capabilities`] calls for them.
    pub fn new(template: PromptTemplate, polyfills: Polyfills) -> Self {
        Self { template, polyfills }
    }

    /// The underlying template.
    pub fn template(&self) -> &PromptTemplate {
        &self.template
    }

    /// The enabled polyfills.
    pub fn polyfills(&self) -> &Polyfills {
        &self.polyfills
    }

    /// Capabilities of the template.
    pub fn capabilities(&self) -> &Capabilities {
        self.template.capabilities()
    }

    /// Returns true if `tools` are declared as text, with calls in the form of Hermes models, because the
    /// template does not support tools.
    pub fn declares_in_text(&self, tools: &[ToolSpec]) -> bool {
        let named =
            self.capabilities().tools_variable.is_some() && self.polyfills.contains(Polyfill::ToolsRenamed);
        let has_place = self.capabilities().tools || named;
        !tools.is_empty() && !has_place && self.polyfills.contains(Polyfill::ToolsInSystemText)
    }

    /// Renders a conversation after applying the enabled polyfills that the template needs.
    ///
    /// # Errors
    /// Same errors as [`PromptTemplate::render`].
    pub fn render(&self, input: &RenderInput<'_>) -> Result<PolyfilledPrompt> {
        let generation_prompt = input.generation_prompt;
        let (input, polyfills) = self.polyfill(input);
        let prompt = self.template.render(&RenderInput {
            messages: &input.messages,
            tools: &input.tools,
            generation_prompt,
            extra_context: &input.extra_context,
        })?;
        Ok(PolyfilledPrompt { prompt, polyfills })
    }

    /// Renders a conversation up to the end of the last message's text, as
    /// [`PromptTemplate::render_to_continue`] does, after applying the enabled polyfills that the template
    /// needs.
    ///
    /// # Errors
    /// Same errors as [`PromptTemplate::render_to_continue`].
    pub fn render_to_continue(
        &self,
        input: &RenderInput<'_>,
        field: ContinueField<'_>,
    ) -> Result<PolyfilledPrompt> {
        let (changed, polyfills) = self.polyfill(input);
        let input = RenderInput {
            messages: &changed.messages,
            tools: &changed.tools,
            generation_prompt: input.generation_prompt,
            extra_context: &changed.extra_context,
        };
        Ok(PolyfilledPrompt { prompt: self.template.render_to_continue(&input, field)?, polyfills })
    }

    fn polyfill(&self, input: &RenderInput<'_>) -> (TemplateInput, Vec<Polyfill>) {
        let mut input = TemplateInput {
            messages: input.messages.to_vec(),
            tools: input.tools.clone(),
            extra_context: input.extra_context.clone(),
        };
        let enabled = ALL.iter().filter(|(polyfill, _)| self.polyfills.contains(*polyfill));
        let applied = enabled.filter(|(_, apply)| apply(&mut input, self.capabilities()));
        let applied = applied.map(|(polyfill, _)| *polyfill).collect();
        (input, applied)
    }
}

/// JSON for use between tags: `</` is escaped, so that no text inside can close a tag.
fn tagged_json(value: &Value) -> String {
    json_text(value).replace("</", "<\\/")
}

/// Serializes a value with the separators of Python's `json.dumps`, as templates write JSON.
fn json_text(value: &Value) -> String {
    struct Spaced;
    impl serde_json::ser::Formatter for Spaced {
        fn begin_array_value<W: ?Sized + std::io::Write>(
            &mut self,
            out: &mut W,
            first: bool,
        ) -> std::io::Result<()> {
            if first { Ok(()) } else { out.write_all(b", ") }
        }

        fn begin_object_key<W: ?Sized + std::io::Write>(
            &mut self,
            out: &mut W,
            first: bool,
        ) -> std::io::Result<()> {
            if first { Ok(()) } else { out.write_all(b", ") }
        }

        fn begin_object_value<W: ?Sized + std::io::Write>(&mut self, out: &mut W) -> std::io::Result<()> {
            out.write_all(b": ")
        }
    }
    let mut bytes = Vec::new();
    let written =
        serde::Serialize::serialize(value, &mut serde_json::Serializer::with_formatter(&mut bytes, Spaced));
    written.map_or_else(|_| value.to_string(), |()| String::from_utf8_lossy(&bytes).into_owned())
}

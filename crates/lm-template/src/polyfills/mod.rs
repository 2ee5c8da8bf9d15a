//! Polyfills: changes to a conversation for features its template lacks.

mod content;
mod media_order;
mod order;
mod result_media;
mod role;
mod template_input;
mod tool_calls;
mod tools;

use std::collections::BTreeSet;

use serde_json::Value;

use self::template_input::TemplateInput;
use crate::capabilities::Capabilities;
use crate::chat::ContinueField;
use crate::error::{Error, Result};
use crate::orders::Orders;
use crate::prompt::Prompt;
use crate::prompt_template::{PromptTemplate, RenderInput};
use crate::tool_spec::ToolSpec;

/// A change to a conversation for a feature its template lacks.
///
/// Calls and results as text take the form of Hermes models, which the processor `hermes` parses:
/// `<tool_call>{"name": …, "arguments": …}</tool_call>` and `<tool_response>{…}</tool_response>`, each on
/// separate lines.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, serde::Serialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Polyfill {
    /// A role that the template does not show becomes the nearest one: `developer` becomes `system`,
    /// `function` becomes `tool`, `model` becomes `assistant`, and any other role `user`.
    RolesRenamed,
    /// Role `assistant` becomes `model`.
    AssistantAsModel,
    /// A message without content gets empty text, because the template fails without the key.
    ContentAdded,
    /// Parts of reasoning in the assistant's content become `reasoning_content`.
    ReasoningMoved,
    /// Text beside reasoning and calls becomes part of the reasoning.
    TextAsReasoning,
    /// Text beside calls becomes a message before them, because the template drops one of the two.
    TextSplit,
    /// Bare declarations `{name, …}` become `{"type": "function", "function": {name, …}}`.
    ToolsWrapped,
    /// Without tools, `tools` is an empty list, because the template fails on null.
    ToolsAsEmptyList,
    /// Tools are passed in the variable that the template reads instead of `tools`, such as `xml_tools`.
    ToolsRenamed,
    /// An empty system message is added, because the template declares tools only with one.
    SystemAdded,
    /// Tool results are moved right after their calls, and into the order of these.
    ResultsMoved,
    /// Images and audio of tool results become those of a user message after the results, whose texts name
    /// them in their places, because the template does not show them in a result.
    ResultMediaInUserMessage,
    /// Calls without a result get an empty one.
    ResultsAdded,
    /// Instructions at the start are joined to one message.
    InstructionsMerged,
    /// An empty message of the user is added after the instructions, because the template needs one there.
    UserAdded,
    /// User messages next to each other are joined.
    UsersMerged,
    /// Messages of the assistant next to each other are joined.
    AnswersMerged,
    /// Empty text becomes a space, because the template refuses empty text.
    EmptyFilled,
    /// An empty message of the assistant is added between tool results and a user message, which the template
    /// refuses after them.
    AnswerAdded,
    /// Arguments that are JSON text become an object; another text becomes the value of its key `arguments`.
    ArgumentsAsObject,
    /// Arguments that are an object become JSON text.
    ArgumentsAsText,
    /// Argument values other than strings become JSON text.
    ArgumentValuesAsText,
    /// Tool call ids become nine letters and digits, and calls without an id get one; or only the latter, for
    /// a template that needs ids.
    CallIdsShortened,
    /// Parallel calls become separate messages, each followed by its result.
    CallsSplit,
    /// Content that is a list of text parts becomes text.
    PartsAsText,
    /// A tool result becomes an object of the function's name and its response, which the template reads.
    ResultsAsResponse,
    /// A tool result that is an object or a list becomes JSON text.
    ResultAsJsonText,
    /// The assistant's tool calls become text in its message.
    CallsAsText,
    /// Tool results become user text: all of them, or those that follow no call.
    ResultsAsUserText,
    /// Tools are declared in the system message.
    ToolsInSystemText,
    /// A system message becomes the start of the next user message: every one, or those after other
    /// messages.
    SystemInUserText,
    /// The system message becomes the start of the last user message, because the template shows it only in a
    /// conversation that ends with the user's.
    SystemInLastUserText,
    /// Content that is text becomes a list of one part.
    TextAsParts,
}

/// Applies a polyfill; returns true if it changed something.
type Apply = fn(&mut TemplateInput, &Capabilities) -> bool;

/// All polyfills, in the order of application.
const ALL: [(Polyfill, Apply); 33] = [
    (Polyfill::RolesRenamed, order::rename_roles),
    (Polyfill::AssistantAsModel, role::assistant_as_model),
    (Polyfill::ReasoningMoved, content::move_reasoning),
    (Polyfill::ContentAdded, order::add_content),
    (Polyfill::TextAsReasoning, order::text_as_reasoning),
    (Polyfill::TextSplit, order::split_text),
    (Polyfill::ToolsWrapped, tools::wrap_tools),
    (Polyfill::ToolsRenamed, tools::rename_tools),
    (Polyfill::SystemAdded, role::add_system),
    (Polyfill::ArgumentsAsObject, tool_calls::arguments_as_object),
    (Polyfill::ArgumentsAsText, tool_calls::arguments_as_text),
    (Polyfill::ArgumentValuesAsText, tool_calls::argument_values_as_text),
    (Polyfill::ResultsMoved, order::move_results),
    (Polyfill::ResultsAdded, order::add_results),
    (Polyfill::ResultMediaInUserMessage, result_media::in_user_message),
    (Polyfill::CallIdsShortened, tool_calls::shorten_ids),
    (Polyfill::CallsSplit, tool_calls::split_calls),
    (Polyfill::ResultsAsResponse, content::results_as_response),
    (Polyfill::PartsAsText, content::parts_as_text),
    (Polyfill::CallsAsText, tool_calls::calls_as_text),
    (Polyfill::ResultsAsUserText, role::results_as_user_text),
    (Polyfill::ResultAsJsonText, content::result_as_json_text),
    (Polyfill::ToolsInSystemText, tools::tools_in_system_text),
    (Polyfill::InstructionsMerged, order::merge_instructions),
    (Polyfill::SystemInUserText, role::system_in_user_text),
    (Polyfill::UsersMerged, order::merge_users),
    (Polyfill::AnswersMerged, order::merge_answers),
    (Polyfill::AnswerAdded, role::add_answer),
    (Polyfill::UserAdded, order::add_user),
    (Polyfill::SystemInLastUserText, order::system_in_last_user_text),
    (Polyfill::EmptyFilled, order::fill_empty),
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
    /// Images and audio of the conversation, by their numbers in the messages, in the order in which the
    /// template got them; `None` if that is their own order.
    pub media_order: Option<Vec<usize>>,
}

impl From<Prompt> for PolyfilledPrompt {
    fn from(prompt: Prompt) -> Self {
        Self { prompt, polyfills: Vec::new(), media_order: None }
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
    /// If the template still refuses it, the conversation is put into the strictest order, and then calls and
    /// results become text as well.
    ///
    /// # Errors
    /// Same errors as [`PromptTemplate::render`].
    pub fn render(&self, input: &RenderInput<'_>) -> Result<PolyfilledPrompt> {
        self.render_by(input, &|input| self.template.render(input))
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
        self.render_by(input, &|input| self.template.render_to_continue(input, field))
    }

    fn render_by(&self, input: &RenderInput<'_>, render: Render<'_>) -> Result<PolyfilledPrompt> {
        let mut probed = *self.capabilities();
        if probed.tools && input.tools.as_array().is_some_and(|tools| !tools.is_empty()) {
            probed.orders = probed.orders_with_tools;
        }
        let rendered = self.render_with(input, &probed, render);
        let refused = matches!(rendered, Err(Error::TemplateRaised { .. } | Error::TemplateRuntime { .. }));
        if !refused || self.polyfills.0.is_empty() {
            return rendered;
        }
        let strict = Capabilities { orders: Orders::STRICT, ..probed };
        let texts = Capabilities { system: false, tool_calls: false, tool_results: false, ..strict };
        [strict, texts]
            .iter()
            .find_map(|capabilities| self.render_with(input, capabilities, render).ok())
            .map_or(rendered, Ok)
    }

    fn render_with(
        &self,
        input: &RenderInput<'_>,
        capabilities: &Capabilities,
        render: Render<'_>,
    ) -> Result<PolyfilledPrompt> {
        let (mut changed, polyfills) = self.polyfill(input, capabilities);
        let media_order = media_order::take(&mut changed.messages);
        let prompt = render(&RenderInput {
            messages: &changed.messages,
            tools: &changed.tools,
            generation_prompt: input.generation_prompt,
            extra_context: &changed.extra_context,
        })?;
        Ok(PolyfilledPrompt { prompt, polyfills, media_order })
    }

    fn polyfill(
        &self,
        input: &RenderInput<'_>,
        capabilities: &Capabilities,
    ) -> (TemplateInput, Vec<Polyfill>) {
        let mut input = TemplateInput {
            messages: input.messages.to_vec(),
            tools: input.tools.clone(),
            extra_context: input.extra_context.clone(),
            unread_roles: self.unread_roles(input.messages),
        };
        media_order::number(&mut input.messages);
        let enabled = ALL.iter().filter(|(polyfill, _)| self.polyfills.contains(*polyfill));
        let applied = enabled.filter(|(_, apply)| apply(&mut input, capabilities));
        let applied = applied.map(|(polyfill, _)| *polyfill).collect();
        (input, applied)
    }

    /// Roles of the messages, besides the usual ones, that the template does not show.
    fn unread_roles(&self, messages: &[Value]) -> Vec<String> {
        const USUAL: [&str; 5] = ["system", "developer", "user", "assistant", "tool"];
        let roles: BTreeSet<&str> = messages.iter().filter_map(|message| message["role"].as_str()).collect();
        let further =
            roles.into_iter().filter(|role| !USUAL.contains(role) && *role != self.capabilities().model_role);
        further.filter(|role| !self.template.shows_role(role)).map(str::to_owned).collect()
    }
}

/// Rendering of a changed conversation.
type Render<'a> = &'a dyn Fn(&RenderInput<'_>) -> Result<Prompt>;

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

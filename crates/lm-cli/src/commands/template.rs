//! `lm template`: renders conversations to prompts, over JSON Lines.

use std::path::Path;

use anyhow::Result;
use lm_template::{
    ChatTemplates, ContinueField, DateTime, Error, GenerationPrompt, Map, Origin, PolyfilledPrompt,
    PolyfilledTemplate, Polyfills, PromptTemplate, RenderInput, TemplateChoice, Value,
};
use serde::Deserialize;
use serde_json::json;

use crate::json_lines::{answer_each, bad_line, error, vector};
use crate::model;

const EXAMPLES: &str = "\
A line of standard input is an object:
  template               the template's text, or
  model                  a folder, GGUF file or name of a model that has one
  messages               the conversation
  tools, documents       lists, or null
  add_generation_prompt  true: the prompt ends with the header of the model's message
  continue_final_message true, or the name of the field that the model continues
  context, kwargs        variables of the template, such as bos_token; kwargs win
  now                    the time that strftime_now gives, as 2025-03-14T15:09:26
  spans                  true: as --spans

The answer is {\"text\": …} or {\"error\": {\"kind\", \"message\"}}. Kinds: raised (the template refused), runtime, syntax, limit, \
empty_conversation, continue_final_message, model, bad_line. Other keys are errors, except those of notes: about, expected, id, \
name, source, streaming, variants. Each line has one answer; blank lines at the end are ignored. The exit code is 1 if a line failed.

Examples:
  echo '{\"model\": \"./Qwen3-0.6B\", \"messages\": [{\"role\": \"user\", \"content\": \"Hi\"}]}' | lm template
  lm template --spans < conversations.jsonl";

#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Args {
    /// Render the messages as given, without the preprocessing of apply_chat_template
    #[arg(long)]
    engine_only: bool,
    /// Add `spans`: character ranges [from, to) that the template marks with {% generation %}
    #[arg(long)]
    spans: bool,
    /// Adapt conversations to features that the template lacks, and add `polyfills`: the adaptations made
    #[arg(long, conflicts_with = "engine_only")]
    polyfill: bool,
    /// Add `segments`: the text split into template and conversation parts
    #[arg(long)]
    segments: bool,
}

pub fn run(args: &Args) -> Result<()> {
    let mut templates = LastTemplate::default();
    answer_each(|line| answer(args, &mut templates, line))
}

/// An input line, with the field names of transformers.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Line {
    template: Option<String>,
    model: Option<String>,
    messages: Vec<Value>,
    #[serde(default)]
    tools: Value,
    #[serde(default)]
    documents: Value,
    #[serde(default)]
    add_generation_prompt: bool,
    #[serde(default)]
    continue_final_message: Continue,
    #[serde(default)]
    context: Map<String, Value>,
    #[serde(default)]
    kwargs: Map<String, Value>,
    now: Option<String>,
    #[serde(default, alias = "assistant_spans")]
    spans: bool,
}

#[derive(Deserialize)]
#[serde(untagged)]
enum Continue {
    Content(bool),
    Field(String),
}

impl Default for Continue {
    fn default() -> Self {
        Self::Content(false)
    }
}

impl Continue {
    fn field(&self) -> Option<ContinueField<'_>> {
        match self {
            Self::Content(wanted) => wanted.then_some(ContinueField::Content),
            Self::Field(name) => Some(ContinueField::Named(name)),
        }
    }
}

/// Compiled template of the last line: consecutive lines mostly use the same one.
#[derive(Default)]
struct LastTemplate(Option<(String, PromptTemplate)>);

impl LastTemplate {
    fn get(&mut self, source: String) -> Result<&PromptTemplate, Error> {
        let template = match self.0.take() {
            Some((last, template)) if last == source => template,
            _ => PromptTemplate::new(&source)?,
        };
        Ok(&self.0.insert((source, template)).1)
    }
}

fn answer(args: &Args, templates: &mut LastTemplate, line: Map<String, Value>) -> Value {
    let line: Line = match vector(line) {
        Ok(line) => line,
        Err(answer) => return answer,
    };
    let mut context = Map::new();
    let source = match (&line.template, &line.model) {
        (Some(source), None) => source.clone(),
        (None, Some(folder)) => match of_model(folder, &line.tools, &mut context) {
            Ok(source) => source,
            Err(cause) => return error("model", cause),
        },
        _ => {
            return bad_line(
                "expected either `model` (a folder, a GGUF file or a name; `pocket` is the embedded one) or `template` (its text)",
            );
        }
    };
    context.extend(line.context.clone());
    let now = match line.now.as_deref().map(str::parse).transpose() {
        Ok(now) => now,
        Err(error) => return bad_line(format!("`now`: {error}")),
    };
    if line.continue_final_message.field().is_some() && (args.engine_only || args.polyfill) {
        return bad_line("`continue_final_message` goes neither with --engine-only nor with --polyfill");
    }
    match render(args, templates, (source, context, now), &line) {
        Ok(prompt) => shown(args, &line, &prompt),
        Err(cause) => error(kind(&cause), message(&cause)),
    }
}

/// Returns the template of a model; adds its special tokens to `context`.
fn of_model(model: &str, tools: &Value, context: &mut Map<String, Value>) -> Result<String> {
    let folder = model::folder(Some(Path::new(model)))?;
    let source = folder.chat_template()?;
    if source.is_none() {
        folder.config()?; // A folder without a model has a clearer error.
    }
    let source = source.unwrap_or_default();
    let templates = ChatTemplates::from_files(source.iter())?;
    context.extend(templates.special_tokens().clone());
    let choice = if tools.is_null() { TemplateChoice::Default } else { TemplateChoice::Tools };
    Ok(templates.source(choice)?.to_owned())
}

fn render(
    args: &Args,
    templates: &mut LastTemplate,
    (source, context, now): (String, Map<String, Value>, Option<DateTime>),
    line: &Line,
) -> Result<PolyfilledPrompt, Error> {
    let mut template = templates.get(source)?.clone().with_context(context);
    if let Some(now) = now {
        template = template.with_time(now);
    }
    let mut extra_context = Map::new();
    extra_context.insert("documents".to_owned(), line.documents.clone());
    extra_context.extend(line.kwargs.clone());
    let generation_prompt =
        if line.add_generation_prompt { GenerationPrompt::Add } else { GenerationPrompt::Omit };
    let (messages, tools) = (&line.messages, &line.tools);
    let input = RenderInput { messages, tools, generation_prompt, extra_context: &extra_context };
    let prompt = match line.continue_final_message.field() {
        _ if args.engine_only => template.render_as_is(&input)?,
        Some(field) => template.render_to_continue(&input, field)?,
        None if args.polyfill => {
            return PolyfilledTemplate::new(template, Polyfills::default()).render(&input);
        }
        None => template.render(&input)?,
    };
    Ok(prompt.into())
}

fn shown(args: &Args, line: &Line, rendered: &PolyfilledPrompt) -> Value {
    let PolyfilledPrompt { prompt, polyfills, .. } = rendered;
    let text = prompt.text();
    let mut answer = json!({"text": text});
    if args.spans || line.spans {
        let characters = |byte: usize| text[..byte].chars().count();
        let spans = prompt.generation.iter().map(|range| [characters(range.start), characters(range.end)]);
        answer["spans"] = json!(spans.collect::<Vec<_>>());
    }
    if args.polyfill {
        answer["polyfills"] = polyfills.iter().map(|polyfill| format!("{polyfill:?}")).collect();
    }
    if args.segments {
        let segments = prompt.segments.iter().map(|segment| {
            let kind = match segment.origin {
                Origin::Template => "template",
                Origin::Content => "content",
            };
            json!({"kind": kind, "text": segment.text})
        });
        answer["segments"] = segments.collect();
    }
    answer
}

/// Error kind, as in the reference data.
fn kind(error: &Error) -> &'static str {
    match error {
        Error::TemplateRaised { .. } => "raised",
        Error::TemplateSyntax { .. } => "syntax",
        Error::TemplateLimit { .. } => "limit",
        Error::EmptyConversation => "empty_conversation",
        Error::ContinueFinalMessage { .. } => "continue_final_message",
        _ => "runtime",
    }
}

/// Error message; that of a template's `raise_exception` is unchanged.
fn message(error: &Error) -> String {
    match error {
        Error::TemplateRaised { message } => message.clone(),
        error => error.to_string(),
    }
}

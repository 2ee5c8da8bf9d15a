//! `lm parse`: parses a model's text to content, reasoning and tool calls, over JSON Lines.

use anyhow::Result;
use lm_processors::{
    CallBody, ModelDataProcessor, OnMalformed, ParserOptions, ProcessorEvent, ReadCalls, ReasoningText,
    ToolCall, ToolSpec, by_name, detect,
};
use serde::Deserialize;
use serde_json::{Map, Value, json};

use crate::json_lines::{answer_each, bad_line, error, vector};

const EXAMPLES: &str = "\
A line of standard input is an object:
  format         the format's name, such as hermes, or
  template       a chat template, from which the format follows, or
  model          a model's name, if the template is ambiguous
  output         the model's text
  chunks         the pieces in which it comes, instead of at once
  tools          the declared tools, which type the arguments of some formats
  prompt_suffix  the end of the prompt, which may have opened the reasoning
  options        an object; see below
  kind           reasoning: nothing is a call

Options: {\"reasoning\": \"none\"} leaves reasoning in the content; {\"enable_thinking\": false}: the prompt did not open it; \
{\"tool_choice\": \"none\"}: nothing is a call; {\"partial\": true}: the output is cut off, and an incomplete call is listed as far as \
it goes; parallel_tool_calls has no effect. An empty prompt_suffix is an unknown one. Other keys are errors, except those of notes: \
about, expected, id, name, source, streaming, variants.

The answer is {\"content\", \"reasoning\", \"tool_calls\"} or {\"error\": {\"kind\", \"message\"}}. A call is {\"name\", \"arguments\"}, \
with \"id\" where the model gives one; where its arguments are not complete JSON, \"arguments_text\" is their text. Text that only \
looked like a call stays in the content; \"malformed\" lists each such text with the reason. Kinds of errors: bad_format, bad_line. \
Each line has one answer; blank lines at the end are ignored. The exit code is 1 if a line failed.

Examples:
  echo '{\"format\": \"pythonic\", \"output\": \"[roll(count=2)]\"}' | lm parse
  lm parse --events < replies.jsonl";

#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Args {
    /// Add `events`: the events of the streaming parser, in order
    #[arg(long)]
    events: bool,
}

pub fn run(args: &Args) -> Result<()> {
    answer_each(|line| answer(args, line))
}

/// An input line, with the field names of parser test vectors.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Line {
    format: Option<String>,
    template: Option<String>,
    model: Option<String>,
    #[serde(default)]
    kind: String,
    output: String,
    chunks: Option<Vec<String>>,
    #[serde(default)]
    tools: Option<Vec<Value>>,
    #[serde(default)]
    prompt_suffix: String,
    #[serde(default)]
    options: Options,
}

#[derive(Deserialize, Default)]
#[serde(deny_unknown_fields)]
struct Options {
    reasoning: Option<String>,
    #[serde(alias = "thinking")]
    enable_thinking: Option<bool>,
    tool_choice: Option<Value>,
    /// Has no effect: all calls of a text are parsed.
    #[serde(rename = "parallel_tool_calls")]
    _parallel_tool_calls: Option<bool>,
    #[serde(default)]
    partial: bool,
}

fn answer(args: &Args, line: Map<String, Value>) -> Value {
    let line: Line = match vector(line) {
        Ok(line) => line,
        Err(answer) => return answer,
    };
    let processor = match (&line.format, &line.template, &line.model) {
        (Some(format), None, None) => match by_name(format) {
            Some(processor) => processor,
            None => return error("bad_format", format!("there is no format `{format}`")),
        },
        (None, None, None) | (Some(_), ..) => {
            return bad_line("expected `format`, or one or both of `template` and `model`");
        }
        (None, template, model) => {
            detect(template.as_deref().unwrap_or_default(), model.as_deref().unwrap_or_default())
        }
    };
    match parser_options(&line) {
        Ok(options) => read(args, processor, &options, &line),
        Err(error) => bad_line(format!("`tools`: {error}")),
    }
}

fn parser_options(line: &Line) -> Result<ParserOptions, lm_template::Error> {
    let tools = line.tools.iter().flatten().cloned().map(ToolSpec::from_json);
    let never = line.kind == "reasoning" || line.options.tool_choice == Some("none".into());
    let known = !line.prompt_suffix.is_empty() || line.options.enable_thinking == Some(false);
    let inline = line.options.reasoning.as_deref() == Some("none");
    Ok(ParserOptions {
        tools: tools.collect::<Result<_, _>>()?,
        calls: if never { ReadCalls::Never } else { ReadCalls::Always },
        prompt_tail: known.then(|| line.prompt_suffix.as_str().into()),
        reasoning: if inline { ReasoningText::Inline } else { ReasoningText::Split },
        on_malformed: OnMalformed::Text,
        on_unfinished: OnMalformed::Text,
        ..ParserOptions::default()
    })
}

fn read(args: &Args, processor: &dyn ModelDataProcessor, options: &ParserOptions, line: &Line) -> Value {
    let pieces = line.chunks.as_deref().unwrap_or(std::slice::from_ref(&line.output));
    let mut parser = processor.parser(options);
    let mut events: Vec<ProcessorEvent> = pieces.iter().flat_map(|piece| parser.push(piece)).collect();
    events.extend(parser.finish());
    let mut sum =
        Accumulator { parts: line.options.partial || writes_json(processor), ..Accumulator::default() };
    events.iter().for_each(|event| sum.add(event));
    let mut answer = json!({"content": sum.content, "reasoning": sum.reasoning, "tool_calls": sum.calls});
    if !sum.malformed.is_empty() {
        answer["malformed"] = sum.malformed.into();
    }
    if args.events {
        answer["events"] = events.iter().map(event_json).collect();
    }
    answer
}

/// Returns true if the argument text of a call is the model's own JSON; other formats derive it.
fn writes_json(processor: &dyn ModelDataProcessor) -> bool {
    let calls = processor.dialect().map_or(&[][..], |dialect| dialect.calls);
    matches!(calls.first().map(|syntax| syntax.body), Some(CallBody::Json(_) | CallBody::Named(_)))
}

/// Accumulated events.
#[derive(Default)]
struct Accumulator {
    content: String,
    reasoning: String,
    calls: Vec<Value>,
    malformed: Vec<Value>,
    /// True if incomplete calls are listed.
    parts: bool,
    current: Value,
    current_text: String,
}

impl Accumulator {
    fn add(&mut self, event: &ProcessorEvent) {
        match event {
            ProcessorEvent::Text(text) => self.content += text,
            ProcessorEvent::Channel { text, .. } => self.reasoning += text,
            ProcessorEvent::ToolCallStarted { name, id, .. } => {
                self.current = json!({"name": name});
                self.current_text.clear();
                if let Some(id) = id {
                    self.current["id"] = id.as_str().into();
                }
            }
            ProcessorEvent::ToolCallArguments { fragment, .. } => self.current_text += fragment,
            ProcessorEvent::ToolCall { call, .. } => self.calls.push(call_json(call)),
            ProcessorEvent::Malformed { index, text, .. } => {
                self.malformed.push(event_json(event));
                let whole = serde_json::from_str::<Value>(&self.current_text).is_ok();
                if self.parts && index.is_some() && !whole {
                    self.current["arguments_text"] = self.current_text.as_str().into();
                    self.calls.push(self.current.take());
                } else {
                    self.content += text;
                }
            }
            _ => {}
        }
    }
}

fn call_json(call: &ToolCall) -> Value {
    let mut json = json!({"name": call.name, "arguments": call.arguments});
    if let Some(id) = &call.id {
        json["id"] = id.as_str().into();
    }
    json
}

fn event_json(event: &ProcessorEvent) -> Value {
    match event {
        ProcessorEvent::Text(text) => json!({"type": "text", "text": text}),
        ProcessorEvent::Channel { name, text } => json!({"type": "channel", "name": name, "text": text}),
        ProcessorEvent::ToolCallStarted { index, name, id } => {
            json!({"type": "tool_call_started", "index": index, "name": name, "id": id})
        }
        ProcessorEvent::ToolCallArguments { index, fragment } => {
            json!({"type": "tool_call_arguments", "index": index, "fragment": fragment})
        }
        ProcessorEvent::ToolCall { index, call } => {
            json!({"type": "tool_call", "index": index, "call": call_json(call)})
        }
        ProcessorEvent::Malformed { index, fault, text, reason } => {
            json!({"type": "malformed", "index": index, "fault": fault.name(), "text": text, "reason": reason})
        }
        _ => Value::Null,
    }
}

//! `lm grammar`: checks texts against a grammar, over JSON Lines.

use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::Arc;

use anyhow::{Context, Result};
use lm_processors::{
    Calls, Grammar, GrammarRequest, Layout, ModelDataProcessor, ParserOptions, ProcessorEvent, ReplyForm,
    ReplyGrammar, ResponseFormat, SchemaError, SchemaFault, Thinking, ToolChoice, ToolSpec,
    UnenforcedKeyword, gbnf_grammar, json_grammar, validator,
};
use lm_session::{Acceptance, CompiledConstraint, ConstraintSpec, GrammarCompiler, GrammarErrorKind};
use lm_tokenizer::Tokenizer;
use serde::Deserialize;
use serde_json::{Map, Value, json};

use crate::json_lines::{answer_each, bad_line, error, vector};
use crate::model;

const EXAMPLES: &str = "\
A line of standard input is an object:
  format               a family, such as hermes, or
  template             a chat template, from which the family follows, with
  tools                the declared tools, or null
  tool_choice          as in chat completions
  parallel_tool_calls  false: at most one call
  response_format      as in chat completions
  prompt_suffix        the end of the prompt, which may have opened the reasoning
  layout               any (the default) or exact; see below
  or one of
  schema               a JSON schema, for JSON text
  regex, choice, lark  a pattern, a list of texts, a Lark grammar of llguidance
  gbnf                 a grammar of llama.cpp
  markers              with lark: texts of the rules marker_0, marker_1, …
  and
  texts                the texts to judge

Layout: with `any`, the whitespace that the family's parser reads is accepted; with `exact`, only what decoding allows.

The answer is {\"results\": [{\"accepted\": true} or {\"accepted\": false, \"at\": BYTE}, …]}: BYTE is where a text stops being \
acceptable; its length, when it ends too early or when a finished value does not fit its schema. \"relaxed\" lists keywords that the \
grammar does not enforce; there the finished values are validated. An error is {\"error\": {\"kind\", \"message\"}}, with \"tool\", \
\"path\" and \"keyword\" where a schema is at fault. Kinds: bad_schema, unsupported_keyword, too_large, bad_grammar, bad_request, \
bad_line. Other keys are errors, except those of notes: about, expected, id, name, source, streaming, variants. Each line has one answer; blank lines at the end are ignored. The exit code is 1 if a line failed.

Examples:
  echo '{\"schema\": {\"type\": \"integer\"}, \"texts\": [\"12\", \"1.5\"]}' | lm grammar
  lm grammar --tokenizer tokenizer.json < cases.jsonl";

#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Args {
    /// Vocabulary to compile for: a tokenizer.json [default: the embedded model's]
    #[arg(long, value_name = "FILE")]
    tokenizer: Option<PathBuf>,
    /// Add `grammar`: Lark text and markers, or the pattern or list of texts as given
    #[arg(long)]
    show: bool,
}

pub fn run(args: &Args) -> Result<()> {
    let tokenizer = match &args.tokenizer {
        Some(path) => {
            let json = std::fs::read(path).with_context(|| format!("{} cannot be read", path.display()))?;
            Tokenizer::from_json(&json)?
        }
        None => model::folder(None)?.tokenizer()?,
    };
    let compiler = GrammarCompiler::new(&Arc::new(tokenizer))?;
    answer_each(|line| answer(args, &compiler, line).unwrap_or_else(|error| error))
}

/// An input line, with the field names of chat completions.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Line {
    format: Option<String>,
    template: Option<String>,
    #[serde(default)]
    tools: Option<Vec<Value>>,
    #[serde(default)]
    tool_choice: Value,
    parallel_tool_calls: Option<bool>,
    response_format: Option<Value>,
    #[serde(default)]
    prompt_suffix: String,
    #[serde(default)]
    layout: LayoutName,
    schema: Option<Value>,
    regex: Option<String>,
    choice: Option<Vec<String>>,
    lark: Option<String>,
    gbnf: Option<String>,
    #[serde(default)]
    markers: Vec<String>,
    texts: Vec<String>,
}

#[derive(Deserialize, Default, Clone, Copy)]
#[serde(rename_all = "lowercase")]
enum LayoutName {
    #[default]
    Any,
    Exact,
}

impl Line {
    fn layout(&self) -> Layout {
        match self.layout {
            LayoutName::Any => Layout::Any,
            LayoutName::Exact => Layout::Exact,
        }
    }
}

/// Grammar and validators of texts.
struct Judge {
    constraint: Option<CompiledConstraint>,
    unenforced: Vec<UnenforcedKeyword>,
    finished: Finished,
}

/// Validation of a complete text, if the grammar does not enforce all keywords.
enum Finished {
    Nothing,
    Json(Value),
    Reply { processor: &'static dyn ModelDataProcessor, options: ParserOptions, format: Option<Value> },
}

fn answer(args: &Args, compiler: &GrammarCompiler, line: Map<String, Value>) -> Result<Value, Value> {
    let line: Line = vector(line)?;
    let mut answer = Map::new();
    let (spec, unenforced, finished) = match (&line.schema, spec_of(&line)?) {
        (Some(schema), None) => of_schema(schema, line.layout())?,
        (None, Some(spec)) => (Some(spec), vec![], Finished::Nothing),
        (None, None) => {
            let (grammar, finished) = of_reply(&line)?;
            match grammar {
                Some(grammar) => (Some(lark(grammar.grammar)), grammar.unenforced, finished),
                None => (None, vec![], finished),
            }
        }
        _ => {
            return Err(bad_line(ONE_OF));
        }
    };
    if let (Some(spec), true) = (&spec, args.show) {
        answer.insert("grammar".to_owned(), shown_spec(spec));
    }
    let constraint = spec.map(|spec| compile(compiler, &spec)).transpose()?;
    let judge = Judge { constraint, unenforced, finished };
    let results = line.texts.iter().map(|text| judge.result(text)).collect::<Result<Vec<_>, _>>()?;
    answer.insert("results".to_owned(), results.into());
    if !judge.unenforced.is_empty() {
        answer.insert("relaxed".to_owned(), judge.unenforced.iter().map(shown).collect());
    }
    Ok(Value::Object(answer))
}

const ONE_OF: &str = "expected one of `format` or `template`, `schema`, `regex`, `choice`, `lark`, `gbnf`";

/// The grammar that a line gives by itself; `None` if it gives none or several.
fn spec_of(line: &Line) -> Result<Option<ConstraintSpec>, Value> {
    Ok(match (&line.regex, &line.choice, &line.lark, &line.gbnf) {
        (Some(regex), None, None, None) => Some(ConstraintSpec::Regex(regex.clone())),
        (None, Some(choice), None, None) => Some(ConstraintSpec::Choice(choice.clone())),
        (None, None, Some(text), None) => {
            Some(ConstraintSpec::Lark { text: text.clone(), markers: line.markers.clone() })
        }
        (None, None, None, Some(text)) => {
            Some(lark(gbnf_grammar(text).map_err(|cause| error("bad_grammar", cause))?))
        }
        _ => None,
    })
}

/// Grammar of a line, the keywords that it does not enforce, and their validation.
type Parts = (Option<ConstraintSpec>, Vec<UnenforcedKeyword>, Finished);

fn of_schema(schema: &Value, layout: Layout) -> Result<Parts, Value> {
    let ReplyGrammar { grammar, unenforced } =
        json_grammar(schema, layout).map_err(|error| schema_error(&error))?;
    let finished = if unenforced.is_empty() { Finished::Nothing } else { Finished::Json(schema.clone()) };
    Ok((Some(lark(grammar)), unenforced, finished))
}

fn of_reply(line: &Line) -> Result<(Option<ReplyGrammar>, Finished), Value> {
    let processor = processor(line)?;
    let tools = line.tools.iter().flatten().cloned().map(ToolSpec::from_json);
    let tools: Arc<[ToolSpec]> = tools.collect::<Result<_, _>>().map_err(bad_line)?;
    let response_format = line.response_format.as_ref().map(lm_api::response_format).transpose();
    let response_format = response_format.map_err(bad_line)?.flatten();
    let request = GrammarRequest {
        tools: &tools,
        choice: tool_choice(&line.tool_choice)?,
        calls: if line.parallel_tool_calls == Some(false) { Calls::One } else { Calls::Several },
        thinking: if processor.opens_reasoning(&line.prompt_suffix) {
            Thinking::Open
        } else {
            Thinking::Allowed
        },
        response_format,
        layout: line.layout(),
        ..GrammarRequest::default()
    };
    let grammar = processor.grammar(&request).map_err(|cause| match cause {
        lm_processors::Error::Schema(cause) => schema_error(&cause),
        cause => error("bad_request", cause),
    })?;
    let form = (request.layout == Layout::Exact).then(|| ReplyForm::of(&request));
    let finished = match &grammar {
        Some(grammar) if !grammar.unenforced.is_empty() => {
            let format = match request.response_format {
                Some(ResponseFormat::JsonSchema(schema)) => Some(schema),
                _ => None,
            };
            let prompt_tail = Some(line.prompt_suffix.as_str().into());
            let options =
                ParserOptions { tools: tools.clone(), prompt_tail, form, ..ParserOptions::default() };
            Finished::Reply { processor, options, format }
        }
        _ => Finished::Nothing,
    };
    Ok((grammar, finished))
}

fn processor(line: &Line) -> Result<&'static dyn ModelDataProcessor, Value> {
    match (&line.format, &line.template) {
        (Some(format), None) => {
            let known = || {
                lm_processors::ALL.iter().map(|family| family.processor.name()).collect::<Vec<_>>().join(", ")
            };
            lm_processors::by_name(format)
                .ok_or_else(|| error("bad_request", format!("no format `{format}`; known: {}", known())))
        }
        (None, Some(template)) => Ok(lm_processors::detect(template, "")),
        _ => Err(bad_line(ONE_OF)),
    }
}

/// Reads `tool_choice` as a chat completion has it, or as the name of a tool.
fn tool_choice(choice: &Value) -> Result<ToolChoice, Value> {
    match choice {
        Value::String(word) => Ok(lm_api::tool_choice_word(word)),
        choice => lm_api::tool_choice(choice).map_err(bad_line),
    }
}

fn compile(compiler: &GrammarCompiler, spec: &ConstraintSpec) -> Result<CompiledConstraint, Value> {
    compiler.compile(spec).map_err(|cause| {
        let is_too_large =
            matches!(cause, lm_session::Error::Grammar { kind: GrammarErrorKind::TooLarge, .. });
        error(if is_too_large { "too_large" } else { "bad_grammar" }, cause)
    })
}

fn schema_error(cause: &SchemaError) -> Value {
    let kind = match cause.fault {
        SchemaFault::Unsupported | SchemaFault::UnsupportedPattern(_) => "unsupported_keyword",
        SchemaFault::TooLarge(_) => "too_large",
        _ => "bad_schema",
    };
    let keyword = Some(&cause.keyword).filter(|keyword| !keyword.is_empty());
    let SchemaError { tool, path, .. } = cause;
    json!({"error": {"kind": kind, "message": cause.to_string(), "tool": tool, "path": path, "keyword": keyword}})
}

fn lark(grammar: Grammar) -> ConstraintSpec {
    ConstraintSpec::Lark { text: grammar.lark, markers: grammar.markers }
}

fn shown_spec(spec: &ConstraintSpec) -> Value {
    match spec {
        ConstraintSpec::Lark { text, markers } => json!({"lark": text, "markers": markers}),
        ConstraintSpec::Regex(pattern) => json!({"regex": pattern}),
        ConstraintSpec::Choice(texts) => json!({"choice": texts}),
    }
}

fn shown(unenforced: &UnenforcedKeyword) -> Value {
    json!({"tool": unenforced.tool, "path": unenforced.path, "keyword": unenforced.keyword})
}

impl Judge {
    fn result(&self, text: &str) -> Result<Value, Value> {
        let acceptance = match &self.constraint {
            Some(constraint) => constraint.check(text).map_err(|cause| error("bad_grammar", cause))?,
            None => Acceptance::Accepted,
        };
        Ok(match acceptance {
            Acceptance::Accepted if self.finished.fits(text) => json!({"accepted": true}),
            Acceptance::Accepted | Acceptance::Incomplete => json!({"accepted": false, "at": text.len()}),
            Acceptance::Rejected { at } => json!({"accepted": false, "at": at}),
        })
    }
}

impl Finished {
    fn fits(&self, text: &str) -> bool {
        match self {
            Self::Nothing => true,
            Self::Json(schema) => serde_json::from_str(text).is_ok_and(|value| is_valid(schema, &value)),
            Self::Reply { processor, options, format } => {
                reply_fits(*processor, options, format.as_ref(), text)
            }
        }
    }
}

/// Returns true if each call of a reply matches its tool's schema, and a reply without calls matches its
/// format.
fn reply_fits(
    processor: &dyn ModelDataProcessor,
    options: &ParserOptions,
    format: Option<&Value>,
    text: &str,
) -> bool {
    let mut parser = processor.parser(options);
    let events = [parser.push(text), parser.finish()].concat();
    let schemas: HashMap<&str, &Value> =
        options.tools.iter().map(|tool| (tool.name(), tool.parameters())).collect();
    let (mut answer, mut called) = (String::new(), false);
    for event in events {
        match event {
            ProcessorEvent::ToolCall { call, .. } => {
                called = true;
                let arguments = Value::Object(call.arguments);
                let fits = |schema: &&Value| schema.is_null() || is_valid(schema, &arguments);
                if !schemas.get(call.name.as_str()).is_some_and(fits) {
                    return false;
                }
            }
            ProcessorEvent::Text(text) => answer += &text,
            _ => {}
        }
    }
    let fits_format =
        |schema: &Value| serde_json::from_str(&answer).is_ok_and(|value| is_valid(schema, &value));
    called || format.is_none_or(fits_format)
}

/// Returns true if the schema accepts the value. A schema that does not compile has been rejected before.
fn is_valid(schema: &Value, value: &Value) -> bool {
    validator(schema, false).is_ok_and(|validator| validator.is_valid(value))
}

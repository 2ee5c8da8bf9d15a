//! `lm generate`: one prompt, one reply.

mod formats;
mod ids;

use std::convert::Infallible;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use lm_conversation::{Conversation, ConversationEvent, ResponseFormat, ToolChoice, TurnOptions};
use lm_session::{
    CancelHandle, ConstraintSpec, Engine, FinishReason, Finished, GenerateParams, SessionConfig, SessionEvent,
};
use lm_template::{Message, ToolSpec};
use serde_json::{Value, json};

use crate::args::{ChatArgs, PromptArgs, PromptSource, RunArgs, SamplerArgs, usage};
use crate::failure::session_error;
use crate::interrupt::{Interrupt, is_interrupt};
use crate::json_file::BOM;
use crate::locate::locate;
use crate::screen::{CallsTo, Screen};
use crate::{events, media, model, prompt_ids};
use formats::{grammar_name, read_grammar, read_schema, regex};

const EXAMPLES: &str = "\
Examples:
  lm generate 'How is the weather in Paris?' --tools demo
  lm generate --json 'Hello' | jq .
  lm generate 'Is it raining?' --regex 'yes|no'
  lm generate 'Which season is July in Oslo?' --choice summer --choice winter
  lm generate 'Is it raining?' --schema '{\"enum\": [\"yes\", \"no\"]}'
  lm generate 'Paris, please' --tools demo --tool-choice get_weather
  lm generate -f notes.txt -m ./Qwen3-0.6B --hide-thinking > summary.txt
  git diff | lm generate 'Write a commit message'
  lm generate 'What is in the image?' --image cat.png -m ./gemma-3-4b-it
  lm generate 'Transcribe the audio' --audio talk.wav -m ./gemma-4-E2B-it
  lm generate --raw 'Once upon a time' -n 40
  lm generate ./Qwen3-0.6B --ids ids.jsonl --temperature 0 --max-tokens 32

Text of standard input goes before a prompt that is an argument, if standard input is not a terminal; `< /dev/null` gives none.

The answer alone goes to standard output, reasoning and notes to standard error. Calls of tools are the answer: they are printed and \
not run; `lm chat` runs them.

With --json each line is an event: start, text, reasoning, tool_call, and last finished or error. docs/json-output.md describes them.

With --ids each line of the file is a prompt, a JSON list of token ids that is run as it is, and each line of the output the list of \
the new ids, the one that ends the reply included, or {\"error\": {\"kind\", \"message\"}}. Kinds: generation, bad_line. Blank lines at the \
end are ignored. The exit code is 1 if a line failed.";

/// Note on a constrained answer that was steered to its end.
const FORM_COMPLETED: &str = "note: the reply was cut: its form was completed within the tokens that were left of the context or of --max-tokens \
                              (-n); in a schema, maxLength limits a string and maxItems an array";

/// Note on a call whose end is not the model's.
const CALL_CUT_OFF: &str = "note: a tool call was cut off by the token limit and left out; --max-tokens (-n) or --context allows more";

/// Arguments that apply to conversations only.
const CHAT_ARGS: [&str; 12] = [
    "image",
    "audio",
    "tools",
    "system",
    "thinking",
    "thinking_tokens",
    "hide_thinking",
    "unconstrained",
    "schema",
    "regex",
    "choice",
    "grammar",
];

#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Args {
    /// Prompt, the user's message [default: standard input]; with --ids the model
    #[arg(value_name = "PROMPT")]
    positional: Option<String>,
    #[command(flatten)]
    prompt: PromptArgs,
    /// Model folder, GGUF file, or name such as Qwen/Qwen3-0.6B [default: the embedded model]
    #[arg(long, short, value_name = "MODEL")]
    model: Option<PathBuf>,
    /// Print events as JSON Lines
    #[arg(long)]
    json: bool,
    /// Complete the prompt as plain text, without the chat template
    #[arg(long, conflicts_with_all = CHAT_ARGS)]
    raw: bool,
    /// Complete prompts given as token ids, one JSON list a line; - is standard input
    #[arg(long, value_name = "FILE", conflicts_with_all = CHAT_ARGS.iter().chain(&["raw", "json", "text", "file"]))]
    ids: Option<PathBuf>,
    /// Image before the text of the message: PNG, JPEG, WebP, GIF or BMP; may be repeated
    #[arg(long, value_name = "FILE")]
    image: Vec<PathBuf>,
    /// Audio before the text of the message: WAV, FLAC, MP3 or Ogg Vorbis; may be repeated
    #[arg(long, value_name = "FILE")]
    audio: Vec<PathBuf>,
    #[command(flatten)]
    chat: ChatArgs,
    #[command(flatten)]
    reply: ReplyArgs,
    #[command(flatten)]
    sampler: SamplerArgs,
    #[command(flatten)]
    run: RunArgs,
}

/// Constraints on the reply.
#[derive(Debug, clap::Args)]
#[command(next_help_heading = "Reply")]
struct ReplyArgs {
    /// Tool choice: auto, required, none, or the name of a tool that must be called
    #[arg(long, value_name = "CHOICE", value_parser = tool_choice, requires = "tools")]
    tool_choice: Option<ToolChoice>,
    /// Constrain the answer to a JSON schema: a file, or the schema itself, which begins with {; with
    /// --tools, the reply may be a call instead, unless --tool-choice is none
    #[arg(long, value_name = "FILE|JSON", conflicts_with = "regex")]
    schema: Option<String>,
    /// Constrain the whole answer to the regular expression PATTERN; with --tools as for --schema
    #[arg(long, value_name = "PATTERN", value_parser = regex, allow_hyphen_values = true)]
    regex: Option<String>,
    /// Constrain the answer to one of several texts: give each with an option of its own; with --tools as for
    /// --schema
    #[arg(long, value_name = "TEXT", conflicts_with_all = ["schema", "regex"], allow_hyphen_values = true)]
    choice: Vec<String>,
    /// Constrain the answer to a grammar in GBNF or llguidance's Lark dialect: a file, or the grammar itself,
    /// which has `::=` or begins with `start:`; with --tools as for --schema
    #[arg(long, value_name = "FILE|TEXT", conflicts_with_all = ["schema", "regex", "choice"])]
    grammar: Option<String>,
}

impl ReplyArgs {
    /// Checks that a tool that must be called is declared, and that an answer is not constrained where it
    /// must be a call.
    fn check(&self, tools: &[ToolSpec]) -> Result<()> {
        let is_call = matches!(self.tool_choice, Some(ToolChoice::Required | ToolChoice::Named(_)));
        let is_constrained = self.schema.is_some()
            || self.regex.is_some()
            || self.grammar.is_some()
            || !self.choice.is_empty();
        if is_call && is_constrained {
            return Err(usage(
                "--schema, --regex, --choice and --grammar constrain an answer, and with this --tool-choice the \
                 reply is a call",
            ));
        }
        let Some(ToolChoice::Named(name)) = &self.tool_choice else { return Ok(()) };
        let names: Vec<_> = tools.iter().map(ToolSpec::name).collect();
        if !names.contains(&name.as_str()) {
            return Err(usage(format!(
                "--tool-choice is `{name}`, expected auto, required, none or one of the tools: {}",
                names.join(", ")
            )));
        }
        Ok(())
    }

    fn add_to(&self, turn: &mut TurnOptions) -> Result<()> {
        if let Some(choice) = &self.tool_choice {
            turn.tool_choice = choice.clone();
        }
        turn.response_format = match (&self.schema, &self.regex, &self.grammar) {
            (Some(schema), _, _) => Some(ResponseFormat::JsonSchema(read_schema(schema)?)),
            (_, Some(pattern), _) => Some(ResponseFormat::Regex(pattern.clone())),
            (_, _, Some(grammar)) => Some(ResponseFormat::Lark(read_grammar(grammar)?)),
            _ if self.choice.is_empty() => None,
            _ => Some(ResponseFormat::Choice(self.choice.clone())),
        };
        Ok(())
    }

    /// The error of a turn; where the grammar is at fault, with its place and about its own text, which the
    /// reply's grammar has a part of.
    fn named(&self, error: anyhow::Error, engine: &Engine) -> anyhow::Error {
        let is_at_fault = |cause: &(dyn std::error::Error + 'static)| {
            matches!(session_error(cause), Some(lm_session::Error::Grammar { .. }))
        };
        match &self.grammar {
            Some(grammar) if error.chain().any(is_at_fault) => {
                let own = read_grammar(grammar).and_then(|text| {
                    Ok(engine.compile(&ConstraintSpec::Lark { text, markers: Vec::new() }).map(drop)?)
                });
                own.err().unwrap_or(error).context(grammar_name(grammar))
            }
            _ => error,
        }
    }
}

/// Parser of `--tool-choice` for clap.
fn tool_choice(text: &str) -> Result<ToolChoice, Infallible> {
    Ok(lm_api::tool_choice_word(text))
}

pub fn run(args: &Args, interrupt: &Interrupt) -> Result<()> {
    if let Some(file) = &args.ids {
        return continue_ids(args, file, interrupt);
    }
    let model = args.model.as_deref();
    let prompt = args.prompt.source(args.positional.as_deref(), model)?;
    let tools = args.chat.tools.as_ref().map(|tools| tools.specs()).transpose()?.unwrap_or_default();
    args.reply.check(&tools)?;
    let mut turn = args.chat.turn_options(&[]);
    args.reply.add_to(&mut turn)?;
    model::stored(model).map(locate).transpose()?;
    let prompt = read_prompt(&prompt)?;
    let media = media::read_all(&args.image, &args.audio)?;
    let folder = model::folder_with(model, args.run.load.mmproj.as_deref())?;
    if !args.raw {
        model::check_chat_template(&folder)?;
    }
    media::check_all(&folder, &media)?;
    args.sampler.check(&folder.config()?)?;
    let engine = model::engine(model, &args.run)?;
    let mut session =
        if args.raw { args.sampler.session_config(&engine) } else { args.sampler.chat_config(&engine) };
    session.sampler = session.sampler.seeded()?;
    let screen = Screen::new(CallsTo::Answer, args.chat.hide_thinking);
    let mut output = Output { json: args.json, screen, text: String::new() };
    if args.json {
        print_line(&events::start(&engine, session.sampler.seed))?;
    }
    let ended = if args.raw {
        continue_text(&engine, session, &prompt, interrupt, &mut output)
    } else {
        let mut config = args.chat.conversation(model, session)?;
        config.preface.tools = tools;
        Conversation::new(&engine, config).map_err(Into::into).and_then(|conversation| {
            let (message, files) = media::message(media, &prompt);
            let index = conversation.preface().messages.len();
            let ended = reply(conversation, message, turn, interrupt, &mut output);
            ended.map_err(|error| media::with_file(error, index, &files))
        })
    };
    output.end(ended.map_err(|error| args.reply.named(error, &engine)))
}

/// Reads the prompt, which must not be empty.
fn read_prompt(source: &PromptSource<'_>) -> Result<String> {
    let prompt = source.read_with_stdin()?;
    let prompt = prompt.strip_prefix(BOM).unwrap_or(&prompt);
    if prompt.trim().is_empty() {
        return Err(usage(
            "the prompt is empty; give it as an argument, by --prompt or --file, or on standard input",
        ));
    }
    Ok(prompt.to_owned())
}

/// Continues prompts of token ids; the positional argument is the model.
fn continue_ids(args: &Args, file: &Path, interrupt: &Interrupt) -> Result<()> {
    let positional = args.positional.as_deref().map(Path::new);
    if positional.is_some() && args.model.is_some() {
        return Err(usage("with --ids the argument is the model: it is given twice"));
    }
    let prompts = prompt_ids::open(file)?;
    let model = positional.or(args.model.as_deref());
    args.sampler.check(&model::folder_with(model, args.run.load.mmproj.as_deref())?.config()?)?;
    let engine = model::exact_engine(model, &args.run)?;
    let session = args.sampler.session_config(&engine);
    let cancel = CancelHandle::new();
    let _guard = interrupt.during(cancel.clone());
    ids::continue_all(&engine, &session, prompts, &cancel).with_context(|| file.display().to_string())
}

/// Sends the prompt as a user's message.
fn reply(
    mut conversation: Conversation,
    message: Message,
    turn: TurnOptions,
    interrupt: &Interrupt,
    output: &mut Output,
) -> Result<()> {
    if let Some(note) = model::tools_note(&conversation) {
        output.screen.note(&note)?;
    }
    let _guard = interrupt.during(turn.cancel.clone());
    output.screen.wait();
    for event in conversation.stream(message, turn)? {
        let event = event?;
        match &event {
            ConversationEvent::Text(piece) => output.text.push_str(piece),
            ConversationEvent::Finished(reply) if reply.cut_call.is_some() => {
                output.screen.note(CALL_CUT_OFF)?
            }
            ConversationEvent::Finished(reply) => output.cut_note(&reply.finish)?,
            _ => {}
        }
        if output.json {
            events::of_conversation(&event).map_or(Ok(()), |event| print_line(&event))?;
        } else {
            output.screen.event(&event)?;
        }
    }
    Ok(())
}

/// Continues the prompt as plain text.
fn continue_text(
    engine: &Engine,
    config: SessionConfig,
    prompt: &str,
    interrupt: &Interrupt,
    output: &mut Output,
) -> Result<()> {
    let cancel = CancelHandle::new();
    let _guard = interrupt.during(cancel.clone());
    let mut session = engine.session(config)?;
    let params = GenerateParams { cancel, ..GenerateParams::default() };
    output.screen.wait();
    for event in session.submit(&engine.tokenizer().encode_prompt(prompt)?, params)? {
        match event? {
            SessionEvent::Prefill(progress) => output.screen.prefill(&progress),
            SessionEvent::PromptLogprobs(_) => {}
            SessionEvent::Token { id, text: piece, .. } => {
                output.text.push_str(&piece);
                if output.json {
                    print_line(&json!({"type": "token", "id": id, "text": piece}))?;
                } else {
                    output.screen.text(&piece)?;
                }
            }
            SessionEvent::Finished(Finished { reason: FinishReason::Cancelled, .. }) => {
                return Err(lm_session::Error::Cancelled.into());
            }
            SessionEvent::Finished(finished) => {
                output.cut_note(&finished)?;
                if output.json {
                    print_line(&events::finished(&finished))?;
                }
            }
        }
    }
    Ok(())
}

/// Output of the events.
struct Output {
    json: bool,
    screen: Screen,
    /// Text of the answer so far.
    text: String,
}

impl Output {
    /// Prints a note on standard error if the reply was cut off.
    fn cut_note(&mut self, finished: &Finished) -> io::Result<()> {
        match finished.reason {
            FinishReason::MaxOutputTokens => {
                self.screen.note("note: the reply was cut: it reached --max-tokens (-n)")
            }
            FinishReason::ContextFull => {
                self.screen.note("note: the reply was cut: the context is full; --context allows more")
            }
            _ if finished.steered.is_some() => self.screen.note(FORM_COMPLETED),
            _ => Ok(()),
        }
    }

    /// Ends the last line, and prints the last event of a reply that was cancelled or failed.
    fn end(mut self, ended: Result<()>) -> Result<()> {
        self.screen.end_line()?;
        if let (true, Err(error)) = (self.json, &ended) {
            print_line(&if is_interrupt(error) {
                events::cancelled(&self.text)
            } else {
                events::failed(error)
            })?;
        }
        ended
    }
}

fn print_line(event: &Value) -> io::Result<()> {
    let mut out = io::stdout().lock();
    writeln!(out, "{event}")?;
    out.flush()
}

//! `lm generate`: one prompt, one reply.

mod ids;

use std::convert::Infallible;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail, ensure};
use lm_conversation::{Conversation, ResponseFormat, ToolChoice, TurnOptions};
use lm_session::{CancelHandle, Engine, FinishReason, Finished, GenerateParams, SessionConfig, SessionEvent};
use serde_json::{Value, json};

use super::chat::ChatArgs;
use super::tokenize::text_or_stdin;
use crate::args::{RunArgs, SamplerArgs};
use crate::interrupt::Interrupt;
use crate::screen::Screen;
use crate::{events, model};

const EXAMPLES: &str = "\
Examples:
  lm generate 'How is the weather in Paris?' --tools demo
  lm generate --json 'Hello' | jq .
  lm generate 'Is it raining?' --regex 'yes|no'
  lm generate 'Paris, please' --tools demo --tool-choice get_weather
  lm generate --raw 'Once upon a time' --max-tokens 40 < /dev/null
  lm generate ./Qwen3-0.6B --ids ids.jsonl --temperature 0 --max-tokens 32

With --ids each line of the file is a prompt, a JSON list of token ids that is run as it is, and
each line of the output the list of the new ids, the one that ends the reply included, or
{\"error\": {\"kind\", \"message\"}}. Kinds: generation, bad_line.

Calls of tools are printed and not run; `lm chat` runs them.";

/// Arguments that apply to conversations only.
const CHAT_ARGS: [&str; 7] =
    ["tools", "system", "thinking", "thinking_tokens", "unconstrained", "schema", "regex"];

#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Args {
    /// Prompt, the user's message [default: standard input]; with --ids the model
    prompt: Option<String>,
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
    #[arg(long, value_name = "FILE", conflicts_with_all = CHAT_ARGS.iter().chain(&["raw", "json"]))]
    ids: Option<PathBuf>,
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
    /// Constrain the answer to the JSON schema in FILE
    #[arg(long, value_name = "FILE", conflicts_with = "regex")]
    schema: Option<PathBuf>,
    /// Constrain the whole answer to the regular expression PATTERN
    #[arg(long, value_name = "PATTERN")]
    regex: Option<String>,
}

impl ReplyArgs {
    fn add_to(&self, turn: &mut TurnOptions) -> Result<()> {
        turn.tool_choice = self.tool_choice.clone().unwrap_or_default();
        turn.response_format = match (&self.schema, &self.regex) {
            (Some(file), _) => Some(ResponseFormat::JsonSchema(read_schema(file)?)),
            (None, Some(pattern)) => Some(ResponseFormat::Regex(pattern.clone())),
            (None, None) => None,
        };
        Ok(())
    }
}

/// Parser of `--tool-choice` for clap.
fn tool_choice(text: &str) -> Result<ToolChoice, Infallible> {
    Ok(lm_openai::tool_choice_word(text))
}

fn read_schema(file: &Path) -> Result<Value> {
    let text = std::fs::read_to_string(file).with_context(|| file.display().to_string())?;
    serde_json::from_str(&text).with_context(|| format!("{} is no JSON", file.display()))
}

pub fn run(args: &Args) -> Result<()> {
    let interrupt = Interrupt::install()?;
    if let Some(file) = &args.ids {
        return continue_ids(args, file, &interrupt);
    }
    let prompt = text_or_stdin(args.prompt.as_deref())?;
    let engine = model::engine(args.model.as_deref(), &args.run)?;
    let session = args.sampler.session_config(&engine);
    if args.raw {
        continue_text(&engine, session, &prompt, &interrupt, args.json)
    } else {
        reply(args, &engine, session, &prompt, &interrupt)
    }
}

/// Continues prompts of token ids; the positional argument is the model.
fn continue_ids(args: &Args, file: &Path, interrupt: &Interrupt) -> Result<()> {
    let positional = args.prompt.as_deref().map(Path::new);
    ensure!(
        positional.is_none() || args.model.is_none(),
        "with --ids the argument is the model: it is given twice"
    );
    let engine = model::exact_engine(positional.or(args.model.as_deref()), &args.run)?;
    let session = args.sampler.session_config(&engine);
    let cancel = CancelHandle::new();
    let _guard = interrupt.during(cancel.clone());
    ids::continue_all(&engine, &session, file, &cancel)
}

/// Sends the prompt as a user's message.
fn reply(
    args: &Args,
    engine: &Engine,
    session: SessionConfig,
    prompt: &str,
    interrupt: &Interrupt,
) -> Result<()> {
    let mut config = args.chat.conversation(session);
    let tools = args.chat.tools.as_ref().map(|tools| tools.specs()).transpose()?;
    config.preface.tools = tools.unwrap_or_default();
    let mut conversation = Conversation::new(engine, config)?;
    let _guard = interrupt.during(conversation.cancel_handle());
    let mut turn = args.chat.turn_options();
    args.reply.add_to(&mut turn)?;
    let mut screen = Screen::stdout();
    for event in conversation.stream(prompt, turn)? {
        let event = event?;
        if args.json {
            events::of_conversation(&event).map_or(Ok(()), |event| print_line(&event))?;
        } else {
            screen.event(&event)?;
        }
    }
    Ok(screen.end_line()?)
}

/// Continues the prompt as plain text.
fn continue_text(
    engine: &Engine,
    config: SessionConfig,
    prompt: &str,
    interrupt: &Interrupt,
    as_json: bool,
) -> Result<()> {
    let cancel = CancelHandle::new();
    let _guard = interrupt.during(cancel.clone());
    let mut session = engine.session(config)?;
    session.sync(&engine.tokenizer().encode(prompt)?, &cancel)?;
    let mut screen = Screen::stdout();
    for event in session.generate(GenerateParams { cancel, ..GenerateParams::default() }) {
        match event? {
            SessionEvent::Token { id, text, .. } if as_json => {
                print_line(&json!({"type": "token", "id": id, "text": text}))?;
            }
            SessionEvent::Token { text, .. } => screen.text(&text)?,
            SessionEvent::Finished(finished) if as_json => print_line(&events::finished(&finished))?,
            SessionEvent::Finished(Finished { reason: FinishReason::Cancelled, .. }) => bail!("cancelled"),
            SessionEvent::Finished(_) => {}
        }
    }
    Ok(screen.end_line()?)
}

fn print_line(event: &Value) -> io::Result<()> {
    let mut out = io::stdout().lock();
    writeln!(out, "{event}")?;
    out.flush()
}

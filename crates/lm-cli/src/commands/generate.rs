//! `lm generate`: one prompt, one reply.

use std::convert::Infallible;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};
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

Calls of tools are printed and not run; `lm chat` runs them.";

#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Args {
    /// The user's message; standard input without it
    prompt: Option<String>,
    /// Model folder; the embedded model without it
    #[arg(long, short, value_name = "MODEL")]
    model: Option<PathBuf>,
    /// Print events, one JSON object a line
    #[arg(long)]
    json: bool,
    /// Continue the prompt as it is, without the chat template
    #[arg(long, conflicts_with_all = ["tools", "system", "thinking", "thinking_tokens", "unconstrained", "schema", "regex"])]
    raw: bool,
    #[command(flatten)]
    chat: ChatArgs,
    #[command(flatten)]
    reply: ReplyArgs,
    #[command(flatten)]
    sampler: SamplerArgs,
    #[command(flatten)]
    run: RunArgs,
}

/// What the reply may be.
#[derive(Debug, clap::Args)]
#[command(next_help_heading = "Reply")]
struct ReplyArgs {
    /// Whether tools are called: auto, required, none, or the name of the one that must be
    #[arg(long, value_name = "CHOICE", value_parser = tool_choice, requires = "tools")]
    tool_choice: Option<ToolChoice>,
    /// The answer is JSON that fits the schema in FILE
    #[arg(long, value_name = "FILE", conflicts_with = "regex")]
    schema: Option<PathBuf>,
    /// The answer matches PATTERN as a whole
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

/// Every text is a choice: what is no word is a tool's name.
fn tool_choice(text: &str) -> Result<ToolChoice, Infallible> {
    Ok(match text {
        "auto" => ToolChoice::Auto,
        "required" => ToolChoice::Required,
        "none" => ToolChoice::None,
        name => ToolChoice::Named(name.to_owned()),
    })
}

fn read_schema(file: &Path) -> Result<Value> {
    let text = std::fs::read_to_string(file).with_context(|| file.display().to_string())?;
    serde_json::from_str(&text).with_context(|| format!("{} is no JSON", file.display()))
}

pub fn run(args: &Args) -> Result<()> {
    let interrupt = Interrupt::install()?;
    let prompt = text_or_stdin(args.prompt.as_deref())?;
    let engine = model::engine(args.model.as_deref(), &args.run)?;
    let session = args.sampler.session_config(engine.generation_config());
    if args.raw {
        continue_text(&engine, session, &prompt, &interrupt, args.json)
    } else {
        reply(args, &engine, session, &prompt, &interrupt)
    }
}

/// The prompt as a user's message.
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

/// The prompt as plain text that the model goes on with.
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
            SessionEvent::Token { id, text } if as_json => {
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

//! `lm chat`: an interactive conversation.

mod slash;
mod turn;

use std::io::Stdout;
use std::process::ExitCode;
use std::sync::{Arc, Mutex, PoisonError};

use anyhow::Result;
use lm_conversation::{ConversationConfig, ThinkingConfig, ThinkingMode, TurnOptions};
use lm_session::{Engine, SessionConfig};
use lm_template::{Message, Preface};
use lm_tools::{Agent, Toolset};

use crate::args::{CallArgs, ModelPath, RunArgs, SamplerArgs};
use crate::interrupt::Interrupt;
use crate::lines::{Line, Lines};
use crate::screen::Screen;
use crate::tools::ToolSource;
use crate::{failure, model};
use slash::After;
use turn::{Ended, Turns};

const EXAMPLES: &str = "\
Examples:
  lm chat --tools demo
  lm chat ./Qwen3-0.6B --quantize q4 --system 'Answer in one sentence.'
  echo 'How is the weather in Paris?' | lm chat --tools demo

Without a terminal each line of standard input is a turn.
Tools declared in a file have no code: their calls are printed, and the next line
(typed, or of standard input) is the result, as JSON or as text.
Ctrl-C ends the reply; at the prompt, Ctrl-C twice or Ctrl-D leaves.";

#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Args {
    #[command(flatten)]
    pub model: ModelPath,
    #[command(flatten)]
    pub chat: ChatArgs,
    /// Maximum tool-call rounds per turn
    #[arg(long, value_name = "N", default_value_t = 8)]
    pub max_rounds: usize,
    /// Show token counts and speed after each turn
    #[arg(long)]
    pub stats: bool,
    #[command(flatten)]
    pub sampler: SamplerArgs,
    #[command(flatten)]
    pub run: RunArgs,
}

/// Options of a conversation.
#[derive(Debug, clap::Args)]
pub struct ChatArgs {
    /// `demo`, or a file with a JSON array of tool declarations
    #[arg(long, value_name = "demo|FILE")]
    pub tools: Option<ToolSource>,
    /// System prompt
    #[arg(long, value_name = "TEXT")]
    pub system: Option<String>,
    /// Reasoning before the answer [default: as the template decides]
    #[arg(long, value_name = "on|off", num_args = 0..=1, default_missing_value = "on", require_equals = true)]
    pub thinking: Option<Switch>,
    /// Maximum number of reasoning tokens in a reply; the end of reasoning is forced after them
    #[arg(long, value_name = "TOKENS")]
    pub thinking_tokens: Option<usize>,
    #[command(flatten)]
    pub calls: CallArgs,
}

#[derive(Clone, Copy, Debug, PartialEq, clap::ValueEnum)]
pub enum Switch {
    On,
    Off,
}

impl ChatArgs {
    /// The preface without the tools.
    fn preface(&self) -> Preface {
        let messages = self.system.as_deref().map(Message::system).into_iter().collect();
        Preface { messages, ..Preface::default() }
    }

    /// Creates the configuration of a conversation with this preface.
    pub fn conversation(&self, session: SessionConfig) -> ConversationConfig {
        let (preface, constrain_calls) = (self.preface(), self.calls.constrain_calls());
        ConversationConfig { preface, session, constrain_calls, ..ConversationConfig::default() }
    }

    /// Options of each turn.
    pub fn turn_options(&self) -> TurnOptions {
        let mode = match self.thinking {
            None => ThinkingMode::Default,
            Some(Switch::On) => ThinkingMode::On,
            Some(Switch::Off) => ThinkingMode::Off,
        };
        let thinking = ThinkingConfig { mode, max_tokens: self.thinking_tokens };
        TurnOptions { thinking, ..TurnOptions::default() }
    }
}

pub fn run(args: &Args) -> Result<ExitCode> {
    let interrupt = Interrupt::install()?;
    let lines = Arc::new(Mutex::new(Lines::from_stdin()?));
    let tools = match &args.chat.tools {
        Some(source) => source.toolset(&lines, &interrupt)?,
        None => Toolset::new(),
    };
    let engine = model::engine(args.model.get(), &args.run)?;
    let session = args.sampler.session_config(&engine);
    let config = args.chat.conversation(session);
    let agent = Agent::builder(&engine, tools).config(config).max_rounds(args.max_rounds).build()?;
    let turns = Turns { agent, options: args.chat.turn_options(), interrupt };
    let mut chat = Chat { turns, lines, screen: Screen::stdout(), stats: args.stats };
    if chat.lock_lines().is_terminal() {
        chat.screen.note(&banner(&engine))?;
    }
    chat.run()
}

fn banner(engine: &Engine) -> String {
    let info = engine.model_info();
    format!(
        "{}: {}, {:.1} M parameters, {} on {}; /help shows the commands, Ctrl-D leaves",
        engine.name(),
        info.architecture,
        info.parameters as f64 / 1e6,
        info.format,
        info.device
    )
}

/// State of the loop over the user's lines.
struct Chat {
    turns: Turns,
    lines: Arc<Mutex<Lines>>,
    screen: Screen<Stdout>,
    stats: bool,
}

impl Chat {
    fn run(&mut self) -> Result<ExitCode> {
        let mut code = ExitCode::SUCCESS;
        let mut interrupted = false;
        loop {
            let line = self.lock_lines().read("> ")?;
            let text = match line {
                Line::End => return Ok(code),
                Line::Interrupted if interrupted => return Ok(code),
                Line::Interrupted => {
                    interrupted = true;
                    self.screen.note("Ctrl-C again, Ctrl-D or /quit leaves")?;
                    continue;
                }
                Line::Text(text) => text,
            };
            interrupted = false;
            match self.line(text.trim()) {
                Ok(After::GoOn) => {}
                Ok(After::Quit) => return Ok(code),
                // A failed turn leaves the conversation unchanged. Without a terminal the exit code reports it.
                Err(error) if error.is::<std::io::Error>() => return Err(error),
                Err(error) => {
                    self.screen.end_line()?;
                    failure::print(&error);
                    code = if self.lock_lines().is_terminal() { code } else { ExitCode::FAILURE };
                }
            }
        }
    }

    fn line(&mut self, text: &str) -> Result<After> {
        if text.is_empty() {
            return Ok(After::GoOn);
        }
        if let Some(command) = text.strip_prefix('/').filter(|rest| !rest.starts_with('/')) {
            return slash::run(command, &mut self.turns, &mut self.screen);
        }
        // `//` at the start is an escaped slash of the message.
        let text = if text.starts_with("//") { &text[1..] } else { text };
        match self.turns.run(text, &mut self.screen)? {
            Ended::Cancelled => self.screen.note("(cancelled; the turn is forgotten)")?,
            Ended::Answered(finished) if self.stats => self.screen.note(&turn::stats(&finished))?,
            Ended::Answered(_) => {}
        }
        Ok(After::GoOn)
    }

    fn lock_lines(&self) -> std::sync::MutexGuard<'_, Lines> {
        self.lines.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

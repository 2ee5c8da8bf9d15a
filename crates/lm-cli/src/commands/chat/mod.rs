//! `lm chat`: an interactive conversation.

mod attachments;
mod full_context;
mod kept;
mod saved;
mod server_content;
mod settings;
mod slash;
mod tool_share;
mod turn;

use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::{Arc, Mutex, PoisonError};

use anyhow::{Context, Result};
use lm_conversation::{ConversationConfig, Overflow, SaveOptions, SavedTokens, TurnOptions};
use lm_session::{Engine, SessionConfig};
use lm_store::{Owner, Store};
use lm_template::Message;
use lm_tools::{Agent, Toolset};

use crate::args::{ChatArgs, ModelPath, OverflowArg, RunArgs, SamplerArgs, TemplateArgs, numbers};
use crate::interrupt::{self, Interrupt};
use crate::kept_cache::KeptCaches;
use crate::kept_store::KeepArgs;
use crate::lines::{History, Line, Lines, mentioned, unquoted};
use crate::mcp::{Approver, ChatTools, McpArgs};
use crate::media::MediaFile;
use crate::screen::{CallsTo, Screen};
use crate::share::Share;
use crate::text_file::TextFile;
use crate::{failure, media, model, size};
use attachments::Attachments;
use kept::Kept;
use settings::Settings;
use slash::After;
use turn::{Ended, Turns};

const EXAMPLES: &str = "\
Examples:
  lm chat --tools demo
  lm chat ./Qwen3-0.6B --quantize q4 --system 'Answer in one sentence.'
  lm chat --continue
  lm chat --resume talk.json
  lm chat --mcp 'npx -y @modelcontextprotocol/server-everything'
  lm chat --mcp demo=http://127.0.0.1:8000/mcp --mcp-config servers.json
  lm chat ./gemma-3-4b-it --image cat.png --prompt 'What is in the image?'
  lm chat ./gemma-4-E2B-it --audio talk.wav --prompt 'Transcribe the audio'
  lm chat --file notes.md --file data.csv --prompt 'Summarise the files'
  echo 'How is the weather in Paris?' | lm chat --tools demo

Keys: Enter sends, Alt-Enter begins another line, \"\"\" around several lines makes them one message, Tab completes commands and file \
names, Up recalls earlier messages. Ctrl-C ends the reply, whose beginning is kept, or clears the line; at an empty prompt, Ctrl-C \
twice or Ctrl-D leaves. /help shows the commands, such as /save, /undo and /set.

A model with a vision encoder reads images, one with an audio encoder audio clips: --image, /image, --audio and /audio add a file to the next \
message, as does a line of paths of images and audio and nothing else, such as that of files dropped on the terminal. Paths may be file:// URLs; \
nothing is fetched from other URLs.

A conversation that is loaded brings its system prompt; one that has none is continued with that of --system.

Without a terminal each line of standard input is a turn, and Ctrl-C ends the program. Only answers go to standard output.

The model can call the tools of MCP servers (--mcp, --mcp-config); /tools lists them. You are asked before it calls one that may delete or \
overwrite data; a tool whose server gives no hints about this counts as one (--mcp-approve). A server is started with the chat and ends with \
it. It gets only a few variables of the environment, such as PATH and HOME: `env` in the file of servers adds others. Its stderr goes to the \
log, which LM_LOG=lm_mcp=info shows.

Tools declared in a file have no code: their calls are printed, and the next line (typed, or of standard input) is the result, as JSON \
or as text.";

#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Args {
    #[command(flatten)]
    model: ModelPath,
    /// First message; the chat continues after its reply
    #[arg(long, short, value_name = "TEXT", allow_hyphen_values = true)]
    prompt: Option<String>,
    /// Image to send with the first new message: PNG, JPEG, WebP, GIF or BMP; may be repeated
    #[arg(long, value_name = "FILE")]
    image: Vec<PathBuf>,
    /// Audio to send with the first new message: WAV, FLAC, MP3 or Ogg Vorbis; may be repeated
    #[arg(long, value_name = "FILE")]
    audio: Vec<PathBuf>,
    /// Text file of any encoding, or PDF file, to send with the first new message; may be repeated
    #[arg(long, value_name = "FILE")]
    file: Vec<PathBuf>,
    /// Continue the conversation in FILE, which /save wrote
    #[arg(long, value_name = "FILE")]
    resume: Option<PathBuf>,
    /// Continue the last kept conversation, begun here or in the page of `lm serve`
    #[arg(long = "continue", conflicts_with_all = ["resume", "no_store"])]
    continues: bool,
    /// Continue the kept conversation of this title or id; a part of the title is enough
    #[arg(long, value_name = "TITLE|ID", conflicts_with_all = ["resume", "continues", "no_store"])]
    open: Option<String>,
    /// Write the KV cache with /save if it takes at most BYTES, such as 512MB: the chat that resumes need not
    /// prefill it
    #[arg(long, value_name = "BYTES", value_parser = crate::size::parse, allow_negative_numbers = true)]
    save_cache: Option<u64>,
    /// Keep the KV caches of the last conversations in files of at most BYTES together, such as 4GB: a
    /// conversation that is opened again need not be prefilled
    #[arg(long, value_name = "BYTES", value_parser = crate::size::parse, allow_negative_numbers = true, conflicts_with = "no_store")]
    keep_cache: Option<u64>,
    /// Do not read or write the history of typed lines
    #[arg(long)]
    no_history: bool,
    #[command(flatten)]
    template: TemplateArgs,
    #[command(flatten)]
    chat: ChatArgs,
    /// Maximum tool-call rounds per turn
    #[arg(long, value_name = "N", default_value = "8", value_parser = numbers::at_least_zero, allow_negative_numbers = true)]
    max_rounds: usize,
    /// Largest share of the context that declarations of tools may take, in percent. Above it, those already
    /// called and those that share words with the last messages come first; `off` declares all
    #[arg(long, value_name = "PERCENT|off", default_value = "25", allow_negative_numbers = true)]
    tool_share: Share,
    /// Largest share of the context that the text files of a message may take, in percent. Of larger ones it
    /// has the passages that share words with it, and later messages further ones; `off` sends whole files
    #[arg(long, value_name = "PERCENT|off", default_value = "50", allow_negative_numbers = true)]
    file_share: Share,
    /// Handling of a conversation that exceeds the context; drop-oldest leaves its oldest turns out of the
    /// prompt, sliding-window also evicts the oldest tokens of the running reply
    #[arg(long, value_name = "error|drop-oldest|sliding-window", default_value = "error")]
    overflow: OverflowArg,
    /// Show answers as the model writes them: without formatting, which is for terminals only
    #[arg(long)]
    plain: bool,
    /// Show token counts, speed and the sampler's seed after each turn
    #[arg(long)]
    stats: bool,
    #[command(flatten)]
    mcp: McpArgs,
    #[command(flatten)]
    sampler: SamplerArgs,
    #[command(flatten)]
    keep: KeepArgs,
    #[command(flatten)]
    run: RunArgs,
}

pub fn run(args: &Args, interrupt: &Interrupt) -> Result<ExitCode> {
    let history = if args.no_history { History::none() } else { History::of_user() };
    let mut lines = Lines::from_stdin(slash::words(), history)?;
    let escaped = interrupt.clone();
    // With no turn, Esc does nothing.
    lines.keep_typed(move || {
        escaped.cancel();
    });
    let lines = Arc::new(Mutex::new(lines));
    let tools = match &args.chat.tools {
        Some(source) => source.toolset(&lines, interrupt)?,
        None => Toolset::new(),
    };
    let servers = args.mcp.connect(&lines, interrupt)?;
    let own = tools.clone();
    let tools = ChatTools::new(tools, servers)?;
    let media = media::read_all(&args.image, &args.audio)?;
    let files = args.file.iter().map(|path| TextFile::read(path)).collect::<Result<Vec<_>>>()?;
    let resumed = args.resume.as_deref().map(saved::read).transpose()?;
    let is_terminal = lock(&lines).is_terminal();
    let store = args.store(is_terminal)?;
    let opened = store.as_ref().map(|store| args.chosen(store)).transpose()?.flatten();
    let folder = model::folder_with(args.model.get(), args.run.load.mmproj.as_deref())?;
    let template = args.template.of(&folder)?;
    if template.is_none() {
        model::check_chat_template(&folder)?;
    }
    media::check_all(&folder, &media)?;
    args.sampler.check(&folder.config()?)?;
    let engine = model::engine(args.model.get(), &args.run)?;
    let mut session = args.sampler.chat_config(&engine);
    let settings = args.settings(&mut session, tools.all());
    let config = args.chat.conversation(args.model.get(), session)?;
    let config = ConversationConfig { template, ..config };
    let approve = args.mcp.approve();
    let agent = Agent::builder(&engine, tools.all().clone())
        .config(config)
        .max_rounds(args.max_rounds)
        .before_call(move |request| approve.decide(&own, request))
        .build()?;
    let approver = Approver::new(lines.clone(), interrupt.clone());
    let (tool_share, interrupt) = (args.tool_share, interrupt.clone());
    let turns = Turns { agent, interrupt, regenerated: 0, tools, tool_share, declared: None, approver };
    let screen = Screen::new(CallsTo::Notes, args.chat.hide_thinking);
    let screen = if args.plain { screen } else { screen.format_answers() };
    let save =
        SaveOptions { cache: args.save_cache.map(|bytes| usize::try_from(bytes).unwrap_or(usize::MAX)) };
    let caches = store.as_ref().map(|store| args.caches(store)).transpose()?;
    let kept = store.map(|store| Kept::new(store, engine.name()));
    let mut state = State {
        turns,
        settings,
        screen,
        kept,
        caches,
        keep_cache: args.keep_cache,
        file: None,
        save,
        media,
        inserted: Vec::new(),
        files: Attachments::new(args.file_share),
    };
    if is_terminal {
        state.screen.note(&banner(&engine))?;
    }
    if let Some(note) = model::tools_note(state.turns.agent.conversation()) {
        state.screen.note(&note)?;
    }
    for file in files {
        slash::add_file(file, &mut state)?;
    }
    if let Some((saved, file)) = resumed.zip(args.resume.as_ref()) {
        slash::resume(saved, file, &mut state)?;
    }
    if let Some(id) = opened {
        slash::open_kept(&id, &mut state)?;
    }
    Chat { state, lines, code: ExitCode::SUCCESS }.run(args.prompt.clone())
}

impl Args {
    /// Settings, which can change during a chat: each turn has its own.
    fn settings(&self, session: &mut SessionConfig, tools: &Toolset) -> Settings {
        let turn = self.chat.turn_options(&tools.specs());
        Settings {
            sampler: session.sampler.clone(),
            max_tokens: session.max_output_tokens.take(),
            turn: TurnOptions { overflow: Some(self.overflow.into()), ..turn },
            stats: self.stats,
        }
    }

    /// Store of the conversation. Without a terminal it is kept if an option asks for that.
    ///
    /// # Errors
    /// When the store cannot be opened, and an option needs it; otherwise a warning says that nothing is
    /// kept.
    fn store(&self, is_terminal: bool) -> Result<Option<Store>> {
        let needs_store = self.continues || self.open.is_some();
        let wants_store = needs_store || is_terminal || self.keep.file.is_given();
        if self.keep.no_store || !wants_store {
            return Ok(None);
        }
        match self.keep.file.open() {
            Ok(store) => Ok(Some(store)),
            Err(error) if needs_store => Err(error),
            Err(error) => {
                eprintln!("warning: this conversation is not kept: {}", failure::message(&error));
                Ok(None)
            }
        }
    }

    /// KV caches beside the store. Those of deleted conversations are removed.
    fn caches(&self, store: &Store) -> Result<KeptCaches> {
        let caches = KeptCaches::of(&self.keep.file.path()?);
        caches.remove_deleted(store);
        Ok(caches)
    }

    /// Id of the conversation to continue.
    fn chosen(&self, store: &Store) -> Result<Option<String>> {
        let owner = Owner::local();
        match &self.open {
            Some(name) => Ok(Some(store.find(&owner, name)?)),
            None if self.continues => {
                let last = store.list(&owner, 1, 0)?.pop();
                Ok(Some(last.context("no conversation is kept yet")?.id))
            }
            None => Ok(None),
        }
    }
}

fn banner(engine: &Engine) -> String {
    let info = engine.model_info();
    format!(
        "{}: {}, {:.1} M parameters, {} on {}; /help shows the commands, Ctrl-D leaves",
        engine.name(),
        info.architecture,
        info.parameters as f64 / 1e6,
        info.format_names(),
        info.device
    )
}

fn lock(lines: &Mutex<Lines>) -> std::sync::MutexGuard<'_, Lines> {
    lines.lock().unwrap_or_else(PoisonError::into_inner)
}

/// State that the commands of a chat read and change.
struct State {
    turns: Turns,
    settings: Settings,
    screen: Screen,
    /// The conversation in the store, if it is kept.
    kept: Option<Kept>,
    /// KV caches of the kept conversations.
    caches: Option<KeptCaches>,
    /// Most bytes of them; `None` writes none.
    keep_cache: Option<u64>,
    /// File of the last `/save` or `/load`.
    file: Option<PathBuf>,
    save: SaveOptions,
    /// Images and audio of the next message.
    media: Vec<MediaFile>,
    /// Texts of servers, which the next message begins with.
    inserted: Vec<String>,
    /// Text files, which the next message begins with.
    files: Attachments,
}

impl State {
    /// Keeps the KV cache of the conversation, which is left. A failure is a note.
    fn leave(&mut self) -> Result<()> {
        let id = self.kept.as_ref().and_then(Kept::id);
        let (Some(caches), Some(limit), Some(id)) = (&self.caches, self.keep_cache, id) else {
            return Ok(());
        };
        let note = match caches.write(id, self.turns.agent.conversation(), limit) {
            Ok(SavedTokens::TooLarge { bytes }) => {
                let size = size::format_bytes(bytes as u64);
                format!("(its KV cache has {size}, more than --keep-cache)")
            }
            Ok(_) => return Ok(()),
            Err(error) => format!("(its KV cache is not kept: {})", failure::message(&error)),
        };
        Ok(self.screen.note(&note)?)
    }

    /// Writes the conversation to the store, with a question whose turn begins. A failure is a note, and the
    /// next call tries again.
    fn keep(&mut self, question: Option<&Message>) -> Result<()> {
        let Some(kept) = &mut self.kept else { return Ok(()) };
        let conversation = self.turns.agent.conversation();
        let mut history = conversation.history();
        history.extend(question.cloned());
        let system: String =
            conversation.preface().messages.iter().map(|message| message.content.text()).collect();
        if let Err(error) = kept.sync(&history, &system) {
            self.screen.note(&format!("(the conversation is not kept: {})", failure::message(&error)))?;
        }
        Ok(())
    }
}

/// Loop over the user's lines.
struct Chat {
    state: State,
    lines: Arc<Mutex<Lines>>,
    /// Exit code at the end of the input.
    code: ExitCode,
}

impl Chat {
    fn run(mut self, first: Option<String>) -> Result<ExitCode> {
        let code = self.lines_to_end(first)?;
        self.state.leave()?;
        Ok(code)
    }

    /// Runs lines until the user leaves; returns the exit code.
    fn lines_to_end(&mut self, first: Option<String>) -> Result<ExitCode> {
        let mut pending = first;
        let mut interrupted = false;
        loop {
            let line = match pending.take() {
                Some(text) => Line::Text(text),
                None => lock(&self.lines).message("> ")?,
            };
            match line {
                Line::End => return Ok(self.code),
                Line::Interrupted if interrupted => return Ok(interrupt::EXIT_CODE.into()),
                Line::Interrupted => {
                    interrupted = true;
                    self.state.screen.note("Ctrl-C again, Ctrl-D or /exit leaves")?;
                }
                Line::Cleared => interrupted = false,
                Line::Text(text) => {
                    interrupted = false;
                    let outcome = self.line(&text);
                    self.state.keep(None)?;
                    match outcome {
                        Ok(None) => {}
                        Ok(Some(code)) => return Ok(code),
                        Err(error) => {
                            let can_shorten = self.can_shorten(&error);
                            self.failed(error)?;
                            if can_shorten {
                                match self.make_room(text) {
                                    Ok(again) => pending = again,
                                    Err(error) => self.failed(error)?,
                                }
                                self.state.keep(None)?;
                            }
                        }
                    }
                }
            }
        }
    }

    /// Returns true if a message can be sent again after an error, to a conversation with less in it.
    fn can_shorten(&self, error: &anyhow::Error) -> bool {
        let is_error = self.state.settings.overflow() == Overflow::Error;
        let has_history = !self.state.turns.agent.conversation().history().is_empty();
        is_error && has_history && failure::is_full_context(error) && lock(&self.lines).is_terminal()
    }

    /// Prints the error of a turn, which leaves the conversation unchanged. Without a terminal the exit code
    /// reports it.
    fn failed(&mut self, error: anyhow::Error) -> Result<()> {
        // The terminal is gone.
        if error.is::<std::io::Error>() {
            return Err(error);
        }
        self.state.screen.end_line()?;
        let Turns { tool_share, tools, .. } = &self.state.turns;
        let declares_all = *tool_share == Share::Off && !tools.all().specs().is_empty();
        failure::print_in_chat(&error, self.state.settings.overflow(), declares_all);
        if !lock(&self.lines).is_terminal() {
            self.code = ExitCode::FAILURE;
        }
        Ok(())
    }

    /// Runs a command or sends a message; returns an exit code to leave with.
    fn line(&mut self, line: &str) -> Result<Option<ExitCode>> {
        let text = line.trim();
        if let Some(files) = media::dropped(text) {
            slash::add_media(&files, &mut self.state)?;
            return Ok(None);
        }
        let message = match unquoted(text) {
            Some(quoted) => quoted.trim_matches('\n'),
            None => match text.strip_prefix('/') {
                // `//` at the start is an escaped slash of the message.
                Some(rest) if !rest.starts_with('/') => {
                    lock(&self.lines).send_typed(true);
                    return match slash::run(rest, &mut self.state)? {
                        After::GoOn => Ok(None),
                        After::Quit => Ok(Some(self.code)),
                        After::Compact => {
                            lock(&self.lines).send_typed(false);
                            self.compact().map(|_| None)
                        }
                        After::Turn(ended) => {
                            lock(&self.lines).send_typed(false);
                            self.after(ended)
                        }
                    };
                }
                Some(rest) => rest,
                None => text,
            },
        };
        if message.trim().is_empty() {
            return Ok(None);
        }
        let is_typed = !message.contains('\n') && lock(&self.lines).is_terminal();
        for path in mentioned(message).into_iter().filter(|_| is_typed) {
            slash::add_mentioned(&path, &mut self.state)?;
        }
        let media = std::mem::take(&mut self.state.media);
        let inserted = std::mem::take(&mut self.state.inserted);
        let earlier = self.state.files.clone();
        let (files, notes) = self.state.files.take(message, self.state.turns.agent.conversation())?;
        notes.iter().try_for_each(|note| self.state.screen.note(note))?;
        let typed = message.to_owned();
        let before = files.iter().chain(&inserted).map(String::as_str);
        let text = before.chain([message]).collect::<Vec<_>>().join("\n\n");
        let (message, files) = media::message(media.clone(), &text);
        let index = self.state.turns.messages();
        if let Some(kept) = &mut self.state.kept {
            kept.set_typed(&typed);
        }
        self.state.keep(Some(&message))?;
        match self.state.turns.run(message, &self.state.settings, &mut self.state.screen) {
            Ok(ended) => {
                if ended == Ended::TakenBack {
                    // The message can be sent again, with what it had.
                    (self.state.files, self.state.inserted, self.state.media) = (earlier, inserted, media);
                }
                self.after(ended)
            }
            Err(error) => {
                let refused = media::refused(&error, index);
                // The turn did not begin.
                if refused.is_some() || self.state.turns.messages() == index {
                    self.state.files = earlier;
                }
                if refused.is_some() {
                    self.state.inserted = inserted;
                }
                self.keep_others(media, refused);
                Err(media::with_file(error, index, &files))
            }
        }
    }

    /// Keeps the images and audio for the next message, except the one that the model cannot take: the turn
    /// did not begin.
    fn keep_others(&mut self, mut media: Vec<MediaFile>, refused: Option<usize>) {
        if let Some(refused) = refused.filter(|refused| *refused < media.len()) {
            media.remove(refused);
            self.state.media = media;
        }
    }

    /// Shows how a turn ended. Without a terminal an interrupt ends the program.
    fn after(&mut self, ended: Ended) -> Result<Option<ExitCode>> {
        match ended {
            Ended::Cancelled | Ended::Restored | Ended::TakenBack if !lock(&self.lines).is_terminal() => {
                self.state.screen.note("interrupted")?;
                return Ok(Some(interrupt::EXIT_CODE.into()));
            }
            Ended::Cancelled => self
                .state
                .screen
                .note("(interrupted; the reply so far is kept, /undo takes the turn back)")?,
            Ended::Restored => self.state.screen.note("(interrupted; the earlier reply is kept)")?,
            Ended::TakenBack => self
                .state
                .screen
                .note("(interrupted before the answer began; the message is taken back, Up recalls it)")?,
            Ended::Answered { finished } => {
                if self.state.turns.is_last_reply_empty() {
                    self.state.screen.note("(empty reply)")?;
                }
                if let Some(note) =
                    finished.last().and_then(|last| turn::cut_note(last, self.state.settings.overflow()))
                {
                    self.state.screen.note(note)?;
                }
                if self.state.settings.stats {
                    self.state.screen.note(&turn::stats(&finished))?;
                }
            }
        }
        Ok(None)
    }
}

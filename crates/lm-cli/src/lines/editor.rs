//! Line editor of the terminal: Tab completion, a history, and messages of several lines.

use std::cell::RefCell;
use std::io::{self, IsTerminal};

use rustyline::completion::{Completer, FilenameCompleter, Pair};
use rustyline::config::{Behavior, Configurer};
use rustyline::error::ReadlineError;
use rustyline::highlight::Highlighter;
use rustyline::hint::{Hint, Hinter};
use rustyline::history::DefaultHistory;
use rustyline::validate::{ValidationContext, ValidationResult, Validator};
use rustyline::{Cmd, Config, Context, EventHandler, Helper, KeyCode, KeyEvent, Modifiers};

use super::history::{History, MAX_ENTRIES};
use super::type_ahead::{OnEscape, TypeAhead};
use super::{Line, mentions, paths, quotes};

/// Length from which a message of several lines shows its length, in bytes.
const LONG_BYTES: usize = 200;

/// A word that Tab completes at the beginning of a line.
#[derive(Clone, Debug)]
pub struct Word {
    /// The word, with its slash.
    pub name: String,
    /// Completion of the text after it.
    pub argument: Argument,
}

/// Completion of the argument of a word.
#[derive(Clone, Debug, PartialEq)]
pub enum Argument {
    None,
    File,
    /// One of these names.
    OneOf(Vec<String>),
}

/// Line editor with a history.
pub struct Editor {
    editor: rustyline::Editor<Assistant, DefaultHistory>,
    history: History,
    /// Line that was given back.
    pub(super) given_back: Option<String>,
    /// Keys between prompts; `None` leaves them to the terminal.
    type_ahead: Option<TypeAhead>,
    /// True if lines typed since the last prompt are sent as if they were typed at the next one.
    pub(super) sends_typed: bool,
}

/// Text of a line before it is edited.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Initial<'t> {
    /// The keys typed before the prompt.
    Typed,
    Empty,
    Text(&'t str),
}

/// Reason why no line was read.
pub enum Failed {
    /// Bytes that are not UTF-8 came after this text, which is in the history now.
    NotUtf8(String),
    Terminal(ReadlineError),
}

impl Editor {
    pub fn new(words: Vec<Word>, mut history: History) -> Result<Self, ReadlineError> {
        // With the answers redirected, prompts and editing stay on the terminal.
        let behavior = if io::stdout().is_terminal() { Behavior::Stdio } else { Behavior::PreferTerm };
        let config = Config::builder().behavior(behavior).max_history_size(MAX_ENTRIES)?.build();
        let mut editor = rustyline::Editor::with_config(config)?;
        editor.set_helper(Some(Assistant {
            words,
            files: FilenameCompleter::new(),
            line: RefCell::default(),
        }));
        // The terminal itself turns Enter into Ctrl-J where a key is pressed before the prompt is there.
        let typed_ahead = KeyEvent(KeyCode::Char('J'), Modifiers::CTRL | Modifiers::ALT);
        for alt_enter in [KeyEvent(KeyCode::Enter, Modifiers::ALT), typed_ahead] {
            editor.bind_sequence(alt_enter, EventHandler::Simple(Cmd::Newline));
        }
        editor.set_auto_add_history(false);
        warn(history.load(editor.history_mut()), "the history cannot be read");
        Ok(Self { editor, history, given_back: None, type_ahead: None, sends_typed: false })
    }

    /// Keeps the keys between prompts from now on; the key Esc is not kept.
    pub fn keep_typed(&mut self, on_escape: OnEscape) {
        self.type_ahead.insert(TypeAhead::new(on_escape)).start();
    }

    /// Reads a line.
    ///
    /// # Errors
    /// See [`Failed`].
    pub fn read(&mut self, prompt: &str, initial: Initial<'_>) -> Result<Line, Failed> {
        if let Some(line) = self.given_back.take() {
            return Ok(Line::Text(line));
        }
        self.shown_line();
        let sends_typed = std::mem::take(&mut self.sends_typed);
        let mut typed = String::new();
        if let Some(type_ahead) = &mut self.type_ahead {
            type_ahead.stop();
            if initial == Initial::Typed {
                if let Some(line) = sends_typed.then(|| type_ahead.take_line()).flatten() {
                    println!("{prompt}{line}");
                    type_ahead.start();
                    return Ok(Line::Text(line));
                }
                typed = type_ahead.take();
            }
        }
        if let Initial::Text(text) = initial {
            text.clone_into(&mut typed);
        }
        let read = self.editor.readline_with_initial(prompt, (&typed, ""));
        if let Some(type_ahead) = &mut self.type_ahead {
            type_ahead.start();
        }
        match read {
            Ok(line) => Ok(Line::Text(line)),
            Err(ReadlineError::Interrupted) if self.shown_line().trim().is_empty() => Ok(Line::Interrupted),
            Err(ReadlineError::Interrupted) => Ok(Line::Cleared),
            Err(ReadlineError::Eof) => Ok(Line::End),
            Err(ReadlineError::Io(error)) if error.kind() == io::ErrorKind::InvalidData => {
                let line = self.shown_line();
                self.remember(&line);
                Err(Failed::NotUtf8(line))
            }
            Err(error) => Err(Failed::Terminal(error)),
        }
    }

    /// Takes the line as last shown.
    fn shown_line(&self) -> String {
        self.editor.helper().map(|helper| helper.line.take()).unwrap_or_default()
    }

    /// Adds a line to the history. Warns once about a history file that cannot be written.
    pub fn remember(&mut self, line: &str) {
        if let Ok(true) = self.editor.add_history_entry(line) {
            warn(self.history.append(self.editor.history_mut(), line), "the history is not kept");
        }
    }
}

fn warn(result: anyhow::Result<()>, message: &str) {
    if let Err(error) = result {
        eprintln!("note: {message}: {error:#}");
    }
}

/// Completion and validation of the edited line.
struct Assistant {
    words: Vec<Word>,
    files: FilenameCompleter,
    /// The line as last shown, for what was typed before an error.
    line: RefCell<String>,
}

impl Helper for Assistant {}
impl Highlighter for Assistant {}

/// Length of a long message, shown after it.
struct Length(String);

impl Hint for Length {
    fn display(&self) -> &str {
        &self.0
    }

    fn completion(&self) -> Option<&str> {
        None
    }
}

impl Hinter for Assistant {
    type Hint = Length;

    fn hint(&self, line: &str, position: usize, _: &Context<'_>) -> Option<Length> {
        line.clone_into(&mut self.line.borrow_mut());
        let lines = line.lines().count();
        let is_long = position == line.len() && lines > 1 && line.len() > LONG_BYTES;
        is_long.then(|| Length(format!("  [{} characters, {lines} lines]", line.chars().count())))
    }
}

impl Validator for Assistant {
    fn validate(&self, context: &mut ValidationContext<'_>) -> rustyline::Result<ValidationResult> {
        let open = quotes::is_open(context.input());
        Ok(if open { ValidationResult::Incomplete } else { ValidationResult::Valid(None) })
    }
}

impl Completer for Assistant {
    type Candidate = Pair;

    fn complete(
        &self,
        line: &str,
        position: usize,
        _: &Context<'_>,
    ) -> rustyline::Result<(usize, Vec<Pair>)> {
        let typed = &line[..position];
        if typed.is_empty() {
            return Ok((0, Vec::new()));
        }
        if let Some(at) = mentions::start_of_last(typed) {
            let (start, pairs) = self.files.complete_path(&typed[at..], position - at)?;
            return Ok((at + start, pairs));
        }
        let Some(blank) = typed.find(' ') else {
            return Ok((0, starting_with(typed, self.words.iter().map(|word| word.name.as_str()))));
        };
        let word = self.words.iter().find(|word| word.name == typed[..blank]);
        let argument = typed[blank..].trim_start();
        let from = typed.len() - argument.len();
        match word.map(|word| &word.argument) {
            Some(Argument::File) => {
                paths::complete(&self.files, argument).map(|(start, pairs)| (from + start, pairs))
            }
            Some(Argument::OneOf(names)) => {
                Ok((from, starting_with(argument, names.iter().map(String::as_str))))
            }
            Some(Argument::None) | None => Ok((0, Vec::new())),
        }
    }
}

fn starting_with<'a>(typed: &str, names: impl Iterator<Item = &'a str>) -> Vec<Pair> {
    let names = names.filter(|name| name.starts_with(typed));
    names.map(|name| Pair { display: name.to_owned(), replacement: format!("{name} ") }).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use rustyline::history::MemHistory;

    fn completed(typed: &str) -> Vec<String> {
        let word = |name: &str, argument| Word { name: name.to_owned(), argument };
        let words = vec![
            word("/save", Argument::File),
            word("/set", Argument::OneOf(["seed", "top-p"].map(str::to_owned).to_vec())),
            word("/help", Argument::None),
        ];
        let assistant = Assistant { words, files: FilenameCompleter::new(), line: RefCell::default() };
        let history = MemHistory::new();
        let (_, pairs) = assistant.complete(typed, typed.len(), &Context::new(&history)).expect("completes");
        pairs.into_iter().map(|pair| pair.replacement).collect()
    }

    #[test]
    fn commands_and_their_arguments_are_completed() {
        assert_eq!(completed("/s"), ["/save ", "/set "]);
        assert_eq!(completed("/he"), ["/help "]);
        assert_eq!(completed("/set "), ["seed ", "top-p "]);
        assert_eq!(completed("/set t"), ["top-p "]);
        assert_eq!(completed("/set  t"), ["top-p "]);
        assert_eq!(completed("Hello, /s"), [""; 0]);
        assert_eq!(completed(""), [""; 0]);
    }
}

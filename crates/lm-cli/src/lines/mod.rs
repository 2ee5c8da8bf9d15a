//! Lines from the user: edited on a terminal, or read from a pipe or a file.

mod editor;
mod history;
mod mentions;
mod paths;
mod quotes;
#[cfg(unix)]
mod type_ahead;
#[cfg(not(unix))]
#[path = "no_type_ahead.rs"]
mod type_ahead;

use std::io::{self, BufRead, IsTerminal, Read};
use std::sync::Arc;

use anyhow::{Context, Result};

pub use editor::{Argument, Word};
use editor::{Editor, Failed, Initial};
pub use history::History;
pub use mentions::files as mentioned;
pub use paths::parse as parse_path;
pub use quotes::unquoted;
pub use type_ahead::restore_terminal;

/// Maximum length of a piped line in bytes; the rest is the next line.
const MAX_LINE_BYTES: u64 = 16 << 20;

/// Source of lines.
pub enum Lines {
    /// A terminal, with line editing.
    Terminal(Box<Editor>),
    /// A pipe or a file; prompts are not shown.
    Piped(Box<dyn BufRead + Send>),
}

/// Input of the user.
#[derive(Debug, PartialEq)]
pub enum Line {
    Text(String),
    /// Ctrl-C at the empty prompt.
    Interrupted,
    /// Ctrl-C that cleared a line.
    Cleared,
    /// Ctrl-D, or the end of the input.
    End,
}

impl Lines {
    /// Opens standard input. On a terminal Tab completes the `words`, and lines are kept in the `history`.
    pub fn from_stdin(words: Vec<Word>, history: History) -> Result<Self> {
        if !io::stdin().is_terminal() {
            return Ok(Self::Piped(Box::new(io::BufReader::new(io::stdin()))));
        }
        let editor = Editor::new(words, history).context("the terminal cannot be used for line editing")?;
        Ok(Self::Terminal(Box::new(editor)))
    }

    /// From now on, what is typed while no prompt is shown waits in the next prompt for a message.
    /// `on_escape` is called for the key Esc, which is not kept.
    pub fn keep_typed(&mut self, on_escape: impl Fn() + Send + Sync + 'static) {
        if let Self::Terminal(editor) = self {
            editor.keep_typed(Arc::new(on_escape));
        }
    }

    /// Chooses whether lines that are typed before the next prompt are sent, as after a command that ends at
    /// once, or wait in it.
    pub fn send_typed(&mut self, sends: bool) {
        if let Self::Terminal(editor) = self {
            editor.sends_typed = sends;
        }
    }

    pub fn is_terminal(&self) -> bool {
        matches!(self, Self::Terminal(_))
    }

    /// Reads the next message, without its line break: a line, or several between `"""`. It is kept in the
    /// history.
    ///
    /// Bytes that are not UTF-8 become U+FFFD; a line on standard error says so.
    pub fn message(&mut self, prompt: &str) -> Result<Line> {
        let mut line = self.line_with(prompt, Initial::Typed)?;
        if let (Self::Piped(input), Line::Text(text)) = (&mut *self, &mut line) {
            while quotes::is_open(text) {
                let Line::Text(more) = piped_line(input)? else { break };
                text.push('\n');
                text.push_str(&more);
            }
        }
        if let (Self::Terminal(editor), Line::Text(text)) = (&mut *self, &line) {
            editor.remember(text);
        }
        Ok(line)
    }

    /// Gives a line of the terminal back: it is the next one.
    #[cfg(feature = "mcp")]
    pub fn give_back(&mut self, line: String) {
        if let Self::Terminal(editor) = self {
            editor.given_back = Some(line);
        }
    }

    /// Reads the next line, which is not kept in the history.
    pub fn line(&mut self, prompt: &str) -> Result<Line> {
        self.line_with(prompt, Initial::Empty)
    }

    /// Reads a text that the user may change, which is not kept in the history.
    pub fn edit(&mut self, prompt: &str, text: &str) -> Result<Line> {
        self.line_with(prompt, Initial::Text(text))
    }

    fn line_with(&mut self, prompt: &str, initial: Initial<'_>) -> Result<Line> {
        match self {
            Self::Piped(input) => piped_line(input),
            Self::Terminal(editor) => loop {
                match editor.read(prompt, initial) {
                    Ok(line) => return Ok(line),
                    Err(Failed::NotUtf8(text)) => {
                        eprintln!(
                            "note: bytes that are not UTF-8 are dropped; the line up to them is `{text}`, Up brings it back"
                        );
                    }
                    Err(Failed::Terminal(error)) => return Err(error).context("the terminal cannot be read"),
                }
            },
        }
    }
}

fn piped_line(input: &mut impl BufRead) -> Result<Line> {
    let mut bytes = Vec::new();
    let mut input = input.take(MAX_LINE_BYTES);
    if input.read_until(b'\n', &mut bytes).context("standard input cannot be read")? == 0 {
        return Ok(Line::End);
    }
    let text = String::from_utf8_lossy(&bytes);
    if matches!(text, std::borrow::Cow::Owned(_)) {
        eprintln!("note: bytes of standard input that are not UTF-8 became U+FFFD");
    }
    Ok(Line::Text(text.trim_end_matches(['\n', '\r']).to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn messages(input: &'static [u8]) -> Vec<String> {
        let mut lines = Lines::Piped(Box::new(io::Cursor::new(input)));
        let next = || match lines.message("> ").expect("input can be read") {
            Line::Text(text) => Some(text),
            _ => None,
        };
        std::iter::from_fn(next).collect()
    }

    #[test]
    fn piped_lines_split_at_any_line_end() {
        assert_eq!(messages(b"one\r\n\ntwo"), ["one", "", "two"]);
    }

    #[test]
    fn quoted_lines_are_one_message() {
        assert_eq!(messages(b"\"\"\"one\ntwo\"\"\"\nthree"), ["\"\"\"one\ntwo\"\"\"", "three"]);
        assert_eq!(messages(b"\"\"\"one\ntwo"), ["\"\"\"one\ntwo"], "the input ends first");
    }

    #[test]
    fn invalid_utf8_is_replaced() {
        assert_eq!(messages(b"caf\xe9\nnext\n"), ["caf\u{fffd}", "next"]);
    }
}

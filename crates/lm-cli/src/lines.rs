//! Lines from the user: edited on a terminal, read unchanged from a pipe or a file.

use std::io::{self, BufRead, IsTerminal};

use anyhow::{Context, Result};
use rustyline::DefaultEditor;
use rustyline::error::ReadlineError;

/// Source of lines.
pub enum Lines {
    /// A terminal, with line editing and a history for the life of the program.
    Terminal(Box<DefaultEditor>),
    /// A pipe or a file; prompts are not shown.
    Piped(Box<dyn BufRead + Send>),
}

/// Input of the user.
#[derive(Debug, PartialEq)]
pub enum Line {
    Text(String),
    /// Ctrl-C at the prompt.
    Interrupted,
    /// Ctrl-D, or the end of the input.
    End,
}

impl Lines {
    pub fn from_stdin() -> Result<Self> {
        if !io::stdin().is_terminal() {
            return Ok(Self::Piped(Box::new(io::BufReader::new(io::stdin()))));
        }
        Ok(Self::Terminal(Box::new(
            DefaultEditor::new().context("the terminal cannot be used for line editing")?,
        )))
    }

    pub fn is_terminal(&self) -> bool {
        matches!(self, Self::Terminal(_))
    }

    /// Reads the next line, without its line break.
    pub fn read(&mut self, prompt: &str) -> Result<Line> {
        match self {
            Self::Terminal(editor) => match editor.readline(prompt) {
                Ok(line) => {
                    editor.add_history_entry(&line)?;
                    Ok(Line::Text(line))
                }
                Err(ReadlineError::Interrupted) => Ok(Line::Interrupted),
                Err(ReadlineError::Eof) => Ok(Line::End),
                Err(error) => Err(error).context("the terminal cannot be read"),
            },
            Self::Piped(input) => {
                let mut line = String::new();
                let length = input.read_line(&mut line).context("standard input cannot be read")?;
                let text = line.trim_end_matches(['\n', '\r']).to_owned();
                Ok(if length == 0 { Line::End } else { Line::Text(text) })
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn piped_lines_come_one_by_one_with_any_line_end() {
        let mut lines = Lines::Piped(Box::new(io::Cursor::new("one\r\n\ntwo")));
        let read: Vec<_> = (0..4).map(|_| lines.read("> ").expect("text can be read")).collect();
        let text = |text: &str| Line::Text(text.to_owned());
        assert_eq!(read, [text("one"), text(""), text("two"), Line::End]);
    }

    #[test]
    fn bytes_that_are_no_text_are_an_error() {
        let mut lines = Lines::Piped(Box::new(io::Cursor::new(b"\xff\xfe\n".as_slice())));
        assert!(lines.read("").is_err());
    }
}

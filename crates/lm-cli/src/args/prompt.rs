//! Argument that gives a text: by position, by flag, from a file or from standard input.

use std::io::{self, IsTerminal, Read};
use std::path::{Path, PathBuf};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::thread;
use std::time::Duration;

use anyhow::{Context, Result, ensure};

use super::{names_model, takes_model, usage};

/// Maximum size of a text.
const MAX_BYTES: u64 = 1 << 30;
/// Time after which a line on standard error says that the program waits for standard input.
const PATIENCE: Duration = Duration::from_secs(2);

/// A text in the place of a prompt.
#[derive(Debug, clap::Args)]
pub struct PromptArgs {
    /// The prompt, also where it looks like a model's path or begins with a hyphen
    #[arg(
        long = "prompt",
        short = 'p',
        value_name = "TEXT",
        allow_hyphen_values = true,
        conflicts_with = "file"
    )]
    text: Option<String>,
    /// Read the prompt from FILE; - is standard input
    #[arg(long, short = 'f', value_name = "FILE")]
    file: Option<PathBuf>,
}

/// Refuses a model in the place of `expected`: its path, or a word that looks like one if no `model` is given
/// by name.
///
/// # Errors
/// A usage error that ends with `advice`.
pub fn refuse_model(text: &str, model: Option<&Path>, expected: &str, advice: &str) -> Result<()> {
    let what = match () {
        () if takes_model(text) => "is a model",
        () if model.is_none() && names_model(text) => "looks like the path or the name of a model",
        () => return Ok(()),
    };
    Err(usage(format!(
        "`{text}` {what}, and this command takes {expected} there; the model goes behind --model (-m), and {advice}"
    )))
}

/// Origin of a prompt.
#[derive(Debug, PartialEq)]
pub enum PromptSource<'a> {
    Text(&'a str),
    File(&'a Path),
    Stdin,
}

impl PromptArgs {
    /// Returns the origin of the prompt, with `positional` as the argument by position, and the `model` by
    /// name.
    ///
    /// # Errors
    /// When two are given, or the argument by position is the path of a model, or looks like one and none is
    /// given by name.
    pub fn source<'a>(
        &'a self,
        positional: Option<&'a str>,
        model: Option<&Path>,
    ) -> Result<PromptSource<'a>> {
        let advice = "--prompt (-p) sends this text as a prompt";
        let given = (positional, self.text.as_deref(), self.file.as_deref());
        Ok(match given {
            (None, Some(text), _) => PromptSource::Text(text),
            (None, None, Some(file)) => PromptSource::of_file(file),
            (None | Some("-"), None, _) => PromptSource::Stdin,
            (Some(text), None, None) => {
                refuse_model(text, model, "a prompt", advice)?;
                PromptSource::Text(text)
            }
            (Some(_), ..) => {
                return Err(usage("the prompt is given twice: by position, and by --prompt or --file"));
            }
        })
    }
}

impl<'a> PromptSource<'a> {
    /// Returns the origin for the argument of `--file`.
    pub fn of_file(file: &'a Path) -> Self {
        if file == Path::new("-") { Self::Stdin } else { Self::File(file) }
    }

    /// Reads the text. On a terminal, a line on standard error asks for it.
    ///
    /// # Errors
    /// When the input cannot be read, is not UTF-8 or is larger than 1 GiB.
    pub fn read(&self) -> Result<String> {
        match self {
            Self::Text(text) => Ok((*text).to_owned()),
            Self::File(path) => {
                let file = std::fs::File::open(path).with_context(|| format!("`{}`", path.display()))?;
                read_text(file).with_context(|| format!("`{}` cannot be read as UTF-8 text", path.display()))
            }
            Self::Stdin => {
                if io::stdin().is_terminal() {
                    eprintln!("reading the prompt from standard input; Ctrl-D ends it");
                }
                read_text(io::stdin()).context("standard input cannot be read as UTF-8 text")
            }
        }
    }
}

impl PromptSource<'_> {
    /// Reads the text; before an argument goes the text of standard input, unless that is a terminal.
    ///
    /// # Errors
    /// As [`read`](Self::read).
    pub fn read_with_stdin(&self) -> Result<String> {
        let Self::Text(text) = self else { return self.read() };
        if io::stdin().is_terminal() {
            return self.read();
        }
        let (_reading, read) = mpsc::channel::<()>();
        thread::spawn(move || {
            if read.recv_timeout(PATIENCE) == Err(RecvTimeoutError::Timeout) {
                eprintln!("reading standard input, which goes before the prompt; `< /dev/null` gives none");
            }
        });
        let before = Self::Stdin.read()?;
        Ok(if before.trim().is_empty() {
            (*text).to_owned()
        } else {
            format!("{}\n\n{text}", before.trim_end())
        })
    }
}

fn read_text(input: impl Read) -> Result<String> {
    let mut text = String::new();
    let bytes = input.take(MAX_BYTES + 1).read_to_string(&mut text)? as u64;
    ensure!(bytes <= MAX_BYTES, "it has more than {MAX_BYTES} bytes");
    Ok(text)
}

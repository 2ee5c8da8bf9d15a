//! Arguments of the commands that run a model over a text.

use std::fs::File;
use std::io::Read;
use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, ensure};
use lm_tokenizer::Tokenizer;

use super::{check_context, numbers, usage};
use crate::windows::Windows;

/// Maximum size of the text.
const MAX_TEXT_BYTES: u64 = 1 << 30;
/// Default length of a window.
const WINDOW: NonZeroUsize = NonZeroUsize::new(512).expect("is not zero");

/// A model, and a text in windows.
#[derive(Debug, clap::Args)]
pub struct TextArgs {
    /// Model folder, GGUF file, or name such as Qwen/Qwen3-0.6B [default: the embedded model], and a file of
    /// UTF-8 text
    #[arg(value_names = ["MODEL", "FILE"], num_args = 0..=2)]
    paths: Vec<PathBuf>,
    /// The model, by name
    #[arg(long, short, value_name = "MODEL")]
    model: Option<PathBuf>,
    /// The text, by name
    #[arg(long, short, value_name = "FILE")]
    file: Option<PathBuf>,
    /// Window length in tokens [default: 512, or the model's context if that is shorter]
    #[arg(long, value_name = "TOKENS", value_parser = numbers::count, allow_negative_numbers = true)]
    pub context: Option<NonZeroUsize>,
    /// Text prepended to every window [default: the tokens that the model's tokenizer puts before a text,
    /// such as BOS]
    #[arg(long, value_name = "TEXT")]
    prefix: Option<String>,
}

impl TextArgs {
    /// Returns model and text; each is given by position, the model first, or by name.
    pub fn paths(&self) -> Result<(Option<&Path>, &Path)> {
        match (self.model.as_deref(), self.file.as_deref(), &self.paths[..]) {
            (None, None, [model, file]) => Ok((Some(model), file)),
            (model, None, [file]) => Ok((model, file)),
            (None, Some(file), [model]) => Ok((Some(model), file)),
            (model, Some(file), []) => Ok((model, file)),
            (_, None, []) => {
                Err(usage("the text is missing: expected MODEL FILE, or --model MODEL --file FILE"))
            }
            _ => Err(usage("the model or the text is given twice: by position and by name")),
        }
    }

    /// Returns the window length. The models must support `limit` tokens; a default that is too long is
    /// reduced, with a note.
    pub fn window(&self, limit: usize) -> Result<NonZeroUsize> {
        if let Some(context) = self.context {
            return check_context(context, limit).map(|()| context);
        }
        let Some(limit) = NonZeroUsize::new(limit).filter(|limit| *limit < WINDOW) else { return Ok(WINDOW) };
        eprintln!("note: windows of {limit} tokens, the context of the model; the default is {WINDOW}");
        Ok(limit)
    }

    /// Cuts the text into windows of `context` tokens.
    pub fn windows(&self, tokenizer: &Tokenizer, text: &str, context: NonZeroUsize) -> Result<Windows> {
        let prefix = match &self.prefix {
            Some(prefix) => tokenizer.encode(prefix).context("--prefix")?,
            None => tokenizer.prefix_ids()?,
        };
        Windows::new(tokenizer.encode(text)?, prefix, context.get()).map_err(usage)
    }
}

/// Reads the whole file.
pub fn read_text(path: &Path) -> Result<String> {
    let name = || path.display().to_string();
    let file = File::open(path).with_context(name)?;
    ensure!(!path.is_dir(), "{}: it is a folder; expected a text, after the model", name());
    let mut text = String::new();
    let bytes = file.take(MAX_TEXT_BYTES + 1).read_to_string(&mut text).with_context(name)?;
    ensure!(
        bytes as u64 <= MAX_TEXT_BYTES,
        "{}: it has more than {MAX_TEXT_BYTES} bytes, which is the limit",
        name()
    );
    Ok(text)
}

//! Treatment of a model's tool calls: the choice of `lm inspect --probe-tools`, in a file beside the model.

use std::convert::Infallible;
use std::fmt;
use std::fs::{self, OpenOptions};
use std::io;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use lm_conversation::{ToolsNote, UnmarkedCalls};
use serde::{Deserialize, Serialize};

use crate::locate::{locate, stored};

/// Name of the file in a model's folder, and the end of the name of that beside a GGUF file.
const FILE: &str = "lm-calls.json";

/// Maximum size of the file.
const MAX_BYTES: u64 = 64 << 10;

/// Treatment of the tool calls of one model.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CallSettings {
    /// [`ToolsNote`] as text.
    tools_note: Option<String>,
    /// Reading of replies that are nothing but one JSON call, without the markers of the model's template.
    pub unmarked_calls: Option<Reading>,
}

/// Reading of a reply that is nothing but one JSON call, without the markers of the model's template.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, clap::ValueEnum)]
#[serde(rename_all = "lowercase")]
pub enum Reading {
    Call,
    Text,
}

impl From<Reading> for UnmarkedCalls {
    fn from(reading: Reading) -> Self {
        match reading {
            Reading::Call => Self::Read,
            Reading::Text => Self::Text,
        }
    }
}

impl CallSettings {
    pub fn new(tools_note: &ToolsNote, unmarked_calls: Reading) -> Self {
        Self { tools_note: Some(tools_note.to_string()), unmarked_calls: Some(unmarked_calls) }
    }

    /// Instruction after the system message of prompts with tools.
    pub fn tools_note(&self) -> Option<ToolsNote> {
        self.tools_note.as_ref().map(|text| text.parse().unwrap_or_else(|never: Infallible| match never {}))
    }

    /// The file of a model: in its folder, or beside its GGUF file.
    ///
    /// # Errors
    /// For a model that is not found.
    pub fn path(model: &Path) -> Result<PathBuf> {
        Ok(beside(&locate(model)?.path))
    }

    /// Reads the file of a model; `None` if there is none.
    ///
    /// # Errors
    /// When the file cannot be read, or is not as [`write`](Self::write) writes it.
    pub fn of(model: Option<&Path>) -> Result<Option<Self>> {
        let Some(model) = stored(model) else { return Ok(None) };
        let file = Self::path(model)?;
        let settings = read(&file)?;
        if let Some(settings) = &settings {
            tracing::info!("calls of tools {settings}: {}", file.display());
        }
        Ok(settings)
    }

    /// Checks that the file can be written, before the questions are asked; an existing one is not changed.
    ///
    /// # Errors
    /// When it cannot be written.
    pub fn check_writable(path: &Path) -> Result<()> {
        let existed = path.exists();
        let opened = OpenOptions::new().create(true).append(true).open(path);
        opened.with_context(|| format!("cannot write {}", path.display()))?;
        if !existed {
            fs::remove_file(path).with_context(|| format!("cannot replace {}", path.display()))?;
        }
        Ok(())
    }

    /// Writes the file.
    ///
    /// # Errors
    /// When it cannot be written.
    pub fn write(&self, path: &Path) -> Result<()> {
        let text = serde_json::to_string_pretty(self)? + "\n";
        fs::write(path, text).with_context(|| format!("cannot write {}", path.display()))
    }
}

fn beside(model: &Path) -> PathBuf {
    if model.is_dir() {
        return model.join(FILE);
    }
    let mut name = model.as_os_str().to_owned();
    name.push(".");
    name.push(FILE);
    name.into()
}

fn read(path: &Path) -> Result<Option<CallSettings>> {
    let size = match fs::metadata(path) {
        Ok(metadata) if !metadata.is_file() => anyhow::bail!("{} is not a file", path.display()),
        Ok(metadata) => metadata.len(),
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(error).with_context(|| format!("cannot read {}", path.display())),
    };
    let context = || {
        format!("{}: not as lm inspect --probe-tools writes it; delete it or run that again", path.display())
    };
    anyhow::ensure!(size <= MAX_BYTES, context());
    let text = fs::read_to_string(path).with_context(context)?;
    serde_json::from_str(&text).map(Some).with_context(context)
}

/// For people: `with a note on the syntax, JSON without markers is a call`.
impl fmt::Display for CallSettings {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let note = self.tools_note().unwrap_or_default();
        f.write_str(if note == ToolsNote::Off { "without a note" } else { "with a note on the syntax" })?;
        f.write_str(match self.unmarked_calls {
            None => "",
            Some(Reading::Call) => ", JSON without markers is a call",
            Some(Reading::Text) => ", JSON without markers is text",
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn settings_lie_beside_the_model() {
        let folder = tempfile::tempdir().expect("a folder");
        let file = folder.path().join("model.gguf");
        fs::write(&file, "GGUF").expect("a file");
        assert_eq!(beside(folder.path()), folder.path().join("lm-calls.json"));
        assert_eq!(beside(&file), folder.path().join("model.gguf.lm-calls.json"));
    }

    #[test]
    fn written_settings_are_read_back() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("lm-calls.json");
        assert_eq!(read(&path).expect("no file"), None);
        let settings = CallSettings::new(&ToolsNote::Text("Write it so.".into()), Reading::Text);
        settings.write(&path).expect("a file");
        assert_eq!(read(&path).expect("the file"), Some(settings));
        for broken in
            ["", "[]", "{\"unmarked_calls\": \"maybe\"}", "{\"unmarked_calls\": \"text\", \"x\": 1}"]
        {
            fs::write(&path, broken).expect("a file");
            let error = read(&path).expect_err(broken).to_string();
            assert!(error.contains("lm-calls.json") && error.contains("--probe-tools"), "{error}");
        }
    }
}

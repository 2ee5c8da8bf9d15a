//! File of a saved conversation: `{"tools": [..], "messages": [..]}`.

use std::fs::{self, OpenOptions};
use std::io::{BufWriter, ErrorKind, Write};
use std::path::Path;

use anyhow::{Context, Result, anyhow, bail};
use lm_conversation::Conversation;
use lm_template::{Message, Role, Value};
use serde_json::json;

use crate::json_file;

/// Treatment of an existing file.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Existing {
    Keep,
    Replace,
}

/// A conversation read from a file.
#[derive(Debug)]
pub struct Saved {
    /// System messages at the start.
    pub system: Vec<Message>,
    /// The messages after them.
    pub history: Vec<Message>,
    /// Names of the tools that were declared.
    pub tools: Vec<String>,
}

/// Writes a conversation to a file.
///
/// # Errors
/// When the file cannot be written, or exists and is kept. The causes are text.
pub fn write(path: &Path, conversation: &Conversation, existing: Existing) -> Result<()> {
    let preface = conversation.preface();
    let history = conversation.history();
    let messages = preface.messages.iter().chain(&history);
    let saved = json!({
        "tools": preface.tools.iter().map(|tool| tool.to_json()).collect::<Vec<_>>(),
        "messages": messages.map(Message::to_json).collect::<Vec<_>>(),
    });
    write_json(path, &saved, existing).map_err(|error| {
        match error.downcast_ref::<std::io::Error>().map(std::io::Error::kind) {
            Some(ErrorKind::AlreadyExists) => {
                anyhow!("`{}` exists already; give another name: /save FILE", path.display())
            }
            _ => anyhow!("`{}` cannot be written: {error:#}", path.display()),
        }
    })
}

/// Writes a file under a temporary name and renames it: whatever happens, a complete file stands under the name.
fn write_json(path: &Path, value: &Value, existing: Existing) -> Result<()> {
    let name = path.file_name().context("it names no file")?.to_string_lossy();
    if existing == Existing::Keep && path.symlink_metadata().is_ok() {
        return Err(std::io::Error::from(ErrorKind::AlreadyExists).into());
    }
    let temp = path.with_file_name(format!(".{name}.{}", std::process::id()));
    let write = || {
        let mut out = BufWriter::new(OpenOptions::new().write(true).create_new(true).open(&temp)?);
        serde_json::to_writer_pretty(&mut out, value)?;
        writeln!(out)?;
        out.flush()?;
        Ok(fs::rename(&temp, path)?)
    };
    let written: Result<()> = write();
    if written.is_err() {
        let _ = fs::remove_file(&temp);
    }
    written
}

/// Reads a conversation from a file; a bare array of messages is one, too.
///
/// # Errors
/// When the file cannot be read, or a message in it is invalid. The causes are text.
pub fn read(path: &Path) -> Result<Saved> {
    read_saved(path).map_err(|error| anyhow!("`{}` cannot be loaded: {error:#}", path.display()))
}

fn read_saved(path: &Path) -> Result<Saved> {
    let mut json = json_file::read(path)?;
    let messages = if json.is_array() { json.take() } else { json["messages"].take() };
    let Value::Array(messages) = messages else {
        bail!("expected an object with an array `messages`, as /save writes it");
    };
    let message =
        |(index, value)| Message::from_json(value).with_context(|| format!("message {index} (from 0)"));
    let mut messages = messages.into_iter().enumerate().map(message).collect::<Result<Vec<_>>>()?;
    let system = messages.iter().take_while(|message| message.role == Role::System).count();
    let history = messages.split_off(system);
    let tools = json["tools"].as_array().into_iter().flatten();
    let name = |tool: &Value| {
        let declaration = if tool["function"].is_object() { &tool["function"] } else { tool };
        declaration["name"].as_str().map(str::to_owned)
    };
    Ok(Saved { system: messages, history, tools: tools.filter_map(name).collect() })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_that_exists_is_kept_or_replaced_as_a_whole() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let path = folder.path().join("chat.json");
        write_json(&path, &json!({"a": 1}), Existing::Keep).expect("a new file");
        assert!(write_json(&path, &json!({"a": 2}), Existing::Keep).is_err());
        assert_eq!(fs::read_to_string(&path).expect("is there"), "{\n  \"a\": 1\n}\n");
        write_json(&path, &json!({"a": 3}), Existing::Replace).expect("is replaced");
        assert_eq!(fs::read_to_string(&path).expect("is there"), "{\n  \"a\": 3\n}\n");
        assert_eq!(folder.path().read_dir().expect("a folder").count(), 1, "nothing temporary is left");
    }

    #[test]
    fn a_file_that_is_no_conversation_is_named_with_the_place() {
        let file = tempfile::NamedTempFile::new().expect("a temporary file");
        for (text, expected) in [
            ("{", "is not JSON"),
            ("{\"messages\": 3}", "array `messages`"),
            ("[{\"role\": \"user\", \"content\": \"a\"}, {}]", "message 1 (from 0)"),
        ] {
            fs::write(file.path(), text).expect("can be written");
            let error = read(file.path()).expect_err("is refused").to_string();
            assert!(error.contains(expected) && error.contains(&*file.path().to_string_lossy()), "{error}");
        }
        assert!(read(Path::new("/nowhere/a")).is_err_and(|error| !error.is::<std::io::Error>()));
    }
}

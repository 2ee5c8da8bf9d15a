//! Slash commands of a chat: `/help`, `/reset`, …

use std::fs::OpenOptions;
use std::io::{BufWriter, Write};
use std::path::Path;

use anyhow::{Result, anyhow, bail};
use lm_template::{Message, Value};
use serde_json::json;

use super::turn::Turns;
use crate::screen::{Screen, json_line};

/// Next action of the loop after a line.
#[derive(Debug, PartialEq)]
pub enum After {
    GoOn,
    Quit,
}

/// A command; its function gets the text after the name.
struct Command<W: Write> {
    name: &'static str,
    argument: &'static str,
    help: &'static str,
    run: fn(&str, &mut Turns, &mut Screen<W>) -> Result<After>,
}

/// All commands, in alphabetical order.
fn all<W: Write>() -> [Command<W>; 6] {
    [
        Command { name: "help", argument: "", help: "show the commands", run: help },
        Command { name: "history", argument: "", help: "show the messages so far", run: history },
        Command { name: "quit", argument: "", help: "leave", run: |_, _, _| Ok(After::Quit) },
        Command { name: "reset", argument: "", help: "forget the conversation and begin again", run: reset },
        Command {
            name: "save",
            argument: " FILE",
            help: "write tools and messages as JSON to a new file",
            run: save,
        },
        Command { name: "tools", argument: "", help: "show the tools the model may call", run: tools },
    ]
}

/// Runs a command line, given without its leading `/`.
pub fn run<W: Write>(line: &str, turns: &mut Turns, screen: &mut Screen<W>) -> Result<After> {
    let (name, argument) = line.split_once(char::is_whitespace).unwrap_or((line, ""));
    let commands = all();
    let command = commands.iter().find(|command| command.name == name);
    let command = command.ok_or_else(|| {
        anyhow!("there is no command `/{name}`; /help shows them all, and `//` sends a line that begins with a slash")
    })?;
    (command.run)(argument.trim(), turns, screen)
}

fn help<W: Write>(_: &str, _: &mut Turns, screen: &mut Screen<W>) -> Result<After> {
    for Command { name, argument, help, .. } in all::<W>() {
        screen.note(&format!("{:12} {help}", format!("/{name}{argument}")))?;
    }
    screen.note("Ctrl-C      end the reply")?;
    screen.note("//text      send a message that begins with a slash")?;
    Ok(After::GoOn)
}

fn reset<W: Write>(_: &str, turns: &mut Turns, screen: &mut Screen<W>) -> Result<After> {
    turns.agent.conversation_mut().reset();
    screen.note("(begun again)")?;
    Ok(After::GoOn)
}

fn history<W: Write>(_: &str, turns: &mut Turns, screen: &mut Screen<W>) -> Result<After> {
    let preface = turns.agent.conversation().preface().messages.iter();
    for message in preface.chain(turns.agent.conversation().history()) {
        screen.note(&format!("{}: {}", message.role, summary(message)))?;
    }
    Ok(After::GoOn)
}

fn summary(message: &Message) -> String {
    let calls =
        message.tool_calls.iter().map(|call| format!("{}({})", call.name, json_line(&call.arguments)));
    let text = message.content.text().to_string();
    Some(text).filter(|text| !text.is_empty()).into_iter().chain(calls).collect::<Vec<_>>().join(" ")
}

fn tools<W: Write>(_: &str, turns: &mut Turns, screen: &mut Screen<W>) -> Result<After> {
    let specs = turns.agent.tools().specs();
    if specs.is_empty() {
        screen.note("(none; start with --tools demo or --tools FILE)")?;
    }
    for spec in specs {
        let properties = spec.parameters().get("properties").and_then(Value::as_object);
        let names: Vec<&str> = properties.into_iter().flatten().map(|(name, _)| name.as_str()).collect();
        screen.note(&format!("{}({}): {}", spec.name(), names.join(", "), spec.description()))?;
    }
    Ok(After::GoOn)
}

fn save<W: Write>(path: &str, turns: &mut Turns, screen: &mut Screen<W>) -> Result<After> {
    if path.is_empty() {
        bail!("/save needs the name of a file to write");
    }
    let preface = turns.agent.conversation().preface();
    let messages = preface.messages.iter().chain(turns.agent.conversation().history());
    let saved = json!({
        "tools": preface.tools.iter().map(|tool| tool.to_json()).collect::<Vec<_>>(),
        "messages": messages.map(Message::to_json).collect::<Vec<_>>(),
    });
    write_new(Path::new(path), &saved).map_err(|error| not_saved(path, &error))?;
    screen.note(&format!("(saved to {path})"))?;
    Ok(After::GoOn)
}

/// Error of a file that cannot be written. Its cause is text: an I/O error would end the chat, as one of the terminal does.
fn not_saved(path: &str, error: &anyhow::Error) -> anyhow::Error {
    let kind = error.downcast_ref::<std::io::Error>().map(std::io::Error::kind);
    match kind {
        Some(std::io::ErrorKind::AlreadyExists) => {
            anyhow!("`{path}` exists already; give another name: /save FILE")
        }
        _ => anyhow!("`{path}` cannot be written: {error:#}"),
    }
}

/// Writes a new file; fails if it exists, and removes it after a write error.
fn write_new(path: &Path, value: &Value) -> Result<()> {
    let file = OpenOptions::new().write(true).create_new(true).open(path)?;
    let mut out = BufWriter::new(file);
    let written = serde_json::to_writer_pretty(&mut out, value).map_err(anyhow::Error::from);
    let written = written.and_then(|()| Ok(writeln!(out)?)).and_then(|()| Ok(out.flush()?));
    if written.is_err() {
        let _ = std::fs::remove_file(path);
    }
    written
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commands_are_in_alphabetical_order() {
        assert!(all::<Vec<u8>>().windows(2).all(|pair| pair[0].name < pair[1].name));
    }

    #[test]
    fn a_file_that_exists_is_not_written_over() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let path = folder.path().join("chat.json");
        write_new(&path, &json!({"a": 1})).expect("a new file");
        assert!(write_new(&path, &json!({"a": 2})).is_err());
        assert_eq!(std::fs::read_to_string(path).expect("is there"), "{\n  \"a\": 1\n}\n");
    }
}

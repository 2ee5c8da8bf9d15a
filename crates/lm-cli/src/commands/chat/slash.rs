//! Slash commands of a chat: `/help`, `/undo`, …

use std::path::{Path, PathBuf};

use anyhow::{Result, anyhow, bail};
use lm_conversation::SavedConversation;
use lm_session::{FinishReason, MediaKind};
use lm_store::{Owner, Summary};
use lm_template::{Message, ToolCall};

use super::State;
use super::kept::Opened;
use super::saved::{self, Existing, Loaded};
use super::server_content;
use super::settings::NAMES;
use super::turn::Ended;
use crate::counted::counted;
use crate::lines::{Argument, Word, parse_path};
use crate::screen::{json_line, one_line};
use crate::suggestion::did_you_mean;
use crate::text_file::{self, TextFile};
use crate::{media, preset};

/// Next action of the loop after a line.
#[derive(Debug, PartialEq)]
pub enum After {
    GoOn,
    Quit,
    /// The conversation is to be summarised.
    Compact,
    /// A turn was run.
    Turn(Ended),
}

/// A command; its function gets the text after the name.
struct Command {
    /// Its name, and others for it.
    names: &'static [&'static str],
    argument: &'static str,
    help: &'static str,
    run: fn(&str, &mut State) -> Result<After>,
}

/// All commands, in alphabetical order.
const ALL: [Command; 24] = [
    Command {
        names: &["audio"],
        argument: "FILE",
        help: "add an audio clip to the next message; alone drops the audio clips added",
        run: |path, state| medium(path, MediaKind::Audio, state),
    },
    Command {
        names: &["clear", "reset"],
        argument: "",
        help: "forget the conversation and begin again",
        run: clear,
    },
    Command {
        names: &["compact"],
        argument: "",
        help: "replace the conversation by a summary that the model writes and you may change",
        run: |_, _| Ok(After::Compact),
    },
    Command {
        names: &["continue"],
        argument: "",
        help: "write on in the last reply, such as one that was cut",
        run: go_on,
    },
    Command {
        names: &["conversations"],
        argument: "WORDS",
        help: "show the last kept conversations, or those with these words",
        run: conversations,
    },
    Command { names: &["exit", "bye", "quit"], argument: "", help: "leave", run: |_, _| Ok(After::Quit) },
    Command {
        names: &["file"],
        argument: "FILE",
        help: "begin the next message with a text or PDF file, or those of a pattern such as src/*.rs; alone drops the files added",
        run: file,
    },
    Command { names: &["help", "?"], argument: "", help: "show the commands", run: help },
    Command { names: &["history"], argument: "", help: "show the messages so far", run: history },
    Command {
        names: &["image"],
        argument: "FILE",
        help: "add an image to the next message; alone drops the images added",
        run: |path, state| medium(path, MediaKind::Image, state),
    },
    Command {
        names: &["load"],
        argument: "FILE",
        help: "continue a saved conversation; without a system prompt in it, the current one stays",
        run: load,
    },
    Command {
        names: &["open"],
        argument: "TITLE|ID",
        help: "continue a kept conversation; a part of the title is enough",
        run: open,
    },
    Command {
        names: &["preset"],
        argument: "NAME|FILE",
        help: "change the settings to those of a preset; alone shows the presets",
        run: preset,
    },
    Command {
        names: &["prompt"],
        argument: "NAME [KEY=VALUE …]",
        help: "begin the next message with a prompt of an MCP server",
        run: server_content::prompt,
    },
    Command {
        names: &["prompts"],
        argument: "",
        help: "show the prompts of the MCP servers",
        run: server_content::prompts,
    },
    Command {
        names: &["regen"],
        argument: "",
        help: "answer the last message again, with another seed",
        run: regen,
    },
    Command {
        names: &["resource"],
        argument: "URI",
        help: "begin the next message with a resource of an MCP server; alone drops what was inserted",
        run: server_content::resource,
    },
    Command {
        names: &["resources"],
        argument: "",
        help: "show the resources of the MCP servers",
        run: server_content::resources,
    },
    Command {
        names: &["save"],
        argument: "FILE",
        help: "write tools and messages as JSON; without FILE to the last one",
        run: save,
    },
    Command {
        names: &["set"],
        argument: "NAME VALUE",
        help: "change a setting, such as temperature; alone shows all",
        run: set,
    },
    Command { names: &["stats"], argument: "", help: "show or hide token counts and speed", run: stats },
    Command {
        names: &["system"],
        argument: "TEXT",
        help: "set the system prompt; alone shows it, \"\" removes it",
        run: system,
    },
    Command { names: &["tools"], argument: "", help: "show the tools the model may call", run: tools },
    Command { names: &["undo"], argument: "", help: "take back the last message and its reply", run: undo },
];

/// Words that Tab completes.
pub fn words() -> Vec<Word> {
    let argument = |command: &Command| match command.argument {
        "FILE" => Argument::File,
        "NAME VALUE" => Argument::OneOf(NAMES.iter().map(|(name, _)| (*name).to_owned()).collect()),
        "NAME|FILE" => Argument::OneOf(preset::names()),
        _ => Argument::None,
    };
    let words = |command: &'static Command| {
        command.names.iter().map(move |name| Word { name: format!("/{name}"), argument: argument(command) })
    };
    const { &ALL }.iter().flat_map(words).collect()
}

/// Runs a command line, given without its leading `/`.
pub fn run(line: &str, state: &mut State) -> Result<After> {
    let (name, argument) = line.split_once(char::is_whitespace).unwrap_or((line, ""));
    let command = ALL.iter().find(|command| command.names.contains(&name));
    let command = command.ok_or_else(|| {
        let meant = did_you_mean(name, ALL.iter().flat_map(|command| command.names).copied(), "/");
        anyhow!("there is no command `/{name}`{meant}; /help shows them all, and `//` sends a line that begins with a slash")
    })?;
    let argument = argument.trim();
    if command.argument.is_empty() && !argument.is_empty() {
        bail!("/{name} takes nothing after it; `//` sends a line that begins with a slash");
    }
    (command.run)(argument, state)
}

fn help(_: &str, state: &mut State) -> Result<After> {
    for Command { names, argument, help, .. } in &ALL {
        let others: Vec<String> = names[1..].iter().map(|name| format!("/{name}")).collect();
        let others = if others.is_empty() { String::new() } else { format!(" (also {})", others.join(", ")) };
        state.screen.note(&format!("{:16} {help}{others}", format!("/{} {argument}", names[0])))?;
    }
    for (key, help) in [
        ("Ctrl-C, Esc", "end the reply; its beginning is kept"),
        ("@FILE", "in a message: begin it with the file, as /file does; Tab completes the path"),
        ("Alt-Enter", "begin another line of the message"),
        ("\"\"\"text\"\"\"", "a message of several lines"),
        ("Tab, Up", "complete a command, recall an earlier line"),
        ("//text", "send a message that begins with a slash"),
    ] {
        state.screen.note(&format!("{key:16} {help}"))?;
    }
    Ok(After::GoOn)
}

fn clear(_: &str, state: &mut State) -> Result<After> {
    state.leave()?;
    state.turns.agent.conversation_mut().reset();
    if let Some(kept) = &mut state.kept {
        kept.restart();
    }
    state.media.clear();
    state.inserted.clear();
    state.files.clear();
    state.file = None;
    state.screen.note("(started over)")?;
    Ok(After::GoOn)
}

fn history(_: &str, state: &mut State) -> Result<After> {
    let conversation = state.turns.agent.conversation();
    for message in conversation.preface().messages.iter().chain(&conversation.history()) {
        state.screen.note(&format!("{}: {}", message.role, summary(message)))?;
    }
    Ok(After::GoOn)
}

fn summary(message: &Message) -> String {
    let call = |call: &ToolCall| format!("{}({})", one_line(&call.name), json_line(&call.arguments));
    let calls = message.tool_calls.iter().map(call);
    let media = message.content.parts().iter().filter(|part| part.as_text().is_none());
    let media: String = media.map(|part| format!("[{}] ", part.kind())).collect();
    let text = media + &message.content.text();
    Some(text).filter(|text| !text.is_empty()).into_iter().chain(calls).collect::<Vec<_>>().join(" ")
}

fn tools(_: &str, state: &mut State) -> Result<After> {
    let specs = state.turns.tools.all().specs();
    if specs.is_empty() {
        state.screen.note("(none; start with --tools demo, --tools FILE or --mcp SERVER)")?;
    }
    for spec in specs {
        let described = state.turns.tools.described(&spec);
        state.screen.note(&described)?;
    }
    Ok(After::GoOn)
}

fn save(path: &str, state: &mut State) -> Result<After> {
    let path = match (path.is_empty(), &state.file) {
        (false, _) => parse_path(path),
        (true, Some(last)) => last.clone(),
        (true, None) => bail!("/save needs the name of a file to write"),
    };
    let own = state.file.as_ref() == Some(&path);
    let existing = if own { Existing::Replace } else { Existing::Keep };
    let outcome = saved::write(&path, state.turns.agent.conversation(), state.save, existing)?;
    state.screen.note(&format!("(saved to {}{})", path.display(), saved::describe(outcome)))?;
    state.file = Some(path);
    Ok(After::GoOn)
}

fn file(path: &str, state: &mut State) -> Result<After> {
    if path.is_empty() {
        state.files.clear();
        state.screen.note("(no files)")?;
        return Ok(After::GoOn);
    }
    let path = parse_path(path);
    for file in text_file::matching(&path)? {
        add_file(TextFile::read(&file)?, state)?;
    }
    Ok(After::GoOn)
}

/// Adds a file that a message names: an image, an audio clip, or text.
pub fn add_mentioned(path: &Path, state: &mut State) -> Result<()> {
    match media::kind_of(path) {
        Some(kind) => add_media(&[(path.to_owned(), kind)], state),
        None => add_file(TextFile::read(path)?, state),
    }
}

/// Adds a text file to the next message, and shows its size in tokens.
pub fn add_file(file: TextFile, state: &mut State) -> Result<()> {
    let note = state.files.add(file, state.turns.agent.conversation())?;
    state.screen.note(&note)?;
    Ok(())
}

fn medium(path: &str, kind: MediaKind, state: &mut State) -> Result<After> {
    if path.is_empty() {
        state.media.retain(|file| !media::is(&file.part, kind));
        state.screen.note(&format!("(no {})", kind.plural()))?;
    } else {
        add_media(&[(parse_path(path), kind)], state)?;
    }
    Ok(After::GoOn)
}

/// Adds images and audio to the next message: all of them, or none after an error.
pub fn add_media(files: &[(PathBuf, MediaKind)], state: &mut State) -> Result<()> {
    let engine = state.turns.agent.conversation().engine();
    let read = files.iter().map(|(path, kind)| media::read_for(engine, path, *kind));
    let read = read.collect::<Result<Vec<_>>>()?;
    for (file, (_, kind)) in read.into_iter().zip(files) {
        state.media.push(file);
        let count = state.media.iter().filter(|file| media::is(&file.part, *kind)).count();
        let command = match kind {
            MediaKind::Image => "/image",
            MediaKind::Audio => "/audio",
        };
        state.screen.note(&format!("({kind} {count} of the next message; {command} alone drops them)"))?;
    }
    Ok(())
}

fn load(path: &str, state: &mut State) -> Result<After> {
    if path.is_empty() {
        bail!("/load needs the name of a file that /save wrote");
    }
    let path = parse_path(path);
    resume(saved::read(&path)?, &path, state)?;
    Ok(After::GoOn)
}

/// Replaces the conversation by the one that was read from a file. Without a system prompt in it, the current
/// one stays.
pub fn resume(loaded: Loaded, path: &Path, state: &mut State) -> Result<()> {
    replace(loaded, &path.display().to_string(), state)?;
    if let Some(kept) = &mut state.kept {
        kept.restart();
    }
    state.file = Some(path.to_owned());
    Ok(())
}

fn conversations(words: &str, state: &mut State) -> Result<After> {
    const SHOWN: usize = 20;
    let Some(kept) = &state.kept else { bail!("conversations are not kept in this chat") };
    let found = match words {
        "" => kept.store().list(&Owner::local(), SHOWN, 0)?,
        words => {
            let found = kept.store().search(&Owner::local(), words, SHOWN)?;
            found.into_iter().map(|found| found.summary).collect()
        }
    };
    if found.is_empty() {
        state.screen.note("(none)")?;
    }
    for Summary { id, title, messages, .. } in found {
        let line = format!("{id}  {}  {}", counted(messages, "message"), one_line(&title));
        state.screen.note(&line)?;
    }
    Ok(After::GoOn)
}

fn open(name: &str, state: &mut State) -> Result<After> {
    let Some(kept) = &state.kept else { bail!("conversations are not kept in this chat") };
    if name.is_empty() {
        bail!("/open needs a title or an id; /conversations shows them");
    }
    let id = kept.store().find(&Owner::local(), name)?;
    open_kept(&id, state)?;
    Ok(After::GoOn)
}

/// Replaces the conversation by a kept one.
pub fn open_kept(id: &str, state: &mut State) -> Result<()> {
    state.leave()?;
    let cache = state.caches.as_ref().and_then(|caches| caches.read(id)?.cache);
    let Some(kept) = &mut state.kept else { return Ok(()) };
    let Opened { title, system, history, unanswered } = kept.open(id)?;
    let preface = Some(system).filter(|text| !text.is_empty()).map(Message::system).into_iter().collect();
    let saved = SavedConversation { preface, history, cache, ..SavedConversation::default() };
    let replaced = replace(Loaded { saved, damaged: None }, &format!("\"{}\"", one_line(&title)), state);
    if let (Err(_), Some(kept)) = (&replaced, &mut state.kept) {
        kept.restart();
    }
    replaced?;
    state.file = None;
    if let Some(question) = unanswered {
        state.screen.note(&format!("(its last message has no answer: {question})"))?;
    }
    Ok(())
}

/// Replaces the conversation by a loaded one, whose source is shown.
fn replace(loaded: Loaded, source: &str, state: &mut State) -> Result<()> {
    let Loaded { saved, damaged } = loaded;
    let conversation = state.turns.agent.conversation_mut();
    let missing: Vec<_> = saved
        .tools
        .iter()
        .map(|tool| tool.name().to_owned())
        .filter(|name| conversation.tools().iter().all(|tool| tool.name() != name))
        .collect();
    let count = saved.history.len();
    let system = match conversation.preface().messages.is_empty() {
        false if saved.preface.is_empty() => "; they have no system prompt, the current one stays",
        false if saved.preface != conversation.preface().messages => {
            "; their system prompt replaces the current one"
        }
        _ => "",
    };
    let preface = match saved.preface.is_empty() {
        true => conversation.preface().messages.clone(),
        false => saved.preface.clone(),
    };
    let saved = SavedConversation { preface, ..saved };
    let mut cached = 0;
    let unused = match conversation.restore(saved.clone()) {
        Ok(tokens) => {
            cached = tokens;
            damaged.map(|error| error.to_string())
        }
        Err(error) if saved.cache.is_some() => {
            conversation.restore(SavedConversation { cache: None, ..saved })?;
            Some(error.to_string())
        }
        Err(error) => return Err(error.into()),
    };
    state.files.forget_large();
    let cache = if cached > 0 { format!("; {} cached", counted(cached, "token")) } else { String::new() };
    let messages = counted(count, "message");
    state.screen.note(&format!("({messages} loaded from {source}{cache}{system})"))?;
    if let Some(error) = unused {
        state.screen.note(&format!("(the KV cache in it is not used: {error})"))?;
    }
    if !missing.is_empty() {
        let names = one_line(&missing.join(", "));
        state.screen.note(&format!(
            "(tools of that conversation that are not here: {names}; --tools declares them)"
        ))?;
    }
    Ok(())
}

fn system(text: &str, state: &mut State) -> Result<After> {
    let conversation = state.turns.agent.conversation_mut();
    let note = match text {
        "" if conversation.preface().messages.is_empty() => "(no system prompt)".to_owned(),
        "" => conversation.preface().messages.iter().map(summary).collect::<Vec<_>>().join("\n"),
        "\"\"" => {
            conversation.set_preface_messages(Vec::new());
            "(system prompt removed)".to_owned()
        }
        text => {
            conversation.set_preface_messages(vec![Message::system(text)]);
            "(system prompt set)".to_owned()
        }
    };
    state.screen.note(&note)?;
    Ok(After::GoOn)
}

fn set(argument: &str, state: &mut State) -> Result<After> {
    let names = NAMES.iter().filter(|(name, _)| argument.is_empty() || argument == *name);
    let shown: Vec<_> = names
        .map(|(name, values)| format!("{name:18} {} ({values})", state.settings.get(name, &state.screen)))
        .collect();
    if shown.is_empty() {
        let (name, value) = argument.split_once(char::is_whitespace).unwrap_or((argument, ""));
        state.settings.set(name, value.trim(), &mut state.screen)?;
        state.screen.note(&format!("({name} {})", state.settings.get(name, &state.screen)))?;
    }
    for line in shown {
        state.screen.note(&line)?;
    }
    Ok(After::GoOn)
}

fn preset(name: &str, state: &mut State) -> Result<After> {
    if name.is_empty() {
        state.screen.note(&preset::names().join(", "))?;
        return Ok(After::GoOn);
    }
    for (key, value) in preset::table(name)? {
        let text = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
        if key == "system" {
            system(&text, state)?;
        } else if NAMES.iter().any(|(name, _)| *name == key) {
            set(&format!("{key} {text}"), state)?;
        } else {
            state.screen.note(&format!("({key} needs another start: lm chat --preset {name})"))?;
        }
    }
    Ok(After::GoOn)
}

fn stats(_: &str, state: &mut State) -> Result<After> {
    state.settings.stats = !state.settings.stats;
    state.screen.note(if state.settings.stats { "(stats on)" } else { "(stats off)" })?;
    Ok(After::GoOn)
}

fn undo(_: &str, state: &mut State) -> Result<After> {
    let Some(turn) = state.turns.undo() else { bail!("there is no turn to take back") };
    state.screen.note(&format!("(taken back: {})", summary(&turn[0])))?;
    Ok(After::GoOn)
}

fn go_on(_: &str, state: &mut State) -> Result<After> {
    let ended = state.turns.go_on(&state.settings, &mut state.screen)?;
    if let Ended::Answered { finished } = &ended
        && finished.iter().all(|reply| reply.usage.output_tokens <= reply.usage.continued_tokens + 1)
        && finished.iter().all(|reply| reply.reason == FinishReason::EndToken)
    {
        state.screen.note("(nothing was added: the model ends its reply here)")?;
    }
    Ok(After::Turn(ended))
}

fn regen(_: &str, state: &mut State) -> Result<After> {
    Ok(After::Turn(state.turns.regenerate(&state.settings, &mut state.screen)?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commands_are_sorted_and_unique() {
        assert!(ALL.windows(2).all(|pair| pair[0].names[0] < pair[1].names[0]));
        let mut names: Vec<_> = words().into_iter().map(|word| word.name).collect();
        let all = names.len();
        names.sort();
        names.dedup();
        assert_eq!(names.len(), all);
    }
}

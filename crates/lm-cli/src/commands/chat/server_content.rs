//! Commands about resources and prompts of MCP servers.

use std::path::PathBuf;

use anyhow::{Context, Result, bail};
use lm_session::MediaKind;
use lm_template::{Message, Part, Role};
use lm_tools::{Map, Value};

use super::State;
use super::slash::After;
use crate::counted::counted;
use crate::media::{self, MediaFile};

pub fn resources(_: &str, state: &mut State) -> Result<After> {
    let lines = state.turns.tools.servers().resources();
    listed(&lines, "(no resources; MCP servers have them: --mcp SERVER)", state)
}

pub fn prompts(_: &str, state: &mut State) -> Result<After> {
    let lines = state.turns.tools.servers().prompts();
    listed(&lines, "(no prompts; MCP servers have them: --mcp SERVER)", state)
}

fn listed(lines: &[String], none: &str, state: &mut State) -> Result<After> {
    for line in lines {
        state.screen.note(line)?;
    }
    if lines.is_empty() {
        state.screen.note(none)?;
    }
    Ok(After::GoOn)
}

/// Inserts a resource; without an address it drops the inserted texts.
pub fn resource(uri: &str, state: &mut State) -> Result<After> {
    if uri.is_empty() {
        state.inserted.clear();
        state.screen.note("(nothing is inserted)")?;
        return Ok(After::GoOn);
    }
    let parts = state.turns.tools.servers().read_resource(uri)?;
    insert(parts, uri, state)
}

/// Inserts the messages of a prompt; those of the assistant are marked.
pub fn prompt(line: &str, state: &mut State) -> Result<After> {
    let (name, arguments) = parse(line)?;
    let messages = state.turns.tools.servers().prompt(&name, arguments)?;
    let mut parts = Vec::new();
    for Message { role, content, .. } in messages {
        let gap = if parts.is_empty() { "" } else { "\n\n" };
        let mark = if role == Role::Assistant { "assistant: " } else { "" };
        parts.push(Part::Text(format!("{gap}{mark}")));
        match content {
            lm_template::Content::Parts(more) => parts.extend(more),
            content => parts.push(Part::Text(content.text())),
        }
    }
    insert(parts, &name, state)
}

/// The name and the arguments of a prompt; values may be quoted.
fn parse(line: &str) -> Result<(String, Map<String, Value>)> {
    let mut words = shlex::split(line).context("a quote is not closed")?.into_iter();
    let Some(name) = words.next() else { bail!("/prompt needs the name of a prompt; /prompts shows them") };
    let mut arguments = Map::new();
    for word in words {
        let Some((key, value)) = word.split_once('=') else {
            bail!("`{word}` is not an argument of a prompt: expected KEY=VALUE");
        };
        arguments.insert(key.to_owned(), value.into());
    }
    Ok((name, arguments))
}

/// Adds text to the beginning of the next message, and images and audio that the model reads to its media.
fn insert(parts: Vec<Part>, name: &str, state: &mut State) -> Result<After> {
    let engine = state.turns.agent.conversation().engine();
    let is_read =
        |part: &Part| MediaKind::ALL.into_iter().any(|kind| media::is(part, kind) && engine.reads(kind));
    let (read, text): (Vec<Part>, Vec<Part>) = parts.into_iter().partition(is_read);
    let text = lm_template::Content::Parts(text).text_with_notes();
    let chars = text.chars().count();
    let mut what = vec![counted(chars, "character")];
    if !read.is_empty() {
        what.push(counted(read.len(), "attachment"));
    }
    state.media.extend(read.into_iter().map(|part| MediaFile { path: PathBuf::from(name), part }));
    state.inserted.extend(Some(text).filter(|text| !text.is_empty()));
    state.screen.note(&format!(
        "({name}: {} before the next message; /resource alone drops the text)",
        what.join(", ")
    ))?;
    Ok(After::GoOn)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn arguments_of_a_prompt_may_be_quoted() {
        let parsed = |line| parse(line).map(|(name, arguments)| (name, Value::Object(arguments)));
        let (name, arguments) = parsed("review code='a = b' s=").expect("a prompt");
        assert_eq!((name.as_str(), arguments), ("review", json!({"code": "a = b", "s": ""})));
        assert_eq!(parsed("s/review").expect("a prompt").1, json!({}));
        for (line, expected) in
            [("", "/prompt needs"), ("a b", "`b` is not an argument"), ("a 'b", "a quote is not closed")]
        {
            assert!(parsed(line).expect_err("no prompt").to_string().starts_with(expected), "{line}");
        }
    }
}

//! `lm conversations show`.

use std::io::{self, Write};
use std::time::{SystemTime, UNIX_EPOCH};

use anyhow::Result;
use lm_store::{Conversation, Error, Message, Owner, Store};
use serde_json::Value;

use crate::file_url::percent_decoded;
use crate::screen::{one_line, replace_control_chars};

/// Prints a conversation: its shown branch as text, or all of it as JSON.
pub fn show(store: &Store, name: &str, as_json: bool) -> Result<()> {
    let conversation = found(store, name)?;
    let mut out = io::stdout().lock();
    if as_json {
        writeln!(out, "{}", conversation.to_json())?;
        return Ok(());
    }
    if let Some(system) =
        conversation.settings.get("system").and_then(Value::as_str).filter(|text| !text.is_empty())
    {
        writeln!(out, "system: {}\n", replace_control_chars(system))?;
    }
    for message in conversation.path() {
        writeln!(out, "{}: {}\n", message.role, replace_control_chars(&text(message)))?;
    }
    let branches = conversation.messages.len() - conversation.path().len();
    if branches > 0 {
        eprintln!("{branches} messages of other branches are not shown; --json has them");
    }
    Ok(())
}

/// The conversation of this id or title.
pub fn found(store: &Store, name: &str) -> Result<Conversation> {
    let owner = Owner::local();
    let id = store.find(&owner, name)?;
    Ok(store.get(&owner, &id)?.ok_or(Error::Unknown { name: name.to_owned() })?)
}

/// Text of a message, with notes on its images and audio, and its calls.
fn text(message: &Message) -> String {
    let media = message.media.iter().map(|url| format!("[{}] ", kind(url)));
    let dropped =
        (message.dropped > 0).then(|| format!("[{} images or audio clips, not kept] ", message.dropped));
    let call = |call: &Value| {
        Some(format!("\n→ {}({})", one_line(call["name"].as_str()?), one_line(call["arguments"].as_str()?)))
    };
    let calls = message.fields.get("calls").and_then(Value::as_array).into_iter().flatten().filter_map(call);
    let parts = media.chain(dropped).chain([message.content.clone()]).chain(calls);
    parts.collect::<String>().trim_end().to_owned()
}

/// Name of a text file, or kind of another medium, of a data URL.
fn kind(url: &str) -> String {
    let name = url.strip_prefix("data:text/plain;name=").and_then(|rest| rest.split(';').next());
    let kind = || url.split(['/', ':']).nth(1).unwrap_or("medium").to_owned();
    name.map_or_else(kind, |name| one_line(&percent_decoded(name)))
}

/// Time since `ms` since 1970, in the largest unit: `now`, `5 min`, `3 h`, `2 d`, `7 wk`.
pub fn age(ms: i64) -> String {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs();
    let seconds = now.saturating_sub(u64::try_from(ms / 1000).unwrap_or_default());
    match seconds {
        0..60 => "now".to_owned(),
        60..3600 => format!("{} min", seconds / 60),
        3600..86_400 => format!("{} h", seconds / 3600),
        86_400..2_419_200 => format!("{} d", seconds / 86_400),
        _ => format!("{} wk", seconds / 604_800),
    }
}

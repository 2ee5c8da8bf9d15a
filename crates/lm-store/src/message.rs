//! Messages of a conversation.

use std::fmt;

use serde_json::{Map, Value};

use crate::error::{Error, Result};
use crate::id::{self, new_id};
use crate::limits::Limits;

/// Author of a message. The system prompt belongs to the settings of a conversation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    /// The user.
    User,
    /// The model.
    Assistant,
    /// A tool, with the result of a call.
    Tool,
}

impl Role {
    const ALL: [Self; 3] = [Self::User, Self::Assistant, Self::Tool];

    /// Name in JSON: `user`, `assistant` or `tool`.
    pub fn name(self) -> &'static str {
        match self {
            Self::User => "user",
            Self::Assistant => "assistant",
            Self::Tool => "tool",
        }
    }

    /// The role of a name.
    pub(crate) fn of_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|role| role.name() == name)
    }
}

impl fmt::Display for Role {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// A message, and its place in the tree.
#[derive(Clone, Debug, PartialEq)]
pub struct Message {
    /// Id, unique in its conversation.
    pub id: String,
    /// Id of the message before it; `None` for a first message.
    pub parent: Option<String>,
    /// Author.
    pub role: Role,
    /// Text.
    pub content: String,
    /// Images and audio, as data URLs.
    pub media: Vec<String>,
    /// Number of images and audio that are not kept: too large, or the oldest of a full store.
    pub dropped: usize,
    /// Further fields, such as `reasoning`, `calls` and `stats`.
    pub fields: Map<String, Value>,
}

impl Message {
    /// Creates a message after `parent`, with a random id.
    pub fn new(parent: Option<&Message>, role: Role, content: impl Into<String>) -> Self {
        Self {
            id: new_id("m"),
            parent: parent.map(|parent| parent.id.clone()),
            role,
            content: content.into(),
            media: Vec::new(),
            dropped: 0,
            fields: Map::new(),
        }
    }

    /// Writes the message as JSON: `id`, `parent`, `role`, `content`, `media` and `dropped` if there are any,
    /// then the further fields.
    pub fn to_json(&self) -> Value {
        let mut json = Map::new();
        json.insert("id".to_owned(), self.id.as_str().into());
        json.insert("parent".to_owned(), self.parent.as_deref().into());
        json.insert("role".to_owned(), self.role.name().into());
        json.insert("content".to_owned(), self.content.as_str().into());
        if !self.media.is_empty() {
            json.insert("media".to_owned(), self.media.clone().into());
        }
        if self.dropped > 0 {
            json.insert("dropped".to_owned(), self.dropped.into());
        }
        json.extend(self.fields.clone());
        Value::Object(json)
    }

    /// Reads a message; `at` is its path for errors. Media that are too large are dropped.
    pub(crate) fn read(json: Value, at: &str) -> Result<Self> {
        let Value::Object(mut fields) = json else {
            return Err(Error::invalid(at, "an object", &json));
        };
        let id = text(&mut fields, "id", at)?;
        id::check(&id, &format!("{at}.id"))?;
        let parent = match fields.shift_remove("parent") {
            None | Some(Value::Null) => None,
            Some(Value::String(parent)) => Some(parent),
            Some(other) => return Err(Error::invalid(&format!("{at}.parent"), "an id or null", &other)),
        };
        let role = text(&mut fields, "role", at)?;
        let role = Role::of_name(&role).ok_or_else(|| {
            Error::invalid(&format!("{at}.role"), "user, assistant or tool", &Value::String(role))
        })?;
        let content = text(&mut fields, "content", at)?;
        Error::check_size(&format!("{at}.content"), content.len(), Limits::CONTENT, "bytes")?;
        let earlier = fields.shift_remove("dropped").and_then(|dropped| dropped.as_u64()).unwrap_or_default();
        let (media, dropped) = media(fields.shift_remove("media"), &format!("{at}.media"))?;
        let parts = bound(&mut fields, at)?;
        let dropped = usize::try_from(earlier).unwrap_or_default().min(Limits::MEDIA) + dropped + parts;
        Ok(Self { id, parent, role, content, media, dropped, fields })
    }
}

fn text(fields: &mut Map<String, Value>, key: &str, at: &str) -> Result<String> {
    match fields.shift_remove(key) {
        Some(Value::String(text)) => Ok(text),
        other => Err(Error::invalid(&format!("{at}.{key}"), "a text", &other.unwrap_or_default())),
    }
}

/// Reads the data URLs of images, audio and text files; returns those that are kept, and the number of
/// others.
fn media(value: Option<Value>, at: &str) -> Result<(Vec<String>, usize)> {
    let list = match value {
        None | Some(Value::Null) => return Ok((Vec::new(), 0)),
        Some(Value::Array(list)) => list,
        Some(other) => return Err(Error::invalid(at, "an array of data URLs", &other)),
    };
    Error::check_size(at, list.len(), Limits::MEDIA, "images, audio clips and files")?;
    let count = list.len();
    let mut kept = Vec::new();
    for (index, url) in list.into_iter().enumerate() {
        match url {
            Value::String(url) if is_medium(&url) => {
                kept.extend(Some(url).filter(|url| url.len() <= Limits::MEDIUM));
            }
            other => {
                let expected = "a data URL of an image, audio or a text file in base64";
                return Err(Error::invalid(&format!("{at}[{index}]"), expected, &other));
            }
        }
    }
    let dropped = count - kept.len();
    Ok((kept, dropped))
}

fn is_medium(url: &str) -> bool {
    let kind = url.strip_prefix("data:").and_then(|rest| rest.split_once(";base64,")).map(|(kind, _)| kind);
    // Text files have their name: `data:text/plain;name=notes.txt;base64,…`.
    kind.is_some_and(|kind| ["image/", "audio/", "text/plain;name="].iter().any(|of| kind.starts_with(of)))
}

/// Bounds the further fields: images and audio in `parts` are dropped first. Returns the number of dropped
/// values.
fn bound(fields: &mut Map<String, Value>, at: &str) -> Result<usize> {
    let size = |fields: &Map<String, Value>| serde_json::to_vec(fields).map_or(0, |bytes| bytes.len());
    let mut bytes = size(fields);
    let mut dropped = 0;
    if bytes > Limits::FIELDS && fields.shift_remove("parts").is_some() {
        (bytes, dropped) = (size(fields), 1);
    }
    Error::check_size(at, bytes, Limits::FIELDS, "bytes of further fields")?;
    Ok(dropped)
}

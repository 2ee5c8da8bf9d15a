//! Content of a message.

use serde_json::{Map, Value, json};

use crate::error::{Error, Result, json_type};
use crate::media::{MIME_TYPE, Media, MediaSource};
use crate::role::Role;

/// Content of a message.
#[derive(Debug, Clone, PartialEq, Default)]
pub enum Content {
    /// No content, as in a message with only tool calls.
    #[default]
    None,
    /// Plain text.
    Text(String),
    /// Text, images and audio, in order.
    Parts(Vec<Part>),
    /// A tool result other than text or parts.
    Json(Value),
}

/// A part of a message's content.
#[derive(Debug, Clone, PartialEq)]
pub enum Part {
    /// Text.
    Text(String),
    /// An image.
    Image(Media),
    /// Audio.
    Audio(Media),
    /// A part of another type, or a text part with additional keys, kept unchanged.
    Other(Value),
}

impl Content {
    /// All text of the content: parts joined without a separator; a JSON result serialized.
    pub fn text(&self) -> String {
        match self {
            Content::None => String::new(),
            Content::Text(text) => text.clone(),
            Content::Parts(parts) => parts.iter().filter_map(Part::as_text).collect(),
            Content::Json(value) => value.to_string(),
        }
    }

    /// [`text`](Self::text) with a [note](Part::note) in the place of each image and audio clip.
    pub fn text_with_notes(&self) -> String {
        let shown = |part: &Part| part.as_text().map(str::to_owned).or_else(|| part.note(None));
        match self {
            Content::Parts(parts) => parts.iter().filter_map(shown).collect(),
            _ => self.text(),
        }
    }

    /// Content of a tool result: text; parts, for a list of text and of media with their bytes in base64;
    /// other values as JSON.
    pub fn of_result(result: Value) -> Self {
        match result {
            Value::String(text) => Content::Text(text),
            list @ Value::Array(_) if looks_like_parts(&list) => {
                Self::read(list.clone(), &Role::Tool, "content").unwrap_or(Content::Json(list))
            }
            other => Content::Json(other),
        }
    }

    /// The parts; empty for content of another kind.
    pub fn parts(&self) -> &[Part] {
        match self {
            Content::Parts(parts) => parts,
            _ => &[],
        }
    }

    /// Returns true if there is no content: none, empty text, or an empty list of parts.
    pub fn is_empty(&self) -> bool {
        match self {
            Content::None => true,
            Content::Text(text) => text.is_empty(),
            Content::Parts(parts) => parts.is_empty(),
            Content::Json(_) => false,
        }
    }

    pub(crate) fn read(value: Value, role: &Role, at: &str) -> Result<Self> {
        match value {
            Value::Null => Ok(Content::None),
            Value::String(text) => Ok(Content::Text(text)),
            value if *role == Role::Tool && !looks_like_parts(&value) => Ok(Content::Json(value)),
            Value::Array(items) => {
                let read = |(index, item)| Part::read(item, &format!("{at}[{index}]"));
                items.into_iter().enumerate().map(read).collect::<Result<_>>().map(Content::Parts)
            }
            value @ Value::Object(_) => Ok(Content::Parts(vec![Part::read(value, at)?])),
            other => Err(Error::WrongType {
                at: at.to_owned(),
                expected: "text, a part, or a list of parts",
                got: json_type(&other),
            }),
        }
    }

    pub(crate) fn to_json(&self) -> Value {
        match self {
            Content::None => Value::Null,
            Content::Text(text) => text.as_str().into(),
            Content::Parts(parts) => parts.iter().map(Part::to_json).collect(),
            Content::Json(value) => value.clone(),
        }
    }
}

/// A tool may return any JSON, which is data with any keys. Only LiteRT-LM's `tool_response` parts, and lists
/// of text and of media with their bytes as chat APIs send them, are parts. A `path` is data: results of
/// tools open no files.
fn looks_like_parts(value: &Value) -> bool {
    const KEYS: [(&str, &str); 3] = [("text", "text"), ("image", "blob"), ("audio", "blob")];
    let is_response = |item: &Value| item.get("type").is_some_and(|kind| kind == "tool_response");
    let is_part = |item: &Value| {
        let is = |(kind, key): (&str, &str)| item["type"] == kind && item[key].is_string();
        let keys = 2 + usize::from(item["type"] != "text" && item[MIME_TYPE].is_string());
        item.as_object().is_some_and(|part| part.len() == keys) && KEYS.into_iter().any(is)
    };
    match value {
        Value::Array(items) => {
            !items.is_empty() && items.iter().all(|item| is_part(item) || is_response(item))
        }
        value => is_response(value),
    }
}

impl Part {
    /// The text of a text part, including one with additional keys.
    pub fn as_text(&self) -> Option<&str> {
        match self {
            Part::Text(text) => Some(text),
            Part::Other(value) if value.get("type")? == "text" => value.get("text")?.as_str(),
            _ => None,
        }
    }

    /// The type of the part: `text`, `image`, `audio`, or the part's own `type`.
    pub fn kind(&self) -> &str {
        match self {
            Part::Text(_) => "text",
            Part::Image(_) => "image",
            Part::Audio(_) => "audio",
            Part::Other(value) => value.get("type").and_then(Value::as_str).unwrap_or("unknown"),
        }
    }

    /// Text in place of an image or an audio clip that is not shown, with the reason if there is one, such as
    /// `[image: image/png, 8 bytes, not shown]`; `None` for a part of another type.
    pub fn note(&self, reason: Option<&str>) -> Option<String> {
        let (Part::Image(media) | Part::Audio(media)) = self else { return None };
        let size = match &media.source {
            MediaSource::Blob(bytes) => format!(", {} bytes", bytes.len()),
            MediaSource::Path(_) => String::new(),
        };
        let mime_type = media.mime_type().unwrap_or("unknown type");
        let reason = reason.map_or_else(String::new, |reason| format!(": {reason}"));
        Some(format!("[{}: {mime_type}{size}, not shown{reason}]", self.kind()))
    }

    fn read(value: Value, at: &str) -> Result<Self> {
        match value {
            Value::String(text) => Ok(Part::Text(text)),
            Value::Object(object) => Self::read_object(object, at),
            other => Err(Error::WrongType {
                at: at.to_owned(),
                expected: "a part (an object) or a string",
                got: json_type(&other),
            }),
        }
    }

    fn read_object(mut object: Map<String, Value>, at: &str) -> Result<Self> {
        match object.get("type").and_then(Value::as_str) {
            Some("image") => Ok(Part::Image(Media::read(object, "image", at)?)),
            Some("audio") => Ok(Part::Audio(Media::read(object, "audio", at)?)),
            Some("text") => match object.get_mut("text").map(Value::take) {
                Some(Value::String(text)) if object.len() == 2 => Ok(Part::Text(text)),
                Some(text @ Value::String(_)) => {
                    object.insert("text".to_owned(), text);
                    Ok(Part::Other(Value::Object(object)))
                }
                Some(other) => Err(Error::WrongType {
                    at: format!("{at}.text"),
                    expected: "a string",
                    got: json_type(&other),
                }),
                None => Err(Error::MissingKey { at: at.to_owned(), key: "text" }),
            },
            _ => Ok(Part::Other(Value::Object(object))),
        }
    }

    /// The part as JSON.
    pub fn to_json(&self) -> Value {
        match self {
            Part::Text(text) => json!({"type": "text", "text": text}),
            Part::Image(media) => media.to_json("image"),
            Part::Audio(media) => media.to_json("audio"),
            Part::Other(value) => value.clone(),
        }
    }
}

impl From<&str> for Content {
    fn from(text: &str) -> Self {
        Content::Text(text.to_owned())
    }
}

impl From<String> for Content {
    fn from(text: String) -> Self {
        Content::Text(text)
    }
}

impl From<Vec<Part>> for Content {
    fn from(parts: Vec<Part>) -> Self {
        Content::Parts(parts)
    }
}

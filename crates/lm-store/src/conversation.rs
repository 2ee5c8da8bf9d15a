//! Conversations: trees of messages.

use std::collections::{HashMap, HashSet};
use std::time::{SystemTime, UNIX_EPOCH};

use serde_json::{Map, Value, json};

use crate::error::{Error, Result};
use crate::id::{self, new_id};
use crate::limits::Limits;
use crate::message::Message;

/// A conversation: a tree of messages, in which each message has a selected successor.
#[derive(Clone, Debug, PartialEq)]
pub struct Conversation {
    /// Id, unique for its owner.
    pub id: String,
    /// Title.
    pub title: String,
    /// Time of its creation, in ms since 1970.
    pub created: i64,
    /// Time of its last change, in ms since 1970.
    pub updated: i64,
    /// Settings, such as `model` and `system`.
    pub settings: Map<String, Value>,
    /// Id of the selected successor by the id of a message; the first message is that of the empty id.
    pub selected: HashMap<String, String>,
    /// Messages, a parent before its successors.
    pub messages: Vec<Message>,
}

impl Conversation {
    /// Version of the JSON form.
    pub const VERSION: u64 = 1;

    /// Creates a conversation without messages, with a random id.
    pub fn new(title: &str) -> Self {
        let now = now();
        Self {
            id: new_id("c"),
            title: title_of(title),
            created: now,
            updated: now,
            settings: Map::new(),
            selected: HashMap::new(),
            messages: Vec::new(),
        }
    }

    /// The selected messages from the first to the last. Without a selection, the newest branch is taken.
    pub fn path(&self) -> Vec<&Message> {
        let by_id: HashMap<&str, &Message> =
            self.messages.iter().map(|message| (message.id.as_str(), message)).collect();
        let newest: HashMap<&str, &Message> = self
            .messages
            .iter()
            .map(|message| (message.parent.as_deref().unwrap_or_default(), message))
            .collect();
        let mut path: Vec<&Message> = Vec::new();
        let mut at = "";
        while let Some(last) = newest.get(at) {
            let selected = self.selected.get(at).and_then(|id| by_id.get(id.as_str()));
            let is_child = |child: &&&Message| child.parent.as_deref().unwrap_or_default() == at;
            let next = selected.filter(is_child).unwrap_or(last);
            path.push(next);
            at = &next.id;
        }
        path
    }

    /// Writes the conversation as JSON: a line of an export, and the form of the chat page.
    pub fn to_json(&self) -> Value {
        let nodes: Map<String, Value> =
            self.messages.iter().map(|message| (message.id.clone(), message.to_json())).collect();
        // In the order of the messages: the same conversation gives the same text.
        let places = std::iter::once("").chain(self.messages.iter().map(|message| message.id.as_str()));
        let selected: Map<String, Value> =
            places.filter_map(|id| Some((id.to_owned(), self.selected.get(id)?.as_str().into()))).collect();
        json!({
            "version": Self::VERSION,
            "id": self.id,
            "title": self.title,
            "created": self.created,
            "updated": self.updated,
            "settings": self.settings,
            "selected": selected,
            "nodes": nodes,
        })
    }

    /// Reads a conversation. Titles are cut at 200 characters, and times in the future become now.
    ///
    /// # Errors
    /// [`Error::Invalid`] and [`Error::TooLarge`], with the path of the value.
    pub fn from_json(json: Value) -> Result<Self> {
        let Value::Object(mut fields) = json else {
            return Err(Error::invalid("conversation", "an object", &json));
        };
        if let Some(version) = fields.get("version").filter(|version| **version != json!(Self::VERSION)) {
            return Err(Error::invalid("version", "1", version));
        }
        let id = match fields.remove("id") {
            Some(Value::String(id)) => id,
            other => return Err(Error::invalid("id", "a text", &other.unwrap_or_default())),
        };
        id::check(&id, "id")?;
        let nodes = match fields.remove("nodes") {
            Some(Value::Object(nodes)) => nodes,
            other => return Err(Error::invalid("nodes", "an object", &other.unwrap_or_default())),
        };
        let messages = in_order(read_nodes(nodes)?, &HashSet::new())?;
        let updated = time(fields.remove("updated"), "updated")?;
        Ok(Self {
            id,
            title: title_of(&read_title(fields.remove("title"))?),
            created: time(fields.remove("created"), "created")?.min(updated),
            updated,
            settings: read_settings(fields.remove("settings"))?,
            selected: read_selected(fields.remove("selected"))?,
            messages,
        })
    }
}

/// Milliseconds since 1970.
pub(crate) fn now() -> i64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    i64::try_from(since.as_millis()).unwrap_or(i64::MAX)
}

/// Cuts a title to one line of at most [`Limits::TITLE`] characters.
pub(crate) fn title_of(text: &str) -> String {
    let line = text.trim().lines().next().unwrap_or_default();
    line.chars().filter(|c| !c.is_control()).take(Limits::TITLE).collect()
}

pub(crate) fn read_title(value: Option<Value>) -> Result<String> {
    match value {
        None | Some(Value::Null) => Ok(String::new()),
        Some(Value::String(title)) => Ok(title),
        Some(other) => Err(Error::invalid("title", "a text", &other)),
    }
}

/// Reads a time in ms; absent, invalid or future ones are now.
pub(crate) fn time(value: Option<Value>, at: &str) -> Result<i64> {
    match value {
        None | Some(Value::Null) => Ok(now()),
        Some(Value::Number(ms)) => {
            let ms = ms.as_i64().or_else(|| ms.as_f64().map(|ms| ms as i64));
            Ok(ms.unwrap_or_default().clamp(0, now()))
        }
        Some(other) => Err(Error::invalid(at, "a number of ms", &other)),
    }
}

pub(crate) fn read_settings(value: Option<Value>) -> Result<Map<String, Value>> {
    match value {
        None | Some(Value::Null) => Ok(Map::new()),
        Some(Value::Object(settings)) => {
            let bytes = serde_json::to_vec(&settings).map_or(0, |bytes| bytes.len());
            Error::check_size("settings", bytes, Limits::SETTINGS, "bytes")?;
            Ok(settings)
        }
        Some(other) => Err(Error::invalid("settings", "an object", &other)),
    }
}

pub(crate) fn read_selected(value: Option<Value>) -> Result<HashMap<String, String>> {
    let entries = match value {
        None | Some(Value::Null) => return Ok(HashMap::new()),
        Some(Value::Object(entries)) => entries,
        Some(other) => return Err(Error::invalid("selected", "an object", &other)),
    };
    Error::check_size("selected", entries.len(), Limits::MESSAGES + 1, "messages")?;
    let entry = |(parent, child): (String, Value)| {
        if !parent.is_empty() {
            id::check(&parent, "selected")?;
        }
        match child {
            Value::String(child) => id::check(&child, "selected").map(|()| (parent, child)),
            other => Err(Error::invalid("selected", "ids", &other)),
        }
    };
    entries.into_iter().map(entry).collect()
}

pub(crate) fn read_nodes(nodes: Map<String, Value>) -> Result<Vec<Message>> {
    Error::check_size("nodes", nodes.len(), Limits::MESSAGES, "messages")?;
    let read = |(id, node): (String, Value)| {
        let at = format!("nodes.{id:.64}");
        let message = Message::read(node, &at)?;
        if message.id == id {
            return Ok(message);
        }
        Err(Error::invalid(&format!("{at}.id"), "the key of the message", &Value::String(message.id)))
    };
    nodes.into_iter().map(read).collect()
}

/// Sorts messages so that parents come first; `known` are the ids of other messages that may be parents.
///
/// # Errors
/// [`Error::Invalid`] for a message whose parent is unknown, or which follows itself.
pub(crate) fn in_order(messages: Vec<Message>, known: &HashSet<String>) -> Result<Vec<Message>> {
    let (mut sorted, mut waiting) =
        (Vec::with_capacity(messages.len()), HashMap::<String, Vec<Message>>::new());
    let mut ready: std::collections::VecDeque<Message> = std::collections::VecDeque::new();
    let mut seen = HashSet::new();
    for message in messages {
        match &message.parent {
            Some(parent) if !known.contains(parent) && !seen.contains(parent) => {
                waiting.entry(parent.clone()).or_default().push(message);
            }
            _ => ready.push_back(message),
        }
        // A file lists parents first: its order stays.
        while let Some(message) = ready.pop_front() {
            ready.extend(waiting.remove(&message.id).unwrap_or_default());
            seen.insert(message.id.clone());
            sorted.push(message);
        }
    }
    match waiting.into_values().flatten().next() {
        None => Ok(sorted),
        Some(orphan) => Err(Error::invalid(
            &format!("nodes.{}.parent", orphan.id),
            "the id of a message that is reached from the start",
            &orphan.parent.into(),
        )),
    }
}

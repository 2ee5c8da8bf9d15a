//! Changes of a conversation.

use std::collections::HashMap;

use serde_json::{Map, Value};

use crate::conversation::{Conversation, read_nodes, read_selected, read_settings, read_title, time};
use crate::error::{Error, Result};
use crate::id;
use crate::limits::Limits;
use crate::message::Message;

/// Change of a conversation, which is made as a whole or not at all. Absent parts stay as they are.
#[derive(Clone, Debug, Default)]
pub struct Change {
    /// Creates the conversation if it does not exist; otherwise that is an error.
    pub create: bool,
    /// New title.
    pub title: Option<String>,
    /// Time of its creation, for one that is created; default now.
    pub created: Option<i64>,
    /// Time of the change; default now.
    pub updated: Option<i64>,
    /// New settings.
    pub settings: Option<Map<String, Value>>,
    /// Selected successors, in addition to those of other messages.
    pub selected: HashMap<String, String>,
    /// Ids of messages to remove with all that follow them.
    pub removed: Vec<String>,
    /// New messages, and changed ones in place of those with their ids.
    pub messages: Vec<Message>,
}

impl Change {
    /// Change that creates a conversation, or adds all of it to the one of its id.
    pub fn creating(conversation: &Conversation) -> Self {
        Self {
            create: true,
            title: Some(conversation.title.clone()),
            created: Some(conversation.created),
            updated: Some(conversation.updated),
            settings: Some(conversation.settings.clone()),
            selected: conversation.selected.clone(),
            removed: Vec::new(),
            messages: conversation.messages.clone(),
        }
    }

    /// Reads a change: `create`, `title`, `created`, `updated`, `settings`, `selected`, `removed` (a list of
    /// ids) and `nodes` (messages by id). Other keys are ignored.
    ///
    /// # Errors
    /// [`Error::Invalid`] and [`Error::TooLarge`], with the path of the value.
    pub fn from_json(json: Value) -> Result<Self> {
        let Value::Object(mut fields) = json else {
            return Err(Error::invalid("change", "an object", &json));
        };
        let mut take = |key: &str| fields.remove(key).filter(|value| !value.is_null());
        let create = match take("create") {
            None => false,
            Some(Value::Bool(create)) => create,
            Some(other) => return Err(Error::invalid("create", "true or false", &other)),
        };
        let nodes = match take("nodes") {
            None => Map::new(),
            Some(Value::Object(nodes)) => nodes,
            Some(other) => return Err(Error::invalid("nodes", "an object", &other)),
        };
        Ok(Self {
            create,
            title: take("title").map(|title| read_title(Some(title))).transpose()?,
            created: take("created").map(|ms| time(Some(ms), "created")).transpose()?,
            updated: take("updated").map(|ms| time(Some(ms), "updated")).transpose()?,
            settings: take("settings").map(|settings| read_settings(Some(settings))).transpose()?,
            selected: read_selected(take("selected"))?,
            removed: read_removed(take("removed"))?,
            messages: read_nodes(nodes)?,
        })
    }
}

fn read_removed(value: Option<Value>) -> Result<Vec<String>> {
    let list = match value {
        None => return Ok(Vec::new()),
        Some(Value::Array(list)) => list,
        Some(other) => return Err(Error::invalid("removed", "an array of ids", &other)),
    };
    Error::check_size("removed", list.len(), Limits::MESSAGES, "messages")?;
    let read = |value| match value {
        Value::String(id) => id::check(&id, "removed").map(|()| id),
        other => Err(Error::invalid("removed", "an array of ids", &other)),
    };
    list.into_iter().map(read).collect()
}

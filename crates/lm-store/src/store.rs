//! The store: a connection to the database.

use std::collections::{HashMap, HashSet};
use std::path::Path;
use std::sync::{Mutex, MutexGuard, PoisonError};

use rusqlite::{Connection, OptionalExtension, Row, Transaction, TransactionBehavior, params};
use serde_json::{Map, Value};

use crate::attachments;
use crate::change::Change;
use crate::conversation::{Conversation, in_order, now, title_of};
use crate::error::{Error, Result};
use crate::found::Found;
use crate::id;
use crate::limits::Limits;
use crate::message::{Message, Role};
use crate::owner::Owner;
use crate::schema;
use crate::words;

/// Number of the newest messages, and of titles, that a search looks at.
const SEARCHED: usize = 2000;

/// Store of conversations. It may be used from any number of threads and programs.
#[derive(Debug)]
pub struct Store {
    connection: Mutex<Connection>,
}

/// Row of a list of conversations.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Summary {
    /// Id, unique for its owner.
    pub id: String,
    /// Title.
    pub title: String,
    /// Time of its creation, in ms since 1970.
    pub created: i64,
    /// Time of its last change, in ms since 1970.
    pub updated: i64,
    /// Number of messages, all branches counted.
    pub messages: usize,
}

/// Columns of a [`Summary`], of the table `c`.
const SUMMARY: &str =
    "c.id, c.title, c.created, c.updated, (SELECT count(*) FROM messages WHERE conversation = c.key)";

fn summary(row: &Row<'_>) -> rusqlite::Result<Summary> {
    let messages = row.get::<_, i64>(4)?;
    Ok(Summary {
        id: row.get(0)?,
        title: row.get(1)?,
        created: row.get(2)?,
        updated: row.get(3)?,
        messages: usize::try_from(messages).unwrap_or_default(),
    })
}

impl Store {
    /// Opens the store in a file, which is created if it does not exist, and migrated if it is older.
    ///
    /// # Errors
    /// [`Error::Open`], [`Error::Newer`], [`Error::Foreign`], [`Error::Damaged`], [`Error::Full`] and
    /// [`Error::Busy`].
    pub fn open(path: impl AsRef<Path>) -> Result<Self> {
        Ok(Self { connection: Mutex::new(schema::open(path.as_ref())?) })
    }

    /// Creates an empty store in memory, which ends with it.
    ///
    /// # Errors
    /// [`Error::Database`].
    pub fn in_memory() -> Result<Self> {
        Ok(Self { connection: Mutex::new(schema::in_memory()?) })
    }

    /// Limits the size of the database for this connection, in bytes; a change beyond it fails with
    /// [`Error::Full`]. Default: none.
    ///
    /// # Errors
    /// As [`list`](Self::list).
    pub fn limit_size(&self, bytes: u64) -> Result<()> {
        let connection = self.lock();
        let page: i64 = connection.query_row("PRAGMA page_size", [], |row| row.get(0))?;
        let pages = i64::try_from(bytes).unwrap_or(i64::MAX) / page;
        Ok(connection.query_row(&format!("PRAGMA max_page_count = {pages}"), [], |_| Ok(()))?)
    }

    /// Checks the whole database and its index.
    ///
    /// # Errors
    /// [`Error::Damaged`]; and as [`list`](Self::list).
    pub fn check(&self) -> Result<()> {
        let connection = self.lock();
        let outcome: String = connection.query_row("PRAGMA integrity_check(1)", [], |row| row.get(0))?;
        if outcome != "ok" {
            let code = rusqlite::ffi::Error::new(rusqlite::ffi::SQLITE_CORRUPT);
            return Err(Error::Damaged(rusqlite::Error::SqliteFailure(code, Some(outcome))));
        }
        connection.execute("INSERT INTO search (search) VALUES ('integrity-check')", [])?;
        Ok(())
    }

    /// The connection. After a panic it is whole: its transaction was rolled back.
    fn lock(&self) -> MutexGuard<'_, Connection> {
        self.connection.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Conversations of an owner, the last changed first: at most `limit`, without the first `offset`.
    ///
    /// # Errors
    /// [`Error::Busy`], [`Error::Damaged`] and [`Error::Database`], as for all methods.
    pub fn list(&self, owner: &Owner, limit: usize, offset: usize) -> Result<Vec<Summary>> {
        let connection = self.lock();
        let mut select = connection.prepare(&format!(
            "SELECT {SUMMARY} FROM conversations c WHERE owner = ? ORDER BY updated DESC, key DESC LIMIT ? OFFSET ?"
        ))?;
        let number = |n: usize| i64::try_from(n).unwrap_or(i64::MAX);
        let rows = select.query_map(params![owner.name(), number(limit), number(offset)], summary)?;
        Ok(rows.collect::<rusqlite::Result<_>>()?)
    }

    /// Number of conversations of an owner.
    ///
    /// # Errors
    /// As [`list`](Self::list).
    pub fn count(&self, owner: &Owner) -> Result<usize> {
        let select = "SELECT count(*) FROM conversations WHERE owner = ?";
        let count: i64 = self.lock().query_row(select, [owner.name()], |row| row.get(0))?;
        Ok(usize::try_from(count).unwrap_or_default())
    }

    /// A conversation; `None` for an unknown id.
    ///
    /// # Errors
    /// As [`list`](Self::list).
    pub fn get(&self, owner: &Owner, id: &str) -> Result<Option<Conversation>> {
        let mut connection = self.lock();
        // One state of the database for all of its parts.
        let transaction = connection.transaction()?;
        let select = "SELECT key, id, title, created, updated, settings, selected FROM conversations WHERE owner = ? AND id = ?";
        let found = transaction.query_row(select, [owner.name(), id], |row| {
            let conversation = Conversation {
                id: row.get(1)?,
                title: row.get(2)?,
                created: row.get(3)?,
                updated: row.get(4)?,
                settings: object(&row.get::<_, String>(5)?),
                selected: texts(&row.get::<_, String>(6)?),
                messages: Vec::new(),
            };
            Ok((row.get(0)?, conversation))
        });
        let Some((key, mut conversation)) = found.optional()? else { return Ok(None) };
        conversation.messages = messages(&transaction, key)?;
        // The selection of a removed message means nothing.
        let ids: HashSet<&str> = conversation.messages.iter().map(|message| message.id.as_str()).collect();
        conversation.selected.retain(|_, child| ids.contains(child.as_str()));
        Ok(Some(conversation))
    }

    /// Changes a conversation, or creates it.
    ///
    /// # Errors
    /// [`Error::Unknown`] for one that does not exist, unless the change creates it; [`Error::Invalid`] for
    /// a message whose parent does not exist or differs from that of the kept message; [`Error::TooLarge`]
    /// for too many messages; [`Error::Full`]; and as [`list`](Self::list). The conversation is then as it
    /// was.
    pub fn apply(&self, owner: &Owner, id: &str, change: &Change) -> Result<()> {
        id::check(id, "id")?;
        let mut connection = self.lock();
        let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
        let key = put_header(&transaction, owner, id, change)?;
        remove(&transaction, key, &change.removed)?;
        put_messages(&transaction, key, &change.messages)?;
        put_selected(&transaction, key, change)?;
        if change.messages.iter().any(|message| !message.media.is_empty()) {
            attachments::bound(&transaction, attachments::LIMIT)?;
        }
        Ok(transaction.commit()?)
    }

    /// Adds a conversation of an import. One that is already there as it is stays alone; one that differs
    /// from that of its id gets another id. Returns the id, or `None` if it is already there.
    ///
    /// # Errors
    /// As [`apply`](Self::apply).
    pub fn import(&self, owner: &Owner, conversation: &Conversation) -> Result<Option<String>> {
        let id = match self.get(owner, &conversation.id)? {
            None => conversation.id.clone(),
            Some(kept) if kept.messages == conversation.messages => return Ok(None),
            Some(_) => id::new_id("c"),
        };
        self.apply(owner, &id, &Change::creating(conversation))?;
        Ok(Some(id))
    }

    /// Deletes a conversation; returns false for an unknown id.
    ///
    /// # Errors
    /// As [`list`](Self::list).
    pub fn delete(&self, owner: &Owner, id: &str) -> Result<bool> {
        let delete = "DELETE FROM conversations WHERE owner = ? AND id = ?";
        Ok(self.lock().execute(delete, [owner.name(), id])? > 0)
    }

    /// Conversations in which all words of the query occur in one message or in the title, the last changed
    /// first. The last word may be a beginning. The newest 2,000 such messages are looked at.
    ///
    /// # Errors
    /// As [`list`](Self::list).
    pub fn search(&self, owner: &Owner, query: &str, limit: usize) -> Result<Vec<Found>> {
        let Some(words) = words::query(query) else { return Ok(Vec::new()) };
        let connection = self.lock();
        let mut found: HashMap<String, Found> = HashMap::new();
        for (select, is_title) in [(messages_found(), false), (titles_found(), true)] {
            let mut select = connection.prepare(&select)?;
            let mut rows = select.query(params![words, owner.name(), SEARCHED as i64])?;
            while let Some(row) = rows.next()? {
                let summary = summary(row)?;
                if found.contains_key(&summary.id) {
                    continue;
                }
                let (message, key) = (row.get(5)?, row.get::<_, i64>(6)?);
                // The texts of the shown ones only are read, below.
                let excerpt = if is_title { summary.title.clone() } else { key.to_string() };
                found.insert(summary.id.clone(), Found { summary, message, excerpt });
            }
        }
        let mut found: Vec<Found> = found.into_values().collect();
        found.sort_by(|a, b| (b.summary.updated, &b.summary.id).cmp(&(a.summary.updated, &a.summary.id)));
        found.truncate(limit);
        for one in found.iter_mut().filter(|one| one.message.is_some()) {
            let select = "SELECT content FROM messages WHERE key = CAST(? AS INTEGER)";
            let text: String = connection.query_row(select, [&one.excerpt], |row| row.get(0))?;
            one.excerpt = words::excerpt(&text, query);
        }
        Ok(found)
    }

    /// Id of the conversation of this id or title: the title as it is, the newest of several; or else the
    /// only one whose title has this text.
    ///
    /// # Errors
    /// [`Error::Unknown`] and [`Error::Ambiguous`]; and as [`list`](Self::list).
    pub fn find(&self, owner: &Owner, name: &str) -> Result<String> {
        let connection = self.lock();
        let exact = "SELECT id FROM conversations WHERE owner = ?1 AND (id = ?2 OR title = ?2) ORDER BY id = ?2 DESC, updated DESC LIMIT 1";
        if let Some(id) = connection.query_row(exact, [owner.name(), name], |row| row.get(0)).optional()? {
            return Ok(id);
        }
        let wanted = name.to_lowercase();
        let mut select = connection
            .prepare("SELECT id, title FROM conversations WHERE owner = ? ORDER BY updated DESC, key DESC")?;
        let rows = select.query_map([owner.name()], |row| Ok((row.get(0)?, row.get(1)?)))?;
        let all = rows.collect::<rusqlite::Result<Vec<(String, String)>>>()?;
        let mut like = all.into_iter().filter(|(_, title)| title.to_lowercase().contains(&wanted));
        match (like.next().filter(|_| !wanted.trim().is_empty()), like.next()) {
            (None, _) => Err(Error::Unknown { name: name.to_owned() }),
            (Some((id, _)), None) => Ok(id),
            (Some(first), Some(second)) => {
                let titles = [first, second].map(|(id, title)| format!("{id} ({title})")).to_vec();
                Err(Error::Ambiguous { name: name.to_owned(), count: 2 + like.count(), titles })
            }
        }
    }
}

fn messages_found() -> String {
    format!(
        "SELECT {SUMMARY}, m.id, m.key FROM search s JOIN messages m ON m.key = s.rowid JOIN conversations c ON c.key = m.conversation
         WHERE s.search MATCH ?1 AND s.rowid > 0 AND c.owner = ?2 ORDER BY s.rowid DESC LIMIT ?3"
    )
}

fn titles_found() -> String {
    format!(
        "SELECT {SUMMARY}, NULL, 0 FROM search s JOIN conversations c ON c.key = -s.rowid
         WHERE s.search MATCH ?1 AND s.rowid < 0 AND c.owner = ?2 ORDER BY s.rowid LIMIT ?3"
    )
}

/// JSON object of a column; an empty one if it is damaged.
fn object(text: &str) -> Map<String, Value> {
    serde_json::from_str(text).unwrap_or_default()
}

fn texts(text: &str) -> HashMap<String, String> {
    let entry = |(key, value): (String, Value)| Some((key, value.as_str()?.to_owned()));
    object(text).into_iter().filter_map(entry).collect()
}

fn messages(transaction: &Transaction<'_>, conversation: i64) -> Result<Vec<Message>> {
    let select = "SELECT key, id, parent, role, content, dropped, fields FROM messages WHERE conversation = ? ORDER BY key";
    let mut select = transaction.prepare(select)?;
    let mut rows = select.query([conversation])?;
    let mut media = attachments::get(transaction, conversation)?;
    let mut messages = Vec::new();
    while let Some(row) = rows.next()? {
        messages.push(Message {
            id: row.get(1)?,
            parent: row.get(2)?,
            role: Role::of_name(&row.get::<_, String>(3)?).unwrap_or(Role::User),
            content: row.get(4)?,
            media: media.remove(&row.get(0)?).unwrap_or_default(),
            dropped: usize::try_from(row.get::<_, i64>(5)?).unwrap_or_default(),
            fields: object(&row.get::<_, String>(6)?),
        });
    }
    Ok(messages)
}

/// Writes title, times and settings; returns the key of the conversation.
fn put_header(transaction: &Transaction<'_>, owner: &Owner, id: &str, change: &Change) -> Result<i64> {
    let title = change.title.as_deref().map(title_of);
    let json = |settings: &Map<String, Value>| Value::Object(settings.clone()).to_string();
    let settings = change.settings.as_ref().map(json);
    let updated = change.updated.unwrap_or_else(now);
    let select = "SELECT key, title FROM conversations WHERE owner = ? AND id = ?";
    let row = |row: &Row<'_>| Ok((row.get::<_, i64>(0)?, row.get::<_, String>(1)?));
    let (key, is_retitled) = match transaction.query_row(select, [owner.name(), id], row).optional()? {
        Some((key, before)) => {
            let update = "UPDATE conversations SET title = coalesce(?, title), updated = max(updated, ?), settings = coalesce(?, settings) WHERE key = ?";
            transaction.execute(update, params![title, updated, settings, key])?;
            (key, title.as_ref().is_some_and(|title| *title != before))
        }
        None if !change.create => return Err(Error::Unknown { name: id.to_owned() }),
        None => {
            let insert = "INSERT INTO conversations (owner, id, title, created, updated, settings) VALUES (?, ?, ?, ?, ?, ?)";
            let title = title.as_deref().unwrap_or_default();
            let created = change.created.unwrap_or(updated);
            let settings = settings.as_deref().unwrap_or("{}");
            transaction.execute(insert, params![owner.name(), id, title, created, updated, settings])?;
            (transaction.last_insert_rowid(), !title.is_empty())
        }
    };
    if is_retitled {
        index(transaction, -key, title.as_deref().unwrap_or_default())?;
    }
    Ok(key)
}

/// Writes the words of a text to the index, in place of earlier ones.
fn index(transaction: &Transaction<'_>, key: i64, text: &str) -> Result<()> {
    let put = "INSERT OR REPLACE INTO search (rowid, text) VALUES (?, ?)";
    transaction.execute(put, params![key, words::indexed(text)])?;
    Ok(())
}

/// Removes messages with all that follow them. The `CROSS JOIN` keeps SQLite from reading all messages for
/// each that is found.
fn remove(transaction: &Transaction<'_>, key: i64, ids: &[String]) -> Result<()> {
    let mut delete = transaction.prepare(
        "WITH RECURSIVE gone (id) AS (
             SELECT ?2 UNION SELECT m.id FROM gone CROSS JOIN messages m ON m.conversation = ?1 AND m.parent = gone.id
         ) DELETE FROM messages WHERE conversation = ?1 AND id IN (SELECT id FROM gone)",
    )?;
    for id in ids {
        delete.execute(params![key, id])?;
    }
    Ok(())
}

fn put_messages(transaction: &Transaction<'_>, key: i64, messages: &[Message]) -> Result<()> {
    if messages.is_empty() {
        return Ok(());
    }
    let known = parents(transaction, key)?;
    for message in messages {
        if known.get(&message.id).is_some_and(|parent| *parent != message.parent) {
            let at = format!("nodes.{}.parent", message.id);
            let got = message.parent.clone().into();
            return Err(Error::invalid(&at, "the parent that the kept message has", &got));
        }
    }
    let ids: HashSet<String> = known.into_keys().collect();
    let new = messages.iter().filter(|message| !ids.contains(&message.id)).count();
    Error::check_size("nodes", ids.len() + new, Limits::MESSAGES, "messages")?;
    let mut put = transaction.prepare(
        "INSERT INTO messages (conversation, id, parent, role, content, dropped, fields) VALUES (?, ?, ?, ?, ?, ?, ?)
         ON CONFLICT (conversation, id) DO UPDATE SET role = excluded.role, content = excluded.content, dropped = excluded.dropped, fields = excluded.fields
         RETURNING key",
    )?;
    let mut texts = Vec::new();
    for message in in_order(messages.to_vec(), &ids)? {
        let Message { id, parent, role, content, media, dropped, fields } = message;
        let fields = Value::Object(fields).to_string();
        let values = params![key, id, parent, role.name(), content, dropped as i64, fields];
        let message: i64 = put.query_row(values, |row| row.get(0))?;
        attachments::put(transaction, message, &media)?;
        texts.push((message, content));
    }
    // FTS5 writes a segment before each statement that may be undone: between those above, the time would
    // grow with the square of the messages.
    texts.iter().try_for_each(|(message, content)| index(transaction, *message, content))
}

/// Parents of the messages of a conversation, by their ids.
fn parents(transaction: &Transaction<'_>, key: i64) -> Result<HashMap<String, Option<String>>> {
    let mut select = transaction.prepare("SELECT id, parent FROM messages WHERE conversation = ?")?;
    let rows = select.query_map([key], |row| Ok((row.get(0)?, row.get(1)?)))?;
    Ok(rows.collect::<rusqlite::Result<_>>()?)
}

/// Adds selected successors to those that are kept.
fn put_selected(transaction: &Transaction<'_>, key: i64, change: &Change) -> Result<()> {
    if change.selected.is_empty() {
        return Ok(());
    }
    let select = "SELECT selected FROM conversations WHERE key = ?";
    let mut selected = object(&transaction.query_row(select, [key], |row| row.get::<_, String>(0))?);
    selected.extend(change.selected.iter().map(|(parent, child)| (parent.clone(), child.as_str().into())));
    if selected.len() > Limits::MESSAGES {
        let ids = parents(transaction, key)?;
        selected.retain(|_, child| child.as_str().is_some_and(|child| ids.contains_key(child)));
    }
    let update = "UPDATE conversations SET selected = ? WHERE key = ?";
    transaction.execute(update, params![Value::Object(selected).to_string(), key])?;
    Ok(())
}

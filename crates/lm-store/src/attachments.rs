//! Images and audio of messages, which are bounded in total.

use std::collections::HashMap;

use rusqlite::{Connection, Transaction, params};

use crate::error::Result;
use crate::limits::Limits;

/// Replaces the images and audio of a message.
pub(crate) fn put(transaction: &Transaction<'_>, message: i64, media: &[String]) -> Result<()> {
    transaction.execute("DELETE FROM media WHERE message = ?", [message])?;
    if media.is_empty() {
        return Ok(());
    }
    let mut insert =
        transaction.prepare("INSERT INTO media (message, position, url, bytes) VALUES (?, ?, ?, ?)")?;
    for (position, url) in media.iter().enumerate() {
        insert.execute(params![message, position as i64, url, url.len() as i64])?;
    }
    Ok(())
}

/// Images and audio of the messages of a conversation, by the keys of the messages.
pub(crate) fn get(connection: &Connection, conversation: i64) -> Result<HashMap<i64, Vec<String>>> {
    let mut select = connection.prepare(
        "SELECT message, url FROM media JOIN messages ON key = message WHERE conversation = ? ORDER BY message, position",
    )?;
    let mut rows = select.query([conversation])?;
    let mut media: HashMap<i64, Vec<String>> = HashMap::new();
    while let Some(row) = rows.next()? {
        media.entry(row.get(0)?).or_default().push(row.get(1)?);
    }
    Ok(media)
}

/// Drops those of the oldest messages until all are at most `limit` bytes.
pub(crate) fn bound(transaction: &Transaction<'_>, limit: usize) -> Result<()> {
    let total = "SELECT coalesce(sum(bytes), 0) FROM media";
    let limit = i64::try_from(limit).unwrap_or(i64::MAX);
    while transaction.query_row(total, [], |row| row.get::<_, i64>(0))? > limit {
        let oldest: i64 = transaction.query_row("SELECT min(message) FROM media", [], |row| row.get(0))?;
        let dropped = transaction.execute("DELETE FROM media WHERE message = ?", [oldest])?;
        transaction.execute(
            "UPDATE messages SET dropped = dropped + ? WHERE key = ?",
            params![dropped as i64, oldest],
        )?;
    }
    Ok(())
}

/// Limit of all images and audio.
pub(crate) const LIMIT: usize = Limits::ALL_MEDIA;

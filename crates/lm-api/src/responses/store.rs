//! Responses that later requests continue, and conversations.

use std::collections::{HashMap, HashSet, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use serde_json::{Value, json};

use crate::error::ApiError;
use crate::ids::random_id;

/// Maximum number of stored responses and conversations.
const MAX_ENTRIES: usize = 4_096;
/// Maximum memory of all of them, and of one, in bytes.
const MAX_BYTES: usize = 64 << 20;
const MAX_ENTRY_BYTES: usize = 16 << 20;

/// Store of the last responses and conversations, in memory: at most 4,096 of 64 MiB together, each of 16
/// MiB. Those that were changed least recently are removed first. Clones share it.
#[derive(Debug, Clone, Default)]
pub struct ResponseStore(Arc<Mutex<Stored>>);

/// A conversation that a response continues; no other response does until this is dropped.
#[derive(Debug)]
pub(super) struct ConversationLock {
    store: ResponseStore,
    /// Id of the conversation.
    pub id: String,
}

impl Drop for ConversationLock {
    fn drop(&mut self) {
        self.store.lock().continued.remove(&self.id);
    }
}

/// A stored response, or a conversation.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct StoredResponse {
    /// The object.
    pub object: Value,
    /// Items of the conversation up to its end; each has an id.
    pub items: Vec<Value>,
    /// Number of first items that the response answers; of a conversation all.
    pub inputs: usize,
}

#[derive(Debug, Default)]
struct Stored {
    entries: HashMap<String, Entry>,
    /// Ids with the numbers of their changes, oldest first. Older changes and removed entries may be among
    /// them.
    order: VecDeque<(String, u64)>,
    bytes: usize,
    changes: u64,
    /// Ids of conversations that a response continues.
    continued: HashSet<String>,
}

#[derive(Debug)]
struct Entry {
    stored: Arc<StoredResponse>,
    bytes: usize,
    change: u64,
}

impl ResponseStore {
    /// Returns a response or a conversation.
    pub fn get(&self, id: &str) -> Option<Arc<StoredResponse>> {
        self.lock().entries.get(id).map(|entry| entry.stored.clone())
    }

    /// Removes a response or a conversation; returns false if there is none of that id.
    pub fn remove(&self, id: &str) -> bool {
        self.lock().remove(id)
    }

    /// Ends a response that runs in the background as `failed`, with its error, or as `cancelled`.
    pub fn end(&self, id: &str, error: Option<&ApiError>) {
        self.change(id, |stored| {
            let status = if error.is_some() { "failed" } else { "cancelled" };
            stored.object["status"] = status.into();
            if let Some(ApiError { message, code, kind, .. }) = error {
                stored.object["error"] = json!({"code": code.unwrap_or(kind), "message": message});
            }
        });
    }

    /// Locks a conversation for a response; `None` if another one continues it.
    pub(super) fn lock_conversation(&self, id: &str) -> Option<ConversationLock> {
        let is_free = self.lock().continued.insert(id.to_owned());
        is_free.then(|| ConversationLock { store: self.clone(), id: id.to_owned() })
    }

    /// Returns the item of this id, of any response or conversation.
    pub(super) fn item(&self, id: &str) -> Option<Value> {
        let stored = self.lock();
        let mut items = stored.entries.values().flat_map(|entry| &entry.stored.items);
        items.find(|item| item["id"] == id).cloned()
    }

    /// Adds an entry, or replaces it; returns false if it is too large.
    pub(super) fn insert(&self, id: &str, object: Value, mut items: Vec<Value>, inputs: usize) -> bool {
        identify(&mut items, 0);
        self.lock().insert(id, StoredResponse { object, items, inputs })
    }

    /// Changes an entry; returns false if there is none of that id, or it would be too large, and is as
    /// before.
    pub(super) fn change(&self, id: &str, change: impl FnOnce(&mut StoredResponse)) -> bool {
        let mut stored = self.lock();
        let Some(entry) = stored.entries.get(id) else { return false };
        let mut changed = StoredResponse::clone(&entry.stored);
        change(&mut changed);
        stored.insert(id, changed)
    }

    fn lock(&self) -> MutexGuard<'_, Stored> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Stored {
    fn insert(&mut self, id: &str, stored: StoredResponse) -> bool {
        let bytes = memory(&stored.object) + stored.items.iter().map(memory).sum::<usize>();
        if bytes > MAX_ENTRY_BYTES {
            return false;
        }
        self.remove(id);
        self.changes += 1;
        let change = self.changes;
        self.entries.insert(id.to_owned(), Entry { stored: Arc::new(stored), bytes, change });
        self.order.push_back((id.to_owned(), change));
        self.bytes += bytes;
        if self.order.len() > 2 * MAX_ENTRIES {
            let entries = &self.entries;
            self.order.retain(|(id, change)| entries.get(id).is_some_and(|entry| entry.change == *change));
        }
        while self.entries.len() > MAX_ENTRIES || self.bytes > MAX_BYTES {
            let Some((oldest, change)) = self.order.pop_front() else { break };
            if self.entries.get(&oldest).is_some_and(|entry| entry.change == change) {
                self.remove(&oldest);
            }
        }
        true
    }

    fn remove(&mut self, id: &str) -> bool {
        let removed = self.entries.remove(id);
        self.bytes -= removed.as_ref().map_or(0, |entry| entry.bytes);
        removed.is_some()
    }
}

/// Estimate of the memory of a value, in bytes.
fn memory(value: &Value) -> usize {
    const VALUE: usize = size_of::<Value>();
    const FIELD: usize = VALUE + size_of::<String>() + 2 * size_of::<usize>();
    match value {
        Value::Null | Value::Bool(_) | Value::Number(_) => VALUE,
        Value::String(text) => VALUE + text.len(),
        Value::Array(values) => VALUE + values.iter().map(memory).sum::<usize>(),
        Value::Object(fields) => {
            VALUE + fields.iter().map(|(key, value)| FIELD + key.len() + memory(value)).sum::<usize>()
        }
    }
}

/// Gives the items from `from` on ids of their own: those that have none, or one of an item before.
pub(super) fn identify(items: &mut [Value], from: usize) {
    let mut known = HashSet::new();
    for (index, item) in items.iter_mut().enumerate() {
        let id = item["id"].as_str().filter(|id| !known.contains(*id)).map(str::to_owned);
        let id = id.unwrap_or_else(|| random_id(prefix(item)));
        if index >= from
            && let Some(fields) = item.as_object_mut()
        {
            fields.insert("id".to_owned(), id.as_str().into());
        }
        known.insert(id);
    }
}

/// Prefix of the ids of items of a kind.
fn prefix(item: &Value) -> &'static str {
    match item["type"].as_str() {
        None | Some("message") => "msg_",
        Some("reasoning") => "rs_",
        Some("function_call") => "fc_",
        Some("function_call_output") => "fco_",
        Some(_) => "item_",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn oldest_responses_are_evicted() {
        let store = ResponseStore::default();
        let item = json!({"text": "x".repeat(1 << 20)});
        for number in 0..70 {
            store.insert(&number.to_string(), Value::Null, vec![item.clone()], 1);
        }
        let kept: Vec<usize> = (0..70).filter(|number| store.get(&number.to_string()).is_some()).collect();
        assert!(kept.len() > 60 && kept.len() < 64 && kept.last() == Some(&69), "{kept:?}");
        assert!(!store.insert("large", Value::Null, vec![json!("x".repeat(MAX_ENTRY_BYTES))], 1));
        assert!(store.get("large").is_none() && store.get("69").is_some());
        // What cannot be added leaves the entry as it is.
        assert!(!store.change("69", |it| it.items.push(json!("x".repeat(MAX_ENTRY_BYTES)))));
        assert_eq!(store.get("69").map(|it| it.items.len()), Some(1));
        assert!(store.remove("69") && !store.remove("69") && store.get("69").is_none());
    }

    #[test]
    fn response_count_is_bounded() {
        let store = ResponseStore::default();
        for number in 0..=MAX_ENTRIES {
            store.insert(&number.to_string(), Value::Null, Vec::new(), 0);
        }
        assert!(store.get("0").is_none() && store.get("1").is_some());
    }

    #[test]
    fn small_values_count_with_their_memory() {
        let store = ResponseStore::default();
        let nested = Value::from(vec![json!([0]); 300_000]);
        assert!(nested.to_string().len() < MAX_ENTRY_BYTES / 8);
        assert!(!store.insert("nested", Value::Null, vec![nested], 1));
    }

    #[test]
    fn ids_are_given_once() {
        let mut items = vec![json!({"id": "a"}), json!({"id": "a"}), json!({}), json!({"id": "b"})];
        identify(&mut items, 0);
        let ids: HashSet<&str> = items.iter().filter_map(|item| item["id"].as_str()).collect();
        assert_eq!((ids.len(), &items[0]["id"], &items[3]["id"]), (4, &json!("a"), &json!("b")));
    }

    #[test]
    fn replaced_entries_take_no_memory() {
        let store = ResponseStore::default();
        store.insert("old", Value::Null, Vec::new(), 0);
        store.insert("large", Value::Null, vec![json!("x".repeat(1 << 20))], 1);
        for _ in 0..200 {
            assert!(store.change("large", |stored| stored.inputs += 1));
        }
        assert!(store.get("old").is_some());
    }

    #[test]
    fn ended_responses_have_their_error() {
        let store = ResponseStore::default();
        for id in ["failed", "cancelled"] {
            store.insert(id, json!({"status": "in_progress", "error": null}), Vec::new(), 0);
        }
        store.end("failed", Some(&ApiError::server("it broke").with_code("broken")));
        store.end("cancelled", None);
        let object = |id| store.get(id).map(|stored| stored.object.clone());
        let error = json!({"code": "broken", "message": "it broke"});
        assert_eq!(object("failed"), Some(json!({"status": "failed", "error": error})));
        assert_eq!(object("cancelled"), Some(json!({"status": "cancelled", "error": null})));
    }

    #[test]
    fn changed_entries_are_young_again() {
        let store = ResponseStore::default();
        store.insert("conversation", Value::Null, Vec::new(), 0);
        for number in 0..MAX_ENTRIES - 1 {
            store.insert(&number.to_string(), Value::Null, Vec::new(), 0);
        }
        for _ in 0..3 * MAX_ENTRIES {
            assert!(store.change("conversation", |stored| stored.inputs += 1));
        }
        store.insert("last", Value::Null, Vec::new(), 0);
        assert_eq!(store.get("conversation").map(|it| it.inputs), Some(3 * MAX_ENTRIES));
        assert!(store.get("last").is_some() && store.get("0").is_none() && store.get("1").is_some());
        let changes = store.lock().order.len();
        assert!(changes <= 2 * MAX_ENTRIES, "{changes}");
    }
}

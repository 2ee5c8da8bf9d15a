//! Responses that later requests continue.

use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use serde_json::Value;

/// Maximum number of stored responses.
const MAX_RESPONSES: usize = 4_096;
/// Maximum size of the stored responses as JSON text, in bytes.
const MAX_BYTES: usize = 64 << 20;

/// Store of the last responses, in memory: at most 4,096 responses of 64 MiB together. The oldest ones are
/// removed first. Clones share it.
#[derive(Debug, Clone, Default)]
pub struct ResponseStore(Arc<Mutex<Stored>>);

/// A stored response.
#[derive(Debug)]
#[non_exhaustive]
pub struct StoredResponse {
    /// The response object.
    pub object: Value,
    /// Items of the conversation up to its end.
    pub items: Vec<Value>,
}

#[derive(Debug, Default)]
struct Stored {
    responses: HashMap<String, (Arc<StoredResponse>, usize)>,
    /// Ids, oldest first. Those of removed responses may be among them.
    order: VecDeque<String>,
    bytes: usize,
}

impl ResponseStore {
    /// Returns a response.
    pub fn get(&self, id: &str) -> Option<Arc<StoredResponse>> {
        self.lock().responses.get(id).map(|(response, _)| response.clone())
    }

    /// Returns the item of this id, of any response.
    pub(super) fn item(&self, id: &str) -> Option<Value> {
        let stored = self.lock();
        let mut items = stored.responses.values().flat_map(|(response, _)| &response.items);
        items.find(|item| item["id"] == id).cloned()
    }

    /// Removes a response; returns false if there is none of that id.
    pub fn remove(&self, id: &str) -> bool {
        self.lock().remove(id)
    }

    pub(super) fn insert(&self, id: &str, object: Value, items: Vec<Value>) {
        let bytes = object.to_string().len() + items.iter().map(|item| item.to_string().len()).sum::<usize>();
        if bytes > MAX_BYTES {
            return;
        }
        let mut stored = self.lock();
        stored.responses.insert(id.to_owned(), (Arc::new(StoredResponse { object, items }), bytes));
        stored.order.push_back(id.to_owned());
        stored.bytes += bytes;
        while stored.order.len() > MAX_RESPONSES || stored.bytes > MAX_BYTES {
            let Some(oldest) = stored.order.pop_front() else { break };
            stored.remove(&oldest);
        }
    }

    fn lock(&self) -> MutexGuard<'_, Stored> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Stored {
    fn remove(&mut self, id: &str) -> bool {
        let removed = self.responses.remove(id);
        self.bytes -= removed.as_ref().map_or(0, |(_, bytes)| *bytes);
        removed.is_some()
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn oldest_responses_are_evicted() {
        let store = ResponseStore::default();
        let item = json!({"text": "x".repeat(1 << 20)});
        for number in 0..70 {
            store.insert(&number.to_string(), Value::Null, vec![item.clone()]);
        }
        let kept: Vec<usize> = (0..70).filter(|number| store.get(&number.to_string()).is_some()).collect();
        assert!(kept.len() > 60 && kept.len() < 64 && kept.last() == Some(&69), "{kept:?}");
        store.insert("large", Value::Null, vec![json!("x".repeat(MAX_BYTES))]);
        assert!(store.get("large").is_none() && store.get("69").is_some());
        assert!(store.remove("69") && !store.remove("69") && store.get("69").is_none());
    }

    #[test]
    fn response_count_is_bounded() {
        let store = ResponseStore::default();
        for number in 0..=MAX_RESPONSES {
            store.insert(&number.to_string(), Value::Null, Vec::new());
        }
        assert!(store.get("0").is_none() && store.get("1").is_some());
    }
}

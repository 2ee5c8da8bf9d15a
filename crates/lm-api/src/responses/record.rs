//! Recording of finished responses.

use std::sync::Arc;

use serde_json::Value;

use super::store::{ConversationLock, ResponseStore, StoredResponse, identify};

/// A response that is to be stored, added to a conversation, or both.
#[derive(Debug)]
pub(super) struct Record {
    pub store: ResponseStore,
    /// Items before the response.
    pub items: Vec<Value>,
    /// Number of the first of them, which the input does not have.
    pub known: usize,
    /// The conversation.
    pub conversation: Option<Arc<ConversationLock>>,
    /// True if later requests can continue the response by its id.
    pub is_stored: bool,
    /// True if the response is in the store already, unless it was removed or cancelled since.
    pub background: bool,
}

impl Record {
    /// Records the response: its object and the items of its output. One in the background that was removed
    /// or cancelled is not recorded.
    pub fn finish(mut self, id: &str, object: &Value, output: Vec<Value>) {
        let runs = |stored: &StoredResponse| stored.object["status"] == "in_progress";
        if self.background && !self.store.get(id).is_some_and(|stored| runs(&stored)) {
            return;
        }
        let inputs = self.items.len();
        self.items.extend(output.into_iter().filter(|item| !is_cut_call(item)));
        identify(&mut self.items, self.known);
        // The conversation is free before a client can see the end of the response.
        if let Some(conversation) = self.conversation.take() {
            let new = &self.items[self.known..];
            self.store.change(&conversation.id, |stored| {
                stored.items.extend_from_slice(new);
                stored.inputs = stored.items.len();
            });
        }
        if self.background {
            self.store.change(id, |stored| {
                if runs(stored) {
                    *stored = StoredResponse { object: object.clone(), items: self.items, inputs };
                }
            });
        } else if self.is_stored {
            self.store.insert(id, object.clone(), self.items, inputs);
        }
    }
}

/// A call that was cut off has no result that a later request could bring.
fn is_cut_call(item: &Value) -> bool {
    let is_call = item["type"] == "function_call" || item["type"] == "custom_tool_call";
    is_call && item["status"] == "incomplete"
}

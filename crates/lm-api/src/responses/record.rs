//! Recording of finished responses.

use serde_json::Value;

use super::store::{ResponseStore, StoredResponse, identify};

/// A response that is to be stored, added to a conversation, or both.
#[derive(Debug)]
pub(super) struct Record {
    pub store: ResponseStore,
    /// Items before the response.
    pub items: Vec<Value>,
    /// Number of the first of them, which the input does not have.
    pub known: usize,
    /// Id of the conversation.
    pub conversation: Option<String>,
    /// True if later requests can continue the response by its id.
    pub is_stored: bool,
    /// True if the response is in the store already, unless it was removed or cancelled since.
    pub background: bool,
}

impl Record {
    /// Records the response: its object and the items of its output.
    pub fn finish(mut self, id: &str, object: &Value, output: Vec<Value>) {
        let inputs = self.items.len();
        self.items.extend(output.into_iter().filter(|item| !is_cut_call(item)));
        identify(&mut self.items, self.known);
        if let Some(conversation) = &self.conversation {
            let new = &self.items[self.known..];
            self.store.change(conversation, |stored| {
                stored.items.extend_from_slice(new);
                stored.inputs = stored.items.len();
            });
        }
        if self.background {
            self.store.change(id, |stored| {
                if stored.object["status"] == "in_progress" {
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

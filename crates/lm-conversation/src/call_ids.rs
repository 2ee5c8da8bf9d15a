//! Ids for the calls of models that give none.

use std::collections::HashSet;

use lm_template::Message;

/// Gives ids that no call of the conversation has: `call_0`, `call_1`, and so on.
#[derive(Debug)]
pub(crate) struct CallIds {
    taken: HashSet<String>,
    next: usize,
}

impl CallIds {
    /// Notes the ids that these messages use.
    pub(crate) fn new<'a>(messages: impl IntoIterator<Item = &'a Message>) -> Self {
        let calls = messages.into_iter().flat_map(|message| &message.tool_calls);
        Self { taken: calls.filter_map(|call| call.id.clone()).collect(), next: 0 }
    }

    /// A new id.
    pub(crate) fn next(&mut self) -> String {
        loop {
            let id = format!("call_{}", self.next);
            self.next += 1;
            if self.taken.insert(id.clone()) {
                return id;
            }
        }
    }
}

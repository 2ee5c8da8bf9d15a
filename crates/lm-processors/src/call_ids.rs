//! Ids for calls of models that write none.

use std::collections::HashSet;

use lm_template::Message;

/// Generates ids that no call of a conversation has: `call_0`, `call_1`, and so on.
///
/// ```
/// use lm_processors::{FreshCallIds, Message, ParserOptions, ReadCalls, by_name};
///
/// let options = ParserOptions { calls: ReadCalls::Always, ..ParserOptions::default() };
/// let reply = r#"<tool_call>{"name": "now", "arguments": {}}</tool_call>"#;
/// let mut message = by_name("hermes").expect("a family").to_message(reply, &options)?;
/// let mut ids = FreshCallIds::new(&[] as &[Message]);
/// for call in &mut message.tool_calls {
///     call.id.get_or_insert_with(|| ids.next_id());
/// }
/// assert_eq!(message.tool_calls[0].id.as_deref(), Some("call_0"));
/// # Ok::<(), lm_processors::Error>(())
/// ```
#[derive(Debug, Clone)]
pub struct FreshCallIds {
    taken: HashSet<String>,
    next: usize,
}

impl FreshCallIds {
    /// Collects the ids used by these messages.
    pub fn new<'a>(messages: impl IntoIterator<Item = &'a Message>) -> Self {
        let calls = messages.into_iter().flat_map(|message| &message.tool_calls);
        Self { taken: calls.filter_map(|call| call.id.clone()).collect(), next: 0 }
    }

    /// Returns a new id.
    pub fn next_id(&mut self) -> String {
        loop {
            let id = format!("call_{}", self.next);
            self.next += 1;
            if self.taken.insert(id.clone()) {
                return id;
            }
        }
    }
}

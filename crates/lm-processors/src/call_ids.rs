//! Ids for calls of models that write none.

use std::collections::HashSet;
use std::collections::hash_map::RandomState;
use std::hash::BuildHasher;

use lm_template::Message;

/// Form of the ids of calls whose model writes none.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum CallIdForm {
    /// `call_0`, `call_1` and so on: unique within a conversation, and the same in each run.
    #[default]
    Counted,
    /// `call_` and 24 random hexadecimal digits: unique over conversations and restarts.
    Random,
}

/// Generates ids that no call of a conversation has: `call_0`, `call_1`, and so on, or random ones.
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
    form: CallIdForm,
    taken: HashSet<String>,
    next: usize,
}

impl FreshCallIds {
    /// Collects the ids used by these messages.
    pub fn new<'a>(messages: impl IntoIterator<Item = &'a Message>) -> Self {
        Self::of_form(CallIdForm::Counted, messages)
    }

    /// [`FreshCallIds::new`] for ids of a form.
    pub fn of_form<'a>(form: CallIdForm, messages: impl IntoIterator<Item = &'a Message>) -> Self {
        let calls = messages.into_iter().flat_map(|message| &message.tool_calls);
        Self { form, taken: calls.filter_map(|call| call.id.clone()).collect(), next: 0 }
    }

    /// Returns a new id.
    pub fn next_id(&mut self) -> String {
        loop {
            let id = match self.form {
                CallIdForm::Counted => format!("call_{}", self.next),
                CallIdForm::Random => random_id("call_"),
            };
            self.next += 1;
            if self.taken.insert(id.clone()) {
                return id;
            }
        }
    }
}

/// Returns `prefix` and 24 random hexadecimal digits: an id that is unique over restarts.
pub fn random_id(prefix: &str) -> String {
    // Each `RandomState` has its own keys, the first ones from the system's random source.
    let random = || RandomState::new().hash_one(prefix);
    format!("{prefix}{:016x}{:08x}", random(), random() >> 32)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn random_ids_are_unique() {
        let of_reply = || FreshCallIds::of_form(CallIdForm::Random, &[] as &[Message]);
        let ids: HashSet<String> = (0..500).map(|_| of_reply().next_id()).collect();
        assert!(ids.len() == 500 && ids.iter().all(|id| id.len() == 29), "{ids:?}");
    }
}

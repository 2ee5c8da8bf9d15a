//! Orders and gaps of messages that a chat template accepts.

/// Orders and gaps of messages that reach the prompt as they are: a field is true if the template accepts it.
///
/// Part of [`Capabilities`](crate::Capabilities). "Instructions" are messages of the roles `system` and
/// `developer`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Orders {
    /// The role `developer`.
    pub developer: bool,
    /// Several instructions at the start.
    pub repeated_instructions: bool,
    /// Instructions after other messages.
    pub late_instructions: bool,
    /// Instructions in a conversation whose last message is not the user's.
    pub instructions_before_reply: bool,
    /// No message of the user.
    pub no_user: bool,
    /// A first message, after the instructions, that is the assistant's.
    pub assistant_first: bool,
    /// A user message after another.
    pub repeated_user: bool,
    /// A message of the assistant after another.
    pub repeated_assistant: bool,
    /// A tool result that follows no call.
    pub results_without_call: bool,
    /// A call that no result follows.
    pub calls_without_result: bool,
    /// Other messages between a call and its result.
    pub results_apart: bool,
    /// A tool call with both text and reasoning.
    pub reasoning_beside_text: bool,
    /// Calls and results without an id.
    pub missing_ids: bool,
    /// Instructions with empty text.
    pub empty_system: bool,
    /// A user message with empty text.
    pub empty_user: bool,
    /// A message of the assistant with empty text and no calls.
    pub empty_assistant: bool,
    /// Messages without content.
    pub missing_content: MissingContent,
}

/// Messages that a template accepts without the key `content`, by kind.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MissingContent {
    /// Instructions.
    pub system: bool,
    /// Messages of the user.
    pub user: bool,
    /// Messages of the assistant without calls.
    pub assistant: bool,
    /// Messages of the assistant with calls.
    pub calls: bool,
    /// Tool results.
    pub results: bool,
}

impl Orders {
    /// Every order.
    pub const ANY: Self = Self::all(true);
    /// Only instructions, then turns of user and assistant, calls with their results.
    pub const STRICT: Self = Self::all(false);

    const fn all(accepted: bool) -> Self {
        Self {
            developer: accepted,
            repeated_instructions: accepted,
            late_instructions: accepted,
            instructions_before_reply: accepted,
            no_user: accepted,
            assistant_first: accepted,
            repeated_user: accepted,
            repeated_assistant: accepted,
            results_without_call: accepted,
            calls_without_result: accepted,
            results_apart: accepted,
            reasoning_beside_text: accepted,
            missing_ids: accepted,
            empty_system: accepted,
            empty_user: accepted,
            empty_assistant: accepted,
            missing_content: MissingContent {
                system: accepted,
                user: accepted,
                assistant: accepted,
                calls: accepted,
                results: accepted,
            },
        }
    }
}

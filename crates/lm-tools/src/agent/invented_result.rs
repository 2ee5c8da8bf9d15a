//! Replies in the form of a tool's result, which small models write in place of a call or of an answer.

use super::decisions::with_request_to_answer;
use super::driver::Driver;
use crate::error::Result;
use lm_conversation::{ToolChoice, Turn};
use lm_template::{Content, Message, Part, Role};

/// Tag before a result in the prompts of the Hermes syntax, which Qwen's models use too, and of the
/// polyfills.
const RESULT_TAG: &str = "<tool_response>";

/// Text of a reply, held back while the reply may be a result.
#[derive(Default)]
pub(super) struct HeldText(String);

impl HeldText {
    /// Adds text, and takes all of it once it is the model's own.
    pub fn push(&mut self, more: &str) -> Option<String> {
        self.0 += more;
        let text = self.0.trim_start();
        let is_held = is_result(text) || RESULT_TAG.starts_with(text);
        if is_held { None } else { self.take() }
    }

    /// Takes the text, if there is any.
    pub fn take(&mut self) -> Option<String> {
        Some(std::mem::take(&mut self.0)).filter(|text| !text.is_empty())
    }
}

/// Returns true if a reply begins as a tool's result.
pub(super) fn is_result(text: &str) -> bool {
    text.trim_start().starts_with(RESULT_TAG)
}

impl Driver {
    /// Returns true if a reply in the form of a result is discarded: once a turn, if it is a whole reply.
    pub fn discards_results(&self) -> bool {
        !self.discarded && !self.tools.is_empty() && !self.state.lock().continues_reply()
    }

    /// Discards the last reply, which is in the form of a result, and starts another one: an answer if it
    /// follows a result, which asks for it now, else a call.
    pub fn reply_again(&mut self) -> Result<Turn> {
        self.discarded = true;
        self.begin_round();
        let mut input = self.state.lock().discard_reply()?;
        self.must_answer |= ask_to_answer(&mut input);
        let mut options = self.reply_options();
        if options.tool_choice == ToolChoice::Auto {
            options.tool_choice = ToolChoice::Required;
        }
        self.state.lock().reply_to_input(input, options)
    }
}

/// Adds a request to answer to a result at the end of the input.
fn ask_to_answer(input: &mut [Message]) -> bool {
    let Some(result) = input.last_mut().filter(|last| last.role == Role::Tool) else { return false };
    match &mut result.content {
        Content::Parts(parts) => parts.push(Part::Text(with_request_to_answer(""))),
        content => *content = with_request_to_answer(&content.text()).into(),
    }
    true
}

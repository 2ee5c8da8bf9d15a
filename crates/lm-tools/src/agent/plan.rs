//! Planning of one step, without executing it.

use crate::error::Result;
use crate::model_with_tools::ModelWithTools;
use crate::steps::{AgentStep, messages_of};
use lm_conversation::IntoMessages;
use lm_template::{Message, ToolCall};

/// Next step of a turn, as the model plans it.
#[derive(Clone, Debug, PartialEq)]
#[expect(clippy::large_enum_variant, reason = "one at a time")]
pub enum Plan {
    /// It calls these tools.
    Calls(Vec<ToolCall>),
    /// It answers.
    Answer(Message),
}

impl ModelWithTools {
    /// Plans the next step of a turn, and executes nothing: the half of an agent that decides, for a custom
    /// loop.
    ///
    /// The prompt is the preface, `chat_history`, `input`, and `scratchpad`: the steps of the turn so far.
    /// All of it is plain data, so a turn can be stored between two steps and continue elsewhere.
    ///
    /// ```
    /// # use lm_tools::testing::{ScriptedReply, scripted_engine};
    /// # use serde_json::json;
    /// use lm_tools::{AgentStep, Plan, demo};
    ///
    /// # let call = ScriptedReply::call("get_weather", json!({"location": "Paris"}));
    /// # let engine = scripted_engine([call, ScriptedReply::text("It is sunny.")]);
    /// let tools = demo();
    /// let mut model = tools.bind(&engine, Default::default())?;
    /// let mut scratchpad = Vec::new();
    /// let answer = loop {
    ///     match model.plan("How is the weather in Paris?", &[], &scratchpad)? {
    ///         Plan::Answer(message) => break message,
    ///         Plan::Calls(calls) => {
    ///             let round = scratchpad.last().map_or(0, |step: &AgentStep| step.round + 1);
    ///             scratchpad.extend(calls.into_iter().map(|call| AgentStep::new(round, call.clone(), tools.call(&call))));
    ///         }
    ///     }
    /// };
    /// assert_eq!((answer.content.text().as_str(), scratchpad.len()), ("It is sunny.", 1));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// Same errors as [`invoke`](Self::invoke).
    pub fn plan(
        &mut self,
        input: impl IntoMessages,
        chat_history: &[Message],
        scratchpad: &[AgentStep],
    ) -> Result<Plan> {
        let messages = [chat_history.to_vec(), input.into_messages()?, messages_of(scratchpad)].concat();
        let message = self.invoke(messages)?.message;
        Ok(if message.tool_calls.is_empty() {
            Plan::Answer(message)
        } else {
            Plan::Calls(message.tool_calls)
        })
    }
}

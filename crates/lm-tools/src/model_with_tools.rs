//! Single model calls with tools, without an agent loop.

use crate::error::Result;
use crate::toolset::Toolset;
use lm_conversation::{Conversation, ConversationConfig, Engine, IntoMessages, Reply, TurnOptions};

/// A model with bound tools: each call of [`invoke`](ModelWithTools::invoke) returns text or tool calls, and
/// executes nothing. For the loop that also executes the calls, see [`Agent`](crate::Agent).
///
/// ```
/// # use lm_model::{LoadOptions, ModelFolder};
/// # use lm_session::{Engine, EngineSettings};
/// # let folder = ModelFolder::embedded(lm_pocket::NAME, lm_pocket::FILES);
/// # let engine = Engine::load(&folder, &LoadOptions::default(), EngineSettings::default(), &mut |_| {})?;
/// use lm_tools::{Message, demo, invocations};
///
/// let tools = demo();
/// let mut model = tools.bind(&engine, Default::default())?;
/// let mut messages = vec![Message::user("What is the stock price of GOOGL?")];
/// let reply = model.invoke(messages.clone())?;
/// messages.push(reply.message.clone());
/// messages.extend(invocations(&reply.message).iter().map(|call| tools.invoke(call)));
/// assert_eq!(model.invoke(messages)?.text(), "The stock price of GOOGL is 173.25 USD.");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct ModelWithTools {
    conversation: Conversation,
}

impl Toolset {
    /// Binds these tools to a model. They replace the preface's tools.
    ///
    /// # Errors
    /// When a conversation cannot be created from this engine and configuration.
    pub fn bind(&self, engine: &Engine, mut config: ConversationConfig) -> Result<ModelWithTools> {
        config.preface.tools = self.specs();
        Ok(ModelWithTools { conversation: Conversation::new(engine, config)? })
    }
}

impl ModelWithTools {
    /// Answers `messages`, a whole conversation after the preface: with text, with calls, or both. It is
    /// stateless between calls, but the KV cache of a common prefix is reused.
    ///
    /// # Errors
    /// When the messages cannot be read or rendered, do not fit the context, or the engine fails.
    pub fn invoke(&mut self, messages: impl IntoMessages) -> Result<Reply> {
        self.invoke_with(messages, TurnOptions::default())
    }

    /// [`invoke`](Self::invoke) with options for this turn.
    ///
    /// # Errors
    /// As [`invoke`](Self::invoke).
    pub fn invoke_with(&mut self, messages: impl IntoMessages, turn: TurnOptions) -> Result<Reply> {
        self.conversation.reset();
        Ok(self.conversation.send_with(messages, turn)?)
    }
}

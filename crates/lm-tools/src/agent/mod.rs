//! Agent loop: model → calls → results by id → model, until there is an answer.

mod event;
mod stream;
#[cfg(test)]
mod tests;

pub use event::{AgentEvent, AgentReply, AgentStep};
pub use stream::AgentStream;

use crate::{Error, Result, Toolset};
use lm_conversation::{Conversation, ConversationConfig, Engine, IntoMessages, TurnOptions};

/// An agent: a conversation that executes the model's tool calls.
///
/// A turn ends with the model's answer. If it fails, is cancelled or exceeds the round limit, the calls that ran stay in the
/// conversation with their results, so that a next turn does not repeat their side effects; if none ran, the conversation is as
/// before the turn.
///
/// ```
/// # use lm_model::{LoadOptions, ModelFolder};
/// # use lm_session::{Engine, EngineSettings};
/// # let folder = ModelFolder::embedded(lm_pocket::NAME, lm_pocket::FILES);
/// # let engine = Engine::load(&folder, &LoadOptions::default(), EngineSettings::default(), &mut |_| {})?;
/// use lm_tools::{Agent, AgentEvent, ConversationEvent, demo};
///
/// let mut agent = Agent::builder(&engine, demo()).max_rounds(4).build()?;
/// for event in agent.stream("How is the weather in Paris?")? {
///     match event? {
///         AgentEvent::Conversation(ConversationEvent::Text(text)) => print!("{text}"),
///         AgentEvent::Conversation(_) => {}
///         AgentEvent::ToolResult(message) => println!("{}", message.content.text()),
///         AgentEvent::Finished(reply) => assert_eq!(reply.steps[0].call.name, "get_weather"),
///     }
/// }
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct Agent {
    conversation: Conversation,
    tools: Toolset,
    max_rounds: usize,
}

/// Builder of an [`Agent`]; see [`Agent::builder`].
#[derive(Debug)]
pub struct AgentBuilder<'a> {
    engine: &'a Engine,
    tools: Toolset,
    config: ConversationConfig,
    max_rounds: usize,
}

impl AgentBuilder<'_> {
    /// Sets the conversation's configuration. The tools of its preface are replaced by the agent's.
    pub fn config(mut self, config: ConversationConfig) -> Self {
        self.config = config;
        self
    }

    /// Sets the maximum number of rounds of tool calls per turn. Default 8; with 0 the model may only answer.
    pub fn max_rounds(mut self, max_rounds: usize) -> Self {
        self.max_rounds = max_rounds;
        self
    }

    /// Builds the agent.
    ///
    /// # Errors
    /// When a conversation cannot be created from this engine and configuration.
    pub fn build(self) -> Result<Agent> {
        let Self { engine, tools, mut config, max_rounds } = self;
        config.preface.tools = tools.specs();
        Ok(Agent { conversation: Conversation::new(engine, config)?, tools, max_rounds })
    }
}

impl Agent {
    /// Starts building an agent on `engine` with these tools.
    pub fn builder(engine: &Engine, tools: Toolset) -> AgentBuilder<'_> {
        AgentBuilder { engine, tools, config: ConversationConfig::default(), max_rounds: 8 }
    }

    /// Runs one turn to its answer.
    ///
    /// # Errors
    /// [`Error::RoundLimit`] when the model still calls tools after the last round, [`Error::Cancelled`], or an error of
    /// the conversation. Failures of tools are not errors: the model reads them.
    pub fn run(&mut self, input: impl IntoMessages) -> Result<AgentReply> {
        self.run_with(input, TurnOptions::default())
    }

    /// [`run`](Self::run) with options, which apply to every reply of the turn; a tool choice that requires a call
    /// applies to the first reply only.
    ///
    /// # Errors
    /// As [`run`](Self::run).
    pub fn run_with(&mut self, input: impl IntoMessages, options: TurnOptions) -> Result<AgentReply> {
        for event in self.stream_with(input, options)? {
            if let AgentEvent::Finished(reply) = event? {
                return Ok(reply);
            }
        }
        Err(Error::Cancelled)
    }

    /// Runs one turn and streams its events. Dropping the stream before its end cancels the turn, and so does
    /// [`AgentStream::canceller`] from any thread.
    ///
    /// # Errors
    /// When the input cannot be read; later errors are the last item of the stream.
    pub fn stream(&mut self, input: impl IntoMessages) -> Result<AgentStream<'_>> {
        self.stream_with(input, TurnOptions::default())
    }

    /// [`stream`](Self::stream) with options, which apply to every reply of the turn; a tool choice that requires a
    /// call applies to the first reply only.
    ///
    /// # Errors
    /// As [`stream`](Self::stream).
    pub fn stream_with(&mut self, input: impl IntoMessages, options: TurnOptions) -> Result<AgentStream<'_>> {
        AgentStream::start(self, Some(input.into_messages()?), options)
    }

    /// Continues the last reply, as [`Conversation::continue_reply`] does, and runs the calls that it makes.
    ///
    /// # Errors
    /// Those of [`Conversation::continue_reply`]; later errors are the last item of the stream.
    pub fn continue_reply(&mut self, options: TurnOptions) -> Result<AgentStream<'_>> {
        AgentStream::start(self, None, options)
    }

    /// The tools.
    pub fn tools(&self) -> &Toolset {
        &self.tools
    }

    /// The conversation, with the calls and results of all turns in its history.
    pub fn conversation(&self) -> &Conversation {
        &self.conversation
    }

    /// The conversation, mutably, to change its history or to reset it.
    pub fn conversation_mut(&mut self) -> &mut Conversation {
        &mut self.conversation
    }
}

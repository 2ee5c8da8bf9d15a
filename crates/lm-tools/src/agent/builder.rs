//! Builders of an agent and of its turns.

use super::hooks::{AfterCallFn, BeforeCall};
use super::prompt::AgentPrompt;
use super::{
    AfterCall, Agent, AgentLimits, AgentReply, AgentSettings, AgentTurn, Approval, CallRequest, Decision,
    Hook, ToolChoices,
};
use crate::error::Result;
use crate::prompt::ChatPrompt;
use crate::steps::AgentStep;
use crate::toolset::Toolset;
use lm_conversation::{Conversation, ConversationConfig, Engine, IntoMessages, TurnOptions, answer_format};
use schemars::JsonSchema;
use serde::de::DeserializeOwned;
use std::sync::Arc;

/// Builder of an [`Agent`]; see [`Agent::builder`].
#[derive(Debug)]
#[must_use = "an agent is built by `build`"]
pub struct AgentBuilder {
    engine: Engine,
    tools: Toolset,
    config: ConversationConfig,
    settings: AgentSettings,
    prompt: Option<ChatPrompt>,
}

impl AgentBuilder {
    pub(super) fn new(engine: &Engine, tools: Toolset) -> Self {
        let (config, settings) = (ConversationConfig::default(), AgentSettings::default());
        Self { engine: engine.clone(), tools, config, settings, prompt: None }
    }

    /// Sets the conversation's configuration. The tools of its preface are replaced by the agent's.
    pub fn config(mut self, config: ConversationConfig) -> Self {
        self.config = config;
        self
    }

    /// Sets the prompt. The messages before `chat_history` follow those of the preface; the conversation's
    /// history is `chat_history`; the message with `{input}`, and those beside it, are the messages of each
    /// turn, with the text of the user's input; `agent_scratchpad`, the calls and results of the turn, comes
    /// last. Without `chat_history`, the history goes before the message with `{input}`. Default: the input
    /// alone.
    ///
    /// ```
    /// # use lm_tools::testing::{ScriptedReply, scripted_engine};
    /// use lm_tools::{Agent, ChatPrompt, demo};
    ///
    /// # let engine = scripted_engine([ScriptedReply::text("Hello!")]);
    /// let prompt = ChatPrompt::tool_calling_agent();
    /// let mut agent = Agent::builder(&engine, demo()).prompt(prompt).build()?;
    /// assert_eq!(agent.run("hi!")?.text(), "Hello!");
    /// assert_eq!(agent.conversation().preface().messages[0].content.text(), "You are a helpful assistant");
    /// # Ok::<(), lm_tools::Error>(())
    /// ```
    pub fn prompt(mut self, prompt: ChatPrompt) -> Self {
        self.prompt = Some(prompt);
        self
    }

    /// Sets all settings of turns, in place of earlier ones.
    pub fn settings(mut self, settings: AgentSettings) -> Self {
        self.settings = settings;
        self
    }

    /// Sets the name of the agent in traces.
    pub fn name(mut self, name: impl Into<String>) -> Self {
        self.settings.name = Some(name.into());
        self
    }

    /// Sets the limits of a turn.
    pub fn limits(mut self, limits: AgentLimits) -> Self {
        self.settings.limits = limits;
        self
    }

    /// Sets the maximum number of rounds of tool calls per turn. Default 8; with 0 the model may only answer.
    pub fn max_rounds(mut self, max_rounds: usize) -> Self {
        self.settings.limits.max_rounds = max_rounds;
        self
    }

    /// Sets the tool choice of each reply of a turn.
    pub fn tool_choices(mut self, choices: ToolChoices) -> Self {
        self.settings.tool_choices = choices;
        self
    }

    /// Adds an approval policy.
    pub fn approval(self, policy: Approval) -> Self {
        self.hook(policy)
    }

    /// Adds a function that decides on each call before it runs: see [`Hook::before_call`].
    pub fn before_call(self, decide: impl Fn(&CallRequest<'_>) -> Decision + Send + Sync + 'static) -> Self {
        self.hook(BeforeCall(decide))
    }

    /// Adds a function that reads each result before the model does: see [`Hook::after_call`].
    pub fn after_call(self, read: impl Fn(&AgentStep) -> AfterCall + Send + Sync + 'static) -> Self {
        self.hook(AfterCallFn(read))
    }

    /// Adds a hook after the existing ones.
    pub fn hook(mut self, hook: impl Hook + 'static) -> Self {
        self.settings.hooks.push(Arc::new(hook));
        self
    }

    /// Builds the agent.
    ///
    /// # Errors
    /// When a conversation cannot be created from this engine and configuration;
    /// [`Error::AgentPrompt`](crate::Error::AgentPrompt) and
    /// [`Error::MissingPromptValue`](crate::Error::MissingPromptValue) for an unusable prompt.
    pub fn build(self) -> Result<Agent> {
        let Self { engine, tools, mut config, settings, prompt } = self;
        config.preface.tools = tools.specs();
        let prompt = prompt.map(AgentPrompt::new).transpose()?.map(|(prompt, before)| {
            config.preface.messages.extend(before);
            prompt
        });
        Ok(Agent { conversation: Conversation::new(&engine, config)?, tools, settings, prompt, turn: None })
    }
}

/// A turn that is about to start; see [`Agent::turn`].
///
/// ```
/// # use lm_tools::testing::{ScriptedReply, scripted_engine};
/// # use serde_json::json;
/// use lm_tools::{Agent, AgentLimits, demo};
///
/// # let call = ScriptedReply::call("get_weather", json!({"location": "Paris"}));
/// # let engine = scripted_engine([call, ScriptedReply::text("It is sunny.")]);
/// let mut agent = Agent::builder(&engine, demo()).build()?;
/// let weather = agent.tools().select(["get_weather"])?; // A small model chooses better among few tools.
/// let limits = AgentLimits { max_rounds: 2, ..AgentLimits::default() };
/// let reply = agent.turn("How is the weather in Paris?").tools(weather).limits(limits).run()?;
/// assert_eq!(reply.text(), "It is sunny.");
/// # Ok::<(), lm_tools::Error>(())
/// ```
#[must_use = "a turn runs after `start`"]
pub struct AgentTurnBuilder<'a, M> {
    agent: &'a mut Agent,
    input: M,
    options: TurnOptions,
    settings: AgentSettings,
    tools: Toolset,
}

impl<'a, M: IntoMessages> AgentTurnBuilder<'a, M> {
    pub(super) fn new(agent: &'a mut Agent, input: M) -> Self {
        let (settings, tools) = (agent.settings.clone(), agent.tools.clone());
        Self { agent, input, options: TurnOptions::default(), settings, tools }
    }

    /// Sets the options of the model's replies.
    pub fn options(self, options: TurnOptions) -> Self {
        Self { options, ..self }
    }

    /// Sets the settings of this turn, in place of the agent's.
    pub fn settings(self, settings: AgentSettings) -> Self {
        Self { settings, ..self }
    }

    /// Sets the limits of this turn, in place of the agent's.
    pub fn limits(mut self, limits: AgentLimits) -> Self {
        self.settings.limits = limits;
        self
    }

    /// Sets the tools of this turn, in place of the agent's, such as a [selection](Toolset::select): the
    /// model sees only these.
    pub fn tools(self, tools: Toolset) -> Self {
        Self { tools, ..self }
    }

    /// Starts the turn: [`Agent::stream`].
    ///
    /// # Errors
    /// Same errors as [`Agent::stream`].
    pub fn start(self) -> Result<AgentTurn> {
        let Self { agent, input, options, settings, tools } = self;
        let input = input.into_messages()?;
        let input = match &agent.prompt {
            Some(prompt) => prompt.apply(input)?,
            None => input,
        };
        agent.start(Some(input), options, settings, tools)
    }

    /// Runs the turn to its end: [`Agent::run`].
    ///
    /// # Errors
    /// Same errors as [`Agent::run`].
    pub fn run(self) -> Result<AgentReply> {
        self.start()?.into_reply()
    }
    /// Runs the turn to an answer of a Rust type, in place of the response format of the options:
    /// [`Agent::run_as`].
    ///
    /// # Errors
    /// Same errors as [`Agent::run_as`].
    pub fn run_as<T: JsonSchema + DeserializeOwned>(mut self) -> Result<T> {
        self.options.response_format = Some(answer_format::<T>());
        let text = self.run()?.answered()?.text();
        let invalid = |error: serde_json::Error| lm_conversation::Error::InvalidAnswer {
            path: String::new(),
            message: error.to_string(),
            text: text.clone(),
        };
        Ok(serde_json::from_str(&text).map_err(invalid)?)
    }
}

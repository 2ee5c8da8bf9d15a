//! Agent loop: model → calls → results by id → model, until there is an answer.

mod builder;
mod calls;
mod decisions;
mod driver;
mod event;
mod external;
mod hooks;
mod invented_result;
mod limits;
mod plan;
mod prompt;
mod reply;
mod settings;
mod spans;
mod state;
#[cfg(test)]
mod tests;
mod turn;

pub use builder::{AgentBuilder, AgentTurnBuilder};
pub use event::AgentEvent;
pub use hooks::{
    AfterCall, Approval, ApprovalRequest, Audit, AuditEntry, CallRequest, Decision, Hook, Replay,
};
pub use limits::{AgentLimits, AtLimit, OnRepeat};
pub use plan::Plan;
pub use reply::AgentReply;
pub use settings::{AgentSettings, ToolChoices};
pub use turn::{AgentStream, AgentTurn};

use crate::error::Result;
use crate::toolset::Toolset;
use driver::{Driver, Events};
use external::ExternalCall;
use lm_conversation::{Conversation, Engine, IntoMessages, TurnOptions};
use lm_template::{Message, ToolCall};
use prompt::AgentPrompt;
use schemars::JsonSchema;
use serde::de::DeserializeOwned;
use state::{Shared, TurnState};
use std::fmt;

/// An agent: a conversation that executes the model's tool calls.
///
/// A turn ends with the model's answer, at a limit, or at calls that the caller runs; [`AgentReply::stop`]
/// names the reason. A turn that fails, is cancelled or is dropped leaves the calls that ran in the
/// conversation with their results, so that a next turn does not repeat their side effects; if none ran, the
/// conversation is as before the turn.
///
/// A reply in the form of a tool's result (`<tool_response>…`) is discarded once a turn: small models write
/// one in place of a call, which the next reply then has to make, or in place of an answer, for which they
/// are asked again. [`AgentReply::finished`] counts it.
///
/// ```
/// # use lm_model::{LoadOptions, ModelFolder};
/// # use lm_session::{Engine, EngineSettings};
/// # let folder = ModelFolder::embedded(lm_pocket::NAME, lm_pocket::FILES);
/// # let engine = Engine::load(&folder, &LoadOptions::default(), EngineSettings::default(), &mut |_| {})?;
/// use lm_tools::{Agent, AgentEvent, demo};
///
/// let mut agent = Agent::builder(&engine, demo()).max_rounds(4).build()?;
/// for event in agent.stream("How is the weather in Paris?")? {
///     match event? {
///         AgentEvent::Text(text) => print!("{text}"),
///         AgentEvent::ToolResult(step) => println!("{}", step.result.content.text()),
///         AgentEvent::Finished(reply) => assert_eq!(reply.steps[0].call.name, "get_weather"),
///         _ => {}
///     }
/// }
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct Agent {
    conversation: Conversation,
    tools: Toolset,
    settings: AgentSettings,
    prompt: Option<AgentPrompt>,
    /// The last turn, which may still run.
    turn: Option<Shared>,
}

impl Agent {
    /// Starts building an agent on `engine` with these tools.
    pub fn builder(engine: &Engine, tools: Toolset) -> AgentBuilder {
        AgentBuilder::new(engine, tools)
    }

    /// Runs one turn to its end. Failures of tools are not errors: the model reads them. Nor are limits: see
    /// [`AgentReply::stop`] and [`AgentReply::answered`]. After a turn that ended at [external
    /// calls](crate::StopReason::ExternalCalls), the input begins with their results.
    ///
    /// # Errors
    /// [`Error::Cancelled`](crate::Error::Cancelled),
    /// [`Error::MissingResults`](crate::Error::MissingResults),
    /// [`Error::UnknownResult`](crate::Error::UnknownResult), or an error of the conversation.
    pub fn run(&mut self, input: impl IntoMessages) -> Result<AgentReply> {
        self.run_with(input, TurnOptions::default())
    }

    /// [`run`](Self::run) with options, which apply to every reply of the turn; a tool choice that requires a
    /// call applies to the first reply only.
    ///
    /// # Errors
    /// As [`run`](Self::run).
    pub fn run_with(&mut self, input: impl IntoMessages, options: TurnOptions) -> Result<AgentReply> {
        self.stream_with(input, options)?.into_reply()
    }

    /// [`run`](Self::run) for async code.
    ///
    /// # Errors
    /// As [`run`](Self::run).
    pub async fn run_async(&mut self, input: impl IntoMessages) -> Result<AgentReply> {
        self.stream(input)?.await
    }

    /// Runs one turn to an answer of a Rust type, which is generated to the type's JSON schema. The model may
    /// call tools before.
    ///
    /// ```
    /// # use lm_tools::testing::{ScriptedReply, scripted_engine};
    /// # use lm_tools::{Agent, demo};
    /// # use serde_json::json;
    /// #[derive(schemars::JsonSchema, serde::Deserialize)]
    /// struct Weather {
    ///     place: String,
    ///     fahrenheit: i32,
    /// }
    ///
    /// # let call = ScriptedReply::call("get_weather", json!({"location": "Paris"}));
    /// # let engine = scripted_engine([call, ScriptedReply::text(r#"{"place":"Paris","fahrenheit":72}"#)]);
    /// # let mut agent = Agent::builder(&engine, demo()).build()?;
    /// let weather: Weather = agent.run_as("How is the weather in Paris?")?;
    /// assert_eq!((weather.place.as_str(), weather.fahrenheit), ("Paris", 72));
    /// # Ok::<(), lm_tools::Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`run`](Self::run); [`Error::Stopped`](crate::Error::Stopped) when the turn ended without an
    /// answer; [`lm_conversation::Error::InvalidAnswer`] for an answer that a token limit has cut.
    pub fn run_as<T: JsonSchema + DeserializeOwned>(&mut self, input: impl IntoMessages) -> Result<T> {
        self.turn(input).run_as()
    }

    /// Starts one turn, which streams its events: see [`AgentTurn`]. A turn that still runs is cancelled
    /// first.
    ///
    /// # Errors
    /// When the input cannot be read or rendered, or does not have the results of the calls that wait for
    /// them; later errors are the last item of the turn.
    pub fn stream(&mut self, input: impl IntoMessages) -> Result<AgentTurn> {
        self.turn(input).start()
    }

    /// [`stream`](Self::stream) with options, which apply to every reply of the turn; a tool choice that
    /// requires a call applies to the first reply only.
    ///
    /// # Errors
    /// As [`stream`](Self::stream).
    pub fn stream_with(&mut self, input: impl IntoMessages, options: TurnOptions) -> Result<AgentTurn> {
        self.turn(input).options(options).start()
    }

    /// Starts a turn with its own options, settings and tools: see [`AgentTurnBuilder`].
    pub fn turn<M: IntoMessages>(&mut self, input: M) -> AgentTurnBuilder<'_, M> {
        AgentTurnBuilder::new(self, input)
    }

    /// Continues the last reply, as [`Conversation::continue_reply`] does, and runs the calls that it makes.
    ///
    /// # Errors
    /// Same errors as [`Conversation::continue_reply`]; later errors are the last item of the turn.
    pub fn continue_reply(&mut self, options: TurnOptions) -> Result<AgentTurn> {
        let (settings, tools) = (self.settings.clone(), self.tools.clone());
        self.start(None, options, settings, tools)
    }

    /// Starts a turn; without input it continues the last reply.
    fn start(
        &mut self,
        input: Option<Vec<Message>>,
        mut options: TurnOptions,
        settings: AgentSettings,
        tools: Toolset,
    ) -> Result<AgentTurn> {
        let decided = self.end_turn();
        self.conversation.abort();
        options.cancel = options.cancel.child();
        options.deadline =
            [options.deadline, driver::after(settings.limits.timeout)].into_iter().flatten().min();
        let conversation = self.conversation.share().with_tools(tools.specs());
        let span = spans::invoke_agent(settings.name.as_deref(), conversation.engine().name());
        let state = Shared::new(TurnState::new(conversation, settings.hooks.clone(), &options));
        let (events, cancel) = (Events::default(), options.cancel.clone());
        let mut driver = Driver::new(state.clone(), tools, settings, options, events.clone());
        let first = driver.first(input, &decided)?;
        self.turn = Some(state.clone());
        Ok(AgentTurn::new(Box::pin(driver.run(first)), events, state, cancel, span))
    }

    /// Ends a turn that still runs. Returns the calls that the last turn left to the caller.
    fn end_turn(&mut self) -> Vec<ExternalCall> {
        let Some(turn) = &self.turn else { return Vec::new() };
        turn.end();
        turn.lock().external.clone()
    }

    /// Calls whose results must start the next input, with their ids and arguments: the external calls of the
    /// last turn, also in a conversation that was saved and restored. Empty while a turn runs. A hook's
    /// change of arguments is not saved: after a restore the calls have the model's arguments.
    ///
    /// ```
    /// use lm_tools::testing::{ScriptedReply, scripted_engine};
    /// use lm_tools::{Agent, ToolSpec, Toolset};
    /// use serde_json::json;
    ///
    /// let tools = || Toolset::new().with_external(ToolSpec::new("open", "Opens a file.", json!({"type": "object"})));
    /// let mut agent = Agent::builder(&scripted_engine([ScriptedReply::call("open", json!({}))]), tools()?).build()?;
    /// agent.run("Open my notes.")?;
    /// let saved = agent.conversation().saved();
    /// // In another process:
    /// let mut agent = Agent::builder(&scripted_engine([]), tools()?).build()?;
    /// agent.conversation_mut().restore(saved)?;
    /// assert_eq!(agent.waiting_calls()[0].name, "open");
    /// # Ok::<(), lm_tools::Error>(())
    /// ```
    pub fn waiting_calls(&self) -> Vec<ToolCall> {
        let turn = self.turn.as_ref().map(Shared::lock);
        if turn.as_ref().is_some_and(|turn| turn.is_open()) {
            return Vec::new();
        }
        let decided = turn.as_ref().map_or(&[][..], |turn| &turn.external);
        let history = self.conversation.history();
        let as_decided = |call: &ToolCall| {
            let decided = decided.iter().find(|decided| decided.call == *call);
            decided.map_or_else(|| call.clone(), ExternalCall::handed_over)
        };
        external::waiting_calls(&history).map(as_decided).collect()
    }

    /// The tools.
    pub fn tools(&self) -> &Toolset {
        &self.tools
    }

    /// Sets the tools of later turns.
    pub fn set_tools(&mut self, tools: Toolset) {
        self.tools = tools;
    }

    /// The settings of turns.
    pub fn settings(&self) -> &AgentSettings {
        &self.settings
    }

    /// The conversation, with the calls and results of all turns in its history.
    pub fn conversation(&self) -> &Conversation {
        &self.conversation
    }

    /// The conversation, mutably, to change its history or to reset it. A turn that still runs is cancelled.
    pub fn conversation_mut(&mut self) -> &mut Conversation {
        self.end_turn();
        &mut self.conversation
    }
}

impl fmt::Debug for Agent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Agent")
            .field("conversation", &self.conversation)
            .field("tools", &self.tools)
            .field("settings", &self.settings)
            .finish_non_exhaustive()
    }
}
